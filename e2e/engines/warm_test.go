package engines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// caching is e with its prefix cache on, which it tells of.
func (e engine) caching() engine {
	command := e.command
	e.command = func(t *testing.T, dir string, port int) *exec.Cmd {
		cmd := command(t, dir, port)
		cmd.Args = append(slices.DeleteFunc(cmd.Args, func(s string) bool { return s == "--no-enable-prefix-caching" }), "--enable-prefix-caching", "--enable-prompt-tokens-details")
		return cmd
	}
	return e
}

// talker is one conversation, as its client keeps it.
type talker struct {
	user   *user
	told   []map[string]string
	cached int // tokens that the engine said it had, of all turns
}

// turn asks the next question.
func (k *talker) turn(question string) error {
	k.told = append(k.told, map[string]string{"role": "user", "content": question})
	body, err := json.Marshal(map[string]any{"model": k.user.model, "max_tokens": 24, "ignore_eos": true, "messages": k.told})
	if err != nil {
		return err
	}
	resp, err := k.user.http.Post(k.user.url+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var got struct {
		Choices []struct {
			Message struct{ Content string }
		}
		Usage struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK || len(got.Choices) == 0 {
		return fmt.Errorf("status %d, %d choices: %v", resp.StatusCode, len(got.Choices), err)
	}
	k.cached += got.Usage.Details.Cached
	k.told = append(k.told, map[string]string{"role": "assistant", "content": got.Choices[0].Message.Content})
	return nil
}

// TestCachedTokensArePredicted has people chat with vLLM, whose prefix cache is on:
// what Pacer expects to be cached is what the engine tells.
func TestCachedTokensArePredicted(t *testing.T) {
	const talks, turns, most = 24, 5, 0.05
	e := vllm.caching().start(t)
	g := gateway(t, fmt.Sprintf("routes: [ { model: chat, targets: [ { backend: %[1]s, model: %[1]s } ] } ]\n", e.name), e)
	systems := []string{prompt(200), prompt(200), prompt(200)}
	u := newUser(g.Ready["data"]+"/v1", "chat")
	var mu sync.Mutex
	told := 0
	var people sync.WaitGroup
	for person := range 3 {
		people.Go(func() {
			for i := range talks / 3 {
				k := talker{user: u, told: []map[string]string{{"role": "system", "content": systems[(person+i)%len(systems)]}}}
				for range turns {
					if err := k.turn(prompt(30)); err != nil {
						t.Error(err)
						return
					}
				}
				mu.Lock()
				told += k.cached
				mu.Unlock()
			}
		})
	}
	people.Wait()
	var page string
	sum := func(kind string) float64 {
		return proctest.Sum(page, fmt.Sprintf("pacer_prefix_tokens_total{backend=%q,kind=%q}", e.name, kind))
	}
	proctest.Until(t, "the last answer is counted", func() bool {
		page = string(proctest.Get(t, g.Ready["admin"]+"/metrics"))
		return strings.Contains(page, "pacer_prefix_tokens_total") && sum("reported") >= float64(told)
	})
	predicted, reported := sum("predicted"), sum("reported")
	t.Logf("of %d turns %.0f tokens were predicted to be cached, %.0f were (%+.2f %%)", talks*turns, predicted, reported, 100*(predicted/reported-1))
	if reported < 1000 {
		t.Fatalf("%.0f tokens were cached: too few to show anything", reported)
	}
	if math.Abs(predicted/reported-1) > most {
		t.Errorf("%.0f tokens were predicted to be cached, %.0f were: off by more than %.0f %%", predicted, reported, 100*most)
	}
}

package engines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// user sends requests to one URL and writes down when what arrived. It is safe
// for concurrent use.
type user struct {
	url   string // ends in /v1
	model string
	http  *http.Client
}

func newUser(url, model string) *user {
	return &user{url: url, model: model, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
}

// answer is what a user saw of one request.
type answer struct {
	status   int
	err      error
	tokens   int         // of the answer, by the engine's usage
	prompt   int         // of the prompt, by the same
	arrivals []time.Time // of chunks with text
}

// served reports whether the answer came whole.
func (a answer) served() bool {
	return a.err == nil && a.status == http.StatusOK && len(a.arrivals) > 0
}

// decode is how long it took from the first token to the last.
func (a answer) decode() time.Duration { return a.arrivals[len(a.arrivals)-1].Sub(a.arrivals[0]) }

// kept reports whether the answer kept a floor, in tokens/s, with its grace.
func (a answer) kept(floor float64, grace time.Duration) bool {
	after := float64(a.tokens) * float64(len(a.arrivals)-1) / float64(len(a.arrivals))
	return a.decode().Seconds() <= after/floor+grace.Seconds()
}

// ask sends one request and reads its answer to the end. words is the size of the
// prompt in short words, tokens that of the answer.
func (u *user) ask(ctx context.Context, words, tokens int) (a answer) {
	body, _ := json.Marshal(map[string]any{
		"model": u.model, "stream": true, "max_tokens": tokens, "ignore_eos": true, "stream_options": map[string]bool{"include_usage": true},
		"messages": []map[string]string{{"role": "user", "content": prompt(words)}},
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := u.http.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	a.status = resp.StatusCode
	if a.status != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		a.err = fmt.Errorf("%s: %s", resp.Status, text)
		return a
	}
	a.err = a.read(resp.Body)
	return a
}

func (a *answer) read(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return nil
		}
		now := time.Now()
		var chunk struct {
			Choices []struct {
				Delta struct{ Content, ReasoningContent string }
			}
			Usage *struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return err
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content+c.Delta.ReasoningContent != "" {
				a.arrivals = append(a.arrivals, now)
			}
		}
		if chunk.Usage != nil {
			a.tokens, a.prompt = chunk.Usage.Completion, chunk.Usage.Prompt
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// prompt is a text of so many made-up words, no two texts alike.
func prompt(words int) string {
	var b strings.Builder
	for range words {
		for range 2 {
			b.WriteByte("bdfgklmnprst"[rand.IntN(12)])
			b.WriteByte("aeiou"[rand.IntN(5)])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// closed keeps n users busy with equal requests until each has had its number of
// answers, and returns all answers.
func closed(t *testing.T, u *user, n, each int, words, tokens func() int) []answer {
	t.Helper()
	var mu sync.Mutex
	var all []answer
	var users sync.WaitGroup
	for range n {
		users.Go(func() {
			for range each {
				a := u.ask(t.Context(), words(), tokens())
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
		})
	}
	users.Wait()
	return all
}

// bursts sends groups of 1 to slots users with mixed prompts and answers, each
// group a while after the one before, until tokens have come back.
func bursts(t *testing.T, u *user, tokens int, pause time.Duration) []answer {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	var all []answer
	var running sync.WaitGroup
	got, inFlight := 0, 0
	enough := func() bool { mu.Lock(); defer mu.Unlock(); return got >= tokens }
	for !enough() && !t.Failed() {
		for range 1 + random.IntN(slots) {
			mu.Lock()
			full := inFlight >= slots
			if !full {
				inFlight++
			}
			mu.Unlock()
			if full {
				break
			}
			words, length := 8+random.IntN(120), 24+random.IntN(140)
			running.Go(func() {
				a := u.ask(t.Context(), words, length)
				mu.Lock()
				defer mu.Unlock()
				all, got, inFlight = append(all, a), got+a.tokens, inFlight-1
				if a.err != nil && t.Context().Err() == nil {
					t.Errorf("a request of the bursts: %v", a.err)
				}
			})
		}
		select {
		case <-time.After(time.Duration(random.Float64() * 2 * float64(pause))):
		case <-t.Context().Done():
		}
	}
	running.Wait()
	return all
}

package routers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/arena"
)

// tally is what the clients of a load saw.
type tally struct {
	mu                          sync.Mutex
	offered, met, served, below int // below: served, and slower than the floor
	failed                      []string
	ttft                        []float64 // seconds
}

// quantile is the q-th of the times to the first token.
func (y *tally) quantile(q float64) float64 {
	slices.Sort(y.ttft)
	if len(y.ttft) == 0 {
		return 0
	}
	return y.ttft[min(int(q*float64(len(y.ttft))), len(y.ttft)-1)]
}

// talk is one conversation as it is played: each turn waits for the answer before it,
// and says again what the engine answered.
type talk struct {
	begin   time.Time
	url     string
	talks   arena.Talks
	turns   []arena.Arrival
	answers []string
}

// play goes through the turns of t.
func (t *talk) play(ctx context.Context, y *tally) {
	for _, a := range t.turns {
		select {
		case <-time.After(time.Until(t.begin.Add(a.At))):
		case <-ctx.Done():
			return
		}
		answer, err := t.ask(ctx, &a, y)
		if err != nil {
			y.mu.Lock()
			y.failed = append(y.failed, err.Error())
			y.mu.Unlock()
			answer = arena.Message{ID: a.Turn.Answer, Tokens: a.OutputTokens}.Text() // who is refused goes on as if it had been said
		}
		t.answers = append(t.answers, answer)
	}
}

// body is the request of a.
func (t *talk) body(a *arena.Arrival) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	said, list := 0, []message{}
	for i, m := range a.Turn.Messages {
		text := ""
		if role := t.talks.Role(i); role == "assistant" {
			text, said = t.answers[said], said+1
		} else {
			text = m.Text()
		}
		list = append(list, message{t.talks.Role(i), text})
	}
	b, err := json.Marshal(map[string]any{
		"model": model, "messages": list, "max_tokens": a.OutputTokens, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// ask sends one turn, and counts what came of it.
func (t *talk) ask(ctx context.Context, a *arena.Arrival, y *tally) (answer string, err error) {
	y.mu.Lock()
	y.offered++
	y.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url+"/v1/chat/completions", bytes.NewReader(t.body(a)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	sent := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	var first, last time.Time
	pieces, text := 0, strings.Builder{}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: {"))
		if !ok {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if json.Unmarshal(append([]byte("{"), data...), &chunk) != nil || len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			continue
		}
		if last = time.Now(); pieces == 0 {
			first = last
		}
		pieces++
		text.WriteString(chunk.Choices[0].Delta.Content)
	}
	if err := lines.Err(); err != nil || pieces == 0 {
		return "", fmt.Errorf("%d pieces of an answer, and %v", pieces, err)
	}
	late := (last.Sub(first) - grace).Seconds() > float64(pieces-1)/floor
	y.mu.Lock()
	defer y.mu.Unlock()
	y.served++
	y.ttft = append(y.ttft, first.Sub(sent).Seconds())
	if late {
		y.below++
	} else {
		y.met++
	}
	return text.String(), nil
}

// play sends a load of conversations to url, and returns when all have ended.
func play(t *testing.T, url string, load string, rate float64) *tally {
	t.Helper()
	talks, ok := arena.NamedTalks(load, rate)
	if !ok {
		t.Fatalf("no load %q", load)
	}
	talks.Duration, talks.Seed = length, 1
	turns := map[float64][]arena.Arrival{}
	for a := range talks.Arrivals() {
		turns[a.Turn.Session] = append(turns[a.Turn.Session], a)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length+2*time.Minute)
	defer cancel()
	var y tally
	var all sync.WaitGroup
	begin := time.Now().Add(time.Second)
	for _, list := range turns {
		one := talk{begin: begin, url: url, talks: talks, turns: list}
		all.Go(func() { one.play(ctx, &y) })
	}
	all.Wait()
	return &y
}

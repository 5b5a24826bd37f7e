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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/timings"
)

// user sends requests to one URL and writes down when what arrived. It is safe
// for concurrent use.
type user struct {
	url   string // ends in /v1
	model string
	http  *http.Client
}

// origin is what all times are since.
var origin = time.Now()

func newUser(url, model string) *user {
	return &user{url: url, model: model, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}}
}

// answer is what a user saw of one request.
type answer struct {
	timings.Answer
	status    int
	err       error
	predicted float64 // tokens/s that Pacer said at admission; 0 = it said none
}

// delivered is what the answer got of what was predicted.
func (a answer) delivered() float64 {
	return a.After() / (a.Last() - a.First()).Seconds() / a.predicted
}

// served reports whether the answer came whole.
func (a answer) served() bool {
	return a.err == nil && a.status == http.StatusOK && len(a.Arrivals) > 0
}

// kept reports whether the answer kept a floor, in tokens/s, with its grace.
func (a answer) kept(floor float64, grace time.Duration) bool {
	return (a.Last() - a.First()).Seconds() <= a.After()/floor+grace.Seconds()
}

// whole returns those that came whole.
func whole(all []answer) (out []timings.Answer) {
	for _, a := range all {
		if a.served() {
			out = append(out, a.Answer)
		}
	}
	return out
}

// ask sends one request and reads its answer to the end. words is the size of the
// prompt in short words, tokens that of the answer. It asks for a count in each
// chunk, which says more of an engine that has it; Pacer goes by that only where
// it is told to.
func (u *user) ask(ctx context.Context, words, tokens int) (a answer) {
	body, _ := json.Marshal(map[string]any{
		"model": u.model, "stream": true, "max_tokens": tokens, "ignore_eos": true,
		"stream_options": map[string]bool{"include_usage": true, "continuous_usage_stats": true},
		"messages":       []map[string]string{{"role": "user", "content": prompt(words)}},
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	a.Guess, a.Sent = openai.EstimatePromptTokens(body), time.Since(origin)
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
	a.predicted, _ = strconv.ParseFloat(resp.Header.Get("X-Pacer-Predicted-Tps"), 64)
	a.err = a.read(&stamped{body: resp.Body})
	return a
}

// stamped reads a body and knows when it last brought something.
type stamped struct {
	body io.Reader
	at   time.Duration
}

// Read implements io.Reader.
func (s *stamped) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.at = time.Since(origin)
	return n, err
}

func (a *answer) read(body *stamped) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.Ended = body.at
			return nil
		}
		if err := a.event(body.at, data); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// event takes note of one event of the answer.
func (a *answer) event(now time.Duration, data string) error {
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
	text := 0
	for _, c := range chunk.Choices {
		text += len(c.Delta.Content) + len(c.Delta.ReasoningContent)
	}
	if chunk.Usage != nil {
		a.Tokens, a.Prompt = chunk.Usage.Completion, chunk.Usage.Prompt
	}
	if text == 0 {
		return nil
	}
	if last := len(a.Arrivals) - 1; last < 0 || a.Arrivals[last].At != now {
		a.Arrivals = append(a.Arrivals, timings.Arrival{At: now})
	}
	r := &a.Arrivals[len(a.Arrivals)-1]
	r.Chunks++
	if chunk.Usage != nil {
		r.Total = chunk.Usage.Completion
	}
	if a.Text += text; len(a.Arrivals) == 1 {
		a.FirstText = a.Text
	}
	return nil
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
				all, got, inFlight = append(all, a), got+a.Tokens, inFlight-1
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

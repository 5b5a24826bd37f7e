package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/sim"
	"github.com/pacer-dev/pacer/usage"
)

// continued are settings of a route whose streams go on elsewhere, and its engines,
// of which the first breaks off after cut tokens.
func continued(t *testing.T, cut int, names ...string) (*house, map[string]*sim.Server) {
	c := settings(names...)
	c.Routes[0].Continue = true
	engines, sims := map[string]http.Handler{}, map[string]*sim.Server{}
	for i := range c.Backends {
		c.Backends[i].Kind = "vllm"
		s := engine(t, func(o *sim.Options) {
			o.Behaviours = []string{"text-of-prompt"}
			o.Seed = uint64(i) + 1
			if i == 0 && cut > 0 {
				o.Faults = []string{fmt.Sprintf("cut:%d", cut)}
			}
		})
		engines[c.Backends[i].Name], sims[c.Backends[i].Name] = s, s
	}
	return open(t, c, engines), sims
}

// streamed is what a client makes of a stream: its text, and what it must have once.
type streamed struct {
	text              string
	ids, created      map[string]bool
	roles, usages     int
	finishes          []string
	prompt, total     int
	completion, done  int
	comments          []string
	errors, badEvents int
}

func readStream(body string) streamed {
	s := streamed{ids: map[string]bool{}, created: map[string]bool{}}
	for line := range strings.SplitSeq(body, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		switch {
		case strings.HasPrefix(line, ":"):
			s.comments = append(s.comments, line)
			continue
		case !ok:
			continue
		case data == "[DONE]":
			s.done++
			continue
		}
		var e struct {
			ID      string
			Created int64
			Error   json.RawMessage
			Choices []struct {
				Delta        struct{ Role, Content string }
				Text         string
				FinishReason string `json:"finish_reason"`
			}
			Usage *struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Total      int `json:"total_tokens"`
			}
		}
		if json.Unmarshal([]byte(data), &e) != nil {
			s.badEvents++
			continue
		}
		if e.Error != nil {
			s.errors++
			continue
		}
		s.ids[e.ID], s.created[fmt.Sprint(e.Created)] = true, true
		for _, c := range e.Choices {
			s.text += c.Delta.Content + c.Text
			if c.Delta.Role != "" {
				s.roles++
			}
			if c.FinishReason != "" {
				s.finishes = append(s.finishes, c.FinishReason)
			}
		}
		if e.Usage != nil {
			s.usages++
			s.prompt, s.completion, s.total = e.Usage.Prompt, e.Usage.Completion, e.Usage.Total
		}
	}
	return s
}

const (
	chatToContinue = `{"model":"chat","stream":true,%s"max_tokens":40,"messages":[{"role":"system","content":"You \"quote\" a lot."},{"role":"user","content":"Say something."}]}`
	textToContinue = `{"model":"chat","stream":true,%s"max_tokens":40,"prompt":"Once upon a \u00e9time"}`
	withUsage      = `"stream_options":{"include_usage":true},`
)

// A stream whose backend dies goes on at another one, and is the stream that it would
// have been, wherever it breaks off.
func TestAStreamGoesOnElsewhere(t *testing.T) {
	for name, c := range map[string]struct{ path, body, options string }{
		"chat":             {chat, chatToContinue, ""},
		"chat, usage":      {chat, chatToContinue, withUsage},
		"chat, running":    {chat, chatToContinue, `"stream_options":{"include_usage":true,"continuous_usage_stats":true},`},
		"text":             {"/v1/completions", textToContinue, ""},
		"text, usage":      {"/v1/completions", textToContinue, withUsage},
		"chat, other wish": {chat, chatToContinue, `"max_completion_tokens":40,"min_tokens":40,"temperature":0,"stop":["zzz"],`},
	} {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(c.body, c.options)
			var want streamed
			synctest.Test(t, func(t *testing.T) {
				h, _ := continued(t, 0, "a", "b")
				want = readStream(h.post(c.path, body).body)
			})
			for _, cut := range []int{1, 2, 17, 39, 40} {
				synctest.Test(t, func(t *testing.T) {
					h, sims := continued(t, cut, "a", "b")
					r := h.post(c.path, body)
					if r.err != nil {
						t.Fatalf("cut at %d: %v\n%s", cut, r.err, r.body)
					}
					got := readStream(r.body)
					if got.text != want.text {
						t.Errorf("cut at %d: got the text\n%q, uninterrupted\n%q", cut, got.text, want.text)
					}
					if len(got.ids) != 1 || len(got.created) != 1 || got.roles != want.roles || got.done != 1 || got.errors+got.badEvents != 0 {
						t.Errorf("cut at %d: %d ids, %d times of creation, %d roles, %d ends in\n%s", cut, len(got.ids), len(got.created), got.roles, got.done, r.body)
					}
					if len(got.finishes) != 1 || got.finishes[0] != "length" {
						t.Errorf("cut at %d: it ended %q", cut, got.finishes)
					}
					if got.prompt != want.prompt || got.completion != want.completion || got.total != want.total || (got.usages > 0) != (want.usages > 0) {
						t.Errorf("cut at %d: usage %d + %d = %d, uninterrupted %d + %d = %d", cut, got.prompt, got.completion, got.total, want.prompt, want.completion, want.total)
					}
					if len(got.comments) != 1 || got.comments[0] != ": x-pacer-continued: 1; from=a" {
						t.Errorf("cut at %d: comments %q", cut, got.comments)
					}
					if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 40 || line.Backend != "b" {
						t.Errorf("cut at %d: log line %+v, want 40 tokens by b", cut, line)
					}
					if n := h.metric(`pacer_continued_total{backend="a",result="ok"}`); n != "1" {
						t.Errorf("cut at %d: pacer_continued_total is %s", cut, n)
					}
					if n := given(sims["b"]); n > max(40-cut, 1)-1 { // without the first, which is of the prefill
						t.Errorf("cut at %d: the other engine gave %d tokens more", cut, n)
					}
				})
			}
		})
	}
}

// given is how many tokens an engine gave, but for the first of each answer.
func given(s *sim.Server) (n int) {
	for _, p := range s.Truth().Points {
		n += int(p.Tokens)
	}
	return n
}

// fault has an engine be broken, or well again.
func fault(t *testing.T, s *sim.Server, says string) {
	t.Helper()
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequest("POST", "/sim/set", strings.NewReader(says))); w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", says, w.Code, w.Body)
	}
}

// metric is the value of a series, as the page of metrics has it.
func (h *house) metric(series string) string {
	synctest.Wait() // what is counted is counted behind the answer
	_, rest, ok := strings.Cut(h.scrape(), series+" ")
	if !ok {
		return "missing"
	}
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// What cannot be continued breaks off as without, and the route says why.
func TestWhatCannotBeContinuedBreaksOff(t *testing.T) {
	for name, options := range map[string]string{
		"tools":       `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}],`,
		"form":        `"response_format":{"type":"json_object"},`,
		"logprobs":    `"logprobs":true,`,
		"n":           `"n":2,`,
		"seed":        `"seed":1,`,
		"penalty":     `"presence_penalty":0.5,`,
		"unknown":     `"guided_regex":"a+",`,
		"continuing":  `"continue_final_message":false,`,
		"stop so far": `"stop":["` + "%LAST%" + `zz"],`,
	} {
		bubble(t, name, func(t *testing.T) {
			h, sims := continued(t, 10, "a", "b")
			if strings.Contains(options, "%LAST%") {
				whole := readStream(h.post(chat, strings.Replace(fmt.Sprintf(chatToContinue, ""), "40", "10", 1)).body).text
				options = strings.Replace(options, "%LAST%", whole[len(whole)-2:], 1)
			}
			before := given(sims["b"])
			r := h.post(chat, fmt.Sprintf(chatToContinue, options))
			got := readStream(r.body)
			if !isCut(r.err) || got.errors != 1 || got.done != 0 {
				t.Errorf("got %v\n%s\nwant an error event, and the connection broken off", r.err, r.body)
			}
			if after := given(sims["b"]); after != before {
				t.Error("it went on at the other engine")
			}
			if n := h.metric(`pacer_continued_total{backend="a",result="unfit"}`); n == "0" {
				t.Errorf("pacer_continued_total is %s", n)
			}
		})
	}
}

// Where nobody else takes the stream it breaks off, with what it gave booked once.
func TestAStreamThatNobodyTakesBreaksOff(t *testing.T) {
	for name, change := range map[string]func(h *house, sims map[string]*sim.Server){
		"refused": func(_ *house, sims map[string]*sim.Server) { fault(t, sims["b"], `{"status":500}`) },
		"dead":    func(_ *house, sims map[string]*sim.Server) { fault(t, sims["b"], `{"refuse":true}`) },
		"too":     func(_ *house, sims map[string]*sim.Server) { fault(t, sims["b"], `{"cut":5}`) },
	} {
		bubble(t, name, func(t *testing.T) {
			h, sims := continued(t, 10, "a", "b")
			change(h, sims)
			r := h.post(chat, fmt.Sprintf(chatToContinue, ""))
			got := readStream(r.body)
			if !isCut(r.err) || got.errors != 1 || got.done != 0 {
				t.Errorf("got %v\n%s\nwant an error event, and the connection broken off", r.err, r.body)
			}
			tokens, lost := 10.0, "a"
			if name == "too" {
				tokens, lost = 15, "b"
			}
			if line := h.last(); line.Outcome != outcomeCut || line.Tokens != tokens {
				t.Errorf("log line %+v, want outcome cut after %v tokens", line, tokens)
			}
			if n := h.metric(`pacer_continued_total{backend="` + lost + `",result="lost"}`); n != "1" {
				t.Errorf("pacer_continued_total is %s", n)
			}
		})
	}
}

// A client that leaves while its stream looks for another backend ends it all.
func TestAClientThatLeavesIsNotContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sims := continued(t, 10, "a", "b")
		fault(t, sims["b"], `{"stall":true}`)
		req := h.request(http.MethodPost, chat, fmt.Sprintf(chatToContinue, ""))
		resp := must.Get(h.client.Do(req))(t)
		time.Sleep(2 * time.Second)
		resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		synctest.Wait()
	})
}

// What all the backends of a stream gave is paid for, however it ends: whole, or
// with one that has no stream for it.
func TestAllPartsOfAStreamArePaidFor(t *testing.T) {
	gives := func(n int, end string) *script {
		return &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range n {
				fmt.Fprintf(w, `data: {"id":"x","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"w "},"finish_reason":null}],`+
					`"usage":{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", i+1, i+8)
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
			if end == "" {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, `data: {"id":"x","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
				`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n"+end, n, n+7)
		}}
	}
	for name, c := range map[string]struct {
		last   *script
		tokens float64
	}{
		"whole":       {gives(4, "data: [DONE]\n\n"), 9},
		"no stream":   {echo("application/json", `{"id":"x","object":"chat.completion","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}`), 5},
		"one is left": {gives(4, ""), 9},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a", "b", "c")
			conf.Routes[0].Continue = true
			for i := range conf.Backends {
				conf.Backends[i].Kind, conf.Backends[i].Price = "vllm", config.Price{Output: 1e6}
			}
			h := open(t, conf, map[string]http.Handler{"a": gives(3, ""), "b": gives(2, ""), "c": c.last})
			h.gateway.usage = usage.New(false)
			r := h.post(chat, fmt.Sprintf(chatToContinue, ""))
			h.idle()
			cost := 0.0
			for _, cell := range h.gateway.usage.Cells(0, math.MaxInt64) {
				cost += cell.Cost.USD()
			}
			if line := h.last(); line.Tokens != c.tokens || cost != c.tokens {
				t.Errorf("%v tokens for %v USD, want %v for as many; %v\n%s", line.Tokens, cost, c.tokens, r.err, r.body)
			}
		})
	}
}

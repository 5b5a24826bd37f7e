package gateway

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// What is measured of a stream that is translated is what the engine really did, as
// of one that passes through.
func TestTheSameSpeedIsLearnedInBothDialects(t *testing.T) {
	for _, kind := range []string{"vllm", "anthropic"} {
		bubble(t, kind, func(t *testing.T) {
			gpu := engine(t, func(o *sim.Options) { o.Seed = 3 })
			h := open(t, foreign(map[string]string{"a": kind}, "a"), map[string]http.Handler{"a": gpu})
			for _, n := range []int{1, 4, 9} {
				var users sync.WaitGroup
				for range n {
					users.Go(func() {
						r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}],"max_tokens":400,"stream":true}`)
						if r.status != 200 || r.err != nil || !strings.HasSuffix(r.body, doneEvent) {
							t.Errorf("got %d (%v)", r.status, r.err)
						}
					})
				}
				users.Wait()
			}
			h.idle()
			<-time.After(5 * time.Second)
			curve := h.book.Curve(router.Target{Backend: "a", Model: "big"})
			checked := 0
			for _, p := range gpu.Truth().Points {
				if p.StreamSeconds < 5 {
					continue
				}
				checked++
				if got, want := curve.TPS(p.N), p.Tokens/p.StreamSeconds; math.Abs(got/want-1) > 0.03 {
					t.Errorf("n = %d: learned %.2f tokens/s, the engine gave %.2f", p.N, got, want)
				}
			}
			if checked < 2 {
				t.Errorf("only %d levels were visited", checked)
			}
		})
	}
}

// A second attempt may go to another dialect: the first answer wins, whoever gives
// it, and the other attempt is cancelled.
func TestASecondAttemptInAnotherDialect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openRace(t, func(c *config.Config) { c.Backends[1].Kind = "anthropic" })
		before := r.a.left()
		r.a.answer = after(time.Hour)
		r.b.answer = slowly(claude)
		got := r.post(chat, streamBody)
		if got.status != 200 || got.err != nil || !strings.Contains(got.body, `"content":"word "`) || !strings.HasSuffix(got.body, doneEvent) {
			t.Errorf("got %d %q (%v)", got.status, got.body, got.err)
		}
		r.idle()
		if r.a.left() != before+1 {
			t.Errorf("the attempt that lost was not cancelled")
		}
		if line := r.last(); line.Outcome != outcomeOK || line.Backend != "b" || line.Tokens != 12 {
			t.Errorf("log line %+v, want 12 tokens of b", line)
		}
	})
}

// A client that leaves before the first byte ends the request at a backend of
// another dialect, in a stream and in a document.
func TestATranslatedRequestIsCancelledBeforeItsFirstByte(t *testing.T) {
	for _, body := range []string{streamBody, `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`} {
		synctest.Test(t, func(t *testing.T) {
			asked := make(chan struct{})
			engine := &script{answer: func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				pause(r, time.Hour)
			}}
			h := open(t, foreign(map[string]string{"a": "anthropic"}, "a"), map[string]http.Handler{"a": engine})
			req := h.request("POST", chat, body)
			ctx, leave := context.WithCancel(req.Context())
			defer leave()
			go func() {
				<-asked
				leave()
			}()
			if resp, err := h.client.Do(req.WithContext(ctx)); err == nil {
				_, err = io.ReadAll(resp.Body)
				t.Errorf("an answer came: %v", err)
			}
			h.idle()
			if engine.left() != 1 {
				t.Error("the backend's request was not cancelled")
			}
		})
	}
}

// A client that leaves while a document of another dialect arrives, which is read as a
// whole, ends it there: no other backend is asked, and the one that was is not to blame.
func TestADocumentIsCancelledWhileItArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := make(chan struct{})
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"id":"msg_2","type":"message","role":"assistant","content":[{"type":"text","text":"hel`)
			close(half)
			pause(r, time.Hour)
		}}
		other := &script{answer: slowly(claude)}
		h := open(t, foreign(map[string]string{"a": "anthropic", "b": "anthropic"}, "a", "b"), map[string]http.Handler{"a": engine, "b": other})
		req := h.request("POST", chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`)
		ctx, leave := context.WithCancel(req.Context())
		defer leave()
		go func() {
			<-half
			<-time.After(time.Second)
			leave()
		}()
		if _, err := h.client.Do(req.WithContext(ctx)); err == nil {
			t.Error("an answer came")
		}
		h.idle()
		if line := h.last(); engine.left() != 1 || other.calls() != 0 || line.Outcome != outcomeGone || line.Attempts != 1 {
			t.Errorf("%d requests were cancelled, %d went elsewhere, log line %+v", engine.left(), other.calls(), line)
		}
	})
}

// A floor keeps as many streams on a backend of another dialect as on one of the
// client's own.
func TestAFloorHoldsInAnotherDialect(t *testing.T) {
	admitted := map[string]int{}
	for _, kind := range []string{"vllm", "anthropic"} {
		synctest.Test(t, func(t *testing.T) {
			gpu := engine(t, func(o *sim.Options) { o.Seed = 3 })
			c := foreign(map[string]string{"a": kind}, "a")
			h := open(t, c, map[string]http.Handler{"a": gpu})
			ask := func(n, tokens int) (served int) {
				var mu sync.Mutex
				var users sync.WaitGroup
				for range n {
					users.Go(func() {
						r := h.post(chat, fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":"hi"}],"max_tokens":%d,"stream":true}`, tokens), "X-Pacer-Min-Tps", "30", "X-Pacer-Max-Wait", "0s")
						if r.status == 200 {
							mu.Lock()
							served++
							mu.Unlock()
						}
					})
				}
				users.Wait()
				return served
			}
			for range 6 {
				ask(60, 300)
			}
			<-time.After(5 * time.Second)
			admitted[kind] = ask(200, 300)
		})
	}
	if a, b := admitted["vllm"], admitted["anthropic"]; a < 3 || a > 190 || math.Abs(float64(a-b)) > 0.1*float64(a) {
		t.Errorf("of 200 at once %d are served in the client's dialect, %d in another one", a, b)
	}
}

// A backend that lacks the endpoint, and cannot be told the request in its own
// dialect, is left for one that can; where there is none the client reads why.
func TestWhatCannotBeToldInstead(t *testing.T) {
	const body = `{"model":"chat","input":"hi","tools":[{"type":"web_search"}]}`
	lacks := func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: lacks}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		for i := range 2 { // the first one finds out
			r := h.post("/v1/responses", body)
			if r.status != 400 || !strings.Contains(r.body, `"param":"tools[0]"`) || engine.calls() != 1 {
				t.Errorf("%d: got %d %s after %d calls", i, r.status, r.body, engine.calls())
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		whole := &script{answer: states(200, `{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}`)}
		h := open(t, settings("a", "b"), map[string]http.Handler{"a": &script{answer: lacks}, "b": whole})
		if r := h.post("/v1/responses", body); r.status != 200 || whole.calls() != 1 {
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
}

// The tools of a namespace go to an engine under names of their own, and come back
// in it.
func TestToolsOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != chat {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"crm__find","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		}}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		r := h.post("/v1/responses", `{"model":"chat","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"0","namespace":"crm","name":"find","arguments":"{}"},{"type":"function_call_output","call_id":"0","output":"none"}],"tools":[{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"find"}]},{"type":"function","name":"time"}]}`)
		sent := engine.bodies[len(engine.bodies)-1]
		if r.status != 200 || !strings.Contains(r.body, `"namespace":"crm","name":"find"`) || strings.Count(sent, `"name":"crm__find"`) != 2 || !strings.Contains(sent, `"name":"time"`) {
			t.Errorf("got %d %s after %s", r.status, r.body, sent)
		}
	})
}

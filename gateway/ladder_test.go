package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

var answerID = regexp.MustCompile(`(chatcmpl|cmpl)-[0-9a-f]{32}`)

// What reaches the client is byte for byte what the engine would have sent to
// it, whatever Pacer asked for beside it.
func TestTheClientSeesWhatItAskedFor(t *testing.T) {
	const (
		chatBody = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":5,"stream":true%s}`
		textBody = `{"model":"chat","prompt":"hello","max_tokens":5,"stream":true%s}`
	)
	for _, behaviour := range []string{"unbounded-queue", "repeated-usage", "no-usage", "role-and-first-token-in-one-write"} {
		for path, body := range map[string]string{chat: chatBody, "/v1/completions": textBody} {
			for _, options := range []string{
				``, `,"stream_options":{"include_usage":true}`, `,"stream_options":{"include_usage":false,"continuous_usage_stats":false}`,
				`,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`,
			} {
				t.Run(behaviour+path+options, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						conf := settings("a", "b")
						conf.Backends[0].Usage, conf.Backends[1].Usage = "continuous", "never"
						conf.Routes = append(conf.Routes, conf.Routes[0])
						conf.Routes[0].Targets = conf.Routes[0].Targets[:1]
						conf.Routes[1].Targets = conf.Routes[1].Targets[1:]
						conf.Routes[1].Models = []string{"plain"}
						h := open(t, conf, map[string]http.Handler{
							"a": engine(t, func(o *sim.Options) { o.Behaviours = []string{behaviour} }),
							"b": engine(t, func(o *sim.Options) { o.Behaviours = []string{behaviour} }),
						})
						body := fmt.Sprintf(body, options)
						got := h.post(path, body)
						want := h.post(path, regexp.MustCompile(`"chat"`).ReplaceAllString(body, `"plain"`))
						if got.err != nil || want.err != nil || answerID.ReplaceAllString(got.body, "$1") != answerID.ReplaceAllString(want.body, "$1") {
							t.Errorf("the client got (%v)\n%s\nwant (%v)\n%s", got.err, got.body, want.err, want.body)
						}
						h.idle()
					})
				})
			}
		}
	}
}

// counting streams n chunks of each tokens, one each gap, with the count so
// far, and ends well.
func counting(n, each int, gap time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		count := func(tokens int) string {
			return fmt.Sprintf(`,"usage":{"prompt_tokens":7,"total_tokens":%d,"completion_tokens":%d}}`, 7+tokens, tokens) + "\n\n"
		}
		with := func(event string, tokens int) string { return event[:len(event)-len("}\n\n")] + count(tokens) }
		say(w, with(roleOnly, 0))
		for i := range n {
			if !pause(r, gap) {
				return
			}
			say(w, with(delta, each*(i+1)))
		}
		say(w, with(lastDelta, each*n+1)+usageEvent(7, each*n+1)+doneEvent)
	}
}

// The first stream ever, of several tokens a chunk, which its client leaves: an
// engine that counts tells it exactly, and the curve is known from it.
func TestAnAbortedStreamIsCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "continuous"
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: counting(10_000, 4, 50*time.Millisecond)}})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second+10*time.Millisecond)
		defer cancel()
		if r := h.do(h.request("POST", chat, streamBody).WithContext(ctx)); r.err == nil {
			t.Fatal("the stream ended before its client left")
		}
		line := h.last()
		if line.Source != "continuous" || line.Tokens != 1600 || math.Abs(line.TPS-80) > 0.1 || line.Outcome != outcomeGone {
			t.Errorf("log line %+v, want 1600 tokens by continuous usage at 80 tokens/s, client_gone", line)
		}
		h.idle()
		<-time.After(5 * time.Second)
		curve := h.book.Curve(router.Target{Backend: "a", Model: "big"})
		if got := curve.TPS(1); math.Abs(got-80) > 1 {
			t.Errorf("the curve says %.2f tokens/s, want 80", got)
		}
	})
}

// An engine that does not know the option serves as one that is asked for the
// usage at the end alone.
func TestContinuousUsageThatIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "continuous"
		h := open(t, conf, map[string]http.Handler{"a": asker()})
		r := h.post(chat, streamBody)
		if r.err != nil || r.body != answered+doneEvent {
			t.Errorf("the client got (%v)\n%s", r.err, r.body)
		}
		if line := h.last(); line.Source != "usage" || line.Tokens != 2 {
			t.Errorf("%v tokens by %s, want 2 by usage", line.Tokens, line.Source)
		}
		h.idle()
	})
}

// Of several sequences each is counted alone while they run; only the usage at
// the end is of all.
func TestContinuousUsageOfSeveralSequences(t *testing.T) {
	const body = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"n":3,"max_tokens":100,"stream":true}`
	for name, c := range map[string]struct {
		leaves time.Duration
		tokens float64
		source string
	}{
		"to the end": {time.Hour, 300, "usage"},
		"aborted":    {time.Second, 0, "estimate"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := settings("a")
				conf.Backends[0].Usage = "continuous"
				h := open(t, conf, map[string]http.Handler{"a": engine(t)})
				ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
				defer cancel()
				h.do(h.request("POST", chat, body).WithContext(ctx))
				line := h.last()
				if line.Source != c.source || c.tokens > 0 && line.Tokens != c.tokens || line.Tokens < 100 {
					t.Errorf("%v tokens by %s, want %v by %s", line.Tokens, line.Source, c.tokens, c.source)
				}
				if line.TPS != 0 {
					t.Errorf("measured at %v tokens/s, want unmeasured", line.TPS)
				}
				h.idle()
			})
		})
	}
}

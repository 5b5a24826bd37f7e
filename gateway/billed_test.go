package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// Reasoning that the backend counts and does not show is on its bill: it is in
// the metrics, the cost and the limits, and in no speed.
func TestHiddenReasoningIsPaidFor(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		tps  bool
	}{
		"before an answer": {strings.Repeat(delta, 10), true},
		"and nothing else": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := settings("a")
				conf.Backends[0].Price = config.Price{Input: 0, Output: 1000}
				k := key("mobile", "sk-right")
				k.Limits = config.KeyLimits{TokensPerMinute: 6000}
				conf.Keys = []config.Key{k}
				h := open(t, conf, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
					eventStream(w)
					say(w, roleOnly)
					for text := range strings.SplitAfterSeq(c.text, "\n\n") {
						pause(r, 20*time.Millisecond)
						say(w, text)
					}
					say(w, lastDelta+`data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":1000,"completion_tokens_details":{"reasoning_tokens":990}}}`+"\n\n"+doneEvent)
				}}})
				if r := h.post(chat, streamBody, "Authorization", "Bearer sk-right"); r.err != nil {
					t.Fatal(r.err)
				}
				line := h.last()
				if line.Outcome != outcomeOK || line.Tokens != 1000 || line.Source != "usage" || (line.TPS > 0) != c.tps || line.TPS > 60 {
					t.Errorf("log line %+v, want 1000 tokens by usage, and a speed of the ten that were seen: %v", line, c.tps)
				}
				page := httptest.NewRecorder()
				h.metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
				for _, want := range []string{
					`pacer_tokens_total{backend="a",direction="output",route="chat",source="usage"} 1000`,
					`pacer_cost_usd_total{backend="a",route="chat"} 1` + "\n",
				} {
					if !strings.Contains(page.Body.String(), want) {
						t.Errorf("the metrics lack %s", want)
					}
				}
				if left := h.gateway.plan.Load().tenants[0].limits.State(time.Now()).Tokens.Remaining; left > 5050 {
					t.Errorf("%d tokens are left of 6000 after 1000 were paid for", left)
				}
				h.idle()
			})
		})
	}
}

package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/router"
)

func TestANewConfigurationLeavesRunningRequestsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed()
		c.Keys[0].Limits = config.KeyLimits{RequestsPerMinute: 2}
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(20, 100*time.Millisecond)}})
		running := make(chan reply, 1)
		go func() { running <- h.post(chat, streamBody, "x-api-key", "sk-right") }()
		<-time.After(time.Second)

		next := keyed()
		next.Routes[0].Models = []string{"other"}
		next.Keys[0].Routes = nil
		next.Keys[0].Limits = c.Keys[0].Limits
		h.router.Update(time.Now(), router.Configure{Topology: topologyOf(next)})
		must.Do(t, h.gateway.Configure(next, h.backends, nil))
		if r := h.post(chat, streamBody, "x-api-key", "sk-right"); r.status != 404 {
			t.Errorf("a model that is no longer there: %d, want 404", r.status)
		}
		other := strings.Replace(streamBody, "chat", "other", 1)
		if r := h.post(chat, other, "x-api-key", "sk-right"); r.status != 200 {
			t.Errorf("a model that is there now: %d %s", r.status, r.body)
		}
		if r := h.post(chat, other, "x-api-key", "sk-right"); r.status != 429 {
			t.Errorf("third request of two a minute: %d: the key's use was forgotten", r.status)
		}
		if r := <-running; r.status != 200 || r.err != nil || !strings.HasSuffix(r.body, doneEvent) {
			t.Errorf("the stream that ran meanwhile: %d, %v", r.status, r.err)
		}
		h.idle()

		next.Backends = append(next.Backends, config.Backend{Name: "missing"})
		if err := h.gateway.Configure(next, h.backends, nil); err == nil || !strings.Contains(err.Error(), `"missing"`) {
			t.Errorf("a backend without an incarnation: got %v, want an error that names it", err)
		}
	})
}

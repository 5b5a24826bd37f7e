package gateway

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// What stands before a request travels with its lease to the measurement: from
// the relayed bytes alone the engine's slots and its prefill become known.
func TestFirstTokensAreLearnedFromTheRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := sim.Model{A: 0.02, C: 0.0005, D: 100e-6}
		gpu := engine(t, func(o *sim.Options) { o.Model, o.MaxNumSeqs, o.Noise, o.Seed = model, 6, 0.05, 7 })
		h := open(t, settings("a"), map[string]http.Handler{"a": gpu})
		rnd := rand.New(rand.NewPCG(3, 4))
		var users sync.WaitGroup
		for range 60 {
			for range 1 + rnd.IntN(10) {
				body := fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":%q}],"max_tokens":%d,"stream":true}`,
					strings.Repeat("word", rnd.IntN(600)), 10+rnd.IntN(150))
				users.Go(func() { h.post(chat, body) })
				<-time.After(20 * time.Millisecond) // or which came first would be left to the scheduler
			}
			<-time.After(time.Duration(rnd.ExpFloat64() * float64(5*time.Second)))
		}
		users.Wait()
		h.idle()
		<-time.After(5 * time.Second)
		got := h.book.Curve(router.Target{Backend: "a", Model: "big"}).TTFT()
		if got.Slots < 5 || got.Slots > 7 {
			t.Errorf("%d slots, want 6", got.Slots)
		}
		if math.Abs(got.PerToken/model.D-1) > 0.4 {
			t.Errorf("%.0f µs a prompt token, the engine takes %.0f", got.PerToken*1e6, model.D*1e6)
		}
		if got.Base < 0.01 || got.Base > 0.06 {
			t.Errorf("base %.3f s, want a step or two of 20 ms", got.Base)
		}
	})
}

// After a failover nothing is learned of the first token.
func TestNoFirstTokenIsLearnedFromAFailover(t *testing.T) {
	for _, c := range []struct {
		name    string
		engines func(gpu http.Handler) map[string]http.Handler
		known   bool
	}{
		{"control", func(gpu http.Handler) map[string]http.Handler { return map[string]http.Handler{"a": gpu, "b": gpu} }, true},
		{"the first one is still loading", func(gpu http.Handler) map[string]http.Handler {
			return map[string]http.Handler{"a": &script{answer: loading}, "b": gpu}
		}, false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			conf := settings("a", "b")
			conf.Routes[0].Prefer = "order"
			h := open(t, conf, c.engines(engine(t)))
			for range 20 {
				<-time.After(10 * time.Second) // else the first one is passed over
				h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":20,"stream":true}`)
			}
			h.idle()
			<-time.After(5 * time.Second)
			known := false
			for _, name := range []string{"a", "b"} {
				known = known || h.book.Curve(profiles.Target{Backend: name, Model: "big"}).TTFT().Known()
			}
			if known != c.known {
				t.Errorf("first tokens known: %v, want %v", known, c.known)
			}
		})
	}
}

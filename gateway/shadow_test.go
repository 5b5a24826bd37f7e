package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/router"
)

// shadowing is a gateway whose route "chat" on a is copied to "next" on b.
func shadowing() *config.Config {
	c := settings("a", "b")
	c.Routes[0].Targets = []config.Target{{Backend: "a"}}
	next := c.Routes[0]
	next.Models, next.Targets = []string{"next"}, []config.Target{{Backend: "b", Model: "newer"}}
	c.Routes[0].Shadow = config.Shadow{Route: "next", Share: 1}
	c.Routes = append(c.Routes, next)
	return c
}

func TestShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := echo("application/json", `{"by":"a"}`), echo("application/json", `{"by":"b"}`)
		c := shadowing()
		k := key("mobile", "sk-right")
		k.Limits.RequestsPerMinute = 1
		c.Keys = []config.Key{k}
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		r := h.post("/v1/embeddings", `{"model":"chat","input":"x"}`, "Authorization", "Bearer sk-right", "X-Request-Id", "r-1")
		synctest.Wait()
		if r.status != 200 || r.body != `{"by":"a"}` {
			t.Errorf("the client got %d %s", r.status, r.body)
		}
		if b.calls() != 1 || b.bodies[0] != `{"model":"newer","input":"x"}` || b.heads[0].Get("Authorization") != "" || b.heads[0].Get("X-Request-Id") != "r-1-shadow" {
			t.Errorf("the copy was %q with %v", b.bodies, b.heads)
		}
		if s := h.metrics.Route("chat"); s.Offered != 1 {
			t.Errorf("the route has %d requests, want 1", s.Offered)
		}
		if s := h.metrics.Route("next"); s.Offered != 1 {
			t.Errorf("the route of the copies has %d requests, want 1", s.Offered)
		}
		// A second request is refused for the key's limit: the copy was not charged, and nothing refused is copied.
		if r := h.post("/v1/embeddings", `{"model":"chat","input":"x"}`, "Authorization", "Bearer sk-right"); r.status != 429 || b.calls() != 1 {
			t.Errorf("got %d, and %d copies", r.status, b.calls())
		}
	})
}

// A copy that stalls, dies, or finds no place changes nothing for the client, and
// copies have their bound.
func TestAShadowThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := echo("application/json", `{"by":"a"}`)
		b := echo("application/json", `{}`)
		b.answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		c := shadowing()
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		start := time.Now()
		for range mostShadows + 10 {
			if r := h.post("/v1/embeddings", `{"model":"chat","input":"x"}`); r.status != 200 {
				t.Fatalf("the client got %d %s", r.status, r.body)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("copies that stall kept the clients waiting: %v", took)
		}
		synctest.Wait()
		if got := b.calls(); got != mostShadows {
			t.Errorf("%d copies are under way, want %d", got, mostShadows)
		}
		<-time.After(c.Timeouts.Total)
		synctest.Wait()
		if len(h.gateway.copies.under) != 0 || h.gateway.load.running.Load() != 0 || h.gateway.buffered.used.Load() != 0 {
			t.Errorf("left: %d copies, %d running, %d bytes", len(h.gateway.copies.under), h.gateway.load.running.Load(), h.gateway.buffered.used.Load())
		}
	})
}

// A request for which a copy makes room was never refused: else a place would be kept for
// it that it does not come back for, and one that came back as told would have lost its turn.
func TestWhoHasACopyMakeRoomIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, release := echo("application/json", `{"by":"a"}`), echo("application/json", `{"by":"b"}`), make(chan struct{})
		b.answer = func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.Header.Get("X-Request-Id"), "-shadow") {
				select {
				case <-r.Context().Done():
				case <-release: // one that found a place after all others had gone
				}
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"by":"b"}`)
		}
		c := shadowing()
		c.Backends[0].MaxConcurrency, c.Backends[1].MaxConcurrency = 1, 1
		c.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
		c.Routes[0].Prefer, c.Routes[0].Targets = "order", []config.Target{{Backend: "a"}, {Backend: "b"}}
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		embed := func() string { return h.post("/v1/embeddings", `{"model":"chat","input":"x"}`).body }
		embed()
		synctest.Wait()
		a.answer = func(http.ResponseWriter, *http.Request) { <-release }
		var running sync.WaitGroup
		running.Go(func() { embed() })
		synctest.Wait()
		if got := embed(); got != `{"by":"b"}` {
			t.Errorf("the client got %s", got)
		}
		for _, d := range h.router.Decisions(10) {
			if d.Route == "chat" && d.Outcome != router.OutcomePlaced {
				t.Errorf("a request was %v", d.Outcome)
			}
		}
		close(release)
		running.Wait()
		synctest.Wait()
	})
}

// Users with a floor stream from an engine whose copies go to another one, and from the
// same one. Whatever the copies do, dying, stalling before or within their answers or
// talking, no user is refused, late or short of a token, and no figure of theirs changes.
func TestAShadowTouchesNoFloor(t *testing.T) {
	const users, tokens, step = 8, 120, 30 * time.Millisecond // who of two comes first in an instant may be a step of the engine
	type told struct {
		met, offered int
		slowest      time.Duration
	}
	play := func(t *testing.T, share float64, where, behave string) (got told) {
		synctest.Test(t, func(t *testing.T) {
			c := shadowing()
			c.Routes[0].SLO.MinTPS, c.Routes[0].Shadow.Share = 30, share
			c.Routes[1].Targets = []config.Target{{Backend: where, Model: "big"}}
			c.Routes[0].Targets[0].Model = "big"
			real, next := engine(t), engine(t)
			if behave != "" && where == "b" {
				fault(t, next, behave)
			}
			h := open(t, c, map[string]http.Handler{"a": real, "b": next})
			var running sync.WaitGroup
			var mu sync.Mutex
			for range users {
				running.Go(func() {
					for range 2 {
						start := time.Now()
						r := h.post(chat, fmt.Sprintf(`{"model":"chat","max_tokens":%d,"stream":true,"messages":[{"role":"user","content":"x"}]}`, tokens))
						took := time.Since(start)
						mu.Lock()
						got.slowest = max(got.slowest, took)
						mu.Unlock()
						if s := readStream(r.body); r.status != 200 || r.err != nil || s.done != 1 || len(s.finishes) != 1 {
							t.Errorf("a user got %d %v", r.status, r.err)
						}
					}
				})
			}
			running.Wait()
			<-time.After(c.Timeouts.Total + time.Minute) // copies that stall end at last
			s := h.metrics.Route("chat")
			got.met, got.offered = int(s.Met), int(s.Offered)
		})
		return got
	}
	without := play(t, 0, "b", "")
	if without.met != 2*users || without.offered != 2*users {
		t.Fatalf("without copies: %+v", without)
	}
	for name, x := range map[string]struct{ where, behave string }{
		"talks": {"b", ""}, "is dead": {"b", `{"refuse":true}`}, "fails": {"b", `{"status":500}`}, "stalls": {"b", `{"stall":true}`},
		"is cut": {"b", `{"cut":5}`}, "is slow": {"b", `{"drift":50}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := play(t, 1, x.where, x.behave); got.met != without.met || got.offered != without.offered || (got.slowest-without.slowest).Abs() > step {
				t.Errorf("with copies: %+v, without: %+v", got, without)
			}
		})
	}
	// On the engine of the users copies take places that are left, and no floor.
	t.Run("on the same engine", func(t *testing.T) {
		if got := play(t, 1, "a", ""); got.met != without.met || got.offered != without.offered {
			t.Errorf("with copies: %+v, without: %+v", got, without)
		}
	})
}

// Who may name the backend gets that one or none.
func TestTheTargetThatARequestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := echo("application/json", `{}`), echo("application/json", `{}`)
		c := settings("a", "b")
		c.Routes[0].Targets = []config.Target{{Backend: "a"}, {Backend: "b"}}
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		const body = `{"model":"chat","input":"x"}`
		if r := h.post("/v1/embeddings", body, "X-Pacer-Target", "b"); r.status != 200 || b.calls() != 1 {
			t.Errorf("got %d, and b was asked %d times", r.status, b.calls())
		}
		if r := h.post("/v1/embeddings", body, "X-Pacer-Target", "c"); r.status != 400 {
			t.Errorf("a backend that is none: got %d", r.status)
		}
		b.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
		if r := h.post("/v1/embeddings", body, "X-Pacer-Target", "b"); r.status < 500 || a.calls() != 0 {
			t.Errorf("got %d, and a was asked %d times", r.status, a.calls())
		}
		k := key("mobile", "sk-right")
		c.Keys = []config.Key{k}
		h = open(t, c, map[string]http.Handler{"a": a, "b": b})
		if r := h.post("/v1/embeddings", body, "X-Pacer-Target", "a", "Authorization", "Bearer sk-right"); r.status != 403 {
			t.Errorf("a key that may not: got %d", r.status)
		}
		c.Keys[0].Allow.Target = true
		h = open(t, c, map[string]http.Handler{"a": a, "b": b})
		if r := h.post("/v1/embeddings", body, "X-Pacer-Target", "a", "Authorization", "Bearer sk-right"); r.status != 200 || a.calls() != 1 {
			t.Errorf("a key that may: got %d", r.status)
		}
	})
}

package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/router"
)

// cutAfter aborts the connection in the middle of an answer, after so many
// bytes.
type cutAfter struct {
	http.ResponseWriter
	left int
}

func (w *cutAfter) Write(p []byte) (int, error) {
	if len(p) < w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

func (w *cutAfter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// One of two backends fails, each in its own way, while 24 users stream, and
// recovers. Either one carries them all.
func TestWhenABackendFails(t *testing.T) {
	for _, c := range []struct {
		name string

		set     string                                                            // a fault of the engine; "" = none
		instead func(engine http.Handler, w http.ResponseWriter, r *http.Request) // in place of the engine; nil = the engine

		opens bool // it is taken out of service
		quick bool // and each failure is known at once
		cuts  bool // streams under way may break off
	}{
		{name: "refuses", set: "refuse", opens: true, quick: true},
		{name: "is silent", instead: func(_ http.Handler, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, opens: true},
		{name: "says 500", instead: says(500), opens: true, quick: true},
		{name: "says 502", instead: says(502), opens: true, quick: true},
		{name: "says 503", instead: says(503), opens: true, quick: true},
		{name: "says 429", instead: says(429)},
		{name: "is three times as slow", set: "drift"},
		{name: "sends a page", instead: sends("text/html", "<html>It works!</html>"), opens: true, quick: true},
		{name: "sends garbage", instead: sends("text/event-stream", "\x00\x01{{{\xff\n\ndata: {{{\n\n"), opens: true, quick: true},
		{name: "cuts at a random byte", instead: func(engine http.Handler, w http.ResponseWriter, r *http.Request) {
			engine.ServeHTTP(&cutAfter{w, 1 + rand.IntN(3000)}, r)
		}, opens: true, cuts: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if racetest.On && !c.cuts {
				t.Skip("40 s of 24 users each: make numbers runs it, and TestASickMemberCostsNobody goes the ways of failures before the first byte")
			}
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}, {name: "b", model: carries64, seed: 2}},
					"routes:\n  - { model: chat, slo: { min_tps: 30 }, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }\ntimeouts: { first_byte: 3s, silence: 5s }\n", options{})
				var failing atomic.Bool
				var asked, askedDown atomic.Int64 // while it fails: in all, and while it was out of service
				var down atomic.Bool              // at the last look: who was sent before that may arrive just after it
				engine := h.engines["a"]
				health := func() router.Health { return h.program.router.Loads()[0].Health }
				h.servers["a"].Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if failing.Load() && r.Method == http.MethodPost { // its /health says that all is well
						asked.Add(1)
						if down.Load() && health() == router.Down {
							askedDown.Add(1)
						}
						if c.instead != nil {
							c.instead(engine, w, r)
							return
						}
					}
					engine.ServeHTTP(w, r)
				})
				ctx, stop := context.WithCancel(context.Background())
				var clients sync.WaitGroup
				var got results
				for i := range 24 {
					clients.Go(func() {
						rng := rand.New(rand.NewPCG(5, uint64(i)))
						for ctx.Err() == nil {
							got.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 30 + rng.IntN(120)}))
						}
					})
				}
				sleep(10 * time.Second)
				if m := h.program.router.Loads()[0].M; m < 6 {
					t.Fatalf("%d of 24 on the backend before it fails: no even load", m)
				}
				failing.Store(true)
				if c.set != "" {
					h.fault("a", map[string]string{"refuse": `{"refuse":true}`, "drift": `{"drift":3}`}[c.set])
				}
				begun, opened := time.Now(), time.Duration(-1)
				for time.Since(begun) < 15*time.Second {
					sleep(10 * time.Millisecond)
					down.Store(health() == router.Down)
					if opened < 0 && down.Load() {
						opened = time.Since(begun)
					}
				}
				if c.set != "" {
					h.fault("a", map[string]string{"refuse": `{"refuse":false}`, "drift": `{"drift":1}`}[c.set])
				}
				failing.Store(false)
				ended, back, first := time.Now(), time.Duration(-1), 0
				for time.Since(ended) < 15*time.Second {
					sleep(10 * time.Millisecond)
					if up := health() == router.Up; up && back < 0 {
						back = time.Since(ended)
					}
					if m := h.program.router.Loads()[0].M; back >= 0 && time.Since(ended)-back < 200*time.Millisecond {
						first = max(first, m)
					}
				}
				now := h.program.router.Loads()[0].M
				stop()
				clients.Wait()
				h.idle()
				lost := got.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done && r.Status != 200 })
				broken := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Failed && r.Status == 200 })
				silent := got.count(func(r loadgen.Result) bool {
					return r.Outcome == loadgen.Failed && r.Status == 200 && !errors.Is(r.Err, io.ErrUnexpectedEOF)
				})
				t.Logf("%d requests, %d lost, %d broken off; the backend got %d, %d of them while down; out after %v, back %v after it had recovered, with %d at first and %d in the end",
					len(got.list), lost, broken, asked.Load(), askedDown.Load(), opened, back, first, now)
				if lost > 0 {
					t.Errorf("%d requests without a byte failed; want all moved to the other backend", lost)
				}
				if silent > 0 {
					t.Errorf("%d streams broke off without an aborted connection", silent)
				}
				if broken > 0 && !c.cuts {
					t.Errorf("%d streams broke off, want none", broken)
				}
				if out := opened >= 0 && opened <= 5*time.Second; out != c.opens {
					t.Errorf("taken out of service after %v: %v; want %v", opened, out, c.opens)
				}
				if most := int64(12); c.quick && asked.Load() > most {
					t.Errorf("the backend got %d requests while it failed, want at most %d: five failures, four at once, and a probe each 5 s", asked.Load(), most)
				}
				if askedDown.Load() > 0 {
					t.Errorf("%d requests went to the backend while it was out of service", askedDown.Load())
				}
				if back < 0 || back > 7*time.Second {
					t.Errorf("back in service %v after it had recovered, want 7s at most", back)
				}
				if first > 8 {
					t.Errorf("%d at once on a backend that has just come back, want a ramp", first)
				}
				if now < 6 && c.set != "drift" { // that one has to be seen to be faster first, and the other carries all
					t.Errorf("%d on the backend in the end: it has not got its share again", now)
				}
				if c.cuts && broken == 0 {
					t.Error("no stream broke off: the fault is none")
				}
			})
		})
	}
}

func says(status int) func(http.Handler, http.ResponseWriter, *http.Request) {
	return func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"out of order","type":"server_error"}}`)
	}
}

func sends(kind, body string) func(http.Handler, http.ResponseWriter, *http.Request) {
	return func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

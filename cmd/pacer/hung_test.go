package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/router"
)

// stopper stands before an engine that can be stopped as SIGSTOP stops a process: it
// takes connections, and nothing goes out.
type stopper struct {
	mu     sync.Mutex // guards what follows
	engine http.Handler
	gate   chan struct{} // closed when it goes on; nil = it runs
}

// become has another engine answer from now on.
func (s *stopper) become(engine http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine = engine
}

func (s *stopper) pass(ctx context.Context) bool {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *stopper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.pass(r.Context()) {
		s.mu.Lock()
		engine := s.engine
		s.mu.Unlock()
		engine.ServeHTTP(w, r)
	}
}

// stops puts a stopper before each engine of h, and returns what stops and continues one.
func (h *house) stops() (stop, goOn func(name string)) {
	stoppers := map[string]*stopper{}
	for name, server := range h.servers {
		stoppers[name] = &stopper{engine: h.engines[name]}
		server.Handler = stoppers[name]
	}
	stop = func(name string) {
		h.fault(name, `{"stall":true}`)
		s := stoppers[name]
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gate = make(chan struct{})
	}
	goOn = func(name string) {
		s := stoppers[name]
		s.mu.Lock()
		close(s.gate)
		s.gate = nil
		s.mu.Unlock()
		h.fault(name, `{"stall":false}`)
	}
	return stop, goOn
}

// healthOf is what the admin port says of a backend.
func (h *house) healthOf(name string) (health, cause string) {
	for _, target := range answer[api.Profiles](h, "/api/v1/profiles").Targets {
		if target.Backend == name {
			if words := target.Cause.Cause; words != nil {
				cause = *words
			}
			return target.Health, cause
		}
	}
	return "", ""
}

// users has so many clients of chat ask again and again until stop.
func (h *house) users(n int, got *results) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(i)))
			for ctx.Err() == nil {
				got.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 30 + rng.IntN(120)}))
			}
		})
	}
	return func() {
		cancel()
		clients.Wait()
	}
}

// One of two engines stops for 50 s. It is said within 15 s, who got nothing goes
// elsewhere, and nobody is lost. When it goes on, those end first that stood still with it;
// then it has its users again, and the curve that it had.
func TestAnEngineThatHangs(t *testing.T) {
	for _, prefer := range racetest.Rows([]string{"headroom", "order", "cheapest"}) {
		for _, kind := range []string{"vllm", "openai"} { // the one has a health page, the other has not
			t.Run(prefer+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { oneEngineHangs(t, prefer, kind) })
			})
		}
	}
}

func oneEngineHangs(t *testing.T, prefer, kind string) {
	h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1, kind: kind}, {name: "b", model: carries64, seed: 2, kind: kind}},
		"routes:\n  - { model: chat, slo: { min_tps: 30 }, prefer: "+prefer+", targets: [ { backend: a, model: m }, { backend: b, model: m } ] }\n", options{})
	stop, goOn := h.stops()
	var got results
	leave := h.users(24, &got)
	sleep(40 * time.Second)
	before := h.curve("a").TPS(8)
	stop("a")
	stopped, said := time.Now(), time.Duration(-1)
	for time.Since(stopped) < 50*time.Second {
		sleep(100 * time.Millisecond)
		if health, _ := h.healthOf("a"); health == "down" && said < 0 {
			said = time.Since(stopped)
		}
	}
	_, cause := h.healthOf("a")
	if waiting := h.program.router.Loads()[0].Waiting; waiting > 1 {
		t.Errorf("%d wait for their first token at the engine that hangs, want at most the one that finds out", waiting)
	}
	goOn("a")
	sleep(2 * time.Second)
	if health, _ := h.healthOf("a"); health != "up" {
		t.Errorf("2 s after the engine goes on it is %s, want up", health)
	}
	sleep(4 * time.Second)
	health, _ := h.healthOf("a")
	m := h.program.router.Loads()[0].M
	sleep(6 * time.Second)
	after := h.curve("a").TPS(8)
	leave()
	h.idle()
	lost := got.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done })
	late := got.count(func(r loadgen.Result) bool { return r.TTFT > 20*time.Second })
	t.Logf("said after %v (%s); 6 s after it goes on: %s, m=%d; TPS(8) %.1f, then %.1f; %d requests, %d lost, %d late", said, cause, health, m, before, after, len(got.list), lost, late)
	if said < 0 || said > 15*time.Second {
		t.Errorf("it was said after %v that the engine hangs, want 15s at most", said)
	}
	if want := "backend down: it takes requests and answers nothing"; !strings.HasPrefix(cause, want) {
		t.Errorf("the cause is %q, want %q", cause, want)
	}
	if lost > 0 || late > 2 {
		t.Errorf("%d of %d were lost and %d had their first token after 20 s, want none, and at most the two that find out", lost, len(got.list), late)
	}
	if health != "up" || m < 4 {
		t.Errorf("6 s after the engine goes on it is %s, with m=%d; want up, and used", health, m)
	}
	if math.Abs(after/before-1) > 0.1 {
		t.Errorf("TPS(8) was %.1f before it hung and is %.1f after, want the same", before, after)
	}
}

// All engines stop at once, for as long as clients wait: nobody is refused or cut who
// would have been served.
func TestAllEnginesHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}, {name: "b", model: carries64, seed: 2}},
			"routes:\n  - { model: chat, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }\n", options{})
		stop, goOn := h.stops()
		var got results
		leave := h.users(24, &got)
		sleep(10 * time.Second)
		stop("a")
		stop("b")
		sleep(20 * time.Second)
		var late results
		leaveLate := h.users(10, &late) // come while all hang
		sleep(30 * time.Second)
		for _, l := range h.program.router.Loads() {
			if !l.Hung {
				t.Errorf("%s is not known to hang", l.Backend)
			}
		}
		goOn("a")
		goOn("b")
		sleep(5 * time.Second)
		leave()
		leaveLate()
		h.idle()
		for name, of := range map[string]*results{"of those who were there": &got, "of those who came": &late} {
			if lost := of.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done }); lost > 0 || len(of.list) == 0 {
				t.Errorf("%s %d of %d were lost, want none", name, lost, len(of.list))
			}
		}
	})
}

// Engines that are slow, and do not hang: nobody is moved, and nothing is said.
func TestWhoIsSlowDoesNotHang(t *testing.T) {
	for name, run := range map[string]func(h *house, stop, goOn func(string)){
		"it stops for 8 s again and again": func(_ *house, stop, goOn func(string)) {
			for range 6 {
				stop("a")
				sleep(8 * time.Second)
				goOn("a")
				sleep(12 * time.Second)
			}
		},
		"its page does not answer, and its streams go on": func(h *house, _, _ func(string)) {
			engine := h.engines["a"]
			h.servers["a"].Handler.(*stopper).become(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					<-r.Context().Done()
					return
				}
				engine.ServeHTTP(w, r)
			})
			sleep(2 * time.Minute)
		},
		"it generates for a minute what is not streamed, and its page answers": func(h *house, _, _ func(string)) {
			engine := h.engines["a"]
			h.servers["a"].Handler.(*stopper).become(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					_, _ = io.Copy(io.Discard, r.Body)
					sleep(time.Minute)
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"well"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
					return
				}
				engine.ServeHTTP(w, r)
			})
			sleep(2 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1}}, "routes:\n  - { model: chat, targets: [ { backend: a, model: m } ] }\n", options{})
				stop, goOn := h.stops()
				var got results
				leave := h.users(6, &got)
				sleep(5 * time.Second)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					run(h, stop, goOn)
				}()
				for over := false; !over; {
					select {
					case <-ended:
						over = true
					case <-time.After(100 * time.Millisecond):
					}
					if l := h.program.router.Loads()[0]; l.Hung || l.Health != router.Up {
						t.Fatalf("it is taken for one that hangs: %+v", l)
					}
				}
				leave()
				h.idle()
			})
		})
	}
}

// The GPU of an engine stands still behind a server that answers, until all who waited there
// have gone. From then on its page of metrics says what it said last. The heads of
// answers are no life, and it is asked sooner than what others wait for.
func TestAnEngineThatNobodyWaitsForIsAskedSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 1, kind: "vllm", conf: readMetrics}, {name: "b", model: carries64, seed: 2, kind: "vllm", conf: readMetrics}},
			"routes:\n  - { model: chat, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }\n", options{})
		var got results
		leave := h.users(12, &got)
		sleep(20 * time.Second)
		h.fault("a", `{"stall":true,"metrics":"stale"}`)
		sleep(15 * time.Second)
		for range 60 { // those who stood in the middle of a stream are broken off meanwhile
			sleep(time.Second)
			if l := h.program.router.Loads()[0]; l.Waiting > 1 {
				t.Errorf("%d wait there, want at most the one that finds out", l.Waiting)
				break
			}
		}
		h.fault("a", `{"stall":false}`)
		mended, took := time.Now(), time.Duration(0)
		for took < 3*time.Minute {
			sleep(100 * time.Millisecond)
			took = time.Since(mended)
			if l := h.program.router.Loads()[0]; !l.Hung && l.Health == router.Up {
				break
			}
		}
		t.Logf("used again after %v", took)
		if took > 35*time.Second {
			t.Errorf("it is used again after %v, want 35 s at most", took)
		}
		leave()
		h.idle()
	})
}

package gateway

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// stopped is an engine that can be stopped as SIGSTOP stops a process: it takes
// requests, and nothing goes out until it goes on.
type stopped struct {
	engine  http.Handler
	answers bool         // its page does so all the same
	asked   atomic.Int64 // generations that came
	stopped atomic.Pointer[chan struct{}]
}

func (s *stopped) stop() { gate := make(chan struct{}); s.stopped.Store(&gate) }
func (s *stopped) goOn() { close(*s.stopped.Swap(nil)) }

func (s *stopped) waits(r *http.Request) bool {
	gate := s.stopped.Load()
	if gate == nil {
		return false
	}
	select {
	case <-*gate:
		return false
	case <-r.Context().Done():
		return true
	}
}

func (s *stopped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.asked.Add(1)
	}
	if s.answers && r.Method == http.MethodGet || !s.waits(r) {
		s.engine.ServeHTTP(&stoppedWriter{w, s, r}, r)
	}
}

type stoppedWriter struct {
	http.ResponseWriter
	s *stopped
	r *http.Request
}

func (w *stoppedWriter) Write(p []byte) (int, error) {
	if w.s.waits(w.r) {
		return 0, io.ErrClosedPipe
	}
	return w.ResponseWriter.Write(p)
}

func (w *stoppedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// stage is a house whose engines a and b can be stopped, and are looked at.
type stage struct {
	*house
	a, b *stopped
}

func openStage(t *testing.T, change func(*config.Config), behaviours ...string) *stage {
	t.Helper()
	c := settings("a", "b")
	for i := range c.Backends {
		c.Backends[i].Kind = "vllm"
	}
	if change != nil {
		change(c)
	}
	a, b := engine(t, func(o *sim.Options) { o.Behaviours = behaviours }), engine(t, func(o *sim.Options) { o.Behaviours = behaviours })
	s := &stage{a: &stopped{engine: a}, b: &stopped{engine: b}}
	s.house = open(t, c, map[string]http.Handler{"a": s.a, "b": s.b})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() { _ = a.Run(ctx) })
	running.Go(func() { _ = b.Run(ctx) })
	for _, b := range c.Backends {
		p := must.Get(providers.NewProber(providers.ProberOptions{
			Backend: providers.Options{Name: b.Name, BaseURL: b.URL, Kind: b.Kind, Dial: s.net.Dial},
			Pulse:   s.backends[b.Name].Pulse(), OnCondition: func(providers.Condition, error) {},
		}))(t)
		running.Go(func() { _ = p.Run(ctx) })
	}
	return s
}

// sent is a request that is under way.
type sent struct {
	reply chan reply
	began time.Time
	leave context.CancelFunc
}

func (s *stage) send(body string) *sent {
	ctx, leave := context.WithCancel(context.Background())
	x := &sent{make(chan reply, 1), time.Now(), leave}
	req := s.request(http.MethodPost, chat, body).WithContext(ctx)
	go func() { x.reply <- s.do(req) }()
	return x
}

// end waits for the answer, and returns how long it took in all.
func (x *sent) end() (reply, time.Duration) {
	r := <-x.reply
	x.leave()
	return r, time.Since(x.began)
}

const (
	shortStream   = `{"model":"chat","stream":true,"max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	shortDocument = `{"model":"chat","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	longStream    = `{"model":"chat","stream":true,"max_tokens":1400,"messages":[{"role":"user","content":"hi"}]}` // 30 s
)

// Who waits for a first byte at an engine that hangs goes on at another one within some
// seconds, whatever its answer will be, and it costs nobody a retry.
func TestWhoWaitsAtAnEngineThatHangsGoesElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		change func(*config.Config)
	}{
		"a stream":           {shortStream, nil},
		"a document":         {shortDocument, nil},
		"of a hedged route":  {shortStream, func(c *config.Config) { c.Routes[0].Hedge = true }},
		"with max_ttft":      {shortStream, func(c *config.Config) { c.Routes[0].SLO.MaxTTFT = time.Second }},
		"which can continue": {shortStream, func(c *config.Config) { c.Routes[0].Continue = true }},
	} {
		bubble(t, name, func(t *testing.T) {
			s := openStage(t, c.change)
			s.post(chat, c.body)
			s.a.stop()
			budget := s.gateway.retries.saved
			r, took := s.send(c.body).end()
			if r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != "b" || took > 20*time.Second {
				t.Errorf("status %d of %q after %v, want 200 of b within 20 s: %v", r.status, r.header.Get("X-Pacer-Backend"), took, r.err)
			}
			if got := s.gateway.retries.saved; got < budget {
				t.Errorf("it cost %.1f retries", budget-got)
			}
			if line := s.last(); line.Outcome != outcomeOK || line.Attempts != 2 {
				t.Errorf("log line %+v, want two attempts", line)
			}
			if _, ok := s.backends["a"].Begin(); !ok {
				t.Error("its breaker opened")
			}
			s.a.goOn()
		})
	}
}

// onlyB has b take one request, and gives it a route of its own.
func onlyB(c *config.Config) {
	c.Backends[1].MaxConcurrency = 1
	other := c.Routes[0]
	other.Models, other.Targets = []string{"other"}, other.Targets[1:]
	c.Routes = append(c.Routes, other)
}

const otherStream = `{"model":"other","stream":true,"max_tokens":1400,"messages":[{"role":"user","content":"hi"}]}` // 30 s

// For whom there is no room elsewhere stays: it goes when somebody has left there, or is
// served when the engine goes on, whichever comes first.
func TestWhoFindsNoRoomStaysAtAnEngineThatHangs(t *testing.T) {
	for name, c := range map[string]struct {
		stops time.Duration
		by    string
	}{
		"there is room":      {time.Minute, "b"},
		"the engine goes on": {20 * time.Second, "a"},
	} {
		bubble(t, name, func(t *testing.T) {
			s := openStage(t, onlyB)
			other := s.send(otherStream)
			<-time.After(100 * time.Millisecond)
			s.a.stop()
			time.AfterFunc(c.stops, s.a.goOn)
			waits := s.send(shortStream)
			r, took := waits.end()
			if r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != c.by || took > min(c.stops, 32*time.Second)+2*time.Second {
				t.Errorf("status %d of %q after %v, want 200 of %s: %v", r.status, r.header.Get("X-Pacer-Backend"), took, c.by, r.err)
			}
			other.end()
			if sent := s.a.asked.Load() + s.b.asked.Load(); c.by == "a" && sent != 2 {
				t.Errorf("%d requests were sent, want 2: who stays is sent once", sent)
			}
			<-time.After(c.stops) // it has gone on
		})
	}
}

// At full load places elsewhere come free for those in line: who waits at an engine that hangs
// stands there too, and came before them.
func TestWhoWaitsAtAnEngineThatHangsIsFirstInLine(t *testing.T) {
	bubble(t, "full", func(t *testing.T) {
		s := openStage(t, onlyB)
		other := s.send(otherStream) // for 30 s
		<-time.After(100 * time.Millisecond)
		s.a.stop()
		waits := s.send(shortStream)
		<-time.After(16 * time.Second)
		if !s.backends["a"].Pulse().Hung() {
			t.Fatal("a is not known to hang")
		}
		var later []*sent
		for range 60 { // as long as b has the first of them
			later = append(later, s.send(longStream))
			<-time.After(500 * time.Millisecond)
		}
		select {
		case r := <-waits.reply:
			if r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != "b" {
				t.Errorf("status %d of %q, want 200 of b: %v", r.status, r.header.Get("X-Pacer-Backend"), r.err)
			}
		default:
			t.Error("who waits at a stays there, though b had a place since")
		}
		s.a.goOn()
		waits.leave()
		other.end()
		for _, x := range later {
			x.leave()
			x.end()
		}
		s.idle()
	})
}

// Who stands in line for a place elsewhere stays where it is when its engine goes on, and
// nothing is left of its place in line.
func TestWhoStaysLeavesTheLine(t *testing.T) {
	for name, leaves := range map[string]bool{"the engine goes on": false, "the client leaves": true} {
		bubble(t, name, func(t *testing.T) {
			s := openStage(t, onlyB)
			other := s.send(otherStream)
			<-time.After(100 * time.Millisecond)
			s.a.stop()
			waits := s.send(shortStream)
			<-time.After(18 * time.Second)
			if n := s.router.Routes(time.Now())[0].Moving; n != 1 {
				t.Errorf("%d stand in line, want who waits at a", n)
			}
			if leaves {
				waits.leave()
			}
			s.a.goOn()
			waits.end()
			synctest.Wait()
			if n := s.router.Routes(time.Now())[0].Moving; n != 0 {
				t.Errorf("%d stand in line, want nobody", n)
			}
			other.end()
			s.idle()
		})
	}
}

// Where all engines hang, nobody goes from one to another: who goes on first serves those
// who are there.
func TestNobodyGoesToAnEngineThatHangsAsWell(t *testing.T) {
	bubble(t, "both hang", func(t *testing.T) {
		s := openStage(t, func(c *config.Config) {
			onlyB(c)
			c.Backends[1].MaxConcurrency = 5
		})
		s.a.stop()
		s.b.stop()
		other := s.send(otherStream)
		waits := s.send(shortStream)
		<-time.After(40 * time.Second)
		s.a.goOn()
		r, _ := waits.end()
		if r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != "a" || s.a.asked.Load() != 1 {
			t.Errorf("status %d of %q, and a was asked %d times; want 200 of a, once", r.status, r.header.Get("X-Pacer-Backend"), s.a.asked.Load())
		}
		s.b.goOn()
		other.end()
	})
}

// The page of an engine answers while nothing else does: who waits there goes elsewhere
// when its breaker has opened, and not before.
func TestWhoWaitsBehindAnOpenBreakerGoesElsewhere(t *testing.T) {
	bubble(t, "page answers", func(t *testing.T) {
		s := openStage(t, nil)
		s.a.answers = true
		s.a.stop()
		waits := s.send(shortStream)
		<-time.After(40 * time.Second)
		if s.b.asked.Load() > 0 || s.backends["a"].Pulse().Hung() {
			t.Error("who waits was moved although the page answers")
		}
		for range 5 {
			verdict, _ := s.backends["a"].Begin()
			verdict(errFirstByte)
		}
		opened := time.Now()
		r, _ := waits.end()
		if took := time.Since(opened); r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != "b" || took > 3*time.Second {
			t.Errorf("status %d of %q %v after the breaker opened, want 200 of b: %v", r.status, r.header.Get("X-Pacer-Backend"), took, r.err)
		}
		s.a.goOn()
	})
}

// A client that leaves while its request is moved leaves no place taken.
func TestWhoLeavesWhileItIsMovedLeavesNothing(t *testing.T) {
	bubble(t, "leaves", func(t *testing.T) {
		s := openStage(t, nil)
		s.a.stop()
		var all []*sent
		for i := range 80 {
			x := s.send(longStream)
			time.AfterFunc(9*time.Second+time.Duration(i)*100*time.Millisecond, x.leave)
			all = append(all, x)
		}
		for _, x := range all {
			x.end()
		}
		s.a.goOn()
		s.idle()
	})
}

// A stream that can be continued goes on elsewhere as soon as its engine is known to
// hang, and not before there is room.
func TestAStreamThatCanBeContinuedDoesNotWaitOutAHang(t *testing.T) {
	for name, c := range map[string]struct {
		full  bool
		stops time.Duration
		want  string // how it ends
	}{
		"there is room":                         {false, 50 * time.Second, "continued"},
		"there is none, and the engine goes on": {true, 25 * time.Second, "whole"},
	} {
		bubble(t, name, func(t *testing.T) {
			s := openStage(t, func(c *config.Config) {
				onlyB(c)
				c.Routes[0].Continue = true
			}, "text-of-prompt")
			var other *sent
			if c.full {
				other = s.send(otherStream)
			}
			x := s.send(strings.Replace(longStream, "1400", "300", 1)) // 6.3 s
			<-time.After(3 * time.Second)
			s.a.stop()
			time.AfterFunc(c.stops, s.a.goOn)
			r, took := x.end()
			got := readStream(r.body)
			how := "whole"
			if len(got.comments) == 1 {
				how = "continued"
			}
			if r.err != nil || got.done != 1 || got.errors != 0 || how != c.want || took > 30*time.Second {
				t.Errorf("%s after %v, with %d ends and %d errors (%v); want it %s within 30 s", how, took, got.done, got.errors, r.err, c.want)
			}
			if other != nil {
				other.end()
			}
			<-time.After(c.stops)
		})
	}
}

// Who can go nowhere else keeps nobody there who can, whatever came first.
func TestWhoCanGoNowhereElseKeepsNobodyAtAnEngineThatHangs(t *testing.T) {
	bubble(t, "pinned", func(t *testing.T) {
		s := openStage(t, nil)
		s.a.stop()
		ctx, leave := context.WithCancel(t.Context())
		pinned := s.request(http.MethodPost, chat, shortStream, targetHeader, "a").WithContext(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.do(pinned)
		}()
		<-time.After(100 * time.Millisecond)
		r, took := s.send(shortStream).end()
		if r.status != http.StatusOK || r.header.Get("X-Pacer-Backend") != "b" || took > 20*time.Second {
			t.Errorf("status %d of %q after %v, want 200 of b within 20 s: %v", r.status, r.header.Get("X-Pacer-Backend"), took, r.err)
		}
		leave()
		<-ended
		s.a.goOn()
	})
}

// What a first token took while its engine hung says nothing of what the cache saves.
func TestAHangTeachesNothingOfTheCache(t *testing.T) {
	for _, hang := range []time.Duration{3 * time.Second, 30 * time.Second} {
		bubble(t, hang.String(), func(t *testing.T) {
			s := openStage(t, func(c *config.Config) {
				c.Backends, c.Routes[0].Targets = c.Backends[:1], c.Routes[0].Targets[:1]
			})
			s.a.stop()
			waits := s.send(shortStream)
			<-time.After(time.Second)
			sent := s.underWay()
			<-time.After(hang)
			s.a.goOn()
			if r, _ := waits.end(); r.status != http.StatusOK || len(sent) != 1 {
				t.Fatalf("status %d of %d attempts, want 200 of 1: %v", r.status, len(sent), r.err)
			}
			synctest.Wait()
			if got := sent[0].outcome().TTFT; (got > 0) != (hang < hungGap) {
				t.Errorf("after %v the cache is told of a first token after %v", hang, got)
			}
		})
	}
}

// No place is taken for a request that is over, though a panic ended it as it waited.
func TestNoPlaceIsTakenForARequestThatIsOver(t *testing.T) {
	bubble(t, "over", func(t *testing.T) {
		s := openStage(t, nil)
		s.a.stop()
		waits := s.send(longStream)
		<-time.After(time.Second)
		for _, a := range s.underWay() {
			a.abandon() // as settle does, while send has not returned
		}
		<-time.After(20 * time.Second)
		if s.b.asked.Load() > 0 || !s.backends["a"].Pulse().Hung() {
			t.Error("it was moved to the other engine, or its own does not hang")
		}
		waits.leave()
		waits.end()
		s.a.goOn()
	})
}

// underWay are the attempts that were sent, and are not over.
func (s *stage) underWay() (all []*attempt) {
	e := &s.gateway.endings
	e.mu.Lock()
	defer e.mu.Unlock()
	for t := range e.trips {
		all = append(all, t)
	}
	return all
}

// The gateway may end while loops take answers over, which have another cancel then.
func TestTheGatewayEndsWhileLoopsTakeAnswers(t *testing.T) {
	e := &endings{}
	e.ctx, e.cancel = context.WithCancelCause(t.Context())
	x, all := &exchange{}, make([]attempt, 5000)
	begin := func(a *attempt) {
		a.up.ctx, a.up.cancel = context.WithCancelCause(t.Context())
		e.add(a, x)
	}
	for i := range all {
		begin(&all[i])
	}
	var ending sync.WaitGroup
	ending.Go(e.end)
	for i := range all { // as looped.start does
		a := &all[i]
		before := a.up.ctx
		e.remove(a)
		if begin(a); before.Err() != nil {
			a.up.cancel(errDraining)
		}
	}
	ending.Wait()
	for i := range all {
		if all[i].up.ctx.Err() == nil {
			t.Fatal("an answer goes on behind the end")
		}
	}
}

// What a backend refused with while its words are kept is no answer that it owes.
func TestWhoStandsInLineIsOwedNothing(t *testing.T) {
	bubble(t, "in line", func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[1].MaxConcurrency = 1
		c.Routes[0].OnInfeasible[0].Queue = 20 * time.Second
		other := c.Routes[0]
		other.Models, other.Targets = []string{"other"}, other.Targets[1:]
		c.Routes = append(c.Routes, other)
		full := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
		s := &stage{house: open(t, c, map[string]http.Handler{"a": full, "b": engine(t)})}
		before := s.send(strings.Replace(otherStream, "1400", "500", 1)) // 10 s
		<-time.After(100 * time.Millisecond)
		waits := s.send(shortStream)
		<-time.After(5 * time.Second)
		if s.backends["a"].Pulse().Quiet(time.Now().Add(time.Hour)) {
			t.Error("the backend that is full owes an answer, as far as its pulse knows")
		}
		if r, took := waits.end(); r.status != http.StatusOK || took < 6*time.Second {
			t.Errorf("status %d after %v, want 200 by way of the line: %v", r.status, took, r.err)
		}
		before.end()
	})
}

// A client that leaves as its stream is taken to a second engine, which hangs as well,
// leaves no place taken.
func TestWhoLeavesWhileItsStreamGoesOnLeavesNothing(t *testing.T) {
	bubble(t, "leaves", func(t *testing.T) {
		s := openStage(t, func(c *config.Config) { c.Routes[0].Continue = true }, "text-of-prompt")
		x := s.send(longStream)
		<-time.After(3 * time.Second)
		s.b.stop()
		s.a.stop()
		for _, t := range s.underWay() {
			t.up.cancel(errSilence)
		}
		<-time.After(time.Second)        // it waits for b, which hangs
		for _, t := range s.underWay() { // as escape does
			d := s.router.Place(time.Now(), router.Request{Route: "chat", NoQueue: true})
			t.rescue.mu.Lock()
			t.rescue.at = &stranded{to: &d}
			t.rescue.mu.Unlock()
		}
		x.leave()
		x.end()
		s.a.goOn()
		s.b.goOn()
		s.idle()
	})
}

// Whether an attempt has moved is read beside who looks for those that are to be moved: each
// takes the lock. It is for the race detector.
func TestAnAttemptThatIsAloneAgainIsLookedAt(t *testing.T) {
	x := &exchange{failover: failover{rescued: true}} // it may not go on again
	x.g = &Gateway{}
	answered := make(chan struct{})
	close(answered)
	first := &attempt{}
	first.up.done = answered
	var ended atomic.Bool
	var looking sync.WaitGroup
	looking.Go(func() {
		for !ended.Load() {
			(&stranded{x: x, t: first}).escape(time.Now(), map[string]int{})
		}
	})
	for range racetest.Some(1000) { // on one core each turn waits for 10 ms
		x.outlast(first)
		runtime.Gosched()
	}
	ended.Store(true)
	looking.Wait()
	if first.rescue.at.moved() || first.rescue.waits {
		t.Error("it was moved, or waits still")
	}
}

package redisload

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/share"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// expiry is how long a replica under test believes in what it heard last.
const expiry = time.Second

// replica is one gateway's end of the sharing, driven step by step. It is as
// patient as a busy machine may need; impatient makes it what it is by default.
type replica struct {
	*Loop
	link *share.Link
	load router.Load
	told []router.RemoteLoad
	log  bytes.Buffer
}

func newReplica(t *testing.T, s *redistest.Server, name string, decoding int) *replica {
	t.Helper()
	r := &replica{load: router.Load{Decoding: decoding}}
	log := slog.New(slog.NewTextHandler(&r.log, nil))
	const every = 10 * time.Second
	r.link = must.Get(share.NewLink(share.Options{Replicas: 2, Expiry: expiry, Log: log}))(t)
	r.Loop = must.Get(New(Options{
		Conn: s.Client(t), Link: r.link, Replica: name, Log: log, Every: every, Expiry: 4 * every,
		Own: func(time.Time) map[string]router.Load {
			if r.load.Decoding == 0 {
				return nil
			}
			return map[string]router.Load{"gpu": r.load}
		},
		OnLoad: func(l router.RemoteLoad) { r.told = append(r.told, l) },
	}))(t)
	return r
}

func (r *replica) impatient() {
	r.o.Every, r.o.Expiry = 200*time.Millisecond, time.Second
}

func (r *replica) last(t *testing.T) router.RemoteLoad {
	t.Helper()
	if len(r.told) == 0 {
		t.Fatal("the router was told nothing")
	}
	return r.told[len(r.told)-1]
}

func want(t *testing.T, what string, got, want router.RemoteLoad) {
	t.Helper()
	got.Told = time.Time{} // see TestReplicasTellWhen
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// How old a report is, the server says, and what moved is told by the age of that:
// whatever the clock of who wrote it says.
func TestReplicasTellWhen(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s, "a", 1)
	const age, ago = 5 * time.Second, 300 * time.Millisecond
	begin := time.Now()
	var seconds, micros int64
	clock := s.Do("TIME").([]any)
	must.Get(fmt.Sscan(clock[0].(string), &seconds))(t)
	must.Get(fmt.Sscan(clock[1].(string), &micros))(t)
	s.Do("HSET", a.key, "b", fmt.Sprintf(`%d {"v":1,"b":{"gpu":[0,20]},"n":{"gpu":{"":[20,300]}},"p":{}}`, seconds*1000+micros/1000-age.Milliseconds()))
	a.step(t.Context())
	took, got := time.Since(begin)+2*time.Millisecond, a.last(t) // the server tells milliseconds
	if off := got.Told.Sub(begin.Add(-age)).Abs(); off > took {
		t.Errorf("told until %v before that, want %v but for %v", begin.Sub(got.Told), age, took)
	}
	moves := got.ByBackend["gpu"].Moves
	if len(moves) != 1 || moves[0].By != 20 || !moves[0].At.Equal(got.Told.Add(-ago)) {
		t.Errorf("told until %v, moves %v: want 20 more %v before that", got.Told, moves, ago)
	}
}

func decodingElsewhere(replicas, n int) router.RemoteLoad {
	return router.RemoteLoad{Replicas: replicas, ByBackend: map[string]router.Load{"gpu": {Decoding: n}}}
}

func TestReplicasSeeEachOtherAndNeverThemselves(t *testing.T) {
	s := redistest.Start(t)
	a, b, c := newReplica(t, s, "a", 1), newReplica(t, s, "b", 20), newReplica(t, s, "c", 300)
	a.step(t.Context())
	want(t, "a alone", a.last(t), router.RemoteLoad{Replicas: 1, ByBackend: map[string]router.Load{}})
	b.step(t.Context())
	want(t, "b beside a", b.last(t), decodingElsewhere(2, 1))
	c.step(t.Context())
	a.step(t.Context())
	want(t, "a beside both", a.last(t), decodingElsewhere(3, 320))

	b.load.Decoding = 0
	b.step(t.Context())
	a.step(t.Context())
	want(t, "a when b is idle", a.last(t), decodingElsewhere(3, 300))

	c.leave(t.Context())
	a.step(t.Context())
	want(t, "a when c has left", a.last(t), router.RemoteLoad{Replicas: 2, ByBackend: map[string]router.Load{}})
}

func TestSilentReplicaIsForgottenByTheServersClock(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s, "a", 1)
	clock := s.Do("TIME").([]any)
	var seconds int64
	must.Get(fmt.Sscan(clock[0].(string), &seconds))(t)
	silence := a.o.Expiry + 3*time.Second
	for name, ago := range map[string]time.Duration{"alive": 0, "dead": silence, "ahead": -2 * silence} {
		s.Do("HSET", a.key, name, fmt.Sprintf(`%d {"v":1,"b":{"gpu":[0,7,0,0]}}`, seconds*1000-ago.Milliseconds()))
	}
	s.Do("HSET", a.key, "stranger", "who writes something else")
	a.step(t.Context())
	want(t, "a", a.last(t), decodingElsewhere(2, 7))
	if got := s.Do("HLEN", a.key); got != int64(2) {
		t.Errorf("%v fields are left, want 2: a and alive", got)
	}
	if ms := s.Do("PTTL", a.key).(int64); ms <= 0 || ms > hashLife.Milliseconds() {
		t.Errorf("the hash lives for %d ms, want at most %d", ms, hashLife.Milliseconds())
	}
}

// Reports that no gateway can have written change nothing, and are said once; the
// others are believed.
func TestHostileReports(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a", 1), newReplica(t, s, "b", 20)
	b.step(t.Context())
	for _, report := range []string{
		`{"v":1,"b":{"gpu":[0,-20,0,0]}}`, `{"v":1,"b":{"gpu":[1e9,1e9,1e15,1e9]}}`, `{"v":1,"b":{"gpu":[0,0,0,1e300]}}`, `{"v":1,"b":{"gpu":[NaN]}}`,
		`{"v":1,"b":{"gpu":[0,3]},"m":{"gpu":{"x":[0,1e99]}}}`, `garbage`, `"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		now := s.Do("TIME").([]any)[0].(string)
		s.Do("HSET", a.key, "hostile", now+"000 "+report)
		a.step(t.Context())
		if got := a.last(t).ByBackend["gpu"]; got.Decoding != 20 || got.Waiting != 0 || got.Floor != 0 {
			t.Errorf("%.60s: the others run %+v, want 20 of b's", report, got)
		}
	}
	if log := a.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "replica=hostile") {
		t.Errorf("logged %q, want one line that names the replica", log)
	}
	// A thousand replicas are the most that anybody runs.
	args := []any{"HSET", a.key}
	now := s.Do("TIME").([]any)[0].(string)
	for i := range 3000 {
		args = append(args, fmt.Sprint("hostile-", i), now+`000 {"v":1,"b":{}}`)
	}
	s.Do(args...)
	a.step(t.Context())
	if got := a.last(t).Replicas; got > 1001 {
		t.Errorf("%d replicas are believed in", got)
	}
}

// The same with a real loop in real time: b speaks until a has heard it, and
// never again.
func TestKilledReplicaDisappears(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a", 1), newReplica(t, s, "b", 20)
	a.impatient()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := false
	a.o.OnLoad = func(l router.RemoteLoad) {
		switch {
		case l.Replicas == 2:
			seen = true
		case !seen:
			b.step(t.Context())
		case l.Replicas == 1 && !l.Lost:
			cancel()
		}
	}
	start := time.Now()
	must.Do(t, a.Run(ctx))
	if !seen || context.Cause(ctx) != context.Canceled {
		t.Fatalf("b was seen: %v; forgotten: %v after %v", seen, ctx.Err() == context.Canceled, time.Since(start))
	}
	if got := s.Do("HGETALL", a.key); len(got.(map[any]any)) != 0 {
		t.Errorf("a did not leave: %v", got)
	}
}

func TestLostAndFoundIsToldAndLoggedOnce(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a", 1), newReplica(t, s, "b", 20)
	b.step(t.Context())
	a.step(t.Context())
	s.Kill()
	for deadline := time.Now().Add(time.Minute); !a.link.State().Alone; {
		if a.step(t.Context()); time.Now().After(deadline) {
			t.Fatal("the loss is not noticed")
		}
	}
	want(t, "a without redis", a.last(t), router.RemoteLoad{Replicas: 2, Lost: true})

	s.Restart() // empty
	for deadline := time.Now().Add(time.Minute); s.Do("HEXISTS", a.key, "a") != int64(1); {
		if a.step(t.Context()); time.Now().After(deadline) { // past its backoff of a millisecond
			t.Fatalf("not back: %v", a.told)
		}
	}
	want(t, "a, first to come back", a.last(t), router.RemoteLoad{Replicas: 2, Lost: true})
	for deadline := time.Now().Add(time.Minute); len(b.told) == 1; { // its first step fails, its connection is gone
		if b.step(t.Context()); time.Now().After(deadline) {
			t.Fatal("b is not back")
		}
	}
	a.step(t.Context())
	want(t, "a when b is back", a.last(t), decodingElsewhere(2, 20))

	for _, line := range []string{"alone: ", "shared: "} {
		if n := strings.Count(a.log.String(), line); n != 1 {
			t.Errorf("%q is logged %d times, want once:\n%s", line, n, a.log.String())
		}
	}
}

// A frozen server must not hold up the loop, nor its end.
func TestFrozenServerDoesNotHoldUpTheLoop(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s, "a", 1)
	a.step(t.Context())
	a.impatient()
	s.Freeze()
	ctx, cancel := context.WithCancel(t.Context())
	a.o.OnLoad = func(l router.RemoteLoad) {
		if l.Lost {
			cancel()
		}
	}
	bound, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	must.Do(t, a.Run(bound))
	if ctx.Err() == nil {
		t.Error("the loss was never told")
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	s := redistest.Start(t)
	full := newReplica(t, s, "a", 0).o
	for field, clear := range map[string]func(*Options){
		"Conn":    func(o *Options) { o.Conn = nil },
		"Replica": func(o *Options) { o.Replica = "" },
		"Link":    func(o *Options) { o.Link = nil },
		"Own":     func(o *Options) { o.Own = nil },
		"OnLoad":  func(o *Options) { o.OnLoad = nil },
		"Log":     func(o *Options) { o.Log = nil },
	} {
		o := full
		clear(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New without %s = %v, want an error that names it", field, err)
		}
	}
}

func BenchmarkExchange(b *testing.B) {
	// Budget: 1 ms, five times a second; 0.5 ms with eight replicas of 16 backends.
	s := redistest.Start(b)
	conn := must.Get(redisconn.New(config.Store{Addrs: []string{s.Addr}}))(b)
	b.Cleanup(conn.Close)
	loads := map[string]router.Load{}
	for i := range 16 {
		loads[fmt.Sprint("gpu-", i)] = router.Load{
			Waiting: i, Decoding: 100, PromptTokens: 5000, Floor: 30, Leads: router.Leads{Streams: 90, Least: 1234567 * time.Microsecond},
			Level: router.Level{Tokens: 29876.54, Seconds: 1000.0 / 3, AtN: 1e5 / 3, Steps: 1000.0 / 3, Time: 9.99},
		}
	}
	var loops []*Loop
	link := must.Get(share.NewLink(share.Options{Log: slog.New(slog.DiscardHandler)}))(b)
	for i := range 8 {
		l, err := New(Options{
			Conn: conn, Link: link, Replica: fmt.Sprint("replica-", i), Log: slog.New(slog.DiscardHandler),
			Own:    func(time.Time) map[string]router.Load { return loads },
			OnLoad: func(router.RemoteLoad) {},
		})
		must.Do(b, err)
		loops = append(loops, l)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		must.Get(loops[i%8].exchange(b.Context()))(b)
	}
}

// Two gateways before one API whose models are separate: each sees in a model
// what the other has there, and all of it below the cap.
func TestReplicasShareTheLoadOfEachModel(t *testing.T) {
	s := redistest.Start(t)
	of := func(model string) []router.RouteTarget {
		return []router.RouteTarget{{Target: router.Target{Backend: "api", Model: model, Separate: true}}}
	}
	topo := router.Topology{
		Backends: []router.Backend{{Name: "api", MaxConcurrency: 6}},
		Routes:   []router.Route{{Name: "chat", Targets: of("m")}, {Name: "*", Targets: of("")}},
	}
	now := time.Now()
	var routers []*router.Router
	var replicas []*replica
	for _, name := range []string{"a", "b"} {
		r, conn := router.New(router.Options{Rand: func() float64 { return 0.5 }}), newReplica(t, s, name, 0)
		r.Update(now, router.Configure{Topology: topo})
		conn.o.Own, conn.o.OnLoad = r.Own, func(l router.RemoteLoad) { r.Update(now, l) }
		routers, replicas = append(routers, r), append(replicas, conn)
	}
	for route, users := range map[string]int{"chat": 2, "*": 3} {
		for range users {
			routers[0].Place(now, router.Request{Route: route, Stream: true}).Lease.FirstToken(now)
		}
	}
	replicas[0].step(t.Context())
	replicas[1].step(t.Context())
	sees := func(route string) [2]int {
		c := seen(routers[1], now, router.Request{Route: route, Stream: true})
		return [2]int{c.N, c.M}
	}
	if chat, rest := sees("chat"), sees("*"); chat != [2]int{2, 2} || rest != [2]int{3, 3} {
		t.Errorf("b sees n, m = %v on m and %v on the others, want 2 and 3 of a's", chat, rest)
	}
	if d := routers[1].Place(now, router.Request{Route: "chat", Stream: true}); d.Lease == nil {
		t.Errorf("the sixth was refused: %+v", d.Refusal)
	}
	if c := seen(routers[1], now, router.Request{Route: "*", Stream: true}); c.Reason != router.ReasonCap {
		t.Errorf("the seventh is %v, want cap", c.Reason)
	}
}

// Two gateways before one engine, with a real Redis between them: what would stop
// the streams of one for longer than they can stand, the other does not send; and
// it knows how fast they are, and what prompts take there.
func TestReplicasProtectEachOthersStreams(t *testing.T) {
	s := redistest.Start(t)
	topo := router.Topology{
		Backends: []router.Backend{{Name: "gpu"}},
		Routes: []router.Route{{
			Name: "chat", SLO: router.SLO{MinTPS: 30, Grace: time.Second},
			Targets: []router.RouteTarget{{Target: router.Target{Backend: "gpu", Model: "m"}}},
		}},
	}
	now := time.Now()
	book := profiles.NewBook(profiles.Options{})
	target := router.Target{Backend: "gpu", Model: "m"}
	book.Prior(target, []profiles.PriorPoint{{N: 1, TPS: 80}, {N: 16, TPS: 60}}, 0)
	var routers []*router.Router
	var replicas []*replica
	for _, name := range []string{"a", "b"} {
		r, end := router.New(router.Options{Rand: func() float64 { return 0.5 }}), newReplica(t, s, name, 0)
		r.Update(now, router.Configure{Topology: topo})
		r.Update(now, router.Curves{ByTarget: map[router.Target]*profiles.Curve{target: book.Curve(target)}})
		end.o.Own, end.o.OnLoad = func(time.Time) map[string]router.Load { return r.Own(now) }, func(l router.RemoteLoad) { r.Update(now, l) }
		routers, replicas = append(routers, r), append(replicas, end)
	}
	exchange := func() {
		for range 2 {
			for _, r := range replicas {
				r.step(t.Context())
			}
		}
	}
	exchange()
	takes := func(i, prompt int) router.Reason {
		return seen(routers[i], now, router.Request{Route: "chat", Stream: true, PromptTokens: prompt}).Reason
	}
	const dear = 20_000 // two seconds, at 100 µs a token
	if got := takes(1, dear); got != router.OK {
		t.Fatalf("b, while nobody streams: %v, want ok", got)
	}
	lease := routers[0].Place(now, router.Request{Route: "chat", Stream: true, PromptTokens: 2000}).Lease
	now = now.Add(600 * time.Millisecond) // 300 µs a token
	lease.FirstToken(now)
	now = now.Add(500 * time.Millisecond)
	lease.Progress(now, profiles.Count{Tokens: 20})
	if got := takes(1, dear); got != router.OK {
		t.Errorf("b, before it hears of a's stream: %v, want ok", got)
	}
	exchange()
	for i, name := range []string{"a", "b"} {
		if got := takes(i, dear); got != router.ReasonProtects {
			t.Errorf("%s, beside a's stream with a second and a sixth of a lead: %v, want protects", name, got)
		}
		if got := takes(i, 100); got != router.OK {
			t.Errorf("%s, a short prompt: %v, want ok", name, got)
		}
	}
	lease.Done(now, 20)
	exchange()
	if got := takes(1, dear); got != router.OK {
		t.Errorf("b, when a's stream has ended: %v, want ok", got)
	}
}

// Which prompts went where is told with the load, to the others alone.
func TestReplicasTellWhichPromptsTheySent(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s, "a", 1), newReplica(t, s, "b", 20)
	target := router.Target{Backend: "gpu", Model: "org/model:free"}
	a.o.Sent = func(time.Time) map[router.Target][]byte {
		return map[router.Target][]byte{target: {0, 1, 255}, {Backend: "other"}: {7}}
	}
	heard := func(r *replica) map[router.Target][]byte {
		all := map[router.Target][]byte{}
		r.o.OnSent = func(_ time.Time, t router.Target, text []byte) { all[t] = text }
		r.step(t.Context())
		return all
	}
	a.step(t.Context())
	if diff := cmp.Diff(a.o.Sent(time.Time{}), heard(b)); diff != "" {
		t.Errorf("b heard (-want +got):\n%s", diff)
	}
	if got := heard(a); len(got) != 0 {
		t.Errorf("a heard of itself: %v", got)
	}
}

// seen is the first candidate for req, as r would see it now.
func seen(r *router.Router, now time.Time, req router.Request) router.Candidate {
	rec, _ := r.Preview(now, req)
	return rec.Candidates[0]
}

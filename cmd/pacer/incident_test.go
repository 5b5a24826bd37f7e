package main

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// incident is something that goes wrong while users stream, and is mended.
type incident struct {
	name  string
	fault string // of the engine, while it lasts; "" = none
	mend  string // what ends it
	model string // that the route names meanwhile; "" = the one that is there
	floor string // that it promises meanwhile; "" = 30
	burst int    // users that come on top meanwhile
	users int    // who come again at once; those who are refused after half a second

	within time.Duration // in which it is said; 0 = 5 s

	of, kind string // whose cause it is, and what sort
	says     string // its words, an expression
	mark     string // the kind of its mark
}

func (x *incident) config(t *testing.T, model, floor string) (gpus []gpu, routes string) {
	t.Helper()
	return []gpu{{name: "a", model: carries64, seed: 7}},
		"routes:\n  - { model: chat, slo: { min_tps: " + floor + " }, on_infeasible: [ shed ], targets: [ { backend: a, model: " + model + " } ] }\n"
}

func (x *incident) put(h *house, model, floor string) {
	h.t.Helper()
	gpus, routes := x.config(h.t, model, floor)
	if err := h.program.reload(houseConfig(h.t, gpus, routes)); err != nil {
		h.t.Error(err)
	}
}

// standing is the cause of a route or a backend, nil when it has none.
func (h *house) standing(of string) *api.Standing {
	for _, c := range answer[api.Routes](h, "/api/v1/routes?window=5m").Verdict.Causes {
		if c.Of == of {
			return &c
		}
	}
	return nil
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) lines(has string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, has) {
			out = append(out, line)
		}
	}
	return out
}

// crowd is so many users who come again at once, or after half a second when they
// were not served, until stop, which waits for them.
func (h *house) crowd(users int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := h.client.Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 20, MaxTokens: 60 + 11*((i+n)%8)})
				if r.Outcome != loadgen.Done {
					loadgen.Wait(ctx, 500*time.Millisecond)
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// Each incident has a cause within five seconds, with since when and the same
// words everywhere; two lines in the log for whose it is, however many requests it
// costs; a mark on the timeline. It is over when it was mended. The window is green
// again when the incident has left it, and the start tells of it for good.
func TestIncidentsAreSeen(t *testing.T) {
	for _, x := range []incident{
		{
			name: "drift", users: 12, fault: `{"drift":2.4}`, mend: `{"drift":1}`,
			of: "backend", kind: "slower", says: `^slower than learned ×0\.\d+ since`, mark: "drift",
		},
		{
			name: "drift under load", users: 30, fault: `{"drift":3.5}`, mend: `{"drift":1}`,
			within: 10 * time.Second, // its streams are late before anybody is refused
			of:     "route", kind: "slower", says: `^slower than learned ×0\.\d+ since`, mark: "shedding",
		},
		{
			name: "dead engine", users: 6, fault: `{"refuse":true}`, mend: `{"refuse":false}`,
			of: "backend", kind: "backend_down", says: `^backend down: connection (reset|closed) since`, mark: "backend_down",
		},
		{
			name: "dead engine, its users", users: 6, fault: `{"refuse":true}`, mend: `{"refuse":false}`,
			of: "route", kind: "backend_down", says: `^backend down: connection (reset|closed) since`, mark: "errors",
		},
		{
			name: "wrong model", users: 6, model: "nope",
			of: "backend", kind: "upstream_model", says: `^upstream 404: model "nope" not found since`, mark: "errors",
		},
		{
			name: "wrong key", users: 6, fault: `{"status":401}`, mend: `{"status":0}`,
			of: "backend", kind: "upstream_credentials", says: `^credentials refused: upstream 401 since`, mark: "errors",
		},
		{
			name: "quota", users: 6, fault: `{"status":402}`, mend: `{"status":0}`,
			of: "route", kind: "upstream_quota", says: `^quota: upstream 402 since`, mark: "errors",
		},
		{
			name: "overload", users: 6, burst: 100,
			of: "route", kind: "overload", says: `^load above capacity: \d+ of \d+ since`, mark: "shedding",
		},
		{
			name: "floor out of reach", users: 6, floor: "500",
			of: "route", kind: "floor_unattainable", says: `^floor above what any engine gives alone \([0-9.]+ of 500\) since`, mark: "floor",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			if racetest.On && x.name != "dead engine" {
				t.Skip("two minutes of traffic beside the race detector take one each; make numbers plays all")
			}
			synctest.Test(t, func(t *testing.T) { x.play(t) })
		})
	}
}

func (x *incident) play(t *testing.T) {
	var log lockedBuffer
	gpus, routes := x.config(t, "m", "30")
	h := newLoggedHouse(t, gpus, routes, options{}, &log)
	defer h.crowd(1)()
	leave := sync.OnceFunc(h.crowd(x.users - 1))
	defer leave()
	known := 20 * time.Second
	if x.kind == "slower" {
		known = 90 * time.Second // well enough to have changed
	}
	sleep(known)
	if c := h.standing(x.of); c != nil {
		t.Fatalf("before anything is wrong: %s", *c.Cause.Cause)
	}
	earlier := len(log.lines("cause="))

	begun := time.Now()
	if x.fault != "" {
		h.fault("a", x.fault)
	}
	if x.model != "" || x.floor != "" {
		x.put(h, cmp.Or(x.model, "m"), cmp.Or(x.floor, "30"))
	}
	endBurst := h.crowd(x.burst)
	within := cmp.Or(x.within, 5*time.Second)
	sleep(within + 500*time.Millisecond)
	c := h.standing(x.of)
	if c == nil {
		t.Fatalf("no cause after %s; the log:\n%s", within, strings.Join(log.lines("level=WARN"), ""))
	}
	x.check(t, c, begun, within)
	sleep(20 * time.Second)
	x.same(t, h, &log)

	mended := time.Now()
	endBurst()
	if x.mend != "" {
		h.fault("a", x.mend)
	}
	if x.model != "" || x.floor != "" {
		x.put(h, "m", "30")
	}
	for h.standing(x.of) != nil {
		if time.Since(mended) > 90*time.Second {
			t.Fatalf("it is still said 90 s after it was mended: %s; the log:\n%s", *h.standing(x.of).Cause.Cause, strings.Join(log.lines("level=WARN"), ""))
		}
		sleep(time.Second)
	}
	t.Logf("over %s after it was mended", time.Since(mended).Round(time.Second))
	lines := log.lines("cause=" + x.kind + " " + x.of + "=")
	if len(lines) != 2 || !strings.Contains(lines[1], "over after") {
		t.Errorf("%d lines of the cause, want one at its start and one at its end: %s", len(lines), strings.Join(lines, ""))
	}
	if all := log.lines("cause="); len(all)-earlier > 4 {
		t.Errorf("%d lines of all causes, want two each of route and backend at most:\n%s", len(all)-earlier, strings.Join(all, ""))
	}
	if x.kind != "slower" { // else it takes many to say what an engine gives again
		leave()
	}
	sleep(5*time.Minute + 10*time.Second - time.Since(mended))
	x.greenAgain(t, h)
}

// An engine is mended when all users but one have gone, or go then. Her streams show it,
// though the curves learn little of one level: it is over, and stays so when she goes, too.
func TestSlowerIsOverForOneUser(t *testing.T) {
	if racetest.On {
		t.Skip("ten minutes of traffic; make numbers plays them")
	}
	for _, alone := range []time.Duration{0, time.Minute} {
		t.Run(alone.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := incident{}
				gpus, routes := x.config(t, "m", "30")
				h := newHouse(t, gpus, routes, options{})
				lone := sync.OnceFunc(h.crowd(1))
				defer lone()
				leave := h.crowd(11)
				sleep(90 * time.Second)
				h.fault("a", `{"drift":2.4}`)
				sleep(30 * time.Second)
				if c := h.standing("backend"); c == nil || *c.Kind != "slower" {
					t.Fatalf("the cause is %+v, want slower", c)
				}
				leave()
				sleep(alone)
				if h.standing("backend") == nil {
					t.Fatal("it is over before it was mended")
				}
				h.fault("a", `{"drift":1}`)
				for range 15 {
					sleep(time.Second)
				}
				if c := h.standing("backend"); c != nil {
					t.Errorf("15 s after it was mended: %s", *c.Cause.Cause)
				}
				sleep(time.Minute)
				lone()
				for range 60 {
					sleep(time.Second)
					if c := h.standing("backend"); c != nil {
						t.Fatalf("nobody is there any more: %s", *c.Cause.Cause)
					}
				}
			})
		})
	}
}

// check holds a cause against what is wrong.
func (x *incident) check(t *testing.T, c *api.Standing, begun time.Time, within time.Duration) {
	t.Helper()
	if *c.Kind != x.kind || !regexp.MustCompile(x.says).MatchString(*c.Cause.Cause) {
		t.Errorf("the cause is %s: %q, want %s: %s", *c.Kind, *c.Cause.Cause, x.kind, x.says)
	}
	if d := c.Since.Sub(begun); d < 0 || d > within {
		t.Errorf("since %s after it began", d)
	}
	if c.Advice == nil || *c.Advice == "" || c.Means == nil || *c.Means == "" {
		t.Error("no advice")
	}
	if clock := c.Since.Format("since 15:04 UTC"); !strings.HasSuffix(*c.Cause.Cause, clock) {
		t.Errorf("%q does not end in %q", *c.Cause.Cause, clock)
	}
}

// same checks that metric, timeline and log say the same.
func (x *incident) same(t *testing.T, h *house, log *lockedBuffer) {
	t.Helper()
	c := h.standing(x.of)
	if c == nil {
		t.Fatal("it is over before it was mended")
	}
	page := h.page("/metrics")
	if want := "pacer_" + x.of + `_cause{`; !strings.Contains(page, want) || !strings.Contains(page, `cause="`+*c.Kind+`"`) {
		t.Errorf("the metrics have no %s… with %s", want, *c.Kind)
	}
	found, marks := 0, answer[api.Timeline](h, "/api/v1/timeline").Marks
	for _, m := range marks {
		if m.Of == x.of && m.Ended == nil && m.Kind == x.mark && m.Time.Sub(*c.Since) >= 0 {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d open marks of kind %s since %s or later: %+v", found, x.mark, c.Since, marks)
	}
	if lines := log.lines("cause=" + x.kind + " " + x.of + "="); len(lines) != 1 || !strings.Contains(lines[0], c.Since.Format("since 15:04 UTC")) {
		t.Errorf("the log says it %d times: %s", len(lines), strings.Join(lines, ""))
	}
}

// greenAgain checks that what is over has left the window, and nothing else.
func (x *incident) greenAgain(t *testing.T, h *house) {
	t.Helper()
	late, all := answer[api.Routes](h, "/api/v1/routes?window=5m"), answer[api.Routes](h, "/api/v1/routes")
	if late.Verdict.State != "ok" || late.Routes[0].Cause.Cause != nil {
		t.Errorf("it is not green: %s", late.Verdict.Text)
	}
	was, now := all.Routes[0], late.Routes[0]
	lost := func(r api.Route) uint64 { return r.Shed + r.Failed + r.Missed }
	if x.of == "route" && lost(was) == 0 {
		t.Error("the start has lost nothing")
	}
	if float64(now.BudgetLeft) < 0 || now.Offered == 0 || now.Offered >= was.Offered {
		t.Errorf("the last five minutes: %d offered, %d lost, %.2f of the budget left; since the start %d, %d", now.Offered, lost(now), float64(now.BudgetLeft), was.Offered, lost(was))
	}
}

// Nothing is wrong while users of all sorts come and go below capacity, and nothing
// is said.
func TestAQuietDayHasNoCause(t *testing.T) {
	if racetest.On {
		t.Skip("four minutes of traffic of many users; make numbers plays them")
	}
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		h := newLoggedHouse(t, []gpu{{name: "a", model: carries64, seed: 3}, {name: "b", model: carries38, seed: 4}},
			"routes:\n  - { model: chat, slo: { min_tps: 20 }, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }\n", options{}, &log)
		ctx, stop := context.WithCancel(t.Context())
		var users sync.WaitGroup
		for i := range 24 {
			users.Go(func() {
				rng := rand.New(rand.NewPCG(11, uint64(i)))
				for ctx.Err() == nil {
					h.client.Stream(ctx, loadgen.Request{Model: "chat", PromptTokens: 20 << rng.IntN(8), MaxTokens: 20 + rng.IntN(400)})
					loadgen.Wait(ctx, time.Duration(rng.ExpFloat64()*float64(5*time.Second)))
				}
			})
		}
		sleep(4 * time.Minute)
		stop()
		users.Wait()
		if said := log.lines("cause="); len(said) > 0 {
			t.Errorf("%d lines of causes:\n%s", len(said), strings.Join(said, ""))
		}
	})
}

// An engine that tells no usage is counted by its text: it gets a curve, its streams are
// judged, and who asks why some are refused is told of the load.
func TestAnEngineThatTellsNoUsageIsCountedByItsText(t *testing.T) {
	if racetest.On {
		t.Skip("a minute of 100 users: make numbers runs it, and TestIncidentsAreSeen goes the same way under the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		x := incident{}
		gpus, routes := x.config(t, "m", "30")
		gpus[0].opts.Behaviours = []string{"no-usage"}
		h := newHouse(t, gpus, routes, options{})
		leave := sync.OnceFunc(h.crowd(100))
		defer leave()
		sleep(50 * time.Second)
		if c := h.standing("backend"); c != nil {
			t.Errorf("the backend has %s", *c.Cause.Cause)
		}
		if c := h.standing("route"); c == nil || *c.Kind != "overload" {
			t.Errorf("the cause of the route is %+v, want overload", c)
		}
	})
}

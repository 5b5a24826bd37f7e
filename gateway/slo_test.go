package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

func TestAnObjectiveIsJudgedByItsLastToken(t *testing.T) {
	// 101 tokens, 1 in the first chunk, floor 20: 5 s, and 1 s of grace.
	stream := func(decode time.Duration, measured bool) profiles.Summary {
		return profiles.Summary{Tokens: 101, FirstTokens: 1, Decode: decode, Measured: measured}
	}
	p := objective{floor: 20, grace: time.Second, maxTTFT: 2 * time.Second}
	for _, c := range []struct {
		name      string
		objective objective
		ttft      time.Duration
		stream    profiles.Summary
		want      telemetry.Result
	}{
		{"in time", p, time.Second, stream(5*time.Second, true), telemetry.Met},
		{"on the last moment of grace", p, 2 * time.Second, stream(6*time.Second, true), telemetry.Met},
		{"later than grace", p, time.Second, stream(6*time.Second+time.Millisecond, true), telemetry.Missed},
		{"first token late", p, 2*time.Second + 1, stream(time.Second, true), telemetry.Missed},
		{"first token late, speed unknown", p, 3 * time.Second, stream(time.Second, false), telemetry.Missed},
		{"speed unknown", p, time.Second, stream(time.Second, false), telemetry.Unmeasured},
		{"no token", p, 0, profiles.Summary{}, telemetry.Unmeasured},
		{"nothing promised", objective{}, time.Hour, stream(time.Hour, false), telemetry.Met},
		{"only ttft promised", objective{maxTTFT: time.Second}, time.Second, stream(time.Hour, false), telemetry.Met},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.objective.judge(c.ttft, c.stream); got != c.want {
				t.Errorf("got result %d, want %d", got, c.want)
			}
		})
	}
}

// A client may wish for a floor of next to nothing.
func TestATinyFloorIsKept(t *testing.T) {
	p := objective{floor: 1e-300, grace: time.Second}
	s := profiles.Summary{Tokens: 101, FirstTokens: 1, Decode: time.Hour, Measured: true}
	if got := p.judge(time.Second, s); got != telemetry.Met {
		t.Errorf("got result %d, want %d (met)", got, telemetry.Met)
	}
}

// believe gives a backend a curve by its points.
func (h *house) believe(backend string, points ...profiles.PriorPoint) {
	target := router.Target{Backend: backend, Model: "big"}
	h.book.Prior(target, points, 0)
	h.router.Update(time.Now(), router.Curves{ByTarget: map[profiles.Target]*profiles.Curve{target: h.book.Curve(target)}})
}

// Who was placed without a floor, by best effort or by a spill to a route that
// has none, is judged all the same by what was asked for on its own route.
func TestTheFloorThatWasAskedForIsJudged(t *testing.T) {
	spill := func(c *config.Config) {
		c.Routes[0].OnInfeasible = []config.Step{{Spill: "small"}, {Shed: true}}
		small := c.Routes[0]
		small.Models, small.SLO.MinTPS, small.OnInfeasible = []string{"small"}, 0, []config.Step{{Shed: true}}
		c.Routes = append(c.Routes, small)
	}
	effort := func(c *config.Config) {
		c.Routes[0].OnInfeasible = []config.Step{{BestEffort: true}, {Shed: true}}
	}
	for name, c := range map[string]struct {
		change func(*config.Config)
		word   string // in the decision
		answer func(http.ResponseWriter, *http.Request)
		header []string
		want   telemetry.RouteStats
	}{
		"best effort, slow":       {effort, "policy=best_effort", talk(100, 50*time.Millisecond), nil, telemetry.RouteStats{Offered: 1, Missed: 1}},
		"best effort, fast":       {effort, "policy=best_effort", talk(100, 20*time.Millisecond), nil, telemetry.RouteStats{Offered: 1, Met: 1}},
		"best effort, too short":  {effort, "policy=best_effort", talk(3, 50*time.Millisecond), nil, telemetry.RouteStats{Offered: 1, Unmeasured: 1}},
		"best effort, cut":        {effort, "policy=best_effort", cutAfter(20), nil, telemetry.RouteStats{Offered: 1, Failed: 1}},
		"spilled, slow":           {spill, "spill=small", talk(100, 50*time.Millisecond), nil, telemetry.RouteStats{Offered: 1, Missed: 1}},
		"spilled, fast":           {spill, "spill=small", talk(100, 20*time.Millisecond), nil, telemetry.RouteStats{Offered: 1, Met: 1}},
		"shed":                    {func(c *config.Config) { c.Routes[0].OnInfeasible = []config.Step{{Shed: true}} }, "", talk(100, 20*time.Millisecond), nil, telemetry.RouteStats{Offered: 1, Shed: 1}},
		"asked for less, kept it": {effort, "floor=10", talk(100, 50*time.Millisecond), []string{"x-pacer-min-tps", "10"}, telemetry.RouteStats{Offered: 1, Met: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := settings("a")
				conf.Routes[0].SLO.MinTPS = 30
				c.change(conf)
				h := open(t, conf, map[string]http.Handler{"a": &script{answer: c.answer}})
				h.believe("a", profiles.PriorPoint{N: 1, TPS: 20}, profiles.PriorPoint{N: 2, TPS: 19})
				r := h.post(chat, streamBody, c.header...)
				if got := r.header.Get("X-Pacer-Decision"); !strings.Contains(got, c.word) {
					t.Errorf("decision %q, want %s", got, c.word)
				}
				h.idle()
				s := h.metrics.Route("chat")
				got := telemetry.RouteStats{Offered: s.Offered, Met: s.Met, Missed: s.Missed, Unmeasured: s.Unmeasured, Shed: s.Shed, Failed: s.Failed}
				if got != c.want {
					t.Errorf("route counts %+v, want %+v", got, c.want)
				}
				if s := h.metrics.Route("small"); s.Offered != 0 {
					t.Errorf("the route it was spilled to counts %+v, want none", s)
				}
			})
		})
	}
}

// cutAfter streams n tokens, and then breaks off.
func cutAfter(n int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		for range n {
			if !pause(r, 20*time.Millisecond) {
				return
			}
			say(w, delta)
		}
		cutOff(w)
	}
}

// A stream that falls under its floor while it runs is counted then, and moves
// the drift of its backend before it ends.
func TestARunningStreamBelowItsFloorIsSeenAndTeachesTheDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gpu := engine(t, func(o *sim.Options) { o.Model, o.Faults = sim.Model{A: 0.025}, []string{"drift:3@300s"} })
		conf := settings("a")
		conf.Routes[0].SLO.MinTPS = 30
		h := open(t, conf, map[string]http.Handler{"a": gpu})
		start := time.Now()
		body := func(tokens int) string {
			return fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":%d,"stream":true}`, tokens)
		}
		for time.Since(start) < 280*time.Second { // 40 tokens/s are learned
			h.post(chat, body(400))
		}
		target := router.Target{Backend: "a", Model: "big"}
		if got := h.book.Curve(target).Scale(); got < 0.9 || got > 1.1 {
			t.Errorf("scale %.2f before the drift, want 1", got)
		}
		done := make(chan reply)
		go func() { done <- h.post(chat, body(3000)) }()
		<-time.After(15 * time.Second)
		if got := h.router.Below(time.Now())[router.GroupID{Backend: "a"}]; got != 0 {
			t.Errorf("%d streams below their floor before the drift, want 0", got)
		}
		<-time.After(90 * time.Second)
		if got := h.router.Below(time.Now())[router.GroupID{Backend: "a"}]; got != 1 {
			t.Errorf("%d streams below their floor, want the one that runs", got)
		}
		if got := h.book.Curve(target).Scale(); got > 0.8 {
			t.Errorf("scale %.2f while it runs, want well below 1", got)
		}
		select {
		case <-done:
			t.Error("the stream ended before it was looked at: no test")
		default:
			<-done
		}
		h.idle()
		if s := h.metrics.Route("chat"); s.Missed != 1 {
			t.Errorf("route counts %+v, want one missed", s)
		}
		if got := h.router.Below(time.Now())[router.GroupID{Backend: "a"}]; got != 0 {
			t.Errorf("%d streams below their floor at the end, want 0", got)
		}
	})
}

func TestAnObjectiveIsTheRoutesUnlessAskedOtherwise(t *testing.T) {
	interactive, batch := router.Interactive, router.Batch
	floor, ttft := 60.0, time.Second
	rt := &route{class: router.Interactive, conf: &config.Route{SLO: config.SLO{MinTPS: 30, MaxTTFT: 2 * time.Second, Grace: time.Second}}}
	nightly := &route{class: router.Batch, conf: &config.Route{SLO: config.SLO{MinTPS: 30, Grace: time.Second}}}
	for _, c := range []struct {
		name    string
		route   *route
		asked   overrides
		decodes bool
		want    objective
	}{
		{"nothing asked", rt, overrides{}, true, objective{router.Interactive, 30, time.Second, 2 * time.Second}},
		{"a floor and a first token", rt, overrides{minTPS: &floor, maxTTFT: &ttft}, true, objective{router.Interactive, 60, time.Second, time.Second}},
		{"batch has no floor", rt, overrides{class: &batch, minTPS: &floor}, true, objective{router.Batch, 0, time.Second, 2 * time.Second}},
		{"nor has a route of batch", nightly, overrides{}, true, objective{router.Batch, 0, time.Second, 0}},
		{"interactive on a route of batch", nightly, overrides{class: &interactive}, true, objective{router.Interactive, 30, time.Second, 0}},
		{"what does not decode has no speed", rt, overrides{minTPS: &floor}, false, objective{router.Interactive, 0, time.Second, 2 * time.Second}},
	} {
		if got := newObjective(c.route, c.asked, c.decodes); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

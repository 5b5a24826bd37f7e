package plan

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// asked is a question about two engines, of which one carries a route alone.
func asked(t *testing.T, q api.PlanQuestion) *WhatIf {
	t.Helper()
	cfg, err := config.Parse("fleet.yaml", []byte(`
backends:
  - { name: big, url: "http://a:1/v1", prior: llama-3.1-70b/h200/vllm, usd_per_hour: 3.5 }
  - { name: small, url: "http://b:1/v1", prior: { 1: 60, 64: 30 } }
routes:
  - { model: chat, targets: [ { backend: big }, { backend: small } ], slo: { min_tps: 30, max_ttft: 2s } }
  - { model: nightly, class: batch, targets: [ { backend: small } ] }
`), os.LookupEnv)
	must.Do(t, err)
	book := profiles.NewBook(profiles.Options{})
	must.Do(t, fleet.Believe(book, cfg))
	curves := map[profiles.Target]*profiles.Curve{}
	for _, target := range book.Targets() {
		curves[target] = book.Curve(target)
	}
	return &WhatIf{PlanQuestion: q, Config: cfg, Curves: curves, Offered: map[string]float64{"chat": 0.5, "nightly": 0.03}}
}

func playedWhatIf(t *testing.T, q api.PlanQuestion) *api.Plan {
	t.Helper()
	last := 0.0
	answer, err := asked(t, q).Answer(t.Context(), func(share float64) {
		if share < last || share > 1 {
			t.Errorf("progress went from %v to %v", last, share)
		}
		last = share
	})
	must.Do(t, err)
	return answer
}

// Twice the load is twice the requests, and one engine less has one engine less
// that works; what is as it is does not change.
func TestWhatIfPlaysBoth(t *testing.T) {
	if racetest.On {
		t.Skip("ten plans, a minute under the race detector: make numbers runs it")
	}
	base := playedWhatIf(t, api.PlanQuestion{})
	if base.Now.Routes[0].Offered != base.Then.Routes[0].Offered || base.Now.Kept != base.Then.Kept {
		t.Errorf("nothing was changed, and it came out otherwise: %+v, %+v", base.Now.Routes, base.Then.Routes)
	}
	double := playedWhatIf(t, api.PlanQuestion{Load: 2})
	if got := float64(double.Then.Routes[0].Offered) / float64(double.Now.Routes[0].Offered); got < 1.8 || got > 2.2 {
		t.Errorf("×2 offered %.2f times the requests", got)
	}
	less := playedWhatIf(t, api.PlanQuestion{Engines: map[string]int{"big": 0}})
	if len(less.Now.Backends) != 2 || len(less.Then.Backends) != 1 || less.Then.Backends[0].Backend != "small" {
		t.Errorf("without big: %d backends now, then %+v", len(less.Now.Backends), less.Then.Backends)
	}
	more := playedWhatIf(t, api.PlanQuestion{Engines: map[string]int{"small": 3}})
	if len(more.Then.Backends) != 4 {
		t.Errorf("with three of small: %+v", more.Then.Backends)
	}
	floor := playedWhatIf(t, api.PlanQuestion{MinTPS: map[string]float64{"chat": 500}})
	if got := floor.Then.Routes[0]; got.MinTPS != 500 || got.Shed < got.Offered*9/10 {
		t.Errorf("a floor of 500: %+v", got)
	}
	// More than the engines carry is said so, with figures.
	over := playedWhatIf(t, api.PlanQuestion{Load: 30})
	if over.Then.Holds || !strings.Contains(over.Verdict, "does not hold") || !strings.Contains(over.Verdict, "chat") {
		t.Errorf("×30 holds %v: %s", over.Then.Holds, over.Verdict)
	}
}

func TestWhatIfMistakes(t *testing.T) {
	for want, q := range map[string]api.PlanQuestion{
		"load:":         {Load: -1},
		"load: that is": {Load: 99, OfferedPerS: map[string]float64{"chat": 500}},
		"no backend \"bog\"; did you mean \"big\"":            {Engines: map[string]int{"bog": 0}},
		"without small the route nightly has no backend left": {Engines: map[string]int{"small": 0}},
		"engines of \"big\"":                                  {Engines: map[string]int{"big": 17}},
		"min_tps: no route \"chit\"":                          {MinTPS: map[string]float64{"chit": 3}},
		"a batch route has no floor":                          {MinTPS: map[string]float64{"nightly": 3}},
		"offered_per_s: no route \"x\"":                       {OfferedPerS: map[string]float64{"x": 3}},
		"no request came within":                              {OfferedPerS: map[string]float64{"chat": 0}},
		"one request in 1000000 s, too few to play":           {OfferedPerS: map[string]float64{"chat": 1e-6}},
		"output_tokens: write":                                {OutputTokens: -4},
	} {
		_, err := asked(t, q).Answer(t.Context(), func(float64) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", q, err, want)
		}
	}
}

// Who asked is gone: the playing ends.
func TestWhatIfEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := asked(t, api.PlanQuestion{Load: 10}).Answer(ctx, func(float64) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
}

// Requests go first: a plan works for at most half of the time that it takes.
func TestPacedRests(t *testing.T) {
	w := asked(t, api.PlanQuestion{})
	must.Do(t, w.check())
	var l workload
	w.describeLoad(&l)
	l.duration = w.length(l.generator.Rate)
	load, _, _ := l.at(1)
	synctest.Test(t, func(t *testing.T) {
		var worked, rested time.Duration
		last := time.Now()
		for range paced(t.Context(), load, 1) {
			rested += time.Since(last)
			<-time.After(time.Millisecond) // the arena at work
			worked += time.Millisecond
			if last = time.Now(); worked == 101*time.Millisecond {
				break
			}
		}
		if rested != worked-time.Millisecond {
			t.Errorf("worked %v and rested %v; want as much rest as work", worked, rested)
		}
	})
}

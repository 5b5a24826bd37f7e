package plan

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/profiles"
)

// Bounds of a plan that a running gateway plays.
const (
	maxAskedLoad    = 100 // times the load of late
	maxAskedEngines = 16  // of one backend
	maxAskedTokens  = 1 << 20
	maxAskedRate    = 2000    // requests/s of all routes
	mostPlayed      = 30_000  // requests of one run, which shortens it
	mostDecided     = 300_000 // of these times targets
	leastSeconds    = 30
	mostSeconds     = 12 * 3600.0 // where few ask
	fewRequests     = 200.0       // fewer say little

	// lengthSigma is the spread of prompts and answers around their means: as recorded traces have it.
	lengthSigma = 0.8

	// Without anything learned, a request is such a one.
	usualPrompt, usualOutput = 1000, 300
)

// WhatIf is the question of a gateway that serves: what would become of its load,
// were something else? Answer takes one core at most for half of the time, so that
// requests find the others, and that one, idle.
type WhatIf struct {
	api.PlanQuestion
	Config  *config.Config
	Curves  map[profiles.Target]*profiles.Curve // what was learned
	Offered map[string]float64                  // requests/s of late, by route
}

// Answer plays the load on the fleet as it is, and as the question has it. All of its
// errors but that of ctx are mistakes of the question.
func (w *WhatIf) Answer(ctx context.Context, progress func(share float64)) (*api.Plan, error) {
	began := time.Now()
	if err := w.check(); err != nil {
		return nil, err
	}
	changed, err := w.changed()
	if err != nil {
		return nil, err
	}
	now := &plan{cfg: apart(w.Config), from: "the configuration", seed: 1, factors: []float64{w.Load}, policies: []arena.Policy{arena.Pacer}, idle: 1}
	then := *now
	then.cfg, then.replicas = apart(changed), w.copies(changed)
	learned := w.learned()
	notes := w.describeLoad(&now.load)
	for _, p := range []*plan{now, &then} {
		if err := p.takeCurves(learned); err != nil {
			return nil, err
		}
	}
	now.load.duration = w.length(now.load.generator.Rate)
	if err := now.measureLoad(); err != nil {
		return nil, err
	}
	then.load = now.load
	runs, err := playBoth(ctx, now, &then, w.Load, progress)
	if err != nil {
		return nil, err
	}
	a, b := now.answer(runs[:1]), then.answer(runs[1:])
	return &api.Plan{
		Verdict: compare(&a.Runs[0], &b.Runs[0], runs[1].extrapolated()),
		Load:    now.load.String(), Now: a.Runs[0], Then: b.Runs[0], Curves: b.Curves,
		Notes: append(notes, b.Notes...), TookS: time.Since(began).Seconds(),
	}, nil
}

// check looks at the figures of the question, and fills in what is absent.
func (w *WhatIf) check() error {
	w.Load = cmp.Or(w.Load, 1)
	if !(w.Load > 0 && w.Load <= maxAskedLoad) {
		return fmt.Errorf("load: %v is no factor; write one up to %d, such as 2", w.Load, maxAskedLoad)
	}
	for name, f := range map[string]float64{"prompt_tokens": w.PromptTokens, "output_tokens": w.OutputTokens} {
		if !(f >= 0 && f <= maxAskedTokens) {
			return fmt.Errorf("%s: write a number of tokens up to %d, or leave it out", name, maxAskedTokens)
		}
	}
	if len(w.OfferedPerS) > 0 {
		w.Offered = w.OfferedPerS
	}
	names, sum := w.Config.RouteNames(), 0.0
	for _, name := range slices.Sorted(maps.Keys(w.Offered)) {
		rate := w.Offered[name]
		if !slices.Contains(names, name) {
			return fmt.Errorf("offered_per_s: no route %.60q; %s", name, spelling.Meant(name, names))
		}
		if !(rate >= 0 && rate <= maxAskedRate) {
			return fmt.Errorf("offered_per_s of %.60q: write requests/s up to %d", name, maxAskedRate)
		}
		sum += rate
	}
	switch {
	case sum == 0:
		return fmt.Errorf("no request came within %s, so there is no load to play; write offered_per_s, such as {%q: 2}", w.Window, names[0])
	case sum*mostSeconds < 10:
		return fmt.Errorf("offered_per_s: that is one request in %.0f s, too few to play", 1/sum)
	case sum*w.Load > maxAskedRate:
		return fmt.Errorf("load: that is %.0f requests/s, and %d are played here at most; pacer plan --admin plays more", sum*w.Load, maxAskedRate)
	}
	return nil
}

// changed is the configuration as the question has it.
func (w *WhatIf) changed() (*config.Config, error) {
	next := *w.Config
	next.Routes = slices.Clone(next.Routes)
	for _, name := range slices.Sorted(maps.Keys(w.Engines)) {
		switch n := w.Engines[name]; {
		case !hasBackend(w.Config, name):
			return nil, fmt.Errorf("engines: no backend %.60q; %s", name, spelling.Meant(name, fleet.Names(w.Config)))
		case n < 0 || n > maxAskedEngines:
			return nil, fmt.Errorf("engines of %.60q: write a number from 0 to %d", name, maxAskedEngines)
		case n > 0:
			continue
		}
		for i := range next.Routes {
			r := &next.Routes[i]
			r.Targets = slices.DeleteFunc(slices.Clone(r.Targets), func(t config.Target) bool { return t.Backend == name })
			if len(r.Targets) == 0 {
				return nil, fmt.Errorf("engines: without %s the route %s has no backend left, so none of its requests would be served", name, r.Models[0])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.MinTPS)) {
		i := slices.IndexFunc(next.Routes, func(r config.Route) bool { return slices.Contains(r.Models, name) })
		switch floor := w.MinTPS[name]; {
		case i < 0:
			return nil, fmt.Errorf("min_tps: no route %.60q; %s", name, spelling.Meant(name, next.RouteNames()))
		case !(floor >= 0 && floor <= 1e6):
			return nil, fmt.Errorf("min_tps of %.60q: write tokens/s from 0 (none) to 1000000", name)
		case floor > 0 && next.Routes[i].Class == "batch":
			return nil, fmt.Errorf("min_tps of %.60q: a batch route has no floor", name)
		default:
			next.Routes[i].SLO.MinTPS = floor
		}
	}
	return &next, nil
}

// copies is how many there are of each backend of a plan's fleet.
func (w *WhatIf) copies(changed *config.Config) map[string]int {
	out := map[string]int{}
	for _, b := range apart(changed).Backends {
		for name, n := range w.Engines {
			if n > 1 && (b.Name == name || strings.HasPrefix(b.Name, partOf(name, "")[:len(name)+1])) {
				out[b.Name] = n
			}
		}
	}
	return out
}

// learned is what the gateway knows, without the prompts of others.
func (w *WhatIf) learned() *ask.Curves {
	q := ask.CurvesQuestion{PointsQuery: api.PointsQuery{Rho: 0, PromptTokens: math.NaN()}}
	out := &ask.Curves{From: "this gateway"}
	for t, c := range w.Curves {
		out.Targets = append(out.Targets, q.Describe(t, c, nil, time.Now()))
	}
	slices.SortFunc(out.Targets, func(a, b ask.Target) int {
		return strings.Compare(a.Backend+"\n"+a.Model, b.Backend+"\n"+b.Model)
	})
	return out
}

// describeLoad fills in the load at factor 1, and returns what is to be known of it.
func (w *WhatIf) describeLoad(l *workload) (notes []string) {
	l.seed, l.generator.Seed = 1, 1
	l.generator.Shape, _ = arena.ParseShape("poisson") // it is one
	for _, name := range slices.Sorted(maps.Keys(w.Offered)) {
		if rate := w.Offered[name]; rate > 0 {
			l.shares = append(l.shares, arena.Share{Route: name, Weight: rate})
			l.generator.Rate += rate
		}
	}
	prompt, output := w.lengths()
	prompt, output = cmp.Or(w.PromptTokens, prompt), cmp.Or(w.OutputTokens, output)
	if output == 0 || prompt == 0 {
		notes = append(notes, fmt.Sprintf("too little was served to know its lengths: prompts of %d and answers of %d tokens are assumed where nothing is stated", usualPrompt, usualOutput))
	}
	l.generator.Prompt, _ = arena.ParseLengths(fmt.Sprintf("lognormal:%.0f:%v", max(cmp.Or(prompt, usualPrompt), 1), lengthSigma))
	l.generator.Output, _ = arena.ParseLengths(fmt.Sprintf("lognormal:%.0f:%v", max(cmp.Or(output, usualOutput), 2), lengthSigma))
	if len(l.shares) > 1 {
		notes = append(notes, "all routes are played with the same lengths of prompts and answers: the mean of what was served")
	}
	return notes
}

// lengths are the learned means of prompts, without what engines had cached, and of
// answers; 0 = unknown.
func (w *WhatIf) lengths() (prompt, output float64) {
	var tokens, requests, prompts float64
	for _, c := range w.Curves {
		mean, seen := c.MeanOutput(), c.Tokens()
		if !(mean > 0) || !(seen > 0) {
			continue
		}
		n := seen / mean
		tokens += seen
		requests += n
		if rho := c.Rho(); rho > 0 {
			prompts += rho * seen
		}
	}
	if requests == 0 {
		return 0, 0
	}
	return prompts / requests, tokens / requests
}

// length is how long the load is played: as long as the number of requests, and of
// targets that each of them looks at, is bearable.
func (w *WhatIf) length(rate float64) time.Duration {
	targets := 1
	for _, r := range w.Config.Routes {
		targets = max(targets, len(r.Targets))
	}
	most := min(mostPlayed, mostDecided/float64(targets))
	seconds := min(max(most/(rate*max(w.Load, 1)), leastSeconds), usualTime.Seconds())
	if rate*seconds < fewRequests {
		seconds = min(fewRequests/rate, mostSeconds)
	}
	return time.Duration(seconds) * time.Second
}

// playBoth plays the load as it is, and the other one at its factor, one after the
// other.
func playBoth(ctx context.Context, now, then *plan, factor float64, progress func(float64)) ([]played, error) {
	board := &scoreboard{show: func(_ int, share float64) { progress(share) }}
	board.add(2)
	var runs []played
	for _, x := range []struct {
		p      *plan
		factor float64
	}{{now, 1}, {then, factor}} {
		r, err := x.p.play(ctx, runCase{policy: arena.Pacer, factor: x.factor}, board)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// compare says in one sentence what the change does.
func compare(now, then *Run, extrapolated bool) string {
	broken := strings.Join(brokenIn(then), "; ")
	switch {
	case broken == "" && extrapolated:
		return "It holds, if curves go on as they are extrapolated: every promise is kept."
	case broken == "" && len(brokenIn(now)) > 0:
		return "It mends what is broken now: every promise is kept."
	case broken == "":
		return fmt.Sprintf("It holds: every promise is kept, by %s where least.", report.Percent(then.Kept))
	case len(brokenIn(now)) > 0:
		return "It does not hold, nor does what is now: " + broken + "."
	}
	return "It does not hold: " + broken + "."
}

// workFor is how long a run goes on before it rests.
const workFor = 5 * time.Millisecond

// paced hands load on with a rest of idle times the work between. It ends early with
// ctx.
func paced(ctx context.Context, load iter.Seq[arena.Arrival], idle float64) iter.Seq[arena.Arrival] {
	return func(yield func(arena.Arrival) bool) {
		began := time.Now()
		for a := range load {
			if !yield(a) {
				return
			}
			worked := time.Since(began)
			if worked < workFor {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(idle * float64(worked))):
			}
			began = time.Now()
		}
	}
}

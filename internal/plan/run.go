package plan

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// runCase is one run of a plan.
type runCase struct {
	policy   arena.Policy
	factor   float64 // on the load
	replicas int     // of the backend that is searched; 0 = none is
}

// played is what came of a case.
type played struct {
	runCase
	result arena.Result
	fleet  []machine     // in the order of result.Backends
	routes []arena.Route // in the order of result.Routes
	took   time.Duration
	warmup time.Duration
}

// machine is one backend of a run.
type machine struct {
	name  string
	of    string // the configured backend that it is a replica of
	hour  float64
	curve truth
}

// playAll plays the cases of the question, side by side.
func (p *plan) playAll(ctx context.Context, progress func(runs int, share float64)) ([]played, error) {
	board := &scoreboard{show: progress}
	if p.searched != "" {
		return p.search(ctx, board)
	}
	var cases []runCase
	for _, factor := range p.factors {
		for _, policy := range p.policies {
			cases = append(cases, runCase{policy: policy, factor: factor})
		}
	}
	return p.playCases(ctx, cases, board)
}

func (p *plan) playCases(ctx context.Context, cases []runCase, board *scoreboard) ([]played, error) {
	runs := make([]played, len(cases))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	board.add(len(cases))
	for i, c := range cases {
		g.Go(func() (err error) {
			runs[i], err = p.play(ctx, c, board)
			return err
		})
	}
	return runs, g.Wait()
}

// search finds for each policy the least number of replicas that keeps what is
// promised, by halving: more of them are taken never to keep less. It returns
// every run, by policy and number.
func (p *plan) search(ctx context.Context, board *scoreboard) ([]played, error) {
	var runs []played
	for _, policy := range p.policies {
		tried := map[int]played{}
		holds := func(replicas int) (bool, error) {
			r, err := p.playCases(ctx, []runCase{{policy: policy, factor: p.factors[0], replicas: replicas}}, board)
			if err != nil {
				return false, err
			}
			tried[replicas] = r[0]
			return p.holds(&r[0]), nil
		}
		least, most := p.least, p.most+1 // the answer lies in between; most = none
		for least < most {
			middle := least + (min(most, p.most)-least)/2
			ok, err := holds(middle)
			if err != nil {
				return nil, err
			}
			if ok {
				most = middle
			} else {
				least = middle + 1
			}
		}
		for _, n := range slices.Sorted(maps.Keys(tried)) {
			runs = append(runs, tried[n])
		}
	}
	return runs, nil
}

// play plays one case.
func (p *plan) play(ctx context.Context, c runCase, board *scoreboard) (played, error) {
	load, length, failed := p.load.at(c.factor)
	if p.idle > 0 {
		load = paced(ctx, load, p.idle)
	}
	out := played{runCase: c, took: length, warmup: p.load.warmupOf(length)}
	s := arena.Scenario{
		Load:     board.watch(load, length),
		Faults:   p.faults,
		Policy:   c.policy,
		Replicas: p.cfg.Replicas,
		Duration: length,
		Warmup:   out.warmup,
		Seed:     p.seed,
	}
	out.fleet = p.fleet(c)
	for _, m := range out.fleet {
		s.Backends = append(s.Backends, p.backendOf(m, p.load.rho()))
	}
	s.Routes = p.routes(out.fleet)
	out.routes = s.Routes
	var err error
	if out.result, err = arena.Run(ctx, s); err == nil {
		err = failed()
	}
	return out, err
}

// rho is the prompt tokens that come with each decoded token.
func (l *workload) rho() float64 {
	return l.summary.PromptTokens / max(l.summary.OutputTokens-1, 1)
}

// fleet is the machines of a case: each backend that a route uses, as often as
// there are replicas of it.
func (p *plan) fleet(c runCase) []machine {
	var out []machine
	taken := map[string]bool{}
	for _, b := range p.cfg.Backends {
		taken[b.Name] = true
	}
	for _, b := range p.cfg.Backends {
		curve, used := p.curves[b.Name]
		if !used {
			continue
		}
		for i := range p.replicasOf(b.Name, c) {
			m := machine{name: b.Name, of: b.Name, hour: b.USDPerHour, curve: curve}
			for k := i + 1; i > 0; k++ {
				if m.name = b.Name + "." + strconv.Itoa(k); !taken[m.name] {
					break
				}
			}
			taken[m.name] = true
			out = append(out, m)
		}
	}
	return out
}

func (p *plan) replicasOf(backend string, c runCase) int {
	if backend == p.searched {
		return c.replicas
	}
	return max(p.replicas[backend], 1)
}

func (p *plan) backendOf(m machine, rho float64) arena.Backend {
	i := slices.IndexFunc(p.cfg.Backends, func(b config.Backend) bool { return b.Name == m.of })
	b := p.cfg.Backends[i]
	return arena.Backend{
		Name:           m.name,
		Engine:         sim.EngineOptions{Model: m.curve.model, MaxNumSeqs: m.curve.slots},
		MaxConcurrency: b.MaxConcurrency,
		Prior:          m.curve.believed(rho),
		PromptCost:     m.curve.promptCost,
		Price:          arena.Price{Input: b.Price.Input, Output: b.Price.Output},
		USDPerHour:     m.hour,
	}
}

// routes are the configured ones, with a target on each replica of a backend.
func (p *plan) routes(machines []machine) []arena.Route {
	slo := map[string]config.SLO{}
	for _, r := range p.cfg.Routes {
		for _, name := range r.Models {
			slo[name] = r.SLO
		}
	}
	var out []arena.Route
	for _, r := range fleet.Topology(p.cfg).Routes {
		var targets []router.RouteTarget
		for _, t := range r.Targets {
			for _, m := range machines {
				if m.of == t.Backend {
					replica := t
					replica.Backend = m.name
					targets = append(targets, replica)
				}
			}
		}
		r.Targets = targets
		out = append(out, arena.Route{Route: r, Attainment: slo[r.Name].Attainment, Grace: slo[r.Name].Grace})
	}
	return out
}

// scoreboard shows how far the runs of a plan are. Safe for concurrent use.
type scoreboard struct {
	show func(runs int, share float64)

	mu    sync.Mutex // guards what follows
	runs  int
	parts float64   // of runs, that are played
	told  time.Time // when it was last shown
}

func (b *scoreboard) add(runs int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs += runs
}

// watch hands load on, and looks at how far it is.
func (b *scoreboard) watch(load iter.Seq[arena.Arrival], length time.Duration) iter.Seq[arena.Arrival] {
	return func(yield func(arena.Arrival) bool) {
		var reached float64
		move := func(to float64) {
			b.move(to - reached)
			reached = to
		}
		defer func() { move(1) }()
		n := 0
		for a := range load {
			if n++; n%256 == 0 {
				move(min(a.At.Seconds()/length.Seconds(), 1))
			}
			if !yield(a) {
				return
			}
		}
	}
}

func (b *scoreboard) move(part float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts += part
	if now := time.Now(); now.Sub(b.told) > 100*time.Millisecond {
		b.told = now
		b.show(b.runs, min(b.parts/float64(b.runs), 1))
	}
}

// bar draws how far so many runs are.
func bar(runs int, share float64) string {
	const width = 30
	done := int(share * width)
	return fmt.Sprintf("playing %d runs %s%s %3.0f %%", runs, strings.Repeat("█", done), strings.Repeat("░", width-done), 100*share)
}

package arena

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// engineOf is a simulated engine with a published curve.
func engineOf(name string) sim.EngineOptions {
	p, ok := presets.Lookup(name)
	if !ok {
		panic(name)
	}
	o := sim.EngineOptions{Model: sim.Model{D: p.SecondsPerPromptToken}}
	for _, q := range p.Points {
		o.Model.Table = append(o.Model.Table, sim.Point{N: q.N, TPS: q.TPS})
	}
	return o
}

func backend(name, preset string) Backend { return Backend{Name: name, Engine: engineOf(preset)} }

// route is one with a floor, 0 for none, on all the backends.
func route(name string, floor float64, class router.Class, wait time.Duration, backends []Backend) Route {
	r := Route{Route: router.Route{
		Name: name, Class: class, SLO: router.SLO{MinTPS: floor}, Reserve: 1,
		OnInfeasible: []router.Step{{Kind: router.Queue, Wait: wait}, {Kind: router.Shed}},
	}, Grace: time.Second}
	for _, b := range backends {
		r.Targets = append(r.Targets, router.RouteTarget{Target: profiles.Target{Backend: b.Name, Model: "m"}})
	}
	return r
}

// lengths draws log-normal lengths.
type lengths struct{ prompt, promptSigma, answer, answerSigma float64 }

func (l lengths) draw(r *rand.Rand) (prompt, answer int) {
	at := func(median, sigma float64, most int) int {
		return min(max(int(median*math.Exp(sigma*r.NormFloat64())), 1), most)
	}
	return at(l.prompt, l.promptSigma, 8000), at(l.answer, l.answerSigma, 2000)
}

// poisson is requests for one route at a rate that may change with time.
func poisson(seed uint64, route string, rate func(time.Duration) float64, top float64, draw func(*rand.Rand) (int, int)) iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		r := rand.New(rand.NewPCG(seed, 3))
		for at := time.Duration(0); ; {
			at += time.Duration(r.ExpFloat64() / top * float64(time.Second))
			if r.Float64()*top >= rate(at) {
				continue
			}
			prompt, answer := draw(r)
			if !yield(Arrival{At: at, Route: route, PromptTokens: prompt, OutputTokens: answer}) {
				return
			}
		}
	}
}

func steady(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

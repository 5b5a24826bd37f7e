package arena

import (
	"cmp"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// pool is a fleet and what comes to it, for length.
type pool struct {
	name, what string
	backends   []Backend
	routes     []Route
	load       func(seed uint64) iter.Seq[Arrival]
	faults     []Fault
	replicas   int
	lopsided   float64
	share      time.Duration
	warmup     time.Duration
	length     time.Duration // how long requests come; 0 = length300
	retries    int
	manners    [manners]float64
	seeds      int // that its goals are summed up over, where its requests are few; 0 = 1
}

// length300 is how long requests come to most pools.
const length300 = 300 * time.Second

func (p pool) scenario(policy Policy, seed uint64) Scenario {
	return Scenario{
		Backends: p.backends, Routes: p.routes, Load: p.load(seed), Faults: p.faults, Replicas: p.replicas, Lopsided: p.lopsided, ShareDelay: p.share,
		Policy: policy, Duration: cmp.Or(p.length, length300), Warmup: p.warmup, Retries: p.retries, Manners: p.manners, Seed: seed,
	}
}

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

// mixed is the fleet of three different published curves. At a floor of 30 and
// with the chats below they carry 17, 32 and 147 users, 19 requests/s.
func mixed() []Backend {
	return []Backend{backend("glm", "glm-5/h200"), backend("r1", "deepseek-r1/h200/sglang"), backend("llama", "llama-3.1-70b/h200/vllm")}
}

// alike is four of one curve, of 32 users each.
func alike() []Backend {
	var list []Backend
	for _, name := range []string{"a", "b", "c", "d"} {
		list = append(list, backend(name, "deepseek-r1/h200/sglang"))
	}
	return list
}

// chat is an interactive route with a floor, 0 for none, on all the backends.
func chat(name string, floor float64, backends []Backend) Route {
	r := Route{Route: router.Route{
		Name: name, SLO: router.SLO{MinTPS: floor}, Reserve: 1,
		OnInfeasible: []router.Step{{Kind: router.Queue, Wait: 2 * time.Second}, {Kind: router.Shed}},
	}, Grace: time.Second}
	for _, b := range backends {
		r.Targets = append(r.Targets, router.RouteTarget{Target: profiles.Target{Backend: b.Name, Model: "m"}})
	}
	return r
}

// nightly is a batch route on all the backends.
func nightly(backends []Backend) Route {
	r := chat("nightly", 0, backends)
	r.Class = router.Batch
	r.OnInfeasible[0].Wait = time.Minute
	return r
}

// chats are prompts and answers as in a chat.
func chats(rate float64, seed uint64) Generator {
	return Generator{
		Rate: rate, Duration: length300, Seed: seed,
		Prompt: Lengths{Mean: 400}, Output: Lengths{Mean: 300, Sigma: 0.7},
	}
}

// to sends all of a load to one route.
func to(route string, load iter.Seq[Arrival]) iter.Seq[Arrival] {
	return Split(load, []Share{{Route: route, Weight: 1}}, 1)
}

func steady(rate float64) func(uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] { return to("chat", chats(rate, seed).Arrivals()) }
}

// from lets a load begin later.
func from(at time.Duration, load iter.Seq[Arrival]) iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		for a := range load {
			if a.At += at; !yield(a) {
				return
			}
		}
	}
}

// merge plays loads at once. They have to be short.
func merge(loads ...iter.Seq[Arrival]) iter.Seq[Arrival] {
	var all []Arrival
	for _, l := range loads {
		all = slices.AppendSeq(all, l)
	}
	slices.SortStableFunc(all, func(a, b Arrival) int { return int(a.At - b.At) })
	return slices.Values(all)
}

// trace is one of the recorded ones, so fast that it comes at about rate.
func trace(file string, rate float64) func(uint64) iter.Seq[Arrival] {
	open := func() (io.ReadCloser, error) { return os.Open("../../examples/traces/" + file) }
	whole := &Trace{File: file, Open: open}
	s := Summarize(whole.Arrivals(), 0)
	if whole.Err() != nil || s.Requests == 0 {
		panic(whole.Err())
	}
	speed := rate / (float64(s.Requests) / s.Last.Seconds())
	return func(uint64) iter.Seq[Arrival] {
		t := &Trace{File: file, Open: open, Speed: speed, Until: length300}
		return to("chat", t.Arrivals())
	}
}

// pools are the ten, at loads where something is at stake.
func pools() []pool {
	h, i := mixed(), alike()
	one := func(backends []Backend) []Route { return []Route{chat("chat", 30, backends)} }
	list := []pool{
		{name: "H", what: "three different curves, Poisson, 80 % of what they carry", backends: h, routes: one(h), load: steady(15.5)},
		{name: "H over", what: "the same, 115 %", backends: h, routes: one(h), load: steady(22)},
		{name: "H conv", what: "the same, Azure's conversations of 2023", backends: h, routes: one(h), load: trace("azure-conv-2023.csv", 9)},
		{name: "H code", what: "the same, Azure's code completions of 2023", backends: h, routes: one(h), load: trace("azure-code-2023.csv", 3), seeds: 5},
		{name: "I", what: "four alike, 80 %", backends: i, routes: one(i), load: steady(10)},
		{
			name: "M", what: "40 % with a floor of 30, 60 % without", backends: h, seeds: 3,
			routes: []Route{chat("chat", 30, h), chat("free", 0, h)},
			load: func(seed uint64) iter.Seq[Arrival] {
				return Split(chats(20, seed).Arrivals(), []Share{{"chat", 0.4}, {"free", 0.6}}, seed)
			},
		},
		{
			name: "F", what: "30 % with a floor of 40, 70 % with one of 15", backends: h,
			routes: []Route{chat("fast", 40, h), chat("slow", 15, h)},
			load: func(seed uint64) iter.Seq[Arrival] {
				return Split(chats(16, seed).Arrivals(), []Share{{"fast", 0.3}, {"slow", 0.7}}, seed)
			},
		},
		{
			name: "B", what: "short and long prompts and answers", backends: h, routes: one(h),
			load: func(seed uint64) iter.Seq[Arrival] {
				g := chats(16, seed)
				g.Prompt = Lengths{Kind: Bimodal, Mean: 150, Long: 2500, Share: 0.15}
				g.Output = Lengths{Kind: Bimodal, Mean: 80, Long: 900, Share: 0.25}
				return to("chat", g.Arrivals())
			},
		},
		{
			name: "S", what: "60 %, twice as much for 120 s", backends: h, routes: one(h),
			load: func(seed uint64) iter.Seq[Arrival] {
				more := chats(11.5, seed+1000)
				more.Duration = 120 * time.Second
				return merge(to("chat", chats(11.5, seed).Arrivals()), from(90*time.Second, to("chat", more.Arrivals())))
			},
		},
		{
			name: "N", what: "500 batch streams at once and more than they carry after them, users from 20 s on", backends: h,
			routes: []Route{chat("chat", 30, h), nightly(h)},
			load: func(seed uint64) iter.Seq[Arrival] {
				flood, users := chats(500, seed+2000), chats(8, seed)
				flood.Duration, users.Duration = time.Second, length300-20*time.Second
				return merge(to("nightly", flood.Arrivals()), to("nightly", chats(18, seed+1000).Arrivals()),
					from(20*time.Second, to("chat", users.Arrivals())))
			},
		},
		{
			name: "D", what: "70 %, one backend slows by 1.5 at 100 s", backends: h, routes: one(h), load: steady(13),
			faults: []Fault{{At: 100 * time.Second, Kind: Drift, Backend: "llama", Factor: 1.5}},
		},
		{
			name: "K", what: "70 %, one backend is killed at 100 s and back at 160 s", backends: h, routes: one(h), load: steady(13),
			faults: []Fault{{At: 100 * time.Second, Kind: Kill, Backend: "r1"}, {At: 160 * time.Second, Kind: Back, Backend: "r1"}},
		},
		{name: "R", what: "80 %, four gateways", backends: h, routes: one(h), load: steady(15.5), replicas: 4},
		{
			name: "R lost", what: "the same, after Redis was lost", backends: h, routes: one(h), load: steady(15.5), replicas: 4,
			faults: []Fault{{At: 100 * time.Second, Kind: RedisLost}}, warmup: 100 * time.Second,
		},
	}
	return list
}

// route returns one of them.
func (r *Result) route(name string) *RouteResult {
	i := slices.IndexFunc(r.Routes, func(x RouteResult) bool { return x.Route == name })
	return &r.Routes[i]
}

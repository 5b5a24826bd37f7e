package arena

import (
	"iter"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// slowed is a backend whose steps take factor times as long as the preset says.
func slowed(name, preset string, factor float64) Backend {
	b := backend(name, preset)
	b.Engine.Speed = 1 / factor
	return b
}

// slowPrefill are two engines whose prompts are dear. At a floor of 30 and with
// prompts and answers of 150 they carry 12 and 10 users, 4.4 requests/s.
func slowPrefill() []Backend {
	return []Backend{slowed("v3", "deepseek-v3/h200/trtllm", 1.4), slowed("glm", "glm-5/h200", 1.3)}
}

// generated sends what g makes to a route, by seed.
func generated(g Generator, route string) func(uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] {
		g.Seed = seed
		return to(route, g.Arrivals())
	}
}

// chatting is chats for longer.
func chatting(rate float64, d time.Duration) func(uint64) iter.Seq[Arrival] {
	g := chats(rate, 0)
	g.Duration = d
	return generated(g, "chat")
}

// edited is a load with its arrivals changed.
func edited(load func(uint64) iter.Seq[Arrival], edit func(*Arrival)) func(uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] {
		return func(yield func(Arrival) bool) {
			for a := range load(seed) {
				if edit(&a); !yield(a) {
					return
				}
			}
		}
	}
}

// slowdown makes backends slower by factor from at on, for d.
func slowdown(backends []Backend, at, d time.Duration, factor float64) (list []Fault) {
	for _, b := range backends {
		list = append(list, Fault{At: at, Kind: Drift, Backend: b.Name, Factor: factor}, Fault{At: at + d, Kind: Drift, Backend: b.Name, Factor: 1})
	}
	slices.SortStableFunc(list, func(a, b Fault) int { return int(a.At - b.At) })
	return list
}

// longTalks are long conversations: prompts of 7,000 tokens at the median, up to
// 64k.
func longTalks(rate float64, shape Shape) func(uint64) iter.Seq[Arrival] {
	load := generated(Generator{
		Rate: rate, Shape: shape, Duration: 240 * time.Second,
		Prompt: Lengths{Mean: 12000, Sigma: 1.1}, Output: Lengths{Mean: 250, Sigma: 0.7},
	}, "chat")
	return edited(load, func(a *Arrival) { a.PromptTokens = min(a.PromptTokens, 65536) })
}

// withPriors tells the gateway the published curves.
func withPriors(backends []Backend) []Backend {
	list := slices.Clone(backends)
	for i := range list {
		list[i].PromptCost = list[i].Engine.Model.D
		for _, p := range list[i].Engine.Model.Table {
			list[i].Prior = append(list[i].Prior, profiles.PriorPoint{N: p.N, TPS: p.TPS})
		}
	}
	return list
}

// beside is chats with so many of batch a second beside them.
func beside(rate, batch float64) func(uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] {
		if batch == 0 {
			return to("chat", chats(rate, seed).Arrivals())
		}
		return merge(to("chat", chats(rate, seed).Arrivals()), to("nightly", chats(batch, seed+1000).Arrivals()))
	}
}

// twoFloors is chat30 beside chat60.
func twoFloors(rate30, rate60 float64) func(uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] {
		return Split(chats(rate30+rate60, seed).Arrivals(), []Share{{"chat30", rate30}, {"chat60", rate60}}, seed)
	}
}

// changes are the days on which something changes, or several want the same.
func changes() []pool {
	h, slow := mixed(), slowPrefill()
	third := slices.Clone(h)
	third[2].Joins = 100 * time.Second
	one := func(b []Backend) []Route { return []Route{chat("chat", 30, b)} }
	const hiccup, length, half = 5 * time.Minute, 37 * time.Minute, 30 * time.Minute
	short := generated(Generator{Rate: 9, Duration: length, Prompt: Lengths{Mean: 150}, Output: Lengths{Mean: 150}}, "chat")
	prompts := generated(Generator{Rate: 3, Duration: 5 * time.Minute, Prompt: Lengths{Mean: 1500}, Output: Lengths{Mean: 60}}, "chat")
	after := pool{backends: slow, routes: one(slow), load: short, length: length, warmup: hiccup + 70*time.Second}
	const dayAt = 150 * time.Second
	day := pool{backends: h, routes: one(h), load: chatting(22, dayAt+70*time.Second+half), length: dayAt + 70*time.Second + half, warmup: dayAt + 70*time.Second}
	within := func(first time.Duration, b []Backend) []Route {
		routes := one(b)
		routes[0].SLO.MaxTTFT = first
		return routes
	}
	prompt := within(10*time.Second, h)
	night, slowNight := []Route{chat("chat", 30, h), nightly(h)}, []Route{chat("chat", 30, slow), nightly(slow)}
	two := []Route{chat("chat30", 30, h), chat("chat60", 60, h)}
	grown := edited(chatting(16, length300), func(a *Arrival) {
		if a.At > 100*time.Second {
			a.PromptTokens *= 4
		}
	})
	longer := edited(generated(Generator{Rate: 90, Duration: length300, Prompt: Lengths{Mean: 20}, Output: Lengths{Mean: 30, Sigma: 0.4}}, "chat"), func(a *Arrival) {
		if a.At > 100*time.Second {
			a.OutputTokens *= 10
		}
	})
	bursts := Shape{Kind: Bursts}
	list := []pool{
		{name: "A", what: "answers ten times as long from 100 s on", backends: slow, routes: one(slow), load: longer},
		named(after, "T", "two slow prefills, 9 requests/s, from 6 min on", nil, 0),
		named(after, "T hiccup", "the same, after ×3 for 10 s", slowdown(slow, hiccup, 10*time.Second, 3), 0),
		named(after, "T retries", "the same, and who is refused comes back as told, 3 times", slowdown(slow, hiccup, 10*time.Second, 3), 3),
		named(after, "T restart", "the same, after a restart with a store", []Fault{{At: hiccup + 10*time.Second, Kind: Restart}}, 0),
		named(after, "T restart empty", "the same, without a store", []Fault{{At: hiccup + 10*time.Second, Kind: RestartEmpty}}, 0),
		named(after, "T tenant", "the same, after 8 hidden users of 2 min", tenancy("v3", hiccup+10*time.Second, 8), 0),
		named(day, "H day", "three curves, 115 %, from 220 s on", nil, 0),
		named(day, "H hiccup", "the same, after ×3 for 10 s", slowdown(h, dayAt, 10*time.Second, 3), 0),
		named(day, "H restart", "the same, after a restart with a store", []Fault{{At: dayAt + 10*time.Second, Kind: Restart}}, 0),
		named(day, "H restart empty", "the same, without a store", []Fault{{At: dayAt + 10*time.Second, Kind: RestartEmpty}}, 0),
		named(day, "H tenant", "the same, after 60 hidden users of 2 min", tenancy("llama", dayAt+10*time.Second, 60), 0),
		{name: "L", what: "long conversations", backends: h, routes: one(h), load: longTalks(1.6, Shape{}), length: 240 * time.Second},
		{name: "L prior", what: "the same, with priors", backends: withPriors(h), routes: one(h), load: longTalks(1.6, Shape{}), length: 240 * time.Second},
		{name: "L bursts", what: "in bursts, first token within 10 s", backends: h, routes: prompt, load: longTalks(1.2, bursts), length: 240 * time.Second},
		{name: "L bursts prior", what: "the same, with priors", backends: withPriors(h), routes: prompt, load: longTalks(1.2, bursts), length: 240 * time.Second},
		{name: "E", what: "three curves, 140 %", backends: h, routes: one(h), load: chatting(27, length300)},
		{name: "E 1", what: "the same, first token within 1 s", backends: h, routes: within(time.Second, h), load: chatting(27, length300)},
		{name: "E 2", what: "the same, within 2 s", backends: h, routes: within(2*time.Second, h), load: chatting(27, length300)},
		{name: "E 2 four", what: "the same, four gateways", backends: h, routes: within(2*time.Second, h), load: chatting(27, length300), replicas: 4},
		{name: "E slow", what: "two slow prefills, 9 requests/s", backends: slow, routes: one(slow), load: short, length: 6 * time.Minute},
		{name: "E slow 2", what: "the same, first token within 2 s", backends: slow, routes: within(2*time.Second, slow), load: short, length: 6 * time.Minute},
		{name: "N 19", what: "chats at 19/s, no batch", backends: h, routes: night, load: beside(19, 0)},
		{name: "N 19+19", what: "beside as much batch", backends: h, routes: night, load: beside(19, 19)},
		{name: "N 25", what: "chats at 25/s, no batch", backends: h, routes: night, load: beside(25, 0)},
		{name: "N 25+25", what: "beside as much batch", backends: h, routes: night, load: beside(25, 25)},
		{name: "N slow", what: "the two slow ones, chats at 2/s", backends: slow, routes: slowNight, load: beside(2, 0)},
		{name: "N slow+2", what: "beside as much batch", backends: slow, routes: slowNight, load: beside(2, 2)},
		{name: "C 12+1", what: "12/s with a floor of 30, 1/s with one of 60", backends: h, routes: two, load: twoFloors(12, 1)},
		{name: "C 18+4", what: "18/s and 4/s", backends: h, routes: two, load: twoFloors(18, 4)},
		{name: "R", what: "225 %, nobody comes back", backends: h, routes: one(h), load: chatting(43, length300)},
		{name: "R told", what: "the same, all come back as told, 3 times", backends: h, routes: one(h), load: chatting(43, length300), retries: 3},
		{name: "R half", what: "the same, half of them each second as somebody new", backends: h, routes: one(h), load: chatting(43, length300), retries: 3, manners: [manners]float64{Obeying: 0.5, Disguised: 0.5}},
		{name: "J", what: "the largest engine joins at 100 s, from 130 s on", backends: third, routes: one(h), load: chatting(18, length300), warmup: 130 * time.Second},
		{name: "D long", what: "the largest engine slows by 1.5 for 10 min", backends: h, routes: one(h), load: chatting(16, 15*time.Minute), length: 15 * time.Minute, warmup: 100 * time.Second, faults: slowdown(h[2:], 100*time.Second, 10*time.Minute, 1.5)},
		{name: "P", what: "prompts four times as long from 100 s on", backends: h, routes: one(h), load: grown, warmup: 100 * time.Second},
		{name: "C 12+3", what: "12/s and 3/s", backends: h, routes: two, load: twoFloors(12, 3)},
		{name: "K cold", what: "10/s from a cold start, 30 s", backends: h, routes: one(h), load: chatting(10, time.Minute), length: 30 * time.Second},
		{name: "K slow", what: "the two slow ones from a cold start, 30 s", backends: slow, routes: one(slow), load: short, length: 30 * time.Second},
		{name: "T ten", what: "two slow prefills, 9 requests/s, 10 min", backends: slow, routes: one(slow), load: short, length: 10 * time.Minute, warmup: time.Minute},
		{name: "T prompts", what: "the two slow ones, prompts of 1,500 and answers of 60, 3 requests/s", backends: slow, routes: one(slow), load: prompts, length: 5 * time.Minute},
	}
	for _, p := range list {
		if slices.Contains(dear, p.name) {
			p.name, p.what, p.replicas = p.name+" four", p.what+"; four gateways", 4
			list = append(list, p)
		}
	}
	return list
}

// dear are pools whose prompts stop those who stream for long: they are played
// with four gateways too, which have to know each other's streams.
var dear = []string{"L", "L prior", "L bursts", "L bursts prior", "T ten", "T prompts"}

// tenancy is so many hidden users of a backend, who leave at the time and came
// before it.
func tenancy(backend string, until time.Duration, users int) []Fault {
	return []Fault{{At: until - tenancyTime, Kind: Tenant, Backend: backend, Users: users}, {At: until, Kind: TenantGone, Backend: backend}}
}

const tenancyTime = 2 * time.Minute

func named(p pool, name, what string, faults []Fault, retries int) pool {
	p.name, p.what, p.faults, p.retries = name, what, faults, retries
	return p
}

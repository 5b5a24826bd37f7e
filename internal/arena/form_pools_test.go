package arena

import (
	"slices"
	"time"

	"github.com/pacer-dev/pacer/sim"
)

// law is a plain engine: 31 users at a floor of 30 with the chats below.
func law() sim.EngineOptions {
	return sim.EngineOptions{Model: sim.Model{A: 0.012, B: 0.001, C: 0.0004, D: 1e-4}}
}

// forms are engines that no formula of the estimator describes.
func forms() []struct {
	name, what string
	engine     sim.EngineOptions
	ranks      int
} {
	kv, chunked, drafts, stairs, preempt := law(), law(), law(), law(), law()
	kv.Model.E = 3e-7
	chunked.SharedBudget, chunked.PrefillBatch = true, 128
	drafts.Draft = 3
	drafts.AcceptanceAt = func(n int) float64 { return max(0.85-0.012*float64(n), 0.2) }
	// A step is padded to the next multiple of eight sequences.
	var table []sim.Point
	for n := 8; n <= 128; n += 8 {
		tps := 1 / stairs.Model.StepSeconds(n, 0)
		table = append(table, sim.Point{N: n - 7, TPS: tps}, sim.Point{N: n, TPS: tps})
	}
	stairs.Model = sim.Model{Table: table, D: stairs.Model.D}
	preempt.Preempt, preempt.KVTokens = true, 16000
	list := []struct {
		name, what string
		engine     sim.EngineOptions
		ranks      int
	}{
		{"plain", "none of them", law(), 1},
		{"kv", "steps grow with the context that is resident", kv, 1},
		{"chunked", "prompts in chunks of what 128 tokens a step leave", chunked, 1},
		{"drafts", "drafts of which fewer are taken under load", drafts, 1},
		{"ranks", "two ranks behind one URL", law(), 2},
		{"stairs", "steps padded to eight sequences", stairs, 1},
		{"preempt", "sequences are put back when the cache is full", preempt, 1},
	}
	return list
}

// formPools is each form twice, once slower by 1.5, at 115 % of what they carry by
// their true curves.
func formPools() (list []pool) {
	for _, f := range forms() {
		b := []Backend{{Name: "fast", Engine: f.engine, Ranks: f.ranks}, {Name: "slow", Engine: f.engine, Ranks: f.ranks}}
		b[1].Engine.Speed = 1 / 1.5
		p := pool{name: "V " + f.name, what: f.what, backends: b, routes: []Route{chat("chat", 30, b)}, length: 10 * time.Minute, warmup: time.Minute}
		rate := 1.15 * p.carried() * 30 / 300
		p.load = chatting(rate, p.length)
		list = append(list, p)
	}
	return list
}

// carried is how many users the backends carry by their true curves.
func (p pool) carried() (users float64) {
	lengths := slices.Collect(chats(10, 1).Arrivals())
	m := mix{}
	for _, a := range lengths {
		m.prompts += float64(a.PromptTokens) / float64(len(lengths))
		m.answer += float64(a.OutputTokens) / float64(len(lengths))
	}
	for _, b := range p.backends {
		e := &engine{conf: b, drift: 1, mix: m}
		users += float64(e.trueUsers(30))
	}
	return users
}

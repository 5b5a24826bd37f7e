package arena

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// coldPools are half minutes of engines of which nothing is known: as many users as
// they carry come within the first second, and half as much again after them.
func coldPools() (list []pool) {
	for _, c := range []struct {
		name, preset string
		users        int
	}{{"v3", "deepseek-v3/h200/trtllm", 4}, {"v3", "deepseek-v3/h200/trtllm", 16}, {"r1", "deepseek-r1/h200/sglang", 16}} {
		load := rush(float64(c.users), 1.5*float64(c.users)*30/200)
		b := []Backend{fitted(backend("x", c.preset), c.users, load)}
		list = append(list, pool{
			name: fmt.Sprintf("K %s %d", c.name, c.users), what: fmt.Sprintf("%d users in the first second where %d are carried, 30 s", c.users, c.users),
			backends: b, routes: []Route{chat("chat", 30, b)}, load: load, length: 30 * time.Second,
		})
	}
	for _, p := range formPools() {
		if p.name == "V stairs" || p.name == "V plain" {
			p.name, p.what, p.length, p.warmup = "K"+p.name[1:], p.what+", from a cold start, 30 s", 30*time.Second, 0
			list = append(list, p)
		}
	}
	return list
}

// rush is so many chats within a second, and then rate each second, of prompts and
// answers of 200 tokens.
func rush(first, rate float64) func(uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] {
		g := Generator{Rate: rate, Duration: 30 * time.Second, Seed: seed, Prompt: Lengths{Mean: 200}, Output: Lengths{Mean: 200, Sigma: 0.7}}
		crowd := g
		crowd.Rate, crowd.Duration, crowd.Seed = first, time.Second, seed+500
		return merge(to("chat", crowd.Arrivals()), to("chat", g.Arrivals()))
	}
}

// fitted is b, slowed so that it carries just so many users with a floor of 30.
func fitted(b Backend, users int, load func(uint64) iter.Seq[Arrival]) Backend {
	lengths, m := slices.Collect(load(1)), mix{}
	for _, a := range lengths {
		m.prompts += float64(a.PromptTokens) / float64(len(lengths))
		m.answer += float64(a.OutputTokens) / float64(len(lengths))
	}
	b, _ = fittedTo(b, users, 30, m)
	return b
}

// fittedTo is b, slowed so that it carries just so many users with a floor; carried is
// how many it does.
func fittedTo(b Backend, users int, floor float64, m mix) (fitted Backend, carried int) {
	fits := func(slower float64) bool {
		b.Engine.Speed = 1 / slower
		e := &engine{conf: b, drift: 1, mix: m}
		carried = e.trueUsers(floor)
		return carried >= users
	}
	least, most := 0.01, 100.0
	for most/least > 1.001 {
		if mid := (least + most) / 2; fits(mid) {
			least = mid
		} else {
			most = mid
		}
	}
	fits(least)
	return b, carried
}

package accuracy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/sim"
)

// tripledRow asks the curve that was learned under one prompt load for the
// speeds under three times as long prompts.
var tripledRow = row{name: "prompts three times as long after learning", measure: func(t *testing.T) []line {
	then := longPrompts.truth()
	var got, blind []lesson
	for seed := range uint64(seeds()) {
		look, by := &watcher{}, &watcher{blind: true}
		w := newWorld(s4.setup, seed, look, by)
		w.run(100e3)
		w.fold()
		m, p := errorsOver(w.visited(), then.asked(look.book.Curve(target)), then.tps)
		got = append(got, lesson{same: errs{m, p}})
		m, p = errorsOver(w.visited(), by.book.Curve(target).TPS, then.tps)
		blind = append(blind, lesson{same: errs{m, p}})
	}
	m, b := middle(got).same, middle(blind).same
	fails(t, "tripled prompts", "the curve by n only", b, errs{5, math.Inf(1)})
	return []line{{
		what:     "prompts three times as long after 100k of S4",
		figures:  []figure{{name: "median", got: m.median, goal: 5}, {name: "p90", got: m.p90}},
		controls: []string{"curve by n only " + b.String()},
	}}
}}

// forecastRow freezes the curve after 100k and says what the streams of the
// next 120 s, in pieces of 30 s, get at the n that come.
func forecastRow(name string, k *known, goal errs) row {
	return row{name: "forecast, " + name, measure: func(t *testing.T) []line {
		var got, blind, usual []float64
		for seed := range uint64(seeds()) {
			look, by := &watcher{}, &watcher{blind: true}
			w := newWorld(k.setup, seed, look, by)
			w.run(100e3)
			w.fold()
			c, n := look.book.Curve(target), by.book.Curve(target)
			averages := map[int]float64{}
			for m, v := range w.usual {
				averages[m] = v
			}
			for range 4 {
				before := append([]level(nil), w.levels...)
				w.until(w.now + seconds(30))
				f, ok := forecast(before, w.levels, c.TPS)
				if !ok {
					continue
				}
				got = append(got, f)
				f, _ = forecast(before, w.levels, n.TPS)
				blind = append(blind, f)
				f, _ = forecast(before, w.levels, func(n int) float64 {
					if v, ok := averages[n]; ok {
						return v
					}
					return c.TPS(n)
				})
				usual = append(usual, f)
			}
		}
		g := errs{median(got), quantile(got, 0.9)}
		u := errs{median(usual), quantile(usual, 0.9)}
		fails(t, name, "request averages", u, goal)
		return []line{{
			what:     "forecast of the next 30 s, " + name,
			figures:  []figure{{name: "median", got: g.median, goal: goal.median}, {name: "p90", got: g.p90, goal: goal.p90}},
			controls: []string{"request averages " + u.String(), "curve by n only " + errs{median(blind), quantile(blind, 0.9)}.String()},
		}}
	}}
}

// forecast is how far off, in percent, the tokens are that a speed by n
// expects of the stream-seconds between two records; ok is false where next to
// nothing was decoded.
func forecast(before, after []level, tps func(n int) float64) (off float64, ok bool) {
	var expected, made, steps float64
	for n := range after {
		if s := after[n].seconds - before[n].seconds; s > 0 {
			expected += float64(n) * s * tps(n)
			made += after[n].tokens - before[n].tokens
			steps += after[n].steps - before[n].steps
		}
	}
	return 100 * math.Abs(expected/made-1), steps >= 200
}

// slowdownRow lets the engine take 1.3 times as long after 100k, and waits
// until the curve says so: within a tenth of the speeds there are, at the
// levels that were visited.
func slowdownRow(name string, k *known, goal, gate float64, why string) row {
	return row{name: "slowdown, " + name, measure: func(t *testing.T) []line {
		const patience = 900
		truth := k.truth()
		var took []float64
		for seed := range uint64(seeds()) {
			look := &watcher{}
			w := newWorld(k.setup, seed, look)
			w.run(100e3)
			levels := w.visited()
			w.slow(1.3)
			begun := w.now
			for w.now < begun+seconds(patience) {
				w.until(w.now + seconds(1))
				c := look.book.Curve(target)
				if m, _ := errorsOver(levels, truth.asked(c), func(n int) float64 { return truth.tps(n) / 1.3 }); m <= 10 {
					break
				}
			}
			took = append(took, (w.now - begun).Seconds())
		}
		return []line{{
			what:    "slower by 1.3, " + name,
			figures: []figure{{name: "seconds until the curve is within 10 %, median", got: median(took), goal: goal, gate: gate}, {name: "p90", got: quantile(took, 0.9)}},
			why:     why,
		}}
	}}
}

// alarmRow counts how often a slowdown is seen that is none, over an hour of
// each seed.
func alarmRow(name string, k *known, goal, gate float64, why string) row {
	return row{name: "false alarms, " + name, measure: func(t *testing.T) []line {
		runs := max(seeds()/3, 1)
		var alarms, alarmed float64
		for seed := range uint64(runs) {
			look := &watcher{}
			w := newWorld(k.setup, seed, look)
			before := 1.0
			for second := range 3600 {
				w.until(seconds(float64(second + 1)))
				g := look.book.Curve(target).Scale()
				if g != 1 {
					alarmed++
				}
				if before == 1 && g < 1 {
					alarms++
				}
				before = g
			}
		}
		return []line{{
			what: fmt.Sprintf("false alarms, %s, %d h", name, runs),
			figures: []figure{
				{name: "per hour", got: alarms / float64(runs), goal: goal, gate: gate},
				{name: "% of the time with g below or above 1", got: alarmed / float64(runs) / 36},
			},
			why: why,
		}}
	}}
}

// mergeRow lets three replicas see a third of the streams each, and holds what
// their sums say together against one that sees all.
func mergeRow(name string, staleness float64, bins, curve figure, why string) row {
	return row{name: "merge, " + name, measure: func(t *testing.T) []line {
		forever := func() *profiles.Book { return profiles.NewBook(profiles.Options{HalfLife: seconds(1e9)}) }
		truth := s4.truth()
		var worstBin, worstTPS, offOne, offThree []float64
		for seed := range uint64(seeds()) {
			all := &watcher{book: forever()}
			watchers := []*watcher{all}
			for i := range 3 {
				watchers = append(watchers, &watcher{
					book: forever(), sees: func(r int) bool { return r%3 == i }, staleness: seconds(staleness),
				})
			}
			w := newWorld(s4.setup, seed, watchers...)
			w.run(100e3)
			levels := w.visited()
			w.drain()
			var merged profiles.Sums
			for _, o := range watchers[1:] {
				merged.Add(profiles.Delta{Target: target, Sums: o.sums}, 0)
			}
			a, b := curveOf(all.sums), curveOf(merged)
			var bin, tps float64
			for _, n := range levels {
				p, q := a.At(n), b.At(n)
				bin = max(bin, 100*math.Abs(p.Tokens/p.StreamSeconds/(q.Tokens/q.StreamSeconds)-1))
				tps = max(tps, 100*math.Abs(q.TPS/p.TPS-1))
			}
			worstBin, worstTPS = append(worstBin, bin), append(worstTPS, tps)
			one, _ := errorsOver(levels, truth.asked(a), truth.tps)
			three, _ := errorsOver(levels, truth.asked(b), truth.tps)
			offOne, offThree = append(offOne, one), append(offThree, three)
		}
		bins.name, bins.got = "raw bins, worst level %", median(worstBin)
		curve.name, curve.got = "curve, worst level %", median(worstTPS)
		return []line{{what: "three replicas against one, " + name + ", S4, 100k", figures: []figure{
			bins, curve, {name: "one off the truth, median %", got: median(offOne)}, {name: "three off the truth, median %", got: median(offThree)},
		}, why: why}}
	}}
}

// curveOf draws the curve of sums.
func curveOf(s profiles.Sums) *profiles.Curve {
	b := profiles.NewBook(profiles.Options{})
	b.Ensure(target)
	b.Apply(at(seconds(1e6)), map[profiles.Target]profiles.Sums{target: s}, nil)
	return b.Curve(target)
}

// usageRow compares curves that differ only in the usage that comes.
func usageRow(name string, k *known, goal, gate float64, why string) row {
	return row{name: "usage, " + name, measure: func(t *testing.T) []line {
		every := func(n, other int) func(int) int {
			return func(r int) int {
				if r%n == 0 {
					return 1
				}
				return other
			}
		}
		var late, half, known []float64
		for seed := range uint64(seeds()) {
			full := &watcher{}
			after, seldom, never := &watcher{usage: every(2, -1)}, &watcher{usage: every(2, 0)}, &watcher{usage: func(int) int { return 0 }}
			w := newWorld(k.setup, seed, full, after, seldom, never)
			w.run(100e3)
			w.fold()
			worst := func(o *watcher) (off float64) {
				for _, n := range w.visited() {
					off = max(off, 100*math.Abs(o.book.Curve(target).TPS(n)/full.book.Curve(target).TPS(n)-1))
				}
				return off
			}
			late, half = append(late, worst(after)), append(half, worst(seldom))
			known = append(known, 0)
			if never.book.Curve(target).Known() {
				known[len(known)-1] = 100
			}
		}
		return []line{{
			what: fmt.Sprintf("usage late or never for every other stream, %s, 100k", name),
			figures: []figure{
				{name: "late, worst level %", got: median(late), goal: goal, gate: gate},
				{name: "never, worst level %", got: median(half), goal: goal, gate: gate},
				{name: "curves known without any usage, %", got: mean(known)},
			},
			why: why,
		}}
	}}
}

func mean(list []float64) float64 {
	var sum float64
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// mixRow multiplies all prompts after 100k, and asks what is shown a minute and
// ten minutes later, at the levels that were visited before.
func mixRow(name string, engine sim.EngineOptions, rate, times float64) row {
	return row{name: "a new prompt mix, " + name, measure: func(t *testing.T) []line {
		truth := longRun(setup{engine: engine, load: scaled(bursts(rate, conversations), times), jitter: longJitter}, truthTokens/4)
		var shown, late, above []float64
		for seed := range uint64(seeds()) {
			factor := 1.0
			load := func(r *rand.Rand) source {
				next := bursts(rate, conversations)(r)
				return func() arrival {
					a := next()
					a.prompt = max(int(float64(a.prompt)*factor), 1)
					return a
				}
			}
			look := promised(time.Second)
			w := newWorld(setup{engine: engine, load: load, jitter: longJitter}, seed, look)
			w.run(100e3)
			levels := w.visited()
			factor = times
			for _, after := range []struct {
				wait time.Duration
				to   *[]float64
			}{{time.Minute, &shown}, {9 * time.Minute, &late}} {
				w.until(w.now + after.wait)
				c := look.book.Curve(target)
				m, _ := errorsOver(levels, c.TPS, truth.mix)
				*after.to = append(*after.to, m)
				if after.wait == time.Minute {
					worst := math.Inf(-1)
					for _, n := range levels {
						if truth.mix(n) > 0 {
							worst = max(worst, 100*(c.Low(n, 0)/truth.mix(n)-1))
						}
					}
					above = append(above, worst)
				}
			}
		}
		return []line{{what: fmt.Sprintf("prompts × %g after 100k, %s", times, name), figures: []figure{
			{name: "as shown after a minute, median %", got: median(shown), goal: 12},
			{name: "worst run", got: quantile(shown, 1)},
			{name: "after ten minutes", got: median(late), goal: 8},
			{name: "bound above the truth after a minute, median over runs %", got: median(above)},
		}, why: lags}}
	}}
}

package accuracy

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// episode is an engine that takes factor times as long for a while.
type episode struct {
	factor float64
	lasts  time.Duration // 0 = for good
}

func (e episode) String() string {
	if e.lasts == 0 {
		return fmt.Sprintf("× %.3g for good", e.factor)
	}
	return fmt.Sprintf("× %g for %v", e.factor, e.lasts)
}

// spell is what became of the curve from one change of the engine to the next.
type spell struct {
	within  float64 // seconds until all levels were within 10 % first
	relapse float64 // seconds after that in which one was not
	above   float64 // the bound over the truth at worst, %, from a minute after the change on
}

// watch follows the curve for so long, second by second. The engine's steps take
// factor times what the truth says.
func (w *world) watch(look *watcher, levels []int, t *truth, factor float64, lasts time.Duration) spell {
	s := spell{within: math.Inf(1), above: -100}
	from := w.now
	for w.now < from+lasts {
		w.until(w.now + time.Second)
		c := look.book.Curve(target)
		worst := 0.0
		for _, n := range levels {
			p := t.p(n) / float64(n)
			worst = max(worst, 100*math.Abs(t.asked(c)(n)*factor/t.tps(n)-1))
			if w.now >= from+time.Minute {
				s.above = max(s.above, 100*(c.AtRho(n, p).Low*factor/t.tps(n)-1))
			}
		}
		passed := (w.now - from).Seconds()
		switch {
		case worst <= 10:
			s.within = min(s.within, passed)
		case s.within < passed:
			s.relapse++
		}
	}
	return s
}

// gates hold what a relapse row has reached.
type gates struct{ found, relapse, above float64 }

// relapseRow lets an engine slow down after 100k, perhaps come back, and looks
// on for half an hour: when the curve is right at all levels that were visited,
// and whether it stays so.
func relapseRow(name string, k *known, e episode, g gates, why string) row {
	return row{name: fmt.Sprintf("relapse, %s, %v", name, e), measure: func(t *testing.T) []line {
		var slow, back []spell
		for seed := range uint64(max(seeds()/3, 3)) {
			look := &watcher{book: profiles.NewBook(profiles.Options{})}
			w := newWorld(k.setup, seed, look)
			w.run(100e3)
			levels := w.visited()
			w.slow(e.factor)
			if e.lasts == 0 {
				slow = append(slow, w.watch(look, levels, k.truth(), e.factor, 30*time.Minute))
				continue
			}
			slow = append(slow, w.watch(look, levels, k.truth(), e.factor, e.lasts))
			w.slow(1)
			back = append(back, w.watch(look, levels, k.truth(), 1, 30*time.Minute))
		}
		pick := func(list []spell, of func(spell) float64) (v []float64) {
			for _, s := range list {
				v = append(v, of(s))
			}
			return v
		}
		within := func(s spell) float64 { return s.within }
		relapse := func(s spell) float64 { return s.relapse }
		above := func(s spell) float64 { return s.above }
		l := line{what: fmt.Sprintf("%s, %v", name, e), why: why}
		if e.lasts == 0 || e.lasts >= time.Minute {
			l.figures = append(l.figures,
				figure{name: "seconds until all levels are within 10 %, median", got: median(pick(slow, within)), goal: 30, gate: g.found},
				figure{name: "p90", got: quantile(pick(slow, within), 0.9)},
				figure{name: "seconds beyond 10 % after that, worst run", got: slices.Max(pick(slow, relapse)), gate: g.relapse},
				figure{name: "bound above the truth after a minute, worst %", got: slices.Max(pick(slow, above)), gate: g.above},
			)
		}
		if len(back) > 0 {
			l.figures = append(l.figures,
				figure{name: "after the end: median", got: median(pick(back, within)), goal: 30, gate: g.found},
				figure{name: "p90 ", got: quantile(pick(back, within), 0.9)},
				figure{name: "beyond 10 % after that, worst run", got: slices.Max(pick(back, relapse)), gate: g.relapse},
				figure{name: "bound, worst %", got: slices.Max(pick(back, above)), gate: g.above},
			)
		}
		return []line{l}
	}}
}

// spellRow lets a hosted API, fifty tokens a chunk, be 2.5 times slower for two minutes,
// and looks on for a quarter of an hour after that: for how long the bound is below 0.7 of
// the truth at some level that was visited before.
var spellRow = row{name: "a hosted API after a slow spell", measure: func(t *testing.T) []line {
	const low = 0.7
	truth := coalesced50.truth()
	var took []float64
	for seed := range uint64(max(seeds()/2, 4)) {
		look := promised(time.Second)
		w := newWorld(coalesced50.setup, seed, look)
		w.run(60e3)
		levels := w.visited()
		w.slow(2.5)
		w.until(w.now + 2*time.Minute)
		w.slow(1)
		held := 0.0
		for end := w.now + 15*time.Minute; w.now < end; {
			w.until(w.now + time.Second)
			c := look.book.Curve(target)
			if slices.ContainsFunc(levels, func(n int) bool { return c.Low(n, 0) < low*truth.mix(n) }) {
				held++
			}
		}
		took = append(took, held)
	}
	return []line{{
		what: "a hosted API, 60k, after two minutes × 2.5",
		figures: []figure{
			{name: "seconds with the bound below 0.7 of the truth, median", got: median(took)},
			{name: "worst run", got: slices.Max(took), goal: 120, gate: 300},
		},
		why: dateless,
	}}
}}

// sharedShiftRow lets three replicas with one store find the same slowdown: it
// has to be told once, and all have to draw the same curve.
var sharedShiftRow = row{name: "three replicas find one slowdown", measure: func(t *testing.T) []line {
	const factor = 1.5
	var off, apart, alone []float64
	truth := s4.truth()
	for seed := range uint64(seeds()) {
		watchers := newSite(3).gateways
		all := &watcher{book: profiles.NewBook(profiles.Options{})}
		w := newWorld(s4.setup, seed, append(watchers, all)...)
		w.run(100e3)
		levels := w.visited()
		w.slow(factor)
		w.until(w.now + 2*time.Minute)
		w.fold()
		w.fold() // the first replica reads what the last one pushed
		var curves []func(n int) float64
		for _, o := range watchers {
			curves = append(curves, truth.asked(o.book.Curve(target)))
		}
		worst := 0.0
		for _, n := range levels {
			worst = max(worst, 100*math.Abs(curves[2](n)/curves[0](n)-1))
		}
		apart = append(apart, worst)
		slowed := func(n int) float64 { return truth.tps(n) / factor }
		m, _ := errorsOver(levels, curves[0], slowed)
		one, _ := errorsOver(levels, truth.asked(all.book.Curve(target)), slowed)
		off, alone = append(off, m), append(alone, one)
	}
	return []line{{
		what: "three replicas with one store, two minutes after × 1.5, S4",
		figures: []figure{
			{name: "median error %", got: median(off), goal: 3},
			{name: "worst run %", got: slices.Max(off), goal: 10},
			{name: "replicas apart at most %", got: slices.Max(apart), goal: 1},
			{name: "one replica that relays all, median %", got: median(alone)},
			{name: "worst run ", got: slices.Max(alone)},
		},
		why: early,
	}}
}}

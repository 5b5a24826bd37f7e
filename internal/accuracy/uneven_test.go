package accuracy

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/profiles"
)

// publishedRow learns every published curve, with prefill and bursts.
var publishedRow = row{name: "published curves", measure: func(t *testing.T) []line {
	list := presets.List()
	var medians, p90s, blind []float64
	worst, name := 0.0, ""
	for _, p := range list {
		k := published(p)
		var lessons []lesson
		for seed := range uint64(max(seeds()/6, 1)) {
			lessons = append(lessons, learn(k, seed, 100e3)...)
		}
		l := middle(lessons)
		medians, p90s, blind = append(medians, l.same.median), append(p90s, l.same.p90), append(blind, l.blind.median)
		if l.same.median > worst {
			worst, name = l.same.median, p.Name
		}
		fails(t, p.Name, "request averages", l.usual, errs{2, 6})
	}
	return []line{{
		what: fmt.Sprintf("%d published curves, bursts, 100k", len(list)),
		figures: []figure{
			{name: "median of the curves", got: median(medians), goal: 2},
			{name: "worst curve", got: slices.Max(medians), goal: 6, gate: 9},
			{name: "p90 of a curve", got: median(p90s)},
		},
		why:      kinked,
		controls: []string{"worst " + name, fmt.Sprintf("curves by n only %.1f", median(blind))},
	}}
}}

// unevenRow learns curves that no fit can draw.
func unevenRow(name string, of func(time.Duration) *known, jitter time.Duration) row {
	name = fmt.Sprintf("%s, jitter %v", name, jitter)
	return row{name: name, measure: func(t *testing.T) []line {
		k := of(jitter)
		want := func(n int) float64 { return 1 / k.engine.Model.StepSeconds(n, 0) }
		var raw, shown, usual []float64
		above, closest := math.Inf(-1), math.Inf(-1) // the bound over the truth, by margin
		for seed := range uint64(seeds()) {
			look, least := &watcher{}, &watcher{book: profiles.NewBook(profiles.Options{Margin: 0.02})}
			w := newWorld(k.setup, seed, look, least)
			w.run(100e3)
			w.fold()
			c := look.book.Curve(target)
			for _, n := range w.visited() {
				p := c.At(n) // every level up to 8 has a bin of its own
				raw = append(raw, 100*math.Abs(p.Tokens/p.StreamSeconds/want(n)-1))
				shown = append(shown, 100*math.Abs(p.TPS/want(n)-1))
				if u := orNaN(w.usual, n); !math.IsNaN(u) {
					usual = append(usual, 100*math.Abs(u/want(n)-1))
				}
				above = max(above, 100*(p.Low/want(n)-1))
				closest = max(closest, 100*(least.book.Curve(target).Low(n, 0)/want(n)-1))
			}
		}
		fails(t, name, "request averages", errs{1, quantile(usual, 0.9)}, errs{1, 3})
		return []line{{
			what: name + ", 100k",
			figures: []figure{
				{name: "raw bins p90", got: quantile(raw, 0.9), goal: 3},
				{name: "bound above the truth at worst, margin 2 %", got: closest, goal: 3},
				{name: "margin as adapted", got: above, goal: 3},
				{name: "raw bins median", got: median(raw)},
				{name: "as shown p90", got: quantile(shown, 0.9)},
			},
			controls: []string{fmt.Sprintf("request averages %.1f/%.1f", median(usual), quantile(usual, 0.9))},
		}}
	}}
}

// boundRow asks how many streams keep a floor: by the bound, which decides, and
// by the speed, which is shown. The floors are the true speeds at levels
// that were visited, at the load that the curve states for them, from 10
// streams on: below, one stream is more than a tenth.
func boundRow(name string, k *known, margin func() float64, share, within figure, why string) row {
	return row{name: "bound of " + name, measure: func(t *testing.T) []line {
		truth, margin := k.truth(), margin()
		var cases, good float64
		var off, ratios, usualOff []float64
		for seed := range uint64(seeds()) {
			look := &watcher{book: profiles.NewBook(profiles.Options{Margin: margin})}
			w := newWorld(k.setup, seed, look)
			w.run(100e3)
			w.fold()
			c := look.book.Curve(target)
			levels := w.visited()
			speed := func(n int) float64 { return truth.tpsAt(n, c.At(n).P) }
			for _, level := range levels {
				// Between this level and the next, which must not keep it too.
				floor := (speed(level) + speed(level+1)) / 2
				if level < 10 || !(speed(level+1) < floor) {
					continue
				}
				n := level
				for m := n + 2; m <= maxN; m++ {
					if speed(m) >= floor {
						n = m // the usual load is no smooth function of n
					}
				}
				low := 0
				for c.Low(low+1, 0) >= floor {
					low++
				}
				ratio := float64(low) / float64(n)
				ratios = append(ratios, ratio)
				cases++
				if ratio >= 0.80 && ratio <= 1.05 {
					good++
				}
				off = append(off, 100*math.Abs(float64(c.MaxConcurrency(floor))/float64(n)-1))
				usual := 0
				for _, m := range levels {
					if orNaN(w.usual, m) >= floor {
						usual = max(usual, m)
					}
				}
				usualOff = append(usualOff, 100*math.Abs(float64(usual)/float64(n)-1))
			}
		}
		share.name, share.got, share.least = "bound at 0.80–1.05 of the true n, % of cases", 100*good/cases, true
		within.name, within.got = "n off the speed, p90 error %", quantile(off, 0.9)
		return []line{{
			what: "bound of " + name,
			figures: []figure{
				share, within,
				{name: "margin %", got: 100 * margin},
				{name: "median ratio of the bound", got: median(ratios)},
				{name: "highest", got: slices.Max(ratios)},
				{name: "n off the speed, median error %", got: median(off)},
			},
			controls: []string{fmt.Sprintf("n off request averages %.0f/%.0f", median(usualOff), quantile(usualOff, 0.9))},
			why:      why,
		}}
	}}
}

package accuracy

import (
	"fmt"
	"math"
	"testing"

	"github.com/pacer-dev/pacer/profiles"
)

// coverageRow counts how often the 95 % interval of a bin's own speed, by the
// ratio estimator over windows, holds the truth. Bins of less than 60 steps or
// 8 windows have no interval. The truth of a bin is that of its levels, in the
// proportion in which the run visited them.
func coverageRow(name string, k *known, tokens, goal, gate float64, why string) row {
	return row{name: "coverage, " + name, measure: func(t *testing.T) []line {
		truth := k.truth()
		var bins, held float64
		var widths []float64
		for seed := range uint64(seeds()) {
			look := &watcher{}
			w := newWorld(k.setup, seed, look)
			w.run(tokens)
			w.fold()
			for i, b := range binsOf(look.sums) {
				if b["k"] < 60 || b["w"] < 8 || b["s"] <= 0 {
					continue
				}
				r := b["y"] / b["s"]
				variance := b["w"] / (b["w"] - 1) * (b["yy"] - 2*r*b["sy"] + r*r*b["ss"]) / (b["s"] * b["s"])
				half := student(b["w"]-1) * math.Sqrt(max(variance, 0))
				var tokens, seconds float64
				lo, hi := profiles.BinBounds(i)
				for n := lo; n <= min(hi, maxN); n++ {
					if s := float64(n) * w.levels[n].seconds; s > 0 {
						tokens, seconds = tokens+s*truth.tps(n), seconds+s
					}
				}
				if !(seconds > 0) || math.IsNaN(tokens) {
					continue
				}
				bins++
				widths = append(widths, 100*half/r)
				if math.Abs(r-tokens/seconds) <= half {
					held++
				}
			}
		}
		return []line{{
			what: fmt.Sprintf("95 %% interval of the raw bins, %s, %.0fk", name, tokens/1e3),
			figures: []figure{
				{name: "holds the truth, %", got: 100 * held / bins, goal: goal, gate: gate, least: true},
				{name: "half width %", got: median(widths)},
				{name: "bins", got: bins},
			},
			why: why,
		}}
	}}
}

// binsOf reads the stored form of the bins: what they hold by the letters of
// the stored names.
func binsOf(s profiles.Sums) map[int]map[string]float64 {
	bins := map[int]map[string]float64{}
	for _, g := range s.Groups() {
		for _, f := range g.Fields {
			var bin int
			var letters string
			if _, err := fmt.Sscanf(f.Name, "b%d.%s", &bin, &letters); err != nil {
				continue
			}
			if bins[bin] == nil {
				bins[bin] = map[string]float64{}
			}
			bins[bin][letters] = f.Value
		}
	}
	return bins
}

// student is the 97.5 % quantile of Student's t, within 1 % from 5 degrees of
// freedom on (the first terms of Cornish and Fisher).
func student(df float64) float64 {
	const z = 1.959964
	return z + (z*z*z+z)/(4*df) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*df*df)
}

func TestStudent(t *testing.T) {
	for df, want := range map[float64]float64{7: 2.365, 20: 2.086, 100: 1.984} {
		if got := student(df); math.Abs(got-want) > 0.01*want {
			t.Errorf("the 97.5 %% quantile with %v degrees of freedom is %.3f, want %.3f", df, got, want)
		}
	}
}

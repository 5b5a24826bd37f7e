package accuracy

import (
	"fmt"
	"math"
	"testing"
)

// errs are the median and the 90th percentile over levels, in percent.
type errs struct{ median, p90 float64 }

func (e errs) String() string { return fmt.Sprintf("%.1f/%.1f", e.median, e.p90) }

// lesson is how good the curve was at one mark of one run.
type lesson struct {
	same   errs // asked at the load of the truth: the goals are for this
	own    errs // as shown, against the truth at the mix of requests that the run had
	stated errs // the same, against the truth at the load that the curve states
	record errs // as shown, against what the engine did in this very run
	usual  errs // control: request averages at the concurrency of arrival
	blind  errs // control: a curve by n only
}

// learn runs s until each of the marks, in tokens, and examines the curve.
func learn(k *known, seed uint64, marks ...float64) []lesson {
	look, blind := &watcher{}, &watcher{blind: true}
	w := newWorld(k.setup, seed, look, blind)
	t := k.truth()
	var lessons []lesson
	for _, mark := range marks {
		w.run(mark - w.tokens)
		w.fold()
		levels, c, by := w.visited(), look.book.Curve(target), blind.book.Curve(target)
		var l lesson
		over := func(got, want func(n int) float64) errs {
			m, p := errorsOver(levels, got, want)
			return errs{m, p}
		}
		l.same = over(t.asked(c), t.tps)
		l.own = over(c.TPS, func(n int) float64 { return t.tpsAt(n, rhoOf(w.levels)*float64(n)) })
		l.stated = over(c.TPS, func(n int) float64 { return t.tpsAt(n, c.At(n).P) })
		l.record = over(c.TPS, func(n int) float64 { return w.levels[n].tokens / w.levels[n].seconds / float64(n) })
		l.usual = over(func(n int) float64 { return orNaN(w.usual, n) }, t.tps)
		l.blind = over(by.TPS, t.tps)
		lessons = append(lessons, l)
	}
	return lessons
}

// middle is the median over runs of each figure.
func middle(list []lesson) lesson {
	pick := func(of func(lesson) errs) errs {
		var m, p []float64
		for _, l := range list {
			m, p = append(m, of(l).median), append(p, of(l).p90)
		}
		return errs{median(m), median(p)}
	}
	return lesson{
		same:   pick(func(l lesson) errs { return l.same }),
		own:    pick(func(l lesson) errs { return l.own }),
		stated: pick(func(l lesson) errs { return l.stated }),
		record: pick(func(l lesson) errs { return l.record }),
		usual:  pick(func(l lesson) errs { return l.usual }),
		blind:  pick(func(l lesson) errs { return l.blind }),
	}
}

// mark is a number of tokens after which a curve is examined.
type mark struct {
	tokens float64
	goal   errs // for lesson.same
	gate   errs // where a goal is out of reach
	why    string
	blind  bool // the curve by n only must fail
}

// curveRow examines the curves of a scenario.
func curveRow(name string, k *known, marks ...mark) row {
	return row{name: name, measure: func(t *testing.T) []line {
		at := make([]float64, len(marks))
		for i, m := range marks {
			at[i] = m.tokens
		}
		runs := make([][]lesson, len(marks))
		for seed := range uint64(seeds()) {
			for i, l := range learn(k, seed, at...) {
				runs[i] = append(runs[i], l)
			}
		}
		var lines []line
		for i, m := range marks {
			l := middle(runs[i])
			lines = append(lines, line{
				what: fmt.Sprintf("%s, %.0fk", name, m.tokens/1e3),
				figures: []figure{
					{name: "median", got: l.same.median, goal: m.goal.median, gate: m.gate.median},
					{name: "p90", got: l.same.p90, goal: m.goal.p90, gate: m.gate.p90},
				},
				controls: []string{
					"as shown " + l.own.String(), "at its stated load " + l.stated.String(), "against its own run " + l.record.String(),
					"request averages " + l.usual.String(), "curve by n only " + l.blind.String(),
				},
				why: m.why,
			})
			fails(t, name, "request averages", l.usual, m.goal)
			if m.blind {
				fails(t, name, "the curve by n only", l.blind, m.goal)
			}
		}
		return lines
	}}
}

// fails checks that a control does not reach the goal: one that did would show
// that the goal is no hard one.
func fails(t *testing.T, name, control string, got, goal errs) {
	t.Helper()
	if goal.median != 0 && got.median <= goal.median && got.p90 <= goal.p90 {
		t.Errorf("%s: %s is only %s %% wrong, which reaches the goal of %s: the row shows nothing", name, control, got, goal)
	}
}

// orNaN is NaN where there is no value: a map's 0 would be a speed.
func orNaN(m map[int]float64, n int) float64 {
	if v, ok := m[n]; ok {
		return v
	}
	return math.NaN()
}

package accuracy

import (
	"fmt"
	"math"
	"testing"

	"github.com/pacer-dev/pacer/profiles"
)

// firsts holds predicted against actual times to first tokens. Nil does
// nothing.
type firsts struct {
	book      *profiles.Book
	predicted map[int]prediction
	errs      []float64 // percent, all
	waits     []float64 // percent, of those that were told to wait for a slot

	plain      []float64 // control: percent, of the mean of all that came before
	count, sum float64
}

// prediction is what was told for one request.
type prediction struct {
	seconds float64
	queued  bool
}

func (f *firsts) foretell(w *world, r *request, ahead profiles.Ahead) {
	if f == nil {
		return
	}
	t := f.book.Curve(target).TTFT()
	if !t.Known() {
		return
	}
	f.predicted[r.index] = prediction{t.Predict(ahead, r.guess), t.Queue(ahead.Sequences) > 0}
}

func (f *firsts) see(r *request) {
	if f == nil {
		return
	}
	p, ok := f.predicted[r.index]
	if !ok {
		return
	}
	delete(f.predicted, r.index)
	took := (r.first - r.sent).Seconds()
	e := 100 * math.Abs(p.seconds/took-1)
	f.errs = append(f.errs, e)
	if f.count > 0 {
		f.plain = append(f.plain, 100*math.Abs(f.sum/f.count/took-1))
	}
	f.count, f.sum = f.count+1, f.sum+took
	if p.queued {
		f.waits = append(f.waits, e)
	}
}

// ttftRow learns the time to the first token from so many tokens of a scenario
// and holds it against what the next as many requests waited. slots are those of
// the engine, 0 when it has none to find. Where there are prompts, the mean of
// what others waited before must miss the goal.
func ttftRow(name string, k *known, tokens float64, goal float64, prompts bool, slots int) row {
	return row{name: "TTFT, " + name, measure: func(t *testing.T) []line {
		var errs, p90s, waits, off, seen, plain []float64
		for seed := range uint64(seeds()) {
			look := &watcher{}
			w := newWorld(k.setup, seed, look)
			w.run(tokens)
			w.fold()
			seen = append(seen, float64(w.requests))
			w.firsts = &firsts{book: look.book, predicted: map[int]prediction{}}
			w.run(2 * tokens)
			errs = append(errs, median(w.firsts.errs))
			p90s = append(p90s, quantile(w.firsts.errs, 0.9))
			plain = append(plain, median(w.firsts.plain))
			if len(w.firsts.waits) > 0 {
				waits = append(waits, median(w.firsts.waits))
			}
			off = append(off, math.Abs(float64(look.book.Curve(target).TTFT().Slots-slots)))
		}
		l := line{
			what: fmt.Sprintf("TTFT, %s, after %.0fk (%.0f requests)", name, tokens/1e3, median(seen)),
			figures: []figure{
				{name: "median error %", got: median(errs), goal: goal},
				{name: "p90 %", got: median(p90s)},
				{name: "slots off by at most", got: quantile(off, 1), goal: 0.5},
			},
		}
		l.controls = []string{fmt.Sprintf("mean of all before %.0f", median(plain))}
		if m := median(plain); m <= goal && prompts {
			t.Errorf("%s: the mean of all before is only %.1f %% off: the row shows nothing", name, m)
		}
		if slots > 0 {
			l.figures[2].goal = 1
			l.figures = append(l.figures, figure{name: "of those that waited for a slot, median error %", got: median(waits)})
		}
		return []line{l}
	}}
}

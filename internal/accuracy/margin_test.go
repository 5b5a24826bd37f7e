package accuracy

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// averaged is how many tokens after the first a stream needs to teach the
// margin.
const averaged = 50

// promised is a watcher whose streams shall keep their floor, 99 of 100 of them,
// and may take grace longer.
func promised(grace time.Duration) *watcher {
	o := &watcher{book: profiles.NewBook(profiles.Options{})}
	o.book.Attain(target.GroupID(), 0.99, grace)
	return o
}

// adapted is the margin that a backend has after 2,000 streams of which 99 of
// 100 shall keep their floor, with a second of grace.
func adapted(k *known) func() float64 {
	return sync.OnceValue(func() float64 {
		o := promised(time.Second)
		streams := 0
		o.closed = func(_ *request, s profiles.Summary) {
			if s.Measured && s.Tokens-s.FirstTokens >= averaged {
				streams++
			}
		}
		w := newWorld(k.setup, 2_000_000, o)
		for streams < 2000 {
			w.until(w.now + seconds(1))
		}
		return o.book.Curve(target).Margin()
	})
}

// always is a margin that is set.
func always(margin float64) func() float64 { return func() float64 { return margin } }

// marginRow shows what streams delivered of what the curve predicted, what the
// margin made of it, and whether those that came after kept what was left.
func marginRow(name string, k *known) row {
	return row{name: "margin's adaptation, " + name, measure: func(t *testing.T) []line {
		marks := []int{100, 200, 500, 1000, 2000}
		graces := []time.Duration{time.Second, 0}
		margins, kept := make([][][]float64, len(graces)), make([][]float64, len(graces))
		var lived, admitted []float64
		for seed := range uint64(max(seeds()/4, 2)) {
			predicted := map[*request]float64{}
			var w *world
			var watchers []*watcher
			streams := 0
			for i, grace := range graces {
				o := promised(grace)
				watchers = append(watchers, o)
				margins[i] = append(margins[i], nil)
				after, met := 0.0, 0.0
				if i == 0 {
					o.opened = func(r *request) { predicted[r] = o.book.Curve(target).TPS(w.inFlight) }
				}
				o.closed = func(r *request, s profiles.Summary) {
					before := predicted[r]
					if s.Tokens-s.FirstTokens < averaged || !s.Measured || !(s.Predicted > 0) {
						return
					}
					if i == 0 {
						delete(predicted, r)
						lived = append(lived, s.TPS/s.Predicted)
						if before > 0 {
							admitted = append(admitted, s.TPS/before)
						}
						streams++
					}
					if streams > marks[len(marks)-2] { // by a margin learned from others
						after++
						floor := (1 - o.book.Curve(target).Margin()) * s.Predicted
						if s.Decode.Seconds()-grace.Seconds() <= s.TPS*s.Decode.Seconds()/floor {
							met++
						}
						kept[i] = append(kept[i][:seed], 100*met/after)
					}
				}
			}
			w = newWorld(k.setup, seed, watchers...)
			for _, mark := range marks {
				for streams < mark {
					w.until(w.now + seconds(1))
				}
				for i, o := range watchers {
					margins[i][seed] = append(margins[i][seed], 100*o.book.Curve(target).Margin())
				}
			}
		}
		at := func(grace int) (text string) {
			for i, mark := range marks {
				var list []float64
				for _, run := range margins[grace] {
					list = append(list, run[i])
				}
				text += fmt.Sprintf(" %s (%d)", number(median(list)), mark)
			}
			return text
		}
		return []line{{
			what: "margin's adaptation, " + name,
			figures: []figure{
				{name: "kept by streams 1001 to 2000, grace 1 s, %", got: mean(kept[0]), gate: 96, least: true},
				{name: "no grace, %", got: mean(kept[1])},
				{name: "delivered/predicted, 1 % quantile", got: quantile(lived, 0.01)},
				{name: "5 %", got: quantile(lived, 0.05)},
				{name: "median", got: median(lived)},
				{name: "99 %", got: quantile(lived, 0.99)},
			},
			controls: []string{
				"margin % (after so many streams), grace 1 s:" + at(0), "no grace:" + at(1),
				fmt.Sprintf("delivered over predicted at admission, 1 %% quantile %.3g", quantile(admitted, 0.01)),
			},
		}}
	}}
}

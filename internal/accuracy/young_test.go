package accuracy

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

var (
	youngFlag = flag.Int("young", 60, "engines to draw that change in their first minute")
	youngFrom = flag.Uint64("youngfrom", 0, "the first of them")
)

// drawYoung draws the engine, the wire and the load of a number, what the engine's speed
// is divided by, and after how long.
func drawYoung(number uint64) (d *draft, slower float64, at time.Duration) {
	r, change := rand.New(rand.NewPCG(number, 3)), rand.New(rand.NewPCG(number, 77))
	d = &draft{}
	is := func(format string, args ...any) { d.name = append(d.name, fmt.Sprintf(format, args...)) }
	d.engine = drawEngine(r, d, is)
	drawWire(r, d, is)
	at = seconds(10 + 45*change.Float64())
	d.slower = 1.15 + 0.85*change.Float64()
	drawLoad(r, d, is)
	as := 1.0
	d.load = withPrompts(d.load, &as)
	return d, d.slower, at
}

// afterChange is how a curve stands one and three minutes after the change.
type afterChange struct{ soon, later sight }

func gradeYoung(number uint64) afterChange {
	d, slower, at := drawYoung(number)
	look := promised(time.Second)
	if d.never > 0 {
		look.usage = func(request int) int { return min(request%d.never, 1) }
	}
	w := newWorld(d.setup, number, look)
	w.until(at)
	w.slow(slower)
	long := longRun(d.setup, truthTokens/12)
	grade := func(after time.Duration) sight {
		w.until(at + after)
		w.fold()
		rho := rhoOf(w.levels)
		truth := func(n int) float64 { return long.tpsAt(n, rho*float64(n)) / slower }
		levels := slices.DeleteFunc(w.visited(), func(n int) bool { return n > maxN || !(truth(n) > 0) }) // that the long run never had
		return see(levels, look.book.Curve(target), truth)
	}
	return afterChange{grade(time.Minute), grade(3 * time.Minute)}
}

// Engines that a number draws become 1.15 to 2 times slower in their first minute.
func TestDrawnEnginesThatChangeInTheirFirstMinute(t *testing.T) {
	if racetest.On {
		t.Skip("nothing here is concurrent: make numbers runs it")
	}
	list := make([]afterChange, *youngFlag)
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() { list[i] = gradeYoung(*youngFrom + uint64(i)) })
	}
	all.Wait()
	figures := func(name string, of func(afterChange) sight, median50, p90, above float64) []figure {
		var medians []float64
		over := 0
		for _, y := range list {
			s := of(y)
			if math.IsNaN(s.shown.median) {
				continue // no level was visited that the truth knows
			}
			medians = append(medians, s.shown.median)
			if s.above > 3 {
				over++
			}
		}
		if *youngFlag != 60 || *youngFrom != 0 {
			median50, p90, above = 0, 0, 0
		}
		return []figure{
			{name: name + ", as shown, median %", got: median(medians), gate: median50},
			{name: name + ", p90 over engines", got: quantile(medians, 0.9), gate: p90},
			{name: name + ", engines with the bound over 3 % above the truth, %", got: 100 * float64(over) / float64(len(medians)), gate: above},
		}
	}
	line{
		what: fmt.Sprintf("%d drawn engines from %d on that become slower in their first minute", len(list), *youngFrom),
		figures: append(figures("after a minute", func(y afterChange) sight { return y.soon }, 9, 28, 55),
			figures("after three", func(y afterChange) sight { return y.later }, 5, 16, 30)...),
	}.check(t)
}

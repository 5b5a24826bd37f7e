package bench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

var grow = flag.String("grow", "", "file that the tables of how Pacer grows are written to; empty = a few small ones are measured")

// growth is how a figure of Pacer's grows with a number.
type growth struct {
	with, unit string
	at, is     []float64
}

func (g *growth) add(at int, is float64) { g.at, g.is = append(g.at, float64(at)), append(g.is, is) }

// line is a + b·n by the least squares of the relative errors, neither of them
// negative, and worst the largest of those errors.
func (g *growth) line() (a, b, worst float64) {
	var w, x, xx, y, xy float64
	for i, n := range g.at {
		weight := 1 / (g.is[i] * g.is[i])
		w, x, xx, y, xy = w+weight, x+weight*n, xx+weight*n*n, y+weight*g.is[i], xy+weight*n*g.is[i]
	}
	if d := w*xx - x*x; d > 0 {
		a, b = (y*xx-x*xy)/d, (w*xy-x*y)/d
	}
	switch {
	case b < 0:
		a, b = y/w, 0
	case a < 0:
		a, b = 0, xy/xx
	}
	for i, n := range g.at {
		worst = max(worst, math.Abs((a+b*n)/g.is[i]-1))
	}
	return a, b, worst
}

// render is a plot, a bar for each figure with a mark where the line is, and the line.
func (g *growth) render() string {
	const width = 48
	var out strings.Builder
	a, b, worst := g.line()
	most := 0.0
	for i, n := range g.at {
		most = max(most, g.is[i], a+b*n)
	}
	fmt.Fprintf(&out, "\n%s with %s: %.3g + %.3g·n, off by %.0f %% at most\n\n```\n", g.unit, g.with, a, b, 100*worst)
	for i, n := range g.at {
		bar := []byte(strings.Repeat(" ", width+1))
		for k := range int(g.is[i] / most * width) {
			bar[k] = '#'
		}
		bar[int((a+b*n)/most*width)] = '|'
		fmt.Fprintf(&out, "%7.0f %s %.4g\n", n, bar, g.is[i])
	}
	out.WriteString("```\n")
	return out.String()
}

// TestGrowth says how CPU and memory grow with what there is. Each figure is of a
// process of its own.
func TestGrowth(t *testing.T) {
	streams, others, long := []int{5, 20}, []int{1, 20}, 150*time.Millisecond
	if *grow != "" {
		streams, others, long = []int{100, 300, 1000, 3000, 8000}, []int{1, 10, 100, 1000}, 4*time.Second
	}
	var text strings.Builder
	text.WriteString(growsWithStreams(t, streams, long))
	for _, kind := range []struct {
		name string
		of   func(n int) fleet
	}{
		{"targets of the route", func(n int) fleet { return fleet{targets: n} }},
		{"routes", func(n int) fleet { return fleet{routes: n} }},
		{"keys", func(n int) fleet { return fleet{keys: n} }},
	} {
		text.WriteString(growsWith(t, kind.name, others, kind.of, long))
	}
	t.Log(text.String())
	if *grow != "" {
		if err := os.WriteFile(*grow, []byte(text.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// growsWithStreams is of streams of 2 tokens/s.
func growsWithStreams(t *testing.T, counts []int, long time.Duration) string {
	t.Helper()
	cpu, memory := growth{with: "n streams of 2 tokens/s", unit: "ms of CPU a second"}, growth{with: "n such streams", unit: "MiB more than before"}
	for _, n := range counts {
		t.Run(fmt.Sprintf("streams-%d", n), func(t *testing.T) {
			l := &load{name: "grow", clients: n, chunks: 1 << 20, every: 500 * time.Millisecond, slowly: true}
			f := leg(t, newPlace(t, wiring{}, l.tps()).startPacer(t, "Pacer", "", ""), l, long)
			cpu.add(n, atLeast(float64(f.CPU.Microseconds())/1000/long.Seconds()))
			memory.add(n, atLeast(float64(f.Memory)/(1<<20)))
		})
	}
	return cpu.render() + memory.render()
}

// growsWith is of requests, 8 at once.
func growsWith(t *testing.T, what string, counts []int, of func(n int) fleet, long time.Duration) string {
	t.Helper()
	cpu, memory := growth{with: "n " + what, unit: "µs of CPU a request"}, growth{with: "n " + what, unit: "MiB"}
	for _, n := range counts {
		t.Run(fmt.Sprintf("%s-%d", what, n), func(t *testing.T) {
			at, l := newPlace(t, wiring{}, usualTPS), load{name: "grow", clients: 8}
			if of(n).keys > 0 {
				l.header = "Authorization: Bearer " + aKey + "\r\n"
			}
			p := at.startWith(t, "Pacer", "", at.configuration(of(n), ""))
			memory.add(n, atLeast(float64(p.memory(t))/(1<<20)))
			cpu.add(n, atLeast(leg(t, p, &l, long).Each))
		})
	}
	return cpu.render() + memory.render()
}

// atLeast keeps what was too little to measure from being nothing: errors are relative.
func atLeast(figure float64) float64 { return max(figure, 0.01) }

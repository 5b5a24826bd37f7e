package accuracy

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/sim"
)

var (
	drawnFlag = flag.Int("drawn", 24, "engines to draw")
	drawnFrom = flag.Uint64("drawnfrom", 0, "the first of them")
)

// draft is a world that a number draws: an engine, how its tokens travel, what comes to
// it, and what changes in the midst.
type draft struct {
	setup
	name   []string
	never  int     // usage never comes for one request in so many; 0 = it always comes
	slower float64 // by this from the change on; 0 = not
	longer float64 // prompts are as much longer from the change on; 0 = not
}

// draw draws the world of a number. Nothing in it was chosen by what the estimator makes
// of it.
func draw(number uint64) *draft {
	r := rand.New(rand.NewPCG(number, 3))
	d := &draft{}
	is := func(format string, args ...any) { d.name = append(d.name, fmt.Sprintf(format, args...)) }
	d.engine = drawEngine(r, d, is)
	drawWire(r, d, is)
	switch r.IntN(5) {
	case 0:
		d.slower = 1.15 + 0.85*r.Float64()
		is("%.1f times slower", d.slower)
	case 1:
		d.longer = 1.5 + 2.5*r.Float64()
		is("prompts %.1f times as long", d.longer)
	}
	drawLoad(r, d, is)
	return d
}

// between draws a number whose logarithm is even between those of lo and hi.
func between(r *rand.Rand, lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, r.Float64())
}

func drawEngine(r *rand.Rand, d *draft, is func(string, ...any)) sim.EngineOptions {
	o := sim.EngineOptions{
		Model:        sim.Model{A: between(r, 0.004, 0.025), B: 0.0025 * r.Float64(), C: between(r, 20e-6, 500e-6), D: between(r, 10e-6, 120e-6)},
		Noise:        0.03 + 0.12*r.Float64(),
		PrefillBatch: []int{512, 1024, 2048, 8192}[r.IntN(4)],
	}
	if r.IntN(3) == 0 {
		o.Model.E = between(r, 1e-8, 8e-8)
		is("context")
	}
	switch r.IntN(8) {
	case 0:
		o.SharedBudget = true
		is("shared budget of %d", o.PrefillBatch)
	case 1:
		o.Draft, o.Acceptance = 1+r.IntN(5), 0.5+0.4*r.Float64()
		is("drafts %d", o.Draft)
	case 2:
		fade := 0.005 + 0.03*r.Float64()
		o.Draft = 3
		o.AcceptanceAt = func(n int) float64 { return max(0.8-fade*float64(n), 0.05) }
		is("drafts fade by %.3f", fade)
	case 3:
		o.KVTokens, o.Preempt = 25_000+r.IntN(60_000), true
		is("preempts at %d", o.KVTokens)
	case 4:
		size, m := []int{4, 8, 16}[r.IntN(3)], o.Model
		for n := 1; n <= maxN; n++ {
			o.Model.Table = append(o.Model.Table, sim.Point{N: n, TPS: 1 / m.StepSeconds((n+size-1)/size*size, 0)})
		}
		d.seesFew = 2 * size
		is("padded to %d", size)
	case 5:
		d.ranks = 2 + r.IntN(3)
		is("%d ranks", d.ranks)
	case 6:
		bend, m := between(r, 1e-8, 2e-7), o.Model
		for n := 1; n <= maxN; n++ {
			o.Model.Table = append(o.Model.Table, sim.Point{N: n, TPS: 1 / (m.StepSeconds(n, 0) + bend*math.Pow(float64(n), 3))})
		}
		is("cubic")
	}
	if r.IntN(4) == 0 {
		o.MaxNumSeqs = 12 + r.IntN(40)
		is("%d slots", o.MaxNumSeqs)
	}
	return o
}

func drawWire(r *rand.Rand, d *draft, is func(string, ...any)) {
	d.jitter = seconds(between(r, 0.0001, 0.02))
	d.leave = 0.05 * r.Float64()
	switch r.IntN(8) {
	case 0:
		d.chunk, d.late = 2+r.IntN(60), r.IntN(2) == 0
		is("%d a chunk (first: %v)", d.chunk, d.late)
	case 1:
		most := 4 + r.IntN(100)
		d.sizes, d.late = sizesTo(most), true
		is("1 to %d a chunk", most)
	case 2:
		d.collects = seconds(0.03 + 0.2*r.Float64())
		is("collected for %v", d.collects.Round(time.Millisecond))
	case 3:
		d.opens = 5 + r.IntN(50)
		is("opens with %d", d.opens)
	}
	switch r.IntN(6) {
	case 0:
		d.tells = true
		is("counted")
	case 1:
		d.never = 2 + r.IntN(4)
		is("no usage for 1 of %d", d.never)
	}
}

// drawLoad holds the engine at some streams on average, with prefills for at most a
// third of the time, after the change: who is overrun is seen at levels that nobody knew.
func drawLoad(r *rand.Rand, d *draft, is func(string, ...any)) {
	n, answers, share := between(r, 2, 14), []int{1, 1, 2, 4}[r.IntN(4)], 0.02+0.28*r.Float64()
	lengths, answer, prompt, most := conversations, 211.0, 1155.0, 5.54
	if r.IntN(4) == 0 {
		lengths, answer, prompt, most, answers = completions, 27.9, 2048, 2.57, 1
		is("short answers")
	}
	ranks := float64(max(d.ranks, 1))
	step := d.engine.Model.StepSeconds(int(math.Ceil(n/ranks)), 0) + 1500*n/ranks*d.engine.Model.E
	step *= cmp.Or(d.slower, 1)
	rate := n * (1 - share) / (answer * float64(answers) * step)
	times := min(share*ranks/(rate*prompt*d.engine.Model.D*cmp.Or(d.slower, d.longer, 1)), 4)
	switch kind := r.IntN(4); kind {
	case 0:
		d.load = bursts(rate, lengths)
		is("bursts at %.1f", n)
	case 1:
		d.load = steady(rate, lengths)
		is("steady at %.1f", n)
	case 2:
		d.load = replay(lengths, min(rate/most, 1))
		is("replayed at %.1f", n)
	case 3:
		d.users, d.load = max(int(n*1.5), 2), steady(1, lengths)
		is("%d users", d.users)
	}
	d.load = longer(d.load, times, answers)
	if r.IntN(6) == 0 {
		long := 8_000 + r.IntN(12_000)
		d.load = sometimes(d.load, 30, long)
		is("some prompts of %d", long)
	}
}

// steady has arrivals that know nothing of each other.
func steady(rate float64, lengths func() []loadgen.Arrival) load {
	return func(r *rand.Rand) source {
		var at time.Duration
		return func() arrival {
			at += seconds(r.ExpFloat64() / rate)
			a := lengths()[r.IntN(len(lengths()))]
			return arrival{at, max(a.PromptTokens, 1), a.OutputTokens}
		}
	}
}

// drawnTokens are learned from in all, changedAt of them before the change.
const (
	drawnTokens = 100e3
	changedAt   = 50e3
)

// grade lets the world of a number be learned, and holds the curve against what the
// engine does from the change on, at the load that the requests since then bring.
func (d *draft) grade(number uint64) sight {
	usual, factor := d.load, 1.0
	d.load = withPrompts(usual, &factor)
	look := promised(time.Second)
	if d.never > 0 {
		look.usage = func(request int) int { return min(request%d.never, 1) }
	}
	w := newWorld(d.setup, number, look)
	w.run(changedAt)
	before := slices.Clone(w.levels)
	if d.slower > 0 {
		w.slow(d.slower)
	}
	factor = cmp.Or(d.longer, 1)
	w.run(drawnTokens - changedAt)
	w.fold()
	load := w.levels
	if d.longer > 0 {
		load = slices.Clone(w.levels)
		for n := range load {
			load[n].prompts -= before[n].prompts
			load[n].tokens -= before[n].tokens
		}
	}
	t, rho, slower := longRun(d.setup, truthTokens/6), rhoOf(load), cmp.Or(d.slower, 1)
	truth := func(n int) float64 {
		if n > maxN {
			return math.NaN()
		}
		return t.tpsAt(n, rho*float64(n)) / slower
	}
	levels := slices.DeleteFunc(w.visited(), func(n int) bool { return math.IsNaN(truth(n)) }) // that the long run never had
	return see(levels, look.book.Curve(target), truth)
}

// longestDrawn is the longest prompt: every cache has room for it and an answer.
const longestDrawn = 20_000

// withPrompts multiplies the prompts of a load by what factor is when they are sent.
func withPrompts(l load, factor *float64) load {
	return func(r *rand.Rand) source {
		next := l(r)
		return func() arrival {
			a := next()
			a.prompt = min(max(int(float64(a.prompt)**factor), 1), longestDrawn)
			return a
		}
	}
}

// TestDrawnEngines grades curves of engines, wires and loads that a number draws. What a
// curve is off by, and what the bound promises too much, is about what was measured when
// it was written.
func TestDrawnEngines(t *testing.T) {
	if racetest.On {
		t.Skip("nothing here is concurrent: make numbers runs it")
	}
	type graded struct {
		number uint64
		name   string
		sight
	}
	list := make([]graded, *drawnFlag)
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() {
			d := draw(*drawnFrom + uint64(i))
			list[i] = graded{*drawnFrom + uint64(i), strings.Join(d.name, ", "), d.grade(*drawnFrom + uint64(i))}
		})
	}
	all.Wait()
	slices.SortFunc(list, func(a, b graded) int { return cmp.Compare(a.shown.median, b.shown.median) })
	var medians, p90s, above, ratios []float64
	var visited, exceeded float64
	for _, g := range list {
		t.Logf("%5.1f / %5.1f %% as shown, bound %+5.1f %% at worst, floors %.2f: %d: %s", g.shown.median, g.shown.p90, g.above, median(g.ratio), g.number, g.name)
		medians, p90s, above, ratios = append(medians, g.shown.median), append(p90s, g.shown.p90), append(above, g.above), append(ratios, g.ratio...)
		visited, exceeded = visited+float64(g.visited), exceeded+float64(g.exceeded)
	}
	gate := func(most float64) float64 { // of those that are drawn without flags
		if *drawnFlag != 24 || *drawnFrom != 0 {
			return 0
		}
		return most
	}
	line{what: fmt.Sprintf("%d drawn engines from %d on", len(list), *drawnFrom), figures: []figure{
		{name: "as shown, median %", got: median(medians), gate: gate(1.7)},
		{name: "p90 over levels", got: median(p90s), gate: gate(3.5)},
		{name: "p90 over engines", got: quantile(medians, 0.9), gate: gate(6.5)},
		{name: "worst engine", got: slices.Max(medians), gate: gate(8)},
		{name: "bound above the truth at worst %", got: slices.Max(above), gate: gate(3)},
		{name: "levels where it is above %", got: 100 * exceeded / visited, gate: gate(2)},
		{name: "largest n at a floor over the true one, 5 %", got: quantile(ratios, 0.05)},
		{name: "median", got: median(ratios)},
		{name: "95 %", got: quantile(ratios, 0.95)},
	}}.check(t)
}

package history

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// run advances a ring second by second, and calls each before every second.
func run(r *Ring, from time.Time, d time.Duration, each func(now time.Time)) time.Time {
	for end := from.Add(d); from.Before(end); from = from.Add(time.Second) {
		if each != nil {
			each(from)
		}
		r.Advance(from)
	}
	return from
}

func TestWindows(t *testing.T) {
	r := NewRing(noon)
	r.Configure([]string{"chat"}, nil)
	s := r.Route("chat")
	met := func(time.Time) { s.Add(Outcome{Result: Met, TPS: 40, TTFT: 0.2}) }
	shed := func(time.Time) { s.Add(Outcome{Result: Shed}) }
	now := run(r, noon, 10*time.Minute, met)
	incident := now
	now = run(r, now, 2*time.Minute, shed)

	attained := func(w Window, at time.Time) float64 { return r.Figures(at, s, w).Attainment() }
	if got := attained(Start, now); math.Abs(got-600.0/720) > 1e-9 {
		t.Errorf("since the start %.3f, want 600 of 720", got)
	}
	if got := attained(FiveMinutes, now); math.Abs(got-0.6) > 0.02 {
		t.Errorf("of five minutes %.3f, want 180 of 300, and a step", got)
	}
	if left := r.Figures(now, s, FiveMinutes).BudgetLeft(0.99); left > -30 {
		t.Errorf("%.1f of the budget are left", left)
	}
	// Five minutes and a step after the last refusal the window is green again. The
	// hour is not, and the start never is.
	now = run(r, now, 5*time.Minute+Step, met)
	if got := attained(FiveMinutes, now); got != 1 {
		t.Errorf("%s after the incident began the last five minutes are %.3f, want 1", now.Sub(incident), got)
	}
	if left := r.Figures(now, s, FiveMinutes).BudgetLeft(0.99); left != 1 {
		t.Errorf("%.3f of the budget are left, want 1", left)
	}
	if got := attained(Hour, now); got > 0.9 {
		t.Errorf("the hour forgot the incident: %.3f", got)
	}
	now = run(r, now, time.Hour, met)
	if got := attained(Hour, now); got != 1 {
		t.Errorf("the hour is %.3f, want 1", got)
	}
	if got := attained(SixHours, now); got == 1 {
		t.Error("six hours forgot the incident within two")
	}
	now = run(r, now, 6*time.Hour, met)
	if got := attained(SixHours, now); got != 1 {
		t.Errorf("six hours are %.3f, want 1", got)
	}
	all := r.Figures(now, s, Start)
	if got, want := all.Offered(), uint64(now.Sub(noon)/time.Second); got != want || all.Results[Shed] != 120 {
		t.Errorf("since the start %d and %d shed, want %d and 120", got, all.Results[Shed], want)
	}
	if got := all.TPS.Quantile(0.5); math.Abs(got/40-1) > 0.01 || all.TPS.Count() != all.Offered()-120 {
		t.Errorf("median %.2f tokens/s of %d", got, all.TPS.Count())
	}
	for w, want := range map[Window]time.Duration{FiveMinutes: 5 * time.Minute, Hour: time.Hour, SixHours: 6 * time.Hour, Start: now.Sub(noon)} {
		if got := r.Reach(now, w); got != want {
			t.Errorf("%s reaches back %s, want %s", w, got, want)
		}
	}
}

// Counts of every window are those that were added in it, to a step.
func TestWindowsLoseNothing(t *testing.T) {
	r := NewRing(noon)
	r.Configure([]string{"chat"}, nil)
	s := r.Route("chat")
	now := run(r, noon, 7*time.Hour+time.Second*7, func(time.Time) { s.Add(Outcome{Result: Met}) })
	for w, want := range map[Window]float64{FiveMinutes: 300, Hour: 3600, SixHours: 6 * 3600} {
		got := float64(r.Figures(now, s, w).Offered())
		if got < want || got > want+70 { // the step, or minute, that runs comes on top
			t.Errorf("%s: %.0f, want %.0f to %.0f", w, got, want, want+70)
		}
	}
	if rates := r.Recent(now, s); math.Abs(rates.Offered()-1) > 0.05 {
		t.Errorf("%.2f per second of late, want 1", rates.Offered())
	}
	for w := FiveMinutes; w < Start; w++ {
		for i, p := range r.Line(now, s, GridOf(now, w)) {
			if math.Abs(p.Offered()-1) > 0.15 && i > 0 && i < GridOf(now, w).Steps-1 {
				t.Errorf("%s: step %d has %.2f per second, want 1", w, i, p.Offered())
			}
		}
	}
}

// What the gateway did not see is unknown, not zero; a clock that is set back
// loses nothing, and one that was far ahead comes back.
func TestClocks(t *testing.T) {
	r := NewRing(noon)
	r.Configure([]string{"chat"}, nil)
	s := r.Route("chat")
	now := run(r, noon, time.Minute, func(time.Time) { s.Add(Outcome{Result: Met}) })
	now = run(r, now.Add(10*time.Minute), time.Minute, func(time.Time) { s.Add(Outcome{Result: Met}) })
	unknown, known := 0, 0
	for _, p := range r.Line(now, s, GridOf(now, Hour)) {
		if math.IsNaN(p.Offered()) {
			unknown++
		} else {
			known++
		}
	}
	if known < 4 || known > 7 || unknown < 110 {
		t.Errorf("%d steps are known and %d are not, want about five", known, unknown)
	}
	before := r.Figures(now, s, Hour).Offered()
	r.Advance(now.Add(-time.Minute))
	s.Add(Outcome{Result: Met})
	if got := r.Figures(now, s, Hour).Offered(); got != before+1 {
		t.Errorf("after a step back %d, want %d", got, before+1)
	}
	r.Advance(now.Add(1000 * time.Hour))
	r.Advance(now)
	s.Add(Outcome{Result: Met})
	if got := r.Figures(now, s, Hour).Offered(); got < 1 {
		t.Error("after a clock that was far ahead nothing is counted")
	}
}

// A hundred backends and thirty routes with as much in every step as can be are
// within 64 MiB.
func TestMemoryIsBounded(t *testing.T) {
	if racetest.On {
		t.Skip("six hours of 130 names take a minute beside the race detector, which also counts memory of its own; make numbers measures it")
	}
	var names [2][]string
	for i := range 130 {
		names[min(i/30, 1)] = append(names[min(i/30, 1)], fmt.Sprint("n", i))
	}
	before := heap()
	r := NewRing(noon)
	r.Configure(names[0], names[1])
	fill := func(s *Series) {
		for b := range packedMost {
			s.open.tps[b*7+3] = uint32(b + 1)
			s.open.ttft[b*5+1] = uint32(b + 1)
		}
	}
	for at := noon; at.Before(noon.Add(7 * time.Hour)); at = at.Add(Step) {
		for _, of := range []map[string]*Series{r.routes, r.backends} {
			for _, s := range of {
				fill(s)
			}
		}
		r.Advance(at)
	}
	used := heap() - before
	t.Logf("%.1f MiB", float64(used)/(1<<20))
	if used > 64<<20 {
		t.Errorf("%.1f MiB, want 64 at most", float64(used)/(1<<20))
	}
	r.Configure(nil, nil)
	if len(r.routes)+len(r.backends) > 0 {
		t.Error("what is gone is remembered")
	}
	runtime.KeepAlive(r)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestNamesAreBounded(t *testing.T) {
	var names []string
	for i := range 3 * MaxNames {
		names = append(names, fmt.Sprint(i))
	}
	r := NewRing(noon)
	r.Configure(names, nil)
	if len(r.routes) != MaxNames {
		t.Errorf("%d names are remembered, want %d", len(r.routes), MaxNames)
	}
	r.Route("there is none").Add(Outcome{}) // of what is not remembered nothing is
}

// Budget: 150 ns and no allocation; it is paid once for each request and series.
func BenchmarkAdd(b *testing.B) {
	r := NewRing(noon)
	r.Configure([]string{"chat"}, nil)
	s := r.Route("chat")
	b.ReportAllocs()
	for b.Loop() {
		s.Add(Outcome{Result: Met, TPS: 41, TTFT: 0.3, Duration: 4, Tokens: 160})
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	r := NewRing(noon)
	r.Configure([]string{"chat"}, nil)
	s := r.Route("chat")
	if n := testing.AllocsPerRun(100, func() { s.Add(Outcome{Result: Shed, ShedReason: Timeout, TPS: 41, TTFT: 0.3}) }); n > 0 {
		t.Errorf("%.0f allocations a request", n)
	}
}

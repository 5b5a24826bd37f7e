package history

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// pair is two replicas of which one hears the other.
func pair() (own, other *Ring, now time.Time) {
	own, other = NewRing(noon), NewRing(noon)
	for _, r := range []*Ring{own, other} {
		r.Configure([]string{"chat"}, []string{"a"})
	}
	return own, other, noon
}

// What the others counted stands in every window but start, with the same quantiles
// as if one gateway had counted it all; once the others are not heard of any more,
// the figures are the own ones again.
func TestFiguresOfAllReplicas(t *testing.T) {
	own, other, now := pair()
	both := NewRing(noon)
	both.Configure([]string{"chat"}, []string{"a"})
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 * 60 {
		for _, x := range []struct {
			ring  *Ring
			speed float64
		}{{own, 60}, {other, 35}} {
			o := Outcome{Result: Met, TPS: x.speed * math.Exp(0.2*random.NormFloat64()), TTFT: 0.2 * math.Exp(random.NormFloat64()), Tokens: 50}
			if x.ring == other && random.Float64() < 0.1 {
				o = Outcome{Result: Shed}
			}
			x.ring.Route("chat").Add(o)
			both.Route("chat").Add(o)
		}
		before := other.Ended()
		now = now.Add(time.Second)
		for _, r := range []*Ring{own, other, both} {
			r.Advance(now)
		}
		if at := other.Ended(); at != before && !own.Merge(other.Report(at)) {
			t.Fatal("a report is refused")
		}
		own.Heard(now, 2)
	}
	for _, w := range []Window{FiveMinutes, Hour, SixHours} {
		got, want := own.Figures(now, own.Route("chat"), w), both.Figures(now, both.Route("chat"), w)
		if off := math.Abs(float64(got.Offered())/float64(want.Offered()) - 1); off > 0.04 { // the step that runs there has not come
			t.Errorf("%s: %d offered, want %d", w, got.Offered(), want.Offered())
		}
		for _, q := range []float64{0.1, 0.5, 0.9} {
			if off := got.TPS.Quantile(q)/want.TPS.Quantile(q) - 1; math.Abs(off) > 0.06 {
				t.Errorf("%s: TPS p%.0f is %.1f, want %.1f", w, 100*q, got.TPS.Quantile(q), want.TPS.Quantile(q))
			}
			if off := got.TTFT.Quantile(q)/want.TTFT.Quantile(q) - 1; math.Abs(off) > 0.12 {
				t.Errorf("%s: TTFT p%.0f is %.3f, want %.3f", w, 100*q, got.TTFT.Quantile(q), want.TTFT.Quantile(q))
			}
		}
	}
	if f := own.Figures(now, own.Route("chat"), Start); f.Offered() != 1200 {
		t.Errorf("since the start %d, want the 1200 of this gateway", f.Offered())
	}
	if r := own.Recent(now, own.Route("chat")); math.Abs(r.Offered()-2) > 0.1 {
		t.Errorf("%.2f/s of late, want 2", r.Offered())
	}
	line := own.Line(now, own.Route("chat"), GridOf(now, FiveMinutes))
	if p := line[len(line)-5]; math.Abs(p.Offered()-2) > 0.2 {
		t.Errorf("the line has %.2f/s, want 2", p.Offered())
	}
	if n, all := own.Replicas(now); n != 2 || !all {
		t.Errorf("of %d replicas, all %v", n, all)
	}
	later := now.Add(heardFor + time.Second)
	if n, all := own.Replicas(later); n != 1 || all {
		t.Errorf("not heard of for %v: of %d replicas, all %v", heardFor, n, all)
	}
	if got, want := own.Figures(later, own.Route("chat"), Hour).Offered(), uint64(1200); got != want {
		t.Errorf("alone it says %d, want its own %d", got, want)
	}
}

// What a moment was like stands on the line, too: what all replicas see alike is said
// once, by this one where it ran, and by the others for the time before; what waits in
// the line of each adds up.
func TestGaugesOfAllReplicas(t *testing.T) {
	other, now := NewRing(noon), noon
	other.Configure([]string{"chat"}, []string{"a"})
	third, own := NewRing(noon), NewRing(noon)
	third.Configure([]string{"chat"}, []string{"a"})
	began := noon.Add(4 * time.Minute)
	for range 8 * 60 {
		if now.Equal(began) { // who starts hears an hour of what was
			own = NewRing(now)
			own.Configure([]string{"chat"}, []string{"a"})
			for at := stepOf(noon); at < stepOf(now); at++ {
				for _, r := range []*Ring{other, third} {
					if !own.Merge(r.Report(at)) {
						t.Fatal("a report of before is refused")
					}
				}
			}
		}
		for ring, waiting := range map[*Ring]int{own: 1, other: 2, third: 3} {
			ring.Sample(Snapshot{
				Routes:   []Route{{Name: "chat", Free: 7, Waiting: waiting}},
				Backends: []Backend{{Name: "a", N: 20, M: 24}},
			}, func(string) float64 { return 0.9 })
		}
		before := other.Ended()
		now = now.Add(time.Second)
		for _, r := range []*Ring{own, other, third} {
			r.Advance(now)
		}
		if at := other.Ended(); at != before {
			for _, r := range []*Ring{other, third} {
				if now.After(began) && !own.Merge(r.Report(at)) {
					t.Fatal("a report is refused")
				}
			}
		}
		own.Heard(now, 3)
	}
	for _, w := range []Window{FiveMinutes, Hour, SixHours} {
		g := GridOf(now, w)
		for i, p := range own.Line(now, own.Route("chat"), g) {
			at := g.From.Add(time.Duration(i) * g.Step)
			waiting := 6.0
			switch {
			case at.Before(noon) || at.Add(g.Step).After(now.Add(-Step)):
				continue // nobody ran, or the step that runs has not come
			case at.Before(began) && at.Add(g.Step).After(began):
				continue // a part with this one, a part without
			case at.Before(began):
				waiting = 5
			}
			if p.Gauges[GaugeFree] != 7 || math.Abs(p.Gauges[GaugeWaiting]-waiting) > 0.01 {
				t.Errorf("%s, %v: %.2f free, %.2f wait, want 7 and %.0f", w, at, p.Gauges[GaugeFree], p.Gauges[GaugeWaiting], waiting)
			}
		}
		for i, p := range own.Line(now, own.Backend("a"), g) {
			if at := g.From.Add(time.Duration(i) * g.Step); !at.Before(noon) && at.Add(g.Step).Before(now.Add(-Step)) {
				if p.Gauges[GaugeN] != 20 || p.Gauges[GaugeM] != 24 || math.Abs(p.Gauges[GaugeSpeed]-0.9) > 0.001 || p.Gauges[GaugeUp] != 1 {
					t.Errorf("%s, %v: n, m, up, speed are %.3g, want 20 24 1 0.9", w, at, p.Gauges)
				}
			}
		}
	}
}

// What no replica can have counted is refused, and names that are not configured
// take no room.
func TestReportsThatCannotBe(t *testing.T) {
	own, _, _ := pair()
	at := own.Ended()
	step := ReportStep{Results: [NumResults]uint32{Met: 1}}
	long := step
	long.TPS = make([]uint32, packedMost+1)
	negative := step
	negative.Tokens = -1
	huge, many := step, step
	value := float32(1e12)
	huge.Gauges, many.Gauges = []*float32{&value}, make([]*float32, numGauges+1)
	for name, rep := range map[string]Report{
		"of tomorrow":  {At: at + 8640},
		"of yesterday": {At: at - 8640},
		"of never":     {At: 0},
		"too long":     {At: at, Routes: map[string]ReportStep{"chat": long}},
		"negative":     {At: at, Backends: map[string]ReportStep{"a": negative}},
		"huge":         {At: at, Backends: map[string]ReportStep{"a": huge}},
		"too many":     {At: at, Backends: map[string]ReportStep{"a": many}},
	} {
		if own.Merge(&rep) {
			t.Errorf("a report %s is taken", name)
		}
	}
	odd := step
	odd.TPS = []uint32{math.MaxUint32, 0, 7}
	if !own.Merge(&Report{At: at, Routes: map[string]ReportStep{"chat": odd, "nobody": step}}) {
		t.Error("a report with a name that is not configured is refused")
	}
	if len(own.routes) != 1 {
		t.Errorf("%d routes are remembered", len(own.routes))
	}
}

// Two gateways notice the same, and a third something of its own: it stands once
// each, with who noticed it, and ends when they say so.
func TestMarksOfAllReplicas(t *testing.T) {
	restarted := NewWatch(NewRing(noon))
	started := Mark{Time: noon, Kind: "start", Text: "started"}
	restarted.lines.add(started) // restored from the disk
	started.ID, started.Replica = 1, "host-b"
	restarted.Others(noon.Add(time.Minute), map[string][]Mark{"the process before": {started}})
	if marks, _ := restarted.Marks(0, 10); len(marks) != 1 {
		t.Errorf("the start of the process before stands %d times", len(marks))
	}

	w := NewWatch(NewRing(noon))
	w.lines.add(Mark{Time: noon, Kind: "backend_down", Of: OfBackend, Name: "a", Text: "own"})
	foreign := map[string][]Mark{
		"id-b": {
			{ID: 7, Time: noon.Add(4 * time.Second), Kind: "backend_down", Of: OfBackend, Name: "a", Text: "the same", Replica: "host-b"},
			{ID: 8, Time: noon.Add(time.Minute), Kind: "shedding", Of: OfRoute, Name: "chat", Text: "another", Replica: "host-b"},
			{ID: 9, Time: noon, Kind: "invented", Text: "x", Replica: "host-b"},
			{ID: 10, Time: noon, Kind: "reload", Text: strings.Repeat("x", maxMarkText+1), Replica: "host-b"},
			{ID: 11, Time: noon.Add(48 * time.Hour), Kind: "reload", Text: "x", Replica: "host-b"},
		},
	}
	for range 3 {
		w.Others(noon.Add(2*time.Minute), foreign)
	}
	marks, version := w.Marks(0, 10)
	if len(marks) != 2 || marks[0].Text != "another" || marks[0].Replica != "host-b" || marks[1].Text != "own" || marks[1].Replica != "" {
		t.Fatalf("%+v", marks)
	}
	foreign["id-b"][0].Ended = noon.Add(3 * time.Minute)
	foreign["id-b"][1].Ended, foreign["id-b"][1].Text = noon.Add(3*time.Minute), "over"
	w.Others(noon.Add(4*time.Minute), foreign)
	marks, _ = w.Marks(version, 10)
	if len(marks) != 1 || marks[0].Text != "over" || !marks[0].Ended.Equal(noon.Add(3*time.Minute)) {
		t.Errorf("what has changed: %+v; the own mark lasts", marks)
	}
	if reported := w.Reported(); len(reported) != 1 || reported[0].Text != "own" {
		t.Errorf("reported to the others: %+v", reported)
	}
}

package router

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// drawWorld is a router over one to three backends in any state that requests
// bring about: curves that were learned, guessed or given, streams that run fast or
// slowly, prompts that wait, other replicas, batch, a line.
func drawWorld(t *rapid.T) *bench {
	pick := func(label string, xs ...float64) float64 { return rapid.SampledFrom(xs).Draw(t, label) }
	chance := func(label string, one int) bool { return rapid.IntRange(1, one).Draw(t, label) == 1 }
	names := []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(t, "backends")]
	apart := chance("apart", 4)
	b := newBench(nil, nil, Route{Name: "none", Targets: []RouteTarget{}})
	b.topo.Routes = nil
	for i := range rapid.IntRange(1, 3).Draw(t, "routes") {
		rt := Route{
			Name: fmt.Sprint("r", i), Class: rapid.SampledFrom([]Class{Interactive, Interactive, Batch}).Draw(t, "class"),
			SLO:     SLO{MinTPS: pick("floor", 0, 15, 20, 30, 30, 45), Grace: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "grace")},
			Reserve: rapid.IntRange(0, 3).Draw(t, "reserve"), Prefer: rapid.SampledFrom([]Prefer{Headroom, Order, Cheapest, Pack}).Draw(t, "prefer"),
		}
		if chance("guaranteed", 3) {
			rt.SLO.Guarantee = Guarantee{Places: rapid.IntRange(0, 12).Draw(t, "kept"), Share: pick("share", 0.2, 0.5)}
		}
		if chance("in time", 3) {
			rt.SLO.MaxTTFT = 2 * time.Second
		}
		for j, name := range names {
			if j == 0 || chance("target", 2) {
				model := rapid.SampledFrom([]string{"m", "m", "n"}).Draw(t, "model")
				rt.Targets = append(rt.Targets, RouteTarget{Target: Target{Backend: name, Model: model, Separate: apart}})
			}
		}
		b.topo.Routes = append(b.topo.Routes, rt)
	}
	for _, name := range names {
		limit := 0
		if chance("capped", 4) {
			limit = rapid.IntRange(1, 20).Draw(t, "cap")
		}
		b.topo.Backends = append(b.topo.Backends, Backend{Name: name, MaxConcurrency: limit})
	}
	b.configure()
	for _, rt := range b.topo.Routes {
		for _, target := range rt.Targets {
			if chance("unknown", 4) {
				continue
			}
			c := carrying(rapid.IntRange(2, 40).Draw(t, "carries"), 30, 60)
			c.visited, c.answer = rapid.SampledFrom([]int{0, 0, 3, 10, 30}).Draw(t, "visited"), pick("answer", 0, 40, 300)
			c.d, c.others = pick("d", 0, 1e-5, 1e-4), chance("guessed", 6)
			if chance("slots", 4) {
				c.first = profiles.TTFT{PerToken: 1e-4, Uncached: 1, Slots: rapid.IntRange(1, 20).Draw(t, "slots"), Turnover: 2}
			}
			b.mu.Lock()
			b.Router.learn(target.Target, c)
			b.mu.Unlock()
		}
	}
	b.mu.Lock()
	b.holdPlaces()
	b.mu.Unlock()
	b.live(t, names)
	return b
}

// live lets some requests come, run and end, and the rest of the world change.
func (b *bench) live(t *rapid.T, names []string) {
	var leases []*Lease
	for range rapid.IntRange(0, 8).Draw(t, "events") {
		switch rapid.IntRange(0, 7).Draw(t, "event") {
		default:
			route := rapid.SampledFrom(b.topo.Routes).Draw(t, "route").Name
			tokens := rapid.SampledFrom([]int{0, 0, 300, 5000}).Draw(t, "prompt")
			leases = append(leases, b.fill(route, rapid.IntRange(1, 12).Draw(t, "users"), prompt(tokens), noQueue)...)
		case 2, 3:
			b.run(leases, rapid.SampledFrom([]float64{10, 29, 36, 50}).Draw(t, "tps"), rapid.SampledFrom([]time.Duration{200, 1500, 6000}).Draw(t, "for")*time.Millisecond)
		case 4:
			for range rapid.IntRange(0, len(leases)).Draw(t, "ended") {
				leases[0].Done(b.now, 100)
				leases = leases[1:]
			}
		case 7:
			for _, l := range leases[:min(len(leases), manyRefusals)] {
				l.Refused(b.now, true)
			}
			b.sleep(rapid.SampledFrom([]time.Duration{0, restLeast}).Draw(t, "rest"))
		case 5:
			b.health(rapid.SampledFrom(names).Draw(t, "of"), rapid.SampledFrom([]Health{Up, Up, Up, Down, Probing, Draining}).Draw(t, "health"))
		case 6:
			far := Load{Decoding: rapid.IntRange(0, 6).Draw(t, "far"), Floor: rapid.SampledFrom([]float64{0, 20, 30}).Draw(t, "far floor")}
			if rapid.Bool().Draw(t, "told") {
				far.Leads = Leads{Streams: far.Decoding, Least: rapid.SampledFrom([]time.Duration{0, 300, 2000}).Draw(t, "far lead") * time.Millisecond}
				far.Level = Level{Tokens: 600, Seconds: rapid.SampledFrom([]float64{15, 20, 30}).Draw(t, "far seconds"), AtN: 80, Steps: 100, Time: 10}
			}
			b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{names[0]: far}, Lost: rapid.IntRange(0, 3).Draw(t, "lost") == 0})
		}
	}
}

// worlds sets how many rapid draws in the test, where its flag does not say so.
func worlds(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	if was != f.DefValue {
		return
	}
	must.Do(t, f.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { _ = f.Value.Set(was) })
}

// hear lets the others tell twice what they told last: then nobody thinks that they may
// have placed as many as this replica.
func (b *bench) hear() {
	for range 2 {
		if b.peers.load.Replicas > 1 && !b.peers.load.Lost {
			b.Update(b.now, b.peers.load)
		}
	}
}

// What is called free is what Place takes, one request after the other; a preview
// says what Place then does, and leaves everything as it was.
func TestFreePlaceAndPreviewAgree(t *testing.T) {
	outcomes := map[Outcome]int{}
	total := 0
	worlds(t, racetest.Some(100))
	rapid.Check(t, func(t *rapid.T) {
		b := drawWorld(t)
		i := rapid.IntRange(0, len(b.topo.Routes)-1).Draw(t, "asked")
		name := b.topo.Routes[i].Name
		const plenty = 100
		b.hear()
		free := b.Routes(b.now)[i]
		for count := 0; count < plenty; count++ {
			s := b.Routes(b.now)[i]
			before := ""
			if count < 3 {
				before = dump(b.Router)
			}
			req := Request{Route: name, Arrived: b.now, Stream: true}
			seen, _ := b.Preview(b.now, req)
			if only := s.Targets[0]; len(s.Targets) == 1 && (only.Admits != s.Free || only.Unlimited != s.Unlimited) {
				t.Fatalf("%+v are free, the only target admits %+v", s, only)
			}
			if before != "" {
				if after := dump(b.Router); after != before {
					t.Fatalf("a preview changed\n%s", difference(before, after))
				}
			}
			d := b.Place(b.now, req)
			placed := d.Lease != nil && seen.Outcome == OutcomePlaced
			outcomes[seen.Outcome]++
			switch {
			case placed != (s.Free > 0 || s.Unlimited):
				t.Fatalf("%d are free after %d more, unlimited %v: %v, %+v, %+v", s.Free, count, s.Unlimited, seen.Outcome, d.Refusal, seen.Candidates)
			case (d.Lease != nil) != (seen.Outcome == OutcomePlaced || seen.Outcome == OutcomeProbe), d.Refusal != nil && d.Refusal.Reason != seen.Shed:
				t.Fatalf("previewed %v (%v), got %+v", seen.Outcome, seen.Shed, d)
			case !free.Unlimited && placed && count >= free.Free, !free.Unlimited && !placed && count != free.Free:
				t.Fatalf("%d were free, of which %d were placed, then %v: %+v", free.Free, count, seen.Outcome, seen.Candidates)
			}
			if !placed {
				break
			}
			b.hear()
			total++
			feasible := 0
			for _, c := range seen.Candidates {
				if c.Feasible {
					feasible++
				}
			}
			if feasible == 1 && seen.Chosen != d.Lease.Target() {
				t.Fatalf("previewed %v, placed on %v", seen.Chosen, d.Lease.Target())
			}
		}
	})
	t.Logf("%d placed; %v", total, outcomes)
}

// difference is the first lines in which two dumps differ.
func difference(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return strings.Join(slices.Concat(a[max(i-5, 0):i+1], []string{"became"}, b[i:min(i+2, len(b))]), "\n")
		}
	}
	return fmt.Sprintf("%d lines became %d", len(a), len(b))
}

package router

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// loaded is a bench with that many backends, each with a learned curve and
// running streams that hold a floor.
func loaded(b *testing.B, backends int) *bench {
	var names []string
	for i := range backends {
		names = append(names, fmt.Sprint("gpu-", i))
	}
	w := newBench(b, names, Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}, OnInfeasible: queue(2 * time.Second)})
	var curves []*profiles.Curve
	for i := range 5 {
		curves = append(curves, learned(b, 64+i))
	}
	for i, name := range names {
		w.learn(name, curves[i%len(curves)])
		l := w.force(Request{Route: "chat", Stream: true, PromptTokens: 300}, Target{Backend: name, Model: "m"}).Lease
		if i%2 == 0 {
			l.FirstToken(w.now)
		}
	}
	return w
}

// learned is the curve of an engine that carries so many streams at 30
// tokens/s, learned from streams at several levels and with prompts.
func learned(b *testing.B, streams int) *profiles.Curve {
	engine := carrying(streams, 30, 60)
	book, occupancy, now := profiles.NewBook(profiles.Options{}), profiles.NewOccupancy(start), start
	t := Target{Backend: "x", Model: "m"}
	for _, n := range []int{1, 4, 16, 48, 64} {
		occupancy.Set(now, n)
		all := make([]*profiles.Stream, n)
		for step := range 2000 {
			prompt := 0
			if i := step / 5 % n; step%5 == 0 { // one after the other begins anew
				if s := all[i]; s != nil {
					s.Usage(profiles.Usage{PromptTokens: 500, CompletionTokens: 5 * n})
					s.Close(now, true)
				}
				prompt = 100 + 900*(step/250%2) // an even load would not tell what a prompt costs
				all[i] = book.Open(t, profiles.Open{Sent: now, Occupancy: occupancy, PromptTokens: prompt})
			}
			now = now.Add(seconds(1/engine.TPS(n) + 1.5e-5*float64(prompt)))
			for _, s := range all {
				if s != nil {
					s.Read(now, 1)
				}
			}
		}
		book.Fold(now)
	}
	book.Fold(now.Add(time.Minute))
	c := book.Curve(t)
	if !c.Known() || c.SecondsPerPromptToken() <= 0 || c.Low(40, 0) < 30 {
		b.Fatalf("nothing to measure: known %v, d = %g, low(40) = %.1f", c.Known(), c.SecondsPerPromptToken(), c.Low(40, 0))
	}
	return c
}

// measurePlace measures a decision about req and the end of what it begins.
func measurePlace(b *testing.B, w *bench, req Request) {
	var lease Lease
	req.Into = &lease
	b.ReportAllocs()
	used := cpuTime()
	for b.Loop() {
		lease = Lease{}
		w.Place(w.now, req)
		lease.Done(w.now, 100)
	}
	b.ReportMetric(float64(cpuTime()-used)/float64(b.N), "cpu-ns/op")
}

// Budget: 1 µs over 16 targets, 10 µs over 256, for the decision and its end
// together; no allocation.
func BenchmarkPlace(b *testing.B) {
	for _, backends := range []int{1, 16, 256, 1024} {
		b.Run(fmt.Sprint(backends), func(b *testing.B) {
			w := loaded(b, backends)
			measurePlace(b, w, Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now})
		})
	}
}

// BenchmarkPlaceWarm is a decision and its end where every target has a part of the
// prompt in its cache. Budget: 25 µs over 256 targets, and it grows as they do.
func BenchmarkPlaceWarm(b *testing.B) {
	for _, backends := range []int{256, 1024} {
		b.Run(fmt.Sprint(backends), func(b *testing.B) {
			w := loaded(b, backends)
			req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now}
			for i := range w.topo.Routes[0].Targets {
				req.Warm = append(req.Warm, Warmth{Target: w.topo.Routes[0].Targets[i].Target, Likely: 100 + i%100, Sure: 50})
			}
			measurePlace(b, w, req)
		})
	}
}

// BenchmarkPlaceBusy is a decision and its end over 256 targets that have 10,000
// streams running, beside a line of 1,000 that none of them can serve. Budget 5 µs
// on a quiet machine.
func BenchmarkPlaceBusy(b *testing.B) {
	var names []string
	for i := range 256 {
		names = append(names, fmt.Sprint("gpu-", i))
	}
	w := newBench(b, names,
		Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}, OnInfeasible: queue(2 * time.Second)},
		Route{Name: "dear", SLO: SLO{MinTPS: 59}, OnInfeasible: queue(24 * time.Hour)})
	for i, name := range names {
		w.learn(name, learnedOnce(b, i%5))
	}
	running, waiting := 0, 0
	for ; running < 10_000; running++ {
		w.force(Request{Route: "chat", Stream: true, PromptTokens: 300}, Target{Backend: names[running%256], Model: "m"}).Lease.FirstToken(w.now)
	}
	for ; waiting < 1000; waiting++ {
		if d := w.Place(w.now, Request{Route: "dear", Stream: true, PromptTokens: 300, Arrived: w.now, Waiter: new(int)}); d.Ticket == nil {
			b.Fatalf("number %d does not wait: %+v", waiting, d)
		}
	}
	req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now}
	d := w.Place(w.now, req)
	if d.Lease == nil {
		b.Fatalf("there is no place: %+v", d)
	}
	d.Lease.Done(w.now, 100)
	measurePlace(b, w, req)
}

// learnedOnce is one of five curves.
func learnedOnce(b *testing.B, i int) *profiles.Curve {
	for len(fiveCurves) <= i {
		fiveCurves = append(fiveCurves, learned(b, 64+len(fiveCurves)))
	}
	return fiveCurves[i]
}

var fiveCurves []*profiles.Curve

// cpuTime is what this process has used so far: the clock on the wall also
// counts what others take of a machine that is shared.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What is admitted at once costs no allocation.
func TestPlaceAllocatesNothing(t *testing.T) {
	if racetest.On {
		t.Skip("the race detector allocates")
	}
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(38, 30, 60))
	var lease Lease
	req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: b.now, Into: &lease}
	for range 2 * keptRecords { // fills the ring, too
		b.sleep(10 * time.Millisecond)
		lease = Lease{}
		b.Place(b.now, req)
		lease.Done(b.now, 100)
	}
	if got := testing.AllocsPerRun(1000, func() {
		b.sleep(10 * time.Millisecond)
		lease = Lease{}
		b.Place(b.now, req)
		lease.FirstToken(b.now)
		lease.Done(b.now, 100)
	}); got != 0 {
		t.Errorf("%v allocations for one request, want none", got)
	}
	// The memory of a lease is used once: the next request gets its own.
	other := b.Place(b.now, req)
	again := b.Place(b.now, req)
	if other.Lease == &lease || again.Lease == &lease || other.Lease == again.Lease {
		t.Error("two requests hold one lease")
	}
}

// Budget: under 10 µs over 16 targets: overload is when most are refused.
func BenchmarkRefuse(b *testing.B) {
	for _, backends := range []int{16, 1024} {
		b.Run(fmt.Sprint(backends), func(b *testing.B) {
			w := loaded(b, backends)
			req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now, NoQueue: true}
			for w.Place(w.now, req).Lease != nil {
			}
			b.ReportAllocs()
			used := cpuTime()
			for b.Loop() {
				w.sleep(time.Millisecond)
				req.Arrived = w.now
				w.Place(w.now, req)
			}
			b.ReportMetric(float64(cpuTime()-used)/float64(b.N), "cpu-ns/op")
		})
	}
}

// Budget: 3 ms for a route of 1,024 targets that runs about half of what it may. It is
// asked each second, under the lock.
func BenchmarkRoutes(b *testing.B) {
	for _, backends := range []int{16, 1024} {
		b.Run(fmt.Sprint(backends), func(b *testing.B) {
			w := loaded(b, backends)
			for i := range 20 * backends {
				w.force(Request{Route: "chat", Stream: true, PromptTokens: 300}, Target{Backend: fmt.Sprint("gpu-", i%backends), Model: "m"})
			}
			b.ReportAllocs()
			used := cpuTime()
			for b.Loop() {
				w.Routes(w.now)
			}
			b.ReportMetric(float64(cpuTime()-used)/float64(b.N), "cpu-ns/op")
		})
	}
}

// Budget: under 10 µs over 16 targets, as where nobody was told to come back: behind
// nearly as many tenants with a promise as the book holds.
func BenchmarkRefuseBehindManyTenants(b *testing.B) {
	w := loaded(b, 16)
	req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now, NoQueue: true}
	for w.Place(w.now, req).Lease != nil {
	}
	p := &w.routes[0].promises
	for i := range mostPromises - 100 {
		p.make(w.now, promise{at: w.now.Add(time.Minute), since: w.now, tenant: fmt.Sprint(i)}, uint64(i+1))
	}
	b.ReportAllocs()
	used := cpuTime()
	for b.Loop() {
		if f := w.Place(w.now, req).Refusal; f == nil || p.full(w.now, "") {
			b.Fatal("it is placed, or the book is full")
		}
	}
	b.ReportMetric(float64(cpuTime()-used)/float64(b.N), "cpu-ns/op")
}

// Budget: under 20 ns, no allocation, no lock.
func BenchmarkProgress(b *testing.B) {
	w := loaded(b, 1)
	l := w.place("chat").Lease
	l.FirstToken(w.now)
	tokens := 0.0
	b.ReportAllocs()
	for b.Loop() {
		tokens++
		l.Progress(w.now, profiles.Count{Tokens: tokens})
	}
}

// Budget: under 10 µs for 256 streams, every 100 ms.
func BenchmarkScan(b *testing.B) {
	w := newBench(b, []string{"x"})
	for range 256 {
		l := w.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease
		l.FirstToken(w.now)
		l.Progress(w.now.Add(time.Second), profiles.Count{Tokens: 50})
	}
	x := w.backends[0].groups[0]
	b.ReportAllocs()
	for b.Loop() {
		x.look(w.now)
	}
}

// Budget: under 10 µs over 16 targets, with a thousand in line, whether they
// are one tenant's or each has its own: for the release, the grant and the next
// one who could not go. Joining the line is measured with it.
func BenchmarkReleaseWithALine(b *testing.B) {
	for _, tenants := range []int{1, 1000} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			w := loaded(b, 16)
			w.topo.Routes[0].OnInfeasible = queue(time.Hour)
			w.topo.Routes[0].SLO.MaxTTFT = 0
			w.configure()
			req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now}
			var leases []*Lease
			d := w.Place(w.now, req)
			for ; d.Lease != nil; d = w.Place(w.now, req) {
				leases = append(leases, d.Lease)
			}
			join := func(i int) {
				req.Tenant = fmt.Sprint(i % tenants)
				if w.Place(w.now, req).Ticket == nil {
					b.Fatal("nobody stands in line")
				}
			}
			for i := range usualMaxWaiting - 1 {
				join(i)
			}
			var spent time.Duration
			granted := 0
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				used := cpuTime()
				grants := leases[i%len(leases)].Done(w.now, 100)
				spent += cpuTime() - used
				granted += len(grants)
				if len(grants) == 0 {
					b.Fatal("nobody was let in")
				}
				leases[i%len(leases)] = grants[0].Decision.Lease
				join(i)
			}
			b.ReportMetric(float64(spent)/float64(b.N), "release-cpu-ns/op")
			b.ReportMetric(float64(granted)/float64(b.N), "grants/op")
		})
	}
}

// Budget: under 10 µs for 256 streams, a few times a second while requests are
// refused.
func BenchmarkForecast(b *testing.B) {
	w := newBench(b, []string{"x"})
	w.learn("x", learned(b, 64))
	for i := range 256 {
		l := w.force(Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}).Lease
		l.FirstToken(w.now)
		l.Progress(w.now.Add(time.Second), profiles.Count{Tokens: float64(2 * i)})
		w.routes[0].lengths.add(float64(100 + i))
	}
	x := w.backends[0].groups[0]
	b.ReportAllocs()
	used := cpuTime()
	for b.Loop() {
		x.predict(w.now, &x.forecast, &w.scratch.cohorts)
	}
	b.ReportMetric(float64(cpuTime()-used)/float64(b.N), "cpu-ns/op")
}

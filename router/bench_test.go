package router

import (
	"fmt"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// loaded is a bench with that many backends, each with a curve and running
// streams that hold a floor.
func loaded(b *testing.B, backends int) *bench {
	var names []string
	for i := range backends {
		names = append(names, fmt.Sprint("gpu-", i))
	}
	w := newBench(b, names, Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: 2 * time.Second}, OnInfeasible: queue(2 * time.Second)})
	for i, name := range names {
		w.learn(name, table(carrying(64+i%5, 30, 60)))
		l := w.Assign(w.now, Request{Route: "chat", Stream: true, PromptTokens: 300}, Target{Backend: name, Model: "m"}, "x").Lease
		if i%2 == 0 {
			l.FirstToken(w.now)
		}
	}
	return w
}

// tabled is a curve worked out beforehand: the cost of a real one's Low is not
// measured here.
type tabled struct {
	form
	low, tps [512]float64
}

func table(f form) *tabled {
	t := &tabled{form: f}
	for n := range t.low {
		t.low[n], t.tps[n] = f.Low(n, 0), f.TPS(n)
	}
	return t
}

func (t *tabled) Low(n int, extraP float64) float64 {
	return t.low[min(n, 511)] * (1 - 1e-4*extraP)
}
func (t *tabled) TPS(n int) float64 { return t.tps[min(n, 511)] }

// Budget: under 2 µs over 16 targets, the lease being the only allocation.
func BenchmarkPlace(b *testing.B) {
	for _, backends := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(backends), func(b *testing.B) {
			w := loaded(b, backends)
			req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now}
			b.ReportAllocs()
			for b.Loop() {
				d := w.Place(w.now, req)
				d.Lease.FirstToken(w.now)
				d.Lease.Done(w.now, 100)
			}
		})
	}
}

// Budget: under 10 µs over 16 targets: overload is when most are refused.
func BenchmarkRefuse(b *testing.B) {
	w := loaded(b, 16)
	req := Request{Route: "chat", Stream: true, PromptTokens: 300, Arrived: w.now, NoQueue: true}
	for w.Place(w.now, req).Lease != nil {
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Place(w.now, req)
	}
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
		l := w.Assign(w.now, Request{Route: "chat", Stream: true}, Target{Backend: "x", Model: "m"}, "x").Lease
		l.FirstToken(w.now)
		l.Progress(w.now.Add(time.Second), profiles.Count{Tokens: 50})
	}
	x := w.backends[0]
	b.ReportAllocs()
	for b.Loop() {
		x.scanned = time.Time{}
		x.scan(w.now)
	}
}

package profiles

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// TestMemoryOfATarget holds the heap of a book to 72 MiB for 1,000 targets with
// evidence in every bin, two open windows and curves up to n = 8192: while the
// store acknowledges every fold, and while it does not. A fifth of them stand
// for all.
func TestMemoryOfATarget(t *testing.T) {
	const targets, budget = 200, 72 << 20 / 1000 // bytes for each
	steps := map[int]float64{}
	for i := range NumBins {
		_, hi := BinBounds(i)
		steps[hi] = 1000
	}
	sums := sumsOf(Fit{A: 0.01, B: 0.002, C: 0.0005, D: 3e-5}, steps, func(n int) float64 { return float64(n) })
	all := map[Target]Sums{}
	for i := range targets {
		// Two models on a backend, as many prompts and windows as without.
		all[Target{Backend: fmt.Sprint("backend-", i/2), Model: fmt.Sprint("organisation/model-", i%2)}] = sums
	}
	before := heapInUse()
	book := NewBook(Options{})
	now := start
	fold := func(count int) (deltas []Delta) {
		for range count {
			now = now.Add(time.Second)
			for target := range all {
				p := book.profile(target)
				p.fold = sums
				for i := range int64(maxOpenWindows) {
					p.group.windowAt(windowOf(now.Sub(start)) + i).exposure(p)
				}
			}
			deltas = book.Fold(now)
		}
		return deltas
	}
	book.Apply(now, all, fold(1))
	acknowledged := (heapInUse() - before) / targets
	fold(maxUnacked + 2)
	out := (heapInUse() - before) / targets
	t.Logf("%d bytes, %d while the store is away", acknowledged, out)
	if c := book.Curve(Target{Backend: "backend-0", Model: "organisation/model-0"}); c.top != maxLevel || c.Low(maxLevel, 0) <= 0 {
		t.Fatalf("the curves are drawn up to %d, want %d", c.top, maxLevel)
	}
	if acknowledged > budget || out > budget {
		t.Errorf("a target takes %d bytes, and %d while the store is away; want at most %d", acknowledged, out, budget)
	}
	runtime.KeepAlive(book)
}

// heapInUse is what is reachable, in bytes.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC() // twice: what a finalizer or a pool kept goes with the second
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Thousands of streams wait: what one is made of, with two bins, stays below 1.25 KiB.
func TestAStreamThatWaitsIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Stream{}) + 2*unsafe.Sizeof(lived{}); size > 1280 {
		t.Errorf("%d bytes, at most 1280 are allowed", size)
	}
	b := newBench(t)
	s := b.open(Open{})
	steady(s, time.Second, 20*time.Millisecond, 200)
	if got := len(s.held.lives.list); got != 1 {
		t.Errorf("%d bins of a stream that was alone, want 1", got)
	}
}

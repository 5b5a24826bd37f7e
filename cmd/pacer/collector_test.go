package main

import (
	"runtime"
	"testing"
)

// A small heap is left alone, a large one may grow by 60 %, and what lies between
// grows to what is waited for.
func TestWhatTheCollectorWaitsFor(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		limit, live int64
		heap        int64 // at which it is collected
	}{
		{0, 0, 64 * mib},
		{0, 16 * mib, 64 * mib},
		{0, 50 * mib, 80 * mib},
		{0, 500 * mib, 800 * mib},
		{1024 * mib, 16 * mib, 64 * mib},
		{128 * mib, 8 * mib, 32 * mib},
		{8 * mib, 10 * mib, 16 * mib},
	} {
		quiet := &collector{quiet: quietFor(c.limit)}
		percent := int64(quiet.percentFor(c.live))
		if got := max(c.live*(100+percent)/100, minHeap*percent/100); got != c.heap {
			t.Errorf("limit %d MiB, %d MiB in use: collected at %d MiB, want %d", c.limit/mib, c.live/mib, got/mib, c.heap/mib)
		}
	}
}

func TestEachCollectionIsNoticed(t *testing.T) {
	seen := make(chan int64, 8)
	afterCollections(func() {
		select {
		case seen <- liveHeap():
		default: // of another test, later on
		}
	})
	for range 3 {
		runtime.GC()
		if live := <-seen; live <= 0 {
			t.Errorf("%d bytes in use", live)
		}
	}
}

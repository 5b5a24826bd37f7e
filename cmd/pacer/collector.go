package main

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// quietHeap is how large the heap may become before the collector runs at all,
	// in bytes. A gateway that is little used has a few MiB: collected whenever that
	// has doubled, the collector would take some 5 % of the CPU of each request.
	quietHeap = 64 << 20

	// quietShare is the part of the memory limit that quietHeap is at most.
	quietShare = 4

	// usualPercent is by how much the heap may grow above quietHeap. The runtime takes
	// 100 by itself: then of a stream that waits as much is garbage as is in use.
	usualPercent = 60

	// minHeap is the heap that the runtime collects at a percentage of 100, in bytes,
	// however little of it is in use.
	minHeap = 4 << 20
)

// collector has the garbage collector wait until the heap has quiet bytes.
type collector struct {
	quiet   int64
	percent int
}

// paceCollector has the collector wait for a heap that is worth it, below limit, the
// memory limit in bytes (0 = there is none), and says so. Where GOGC is set, that
// stays.
func paceCollector(log *slog.Logger, limit int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	c := &collector{quiet: quietFor(limit)}
	c.set(int(c.quiet * 100 / minHeap))
	afterCollections(func() { c.set(c.percentFor(liveHeap())) })
	log.Info("Go's garbage collector waits for a heap of that size, and then for 1.6 times of what is in use", "heap_bytes", c.quiet, "memory_limit_bytes", limit)
}

// quietFor is the heap that is waited for under a memory limit; 0 = there is none.
func quietFor(limit int64) int64 {
	if limit <= 0 {
		return quietHeap
	}
	return max(min(quietHeap, limit/quietShare), minHeap)
}

// afterCollections calls f behind the next collection, and behind each from there on.
func afterCollections(f func()) {
	mark := &struct{ _ *int }{} // with a pointer: others share their block, and are kept by it
	runtime.SetFinalizer(mark, func(any) {
		f()
		afterCollections(f)
	})
}

// percentFor is by how much a heap with live bytes in use may grow until it is
// collected, in percent.
func (c *collector) percentFor(live int64) int {
	most := int(c.quiet * 100 / minHeap)
	if live <= 0 {
		return most
	}
	return min(max(int(c.quiet*100/live)-100, usualPercent), most)
}

// set changes the percentage, where that is worth to stop the program for.
func (c *collector) set(percent int) {
	if d := percent - c.percent; c.percent > 0 && d*d*100 < c.percent*c.percent {
		return
	}
	c.percent = percent
	debug.SetGCPercent(percent)
}

// liveHeap is what the last collection found in use, in bytes.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(sample[0].Value.Uint64())
}

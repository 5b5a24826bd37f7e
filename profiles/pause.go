package profiles

import (
	"sync/atomic"
	"time"
)

const (
	// BeatEvery is how often Beat wants to be called.
	BeatEvery = 100 * time.Millisecond

	// pauseLeast is how long no beat means that this process stood still: a stop,
	// a machine that was suspended, or one that had no time for it.
	pauseLeast = 500 * time.Millisecond

	// pauseGap is how much of a stream's time has to lie in a pause to matter.
	pauseGap = pauseLeast / 2

	// pausesKept is how many pauses are remembered: streams that were silent
	// meanwhile read again within moments of each.
	pausesKept = 8

	// piledGap is how long a read has to wait to show that nothing is left of
	// what piled up in a pause.
	piledGap = time.Millisecond
)

// pause is time in which this process stood still, since the book's epoch.
type pause struct{ from, to time.Duration }

// heart tells when this process stood still. The zero value has no beats yet,
// and knows of no pause.
type heart struct {
	beat   atomic.Int64 // the last one; 0 = none yet
	paused atomic.Pointer[[]pause]
}

// Beat says that this process goes on. What streams of other processes did while
// no beat came for half a second is nobody's evidence: it would be our own pause,
// booked to all backends at once. A book that is never told has no pauses.
// Beat is called by one goroutine.
func (b *Book) Beat(now time.Time) {
	at := max(now.Sub(b.since(now)), 1)
	last := time.Duration(b.heart.beat.Load())
	if last > 0 && at-last > pauseLeast {
		var kept []pause
		if old := b.heart.paused.Load(); old != nil {
			kept = (*old)[max(len(*old)-pausesKept+1, 0):]
		}
		kept = append(kept[:len(kept):len(kept)], pause{last, at})
		b.heart.paused.Store(&kept)
	}
	b.heart.beat.Store(int64(at))
}

// pausedIn reports whether this process stood still for long between from and
// to, which is now: who reads first after a pause comes before the next beat.
func (h *heart) pausedIn(from, to time.Duration) bool {
	last := time.Duration(h.beat.Load())
	if last == 0 {
		return false
	}
	if to-last > pauseLeast && to-max(last, from) >= pauseGap {
		return true
	}
	if list := h.paused.Load(); list != nil {
		for _, p := range *list {
			if min(to, p.to)-max(from, p.from) >= pauseGap {
				return true
			}
		}
	}
	return false
}

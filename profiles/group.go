package profiles

import (
	"math"
	"sync"
	"time"
)

// group is what decodes together: the profiles of a backend's models, which share
// its steps, or of a separate one alone; and the windows that are open there.
//
// Lock order: Book.mu before group.mu, which is a leaf.
type group struct {
	mu       sync.Mutex
	profiles []*profile
	windows  []*window // open ones, oldest first, at most maxOpenWindows
	drift    drift

	// attainment is the share of streams that shall keep their floor, and grace
	// the seconds that they may take longer.
	attainment, grace float64
	margin            float64 // what that takes; guarded by Book.mu, not by mu

	pool pool
}

// adapt works out the margin from what the streams of all targets delivered.
// Book.mu is held.
func (g *group) adapt() {
	var all deliverySums
	g.mu.Lock()
	for _, p := range g.profiles {
		all.merge(&p.known.deliveries, 0)
	}
	attainment := g.attainment
	g.mu.Unlock()
	g.margin = all.margin(attainment)
}

// windowAt returns the open window of that index, or the one that takes what
// comes too late for it. g.mu is held.
func (g *group) windowAt(index int64) *window {
	for _, w := range g.windows {
		if w.index >= index {
			return w
		}
	}
	if len(g.windows) == maxOpenWindows {
		g.closeOldest()
	}
	w := &window{index: index}
	g.windows = append(g.windows, w)
	return w
}

// closeUntil closes the windows that ended before at, and any from a future
// that at is not in, which a clock set back leaves behind. g.mu is held.
func (g *group) closeUntil(at time.Duration) {
	for len(g.windows) > 0 {
		w := g.windows[0]
		if windowEnd(w.index)+windowGrace > at && w.index <= windowOf(at)+1 {
			return
		}
		g.closeOldest()
	}
}

// closeOldest makes the rows of the oldest window, and holds what the curves
// expected of it against what was measured. g.mu is held.
func (g *group) closeOldest() {
	w := g.windows[0]
	g.windows = append(g.windows[:0], g.windows[1:]...)
	var measured, expected float64
	decoded := make([]float64, len(g.profiles)) // by profile; 0 = no row
	for i, p := range g.profiles {
		cells := w.exposure(p)
		r, ok := p.close(w)
		if !ok {
			continue
		}
		decoded[i] = r.T
		if e, ok := p.curve.Load().expect(r, cells); ok {
			measured += r.T
			expected += e
		}
	}
	if expected > 0 {
		g.drift.see(math.Log(measured / expected))
	}
	if g.drift.alarmed {
		for i, p := range g.profiles {
			p.fold.Drifted += decoded[i]
		}
	}
}

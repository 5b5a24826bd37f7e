package demo

import (
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// tally counts what the clients of each route saw. Safe for concurrent use.
type tally struct {
	floor float64 // tokens/s, of the route chat
	grace time.Duration

	mu     sync.Mutex
	routes map[string]*routeTally
}

type routeTally struct {
	offered, met, missed, unmeasured, shed, failed int

	tps  []float64 // tokens/s of each measured stream
	ttft []float64 // seconds
}

func newTally(floorTPS float64, grace time.Duration) *tally {
	return &tally{floor: floorTPS, grace: grace, routes: map[string]*routeTally{"chat": {}, "nightly": {}}}
}

// add counts one request. One that the demo itself gave up is not counted.
func (t *tally) add(route string, r loadgen.Result) {
	if r.Outcome == loadgen.Aborted {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rt := t.routes[route]
	rt.offered++
	switch tps, measured := r.TPS(); {
	case r.Outcome == loadgen.Shed:
		rt.shed++
	case r.Outcome == loadgen.Failed:
		rt.failed++
	case !measured:
		rt.unmeasured++
		rt.ttft = append(rt.ttft, r.TTFT.Seconds())
	default:
		if route != "chat" || r.Kept(t.floor, t.grace) {
			rt.met++
		} else {
			rt.missed++
		}
		rt.tps = append(rt.tps, tps)
		rt.ttft = append(rt.ttft, r.TTFT.Seconds())
	}
}

// counts returns a copy without the samples.
func (t *tally) counts(route string) routeTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	rt := *t.routes[route]
	rt.tps, rt.ttft = nil, nil
	return rt
}

// quantile returns the q-quantile of xs (nearest rank), 0 for none.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

package telemetry

import (
	"sync"
	"time"
)

// RouteStats is what a route got: counts since the start, quantiles over the
// last hours (Window). Quantiles are NaN when nothing was measured.
type RouteStats struct {
	// Offered = Met + Missed + Unmeasured + Shed + Failed.
	Offered, Met, Missed, Unmeasured, Shed, Failed uint64

	TPSP10, TPSP50, TPSP90    float64 // tokens/s of one stream while decoding
	TTFTP50, TTFTP90, TTFTP99 float64 // seconds

	TPSCount, TTFTCount uint64 // streams that the quantiles rest on
}

// routeStats gathers the figures of one route. It is safe for concurrent use.
type routeStats struct {
	mu      sync.Mutex // guards all below; a leaf
	results [numResults]uint64
	tps     aged
	ttft    aged
}

// observe counts one request that belongs to the SLO.
func (s *routeStats) observe(now time.Time, x *Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Result < numResults {
		s.results[x.Result]++
	}
	s.tps.add(now, x.TPS)
	s.ttft.add(now, x.TTFT.Seconds())
}

func (s *routeStats) read(now time.Time) RouteStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := RouteStats{
		Met: s.results[Met], Missed: s.results[Missed], Unmeasured: s.results[Unmeasured],
		Shed: s.results[Shed], Failed: s.results[Failed],
	}
	for _, n := range s.results {
		out.Offered += n
	}
	tps, n := s.tps.quantiles(now, 0.1, 0.5, 0.9)
	out.TPSP10, out.TPSP50, out.TPSP90, out.TPSCount = tps[0], tps[1], tps[2], n
	ttft, n := s.ttft.quantiles(now, 0.5, 0.9, 0.99)
	out.TTFTP50, out.TTFTP90, out.TTFTP99, out.TTFTCount = ttft[0], ttft[1], ttft[2], n
	return out
}

package telemetry

import "github.com/pacer-dev/pacer/history"

// RouteStats is what a route got since the start. Quantiles are NaN when nothing
// was measured.
type RouteStats struct {
	// Offered = Met + Missed + Unmeasured + Shed + Failed.
	Offered, Met, Missed, Unmeasured, Shed, Failed uint64

	TPSP10, TPSP50, TPSP90    float64 // tokens/s of one stream while decoding
	TTFTP50, TTFTP90, TTFTP99 float64 // seconds, with the time in line

	TPSCount, TTFTCount uint64 // streams that the quantiles rest on
}

func statsOf(f *history.Figures) RouteStats {
	return RouteStats{
		Offered: f.Offered(), Met: f.Results[history.Met], Missed: f.Results[history.Missed],
		Unmeasured: f.Results[history.Unmeasured], Shed: f.Results[history.Shed], Failed: f.Results[history.Failed],
		TPSP10: f.TPS.Quantile(0.1), TPSP50: f.TPS.Quantile(0.5), TPSP90: f.TPS.Quantile(0.9), TPSCount: f.TPS.Count(),
		TTFTP50: f.TTFT.Quantile(0.5), TTFTP90: f.TTFT.Quantile(0.9), TTFTP99: f.TTFT.Quantile(0.99), TTFTCount: f.TTFT.Count(),
	}
}

package telemetry

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Live is read at each scrape: what router and profiles know at that moment.
type Live struct {
	Backends []LiveBackend
	Routes   []LiveRoute
	Targets  []LiveTarget

	LogDropped uint64 // lines of the log, since the start
}

// LiveBackend is the load of one backend.
type LiveBackend struct {
	Name              string
	Waiting, Decoding int  // sequences without and with a first token
	Below             int  // streams that average less than the floor they asked for
	Up                bool // in service: not down, drained or loading
	BreakerState      int  // 0 closed, 1 half-open, 2 open
	Engine            *LiveEngine
}

// LiveEngine is what an engine's own count tells; nil = none is configured, and
// nothing of it is exported.
type LiveEngine struct {
	Up                              bool // it is read, and holds
	ForeignWaiting, ForeignDecoding int  // sequences that are not Pacer's
}

// LiveRoute is the line of one route, and what its targets carry.
type LiveRoute struct {
	Name     string
	Queued   int            // requests in line
	Capacity map[string]int // backend → router.TargetRoom.Capacity; 0 = no floor
}

// LiveTarget is the curve of one target.
type LiveTarget struct {
	Backend, Model string
	Points         []LivePoint
	BytesPerToken  float64 // of its answers' text; 0 or NaN = unknown, and not exported
}

// LivePoint is the curve at n. NaN = unknown, and not exported.
type LivePoint struct {
	N        int
	TPS, Low float64 // tokens/s of one stream, and its deciding bound
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	inflightDesc   = describe("pacer_inflight", "Sequences of this replica on the backend: waiting for a first token, or decoding.", "backend", "phase")
	belowDesc      = describe("pacer_below_floor_streams", "Streams of this replica that decode now and average less than the floor they asked for, over their life so far.", "backend")
	breakerDesc    = describe("pacer_breaker_state", "Breaker of the backend: 0 closed, 1 half-open, 2 open.", "backend")
	upDesc         = describe("pacer_backend_up", "1 while the backend is in service; 0 while its breaker is open, its health page fails, its model loads, or an operator has drained it.", "backend")
	signalDesc     = describe("pacer_engine_signal_up", "1 while the engine's own count of its sequences (metrics_url) is read and holds; with 0 only what passes through Pacer is counted.", "backend")
	foreignDesc    = describe("pacer_foreign_sequences", "Sequences on the backend that did not come through Pacer, by the engine's own count (metrics_url).", "backend", "phase")
	queueDepthDesc = describe("pacer_queue_depth", "Requests in the line of the route.", "route")
	curveTPSDesc   = describe("pacer_curve_tps", "Tokens per second of ONE stream when n streams decode on the backend, at the usual prompt load.", "backend", "model", "n")
	curveLowDesc   = describe("pacer_curve_low_tps", "Lower bound of pacer_curve_tps, on which decisions are made.", "backend", "model", "n")
	bytesDesc      = describe("pacer_bytes_per_token", "Bytes of text that a token of the target has: tokens per second of targets with different tokenizers compare only beside it.", "backend", "model")
	logDroppedDesc = describe("pacer_log_dropped_total", "Lines of the log that were lost because their reader did not take them in time.")
	capacityDesc   = describe("pacer_capacity_streams", "Up to how many streams on the backend, whosever, one of the route is let in; 0 for a route without a floor.", "route", "backend")
)

// liveCollector exports one Live, taken for one scrape.
type liveCollector struct{ Live }

// Describe implements prometheus.Collector.
func (c liveCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inflightDesc, belowDesc, breakerDesc, upDesc, signalDesc, foreignDesc, queueDepthDesc, curveTPSDesc, curveLowDesc, capacityDesc, bytesDesc, logDroppedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c liveCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		if !math.IsNaN(v) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
		}
	}
	ch <- prometheus.MustNewConstMetric(logDroppedDesc, prometheus.CounterValue, float64(c.LogDropped))
	for _, b := range c.Backends {
		gauge(inflightDesc, float64(b.Waiting), b.Name, "waiting")
		gauge(inflightDesc, float64(b.Decoding), b.Name, "decoding")
		gauge(belowDesc, float64(b.Below), b.Name)
		gauge(breakerDesc, float64(b.BreakerState), b.Name)
		gauge(upDesc, oneIf(b.Up), b.Name)
		if e := b.Engine; e != nil {
			gauge(signalDesc, oneIf(e.Up), b.Name)
			gauge(foreignDesc, float64(e.ForeignWaiting), b.Name, "waiting")
			gauge(foreignDesc, float64(e.ForeignDecoding), b.Name, "decoding")
		}
	}
	for _, r := range c.Routes {
		gauge(queueDepthDesc, float64(r.Queued), r.Name)
		for backend, n := range r.Capacity {
			gauge(capacityDesc, float64(n), r.Name, backend)
		}
	}
	for _, t := range c.Targets {
		if t.BytesPerToken > 0 {
			gauge(bytesDesc, t.BytesPerToken, t.Backend, t.Model)
		}
		for _, p := range t.Points {
			n := strconv.Itoa(p.N)
			gauge(curveTPSDesc, p.TPS, t.Backend, t.Model, n)
			gauge(curveLowDesc, p.Low, t.Backend, t.Model, n)
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

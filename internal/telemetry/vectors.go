package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Edges of the classic buckets. Those of tokens/s include the usual floors:
// the share of streams under a floor is then exact, not interpolated.
var (
	tpsEdges      = []float64{1, 2, 3, 5, 7.5, 10, 12.5, 15, 20, 25, 30, 35, 40, 50, 60, 75, 100, 150, 200, 300, 500, 1000}
	ttftEdges     = []float64{.01, .025, .05, .1, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60, 120}
	durationEdges = []float64{.25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800}
	waitEdges     = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60}
	overheadEdges = []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .025, .05, .1}
	ratioEdges    = []float64{.25, .5, .7, .8, .85, .9, .95, .98, 1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 4}
)

// vector is a metric with labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

// vectors is the list of metric names. Those of a route alone stand in
// ofRoutes, those of Live in live.go.
type vectors struct {
	requests, tokens, cost, reloads *prometheus.CounterVec

	ttft, tps, duration, ratio *prometheus.HistogramVec

	ofRoutes []vector // as the list of that name

	overhead          prometheus.Histogram
	storeUp, storeLag prometheus.Gauge
}

// newVectors registers everything that is counted.
func newVectors(reg *prometheus.Registry) *vectors {
	served := []string{"route", "backend", "class"}
	v := &vectors{
		requests: counter("pacer_requests_total", "Requests by what became of them; backend is empty when none was reached.", append(served, "outcome")...),
		tokens:   counter("pacer_tokens_total", "Tokens as the target counts them. input is the whole prompt, input_cached the part of it that came from a prefix cache; output has hidden reasoning, too. source is where the count is from.", "route", "backend", "direction", "source"),
		cost:     counter("pacer_cost_usd_total", "US dollars, from tokens and the configured prices.", "route", "backend"),
		reloads:  counter("pacer_config_reloads_total", "Configurations read while running: put into force (ok), or refused, and then the one before stays.", "result"),

		ttft:     histogram("pacer_ttft_seconds", "Time from sending the request to the first chunk that carries a token.", ttftEdges, served...),
		tps:      histogram("pacer_decode_tps", "Tokens per second of one stream, first to last token.", tpsEdges, served...),
		duration: histogram("pacer_stream_duration_seconds", "Time from sending the request to the end of its stream.", durationEdges, served...),
		ratio:    histogram("pacer_prediction_ratio", "Delivered over predicted tokens per second of a stream, for the levels of concurrency that it lived at.", ratioEdges, "backend"),

		overhead: prometheus.NewHistogram(histogramOpts("pacer_overhead_seconds", "Time from the arrival of a request to its sending, without waiting in line.", overheadEdges)),
		storeUp:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_store_up", Help: "1 when the last exchange with the store of curves worked."}),
		storeLag: prometheus.NewGauge(prometheus.GaugeOpts{Name: "pacer_store_lag_seconds", Help: "Age of the oldest measurement that the store does not have."}),
	}
	reg.MustRegister(
		v.requests, v.tokens, v.cost, v.reloads,
		v.ttft, v.tps, v.duration, v.ratio,
		v.overhead, v.storeUp, v.storeLag,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	for _, row := range ofRoutes {
		v.ofRoutes = append(v.ofRoutes, row.vector())
		reg.MustRegister(v.ofRoutes[len(v.ofRoutes)-1])
	}
	for _, result := range []string{"ok", "refused"} {
		v.reloads.WithLabelValues(result)
	}
	return v
}

// forget drops every series that has a label of this value.
func (v *vectors) forget(label, value string) {
	of := prometheus.Labels{label: value}
	for _, metric := range append([]vector{v.requests, v.tokens, v.cost, v.ttft, v.tps, v.duration, v.ratio}, v.ofRoutes...) {
		metric.DeletePartialMatch(of)
	}
}

// vector returns the metric of a row.
func (row *ofRoute) vector() vector {
	switch {
	case row.edges != nil:
		return histogram(row.name, row.help, row.edges, "route")
	case row.label == "":
		return counter(row.name, row.help, "route")
	}
	return counter(row.name, row.help, "route", row.label)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, edges []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOpts(name, help, edges), labels)
}

// histogramOpts makes a histogram both classic and native: a scraper that
// knows native ones asks for them, all others get the buckets.
func histogramOpts(name, help string, edges []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: edges,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

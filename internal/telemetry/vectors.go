package telemetry

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Edges of the classic buckets: few, since each is a series of every route on every
// backend; native histograms have the detail. Those of tokens/s include the usual
// floors: the share of streams under a floor is then exact, not interpolated.
var (
	tpsEdges      = []float64{5, 10, 15, 20, 30, 40, 50, 75, 100, 200}
	ttftEdges     = []float64{.1, .2, .5, 1, 2, 5, 10, 30}
	durationEdges = []float64{1, 5, 20, 60, 300, 1800}
	waitEdges     = []float64{.01, .1, .5, 1, 2, 5, 10, 60}
	overheadEdges = []float64{1e-4, 2.5e-4, 1e-3, 5e-3, .025, .1}
	ratioEdges    = []float64{.5, .8, .9, 1, 1.1, 1.25, 2}
)

// vector is a metric with labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

// Metric is one of Pacer's own, as the list of them has it.
type Metric struct {
	Name, Help string
	Kind       Kind
	Labels     []string // but for le of a histogram
}

// Kind is what a Metric is to Prometheus.
type Kind uint8

// The kinds.
const (
	Gauge Kind = iota
	Counter
	Histogram
)

// Catalog returns every metric of Pacer's own. What generates dashboards and checks
// alerts goes by it.
func Catalog() []Metric {
	list := newVectors(prometheus.NewRegistry()).list
	for _, row := range ofLives {
		m := Metric{Name: row.name, Help: row.help, Labels: row.labels}
		if row.counter {
			m.Kind = Counter
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// vectors is what is counted. Those of a route alone stand in ofRoutes, what is
// read at each scrape in ofLives.
type vectors struct {
	registry *prometheus.Registry
	list     []Metric

	requests, tokens, prefix, continued, cost, reloads *prometheus.CounterVec

	ttft, tps, duration, ratio *prometheus.HistogramVec

	ofRoutes []vector // as the list of that name

	overhead          prometheus.Observer
	storeUp, storeLag prometheus.Gauge
}

// newVectors registers everything that is counted.
func newVectors(reg *prometheus.Registry) *vectors {
	v := &vectors{registry: reg}
	served := []string{"route", "backend", "class"}
	v.requests = v.counter("pacer_requests_total", "Requests by what became of them; backend is empty when none was reached.", append(served, "outcome")...)
	v.tokens = v.counter("pacer_tokens_total", "Tokens as the target counts them. input is the whole prompt, input_cached the part of it that came from a prefix cache; output has hidden reasoning, too. source is where the count is from.", "route", "backend", "direction", "source")
	v.prefix = v.counter("pacer_prefix_tokens_total", "Prompt tokens that were expected in a backend's prefix cache (predicted), and that it told were there (reported).", "backend", "kind")
	v.continued = v.counter("pacer_continued_total", "Streams of routes with continue whose backend died in the middle: went on elsewhere (ok), broke off for want of another (lost), or could not be continued (unfit).", "backend", "result")
	v.cost = v.counter("pacer_cost_usd_total", "US dollars, from tokens and the configured prices.", "route", "backend")
	v.reloads = v.counter("pacer_config_reloads_total", "Configurations read while running: put into force (ok), or refused, and then the one before stays.", "result")
	v.ttft = v.histogram("pacer_ttft_seconds", "Time from sending the request to the first chunk that carries a token.", ttftEdges, served...)
	v.tps = v.histogram("pacer_decode_tps", "Tokens per second of one stream, first to last token.", tpsEdges, served...)
	v.duration = v.histogram("pacer_stream_duration_seconds", "Time from sending the request to the end of its stream.", durationEdges, served...)
	v.ratio = v.histogram("pacer_prediction_ratio", "Delivered over predicted tokens per second of a stream, for the levels of concurrency that it lived at.", ratioEdges, "backend")
	v.overhead = v.histogram("pacer_overhead_seconds", "Time from the arrival of a request to its sending, without waiting in line.", overheadEdges).WithLabelValues()
	v.storeUp = v.gauge("pacer_store_up", "1 while this replica is not alone, and the last exchange of curves worked in full.")
	v.storeLag = v.gauge("pacer_store_lag_seconds", "Age of the oldest measurement that the store does not have.")
	for _, row := range ofRoutes {
		v.ofRoutes = append(v.ofRoutes, v.row(row))
	}
	for _, result := range []string{"ok", "refused"} {
		v.reloads.WithLabelValues(result)
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return v
}

// forget drops every series that has a label of this value.
func (v *vectors) forget(label, value string) {
	of := prometheus.Labels{label: value}
	for _, metric := range append([]vector{v.requests, v.tokens, v.prefix, v.continued, v.cost, v.ttft, v.tps, v.duration, v.ratio}, v.ofRoutes...) {
		metric.DeletePartialMatch(of)
	}
}

// row returns the metric of a row.
func (v *vectors) row(row ofRoute) vector {
	labels := []string{"route"}
	if row.label != "" {
		labels = append(labels, row.label)
	}
	if row.edges != nil {
		return v.histogram(row.name, row.help, row.edges, labels...)
	}
	return v.counter(row.name, row.help, labels...)
}

func (v *vectors) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	v.add(c, Metric{name, help, Counter, labels})
	return c
}

func (v *vectors) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	v.add(g, Metric{name, help, Gauge, nil})
	return g
}

// histogram makes one that is both classic and native: a scraper that knows native
// ones asks for them, all others get the buckets.
func (v *vectors) histogram(name, help string, edges []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: edges,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	v.add(h, Metric{name, help, Histogram, labels})
	return h
}

func (v *vectors) add(c prometheus.Collector, m Metric) {
	v.registry.MustRegister(c)
	v.list = append(v.list, m)
}

// observe counts value. A trace, if there is one, is kept as an exemplar of its
// bucket.
func observe(to prometheus.Observer, value float64, trace string) {
	if trace == "" {
		to.Observe(value)
		return
	}
	to.(prometheus.ExemplarObserver).ObserveWithExemplar(value, prometheus.Labels{"trace_id": trace})
}

package telemetry

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pacer-dev/pacer/history"
)

// The closed label sets.
var (
	outcomes    = []string{"ok", "client_gone", "upstream_error", "cut", "rejected", "shed"}
	shedReasons = []string{"floor", "floor_unattainable", "ttft", "queue_full", "timeout"}
	sources     = []string{"usage", "continuous", "chunks", "estimate"}
)

const (
	unknownRoute   = "unknown"
	interactive    = "interactive"
	batch          = "batch"
	outcomeUnknown = 2 // upstream_error
	sourceUsage    = 0
	sourceEstimate = 3
)

// routeSeries is everything bound for one route.
type routeSeries struct {
	class string     // as configured
	add   [][]adding // of each row of ofRoutes, by its words
	past  *history.Series
}

// backendSeries is everything bound for one backend.
type backendSeries struct {
	ratio prometheus.Observer // pacer_prediction_ratio

	predicted, reported prometheus.Counter // pacer_prefix_tokens_total

	fates [numFates]prometheus.Counter // pacer_continued_total

	past *history.Series
}

// adding adds to, or observes, one series.
type adding func(value float64)

// pairKey names what is bound for one route on one backend. Class is its own
// part because a request may ask for another class than its route's.
type pairKey struct{ route, backend, class string }

// pairSeries is everything bound for a pairKey. With backend "" only outcomes
// are set: nothing was served.
type pairSeries struct {
	outcomes            []prometheus.Counter // by index in outcomes
	ttft, tps, duration prometheus.Observer
	input               [2]prometheus.Counter // by usage, by estimate
	cached              prometheus.Counter
	output              []prometheus.Counter // by index in sources
	cost                prometheus.Counter
}

// bound is everything that Observe looks up: immutable, replaced as a whole.
type bound struct {
	routes   map[string]*routeSeries
	backends map[string]*backendSeries
	pairs    map[pairKey]*pairSeries
}

func (b *bound) clone() *bound {
	return &bound{routes: maps.Clone(b.routes), backends: maps.Clone(b.backends), pairs: maps.Clone(b.pairs)}
}

// has reports whether the names of k are those of the configuration, or none.
func (b *bound) has(k pairKey) bool {
	return (k.route == unknownRoute || b.routes[k.route] != nil) && (k.backend == "" || b.backends[k.backend] != nil)
}

func (v *vectors) route(name, class string) *routeSeries {
	r := &routeSeries{class: class}
	for i := range ofRoutes {
		var add []adding
		switch metric := v.ofRoutes[i].(type) {
		case *prometheus.HistogramVec:
			add = append(add, metric.WithLabelValues(name).Observe)
		case *prometheus.CounterVec:
			for _, word := range ofRoutes[i].words {
				add = append(add, metric.WithLabelValues(name, word).Add)
			}
			if ofRoutes[i].label == "" {
				add = append(add, metric.WithLabelValues(name).Add)
			}
		}
		r.add = append(r.add, add)
	}
	return r
}

func (v *vectors) pair(k pairKey) *pairSeries {
	p := &pairSeries{}
	for _, o := range outcomes {
		p.outcomes = append(p.outcomes, v.requests.WithLabelValues(k.route, k.backend, k.class, o))
	}
	if k.backend == "" {
		return p
	}
	p.ttft = v.ttft.WithLabelValues(k.route, k.backend, k.class)
	p.tps = v.tps.WithLabelValues(k.route, k.backend, k.class)
	p.duration = v.duration.WithLabelValues(k.route, k.backend, k.class)
	p.input[0] = v.tokens.WithLabelValues(k.route, k.backend, "input", sources[sourceUsage])
	p.input[1] = v.tokens.WithLabelValues(k.route, k.backend, "input", sources[sourceEstimate])
	p.cached = v.tokens.WithLabelValues(k.route, k.backend, "input_cached", sources[sourceUsage])
	for _, s := range sources {
		p.output = append(p.output, v.tokens.WithLabelValues(k.route, k.backend, "output", s))
	}
	p.cost = v.cost.WithLabelValues(k.route, k.backend)
	return p
}

// serve books what a request got that reached a backend.
func (p *pairSeries) serve(x *Exchange) {
	if x.TTFT > 0 {
		observe(p.ttft, x.TTFT.Seconds(), x.TraceID)
	}
	if x.TPS > 0 {
		observe(p.tps, x.TPS, x.TraceID)
	}
	if x.Duration > 0 {
		observe(p.duration, x.Duration.Seconds(), x.TraceID)
	}
	source := slices.Index(sources, x.Source)
	if source < 0 {
		source = sourceEstimate
	}
	if x.OutputTokens > 0 {
		p.output[source].Add(x.OutputTokens)
	}
	// What the backend says of the prompt, it says together with the answer.
	input := p.input[1]
	if x.Source == "usage" || x.Source == "continuous" {
		input = p.input[0]
	}
	if x.InputTokens > 0 {
		input.Add(x.InputTokens)
	}
	if x.CachedTokens > 0 {
		p.cached.Add(x.CachedTokens)
	}
	if x.CostUSD > 0 {
		p.cost.Add(x.CostUSD)
	}
}

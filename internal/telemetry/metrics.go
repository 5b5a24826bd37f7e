package telemetry

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/keep"
)

// Metrics collects. It is safe for concurrent use. Observe takes one short
// lock of its route and allocates nothing once a series exists.
type Metrics struct {
	registry *prometheus.Registry
	vectors  *vectors
	ring     *history.Ring
	live     func() Live // nil = none

	bound atomic.Pointer[bound]
	mu    sync.Mutex // serializes the writers of bound
}

// New returns metrics of the given routes (with their class) and backends: what
// is of a route or a backend alone starts at 0. live is called at each scrape;
// nil = none.
func New(routes map[string]string, backends []string, live func() Live) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), ring: history.NewRing(time.Now()), live: live}
	m.vectors = newVectors(m.registry)
	m.bound.Store(&bound{
		routes:   map[string]*routeSeries{},
		backends: map[string]*backendSeries{},
		pairs:    map[pairKey]*pairSeries{},
	})
	m.change(func(b *bound) { m.addPair(b, pairKey{unknownRoute, "", interactive}) })
	m.Configure(routes, backends)
	return m
}

// Configure makes these the routes and backends there are. Those that stay keep
// what they counted; those that are gone take their series with them, and what
// ends on them later is counted without their names.
func (m *Metrics) Configure(routes map[string]string, backends []string) {
	m.change(func(b *bound) {
		m.ring.Configure(slices.Collect(maps.Keys(routes)), backends)
		var goneBackends map[string]*backendSeries
		b.backends, goneBackends = keep.Map(b.backends, slices.Values(backends), func(name string) *backendSeries {
			s := &backendSeries{
				ratio: m.vectors.ratio.WithLabelValues(name), past: m.ring.Backend(name),
				predicted: m.vectors.prefix.WithLabelValues(name, "predicted"), reported: m.vectors.prefix.WithLabelValues(name, "reported"),
			}
			for f := range s.fates {
				s.fates[f] = m.vectors.continued.WithLabelValues(name, fateNames[f])
			}
			return s
		})
		for name := range goneBackends {
			m.vectors.forget("backend", name)
		}
		var goneRoutes map[string]*routeSeries
		b.routes, goneRoutes = keep.Map(b.routes, maps.Keys(routes), func(name string) *routeSeries {
			s := m.vectors.route(name, closedClass(routes[name], interactive))
			s.past = m.ring.Route(name)
			return s
		})
		for name := range goneRoutes {
			if name != unknownRoute { // whose series are also those of no route
				m.vectors.forget("route", name)
			}
		}
		maps.DeleteFunc(b.pairs, func(k pairKey, _ *pairSeries) bool { return !b.has(k) })
		for name, s := range b.routes {
			m.addPair(b, pairKey{name, "", s.class})
		}
	})
}

// change replaces what is bound by an edited copy.
func (m *Metrics) change(edit func(*bound)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.bound.Load().clone()
	edit(b)
	m.bound.Store(b)
}

func (m *Metrics) addPair(b *bound, k pairKey) {
	if b.pairs[k] == nil {
		b.pairs[k] = m.vectors.pair(k)
	}
}

// Observe counts one finished request. An unknown route counts as "unknown", a
// backend that was never configured as none, and an outcome that is no label
// value as upstream_error: seen rather than lost.
func (m *Metrics) Observe(x Exchange) {
	b := m.bound.Load()
	route := b.routes[x.Route]
	key := pairKey{x.Route, x.Backend, x.Class}
	if route == nil {
		key = pairKey{unknownRoute, "", closedClass(x.Class, interactive)}
	} else {
		key.class = closedClass(x.Class, route.class)
		if b.backends[x.Backend] == nil {
			key.backend = ""
		}
	}
	pair := b.pairs[key]
	if pair == nil {
		pair = m.newPair(key)
	}
	outcome := slices.Index(outcomes, x.Outcome)
	if outcome < 0 {
		outcome = outcomeUnknown
	}
	pair.outcomes[outcome].Inc()
	if x.Overhead > 0 {
		m.vectors.overhead.Observe(x.Overhead.Seconds())
	}
	if key.backend != "" && pair.cost != nil {
		pair.serve(&x)
		b.backends[key.backend].predicted.Add(max(x.WarmTokens, 0))
		b.backends[key.backend].reported.Add(max(x.CachedTokens, 0))
		if ratio := x.TPS / x.Predicted; x.Predicted > 0 && ratio > 0 && !math.IsInf(ratio, 1) {
			b.backends[key.backend].ratio.Observe(ratio)
		}
	}
	for _, p := range x.Passages {
		if s := b.backends[p.From]; s != nil {
			s.fates[p.Fate].Inc()
		}
	}
	if route != nil {
		route.observe(&x)
	}
	if b := b.backends[key.backend]; b != nil && x.judged() {
		b.past.Add(x.outcome())
	}
}

// observe books what concerns the route alone.
func (r *routeSeries) observe(x *Exchange) {
	for i := range ofRoutes {
		if word, value := ofRoutes[i].of(*x); value > 0 {
			r.add[i][word](value)
		}
	}
	if x.judged() {
		r.past.Add(x.outcomeOfRoute())
	}
}

// newPair returns the series of k; where its route or its backend has gone
// meanwhile, those of none.
func (m *Metrics) newPair(k pairKey) (pair *pairSeries) {
	m.change(func(b *bound) {
		if !b.has(pairKey{k.route, "", k.class}) {
			k.route = unknownRoute
		}
		if k.route == unknownRoute || !b.has(k) {
			k.backend = ""
		}
		m.addPair(b, k)
		pair = b.pairs[k]
	})
	return pair
}

// closedClass returns class if it is one, else otherwise.
func closedClass(class, otherwise string) string {
	if class == interactive || class == batch {
		return class
	}
	return otherwise
}

// Route returns the figures of one route since the start; of an unknown route
// there are none.
func (m *Metrics) Route(name string) RouteStats {
	return statsOf(m.ring.Figures(time.Now(), m.ring.Route(name), history.Start))
}

// Warm returns how many prompt tokens were expected in the prefix cache of a backend,
// and how many it told were there, since the start; 0 for one that is not configured.
// Safe for concurrent use.
func (m *Metrics) Warm(backend string) (predicted, reported int64) {
	s := m.bound.Load().backends[backend]
	if s == nil {
		return 0, 0
	}
	return standing(s.predicted), standing(s.reported)
}

// Fates returns what became of the streams in the middle of which a backend died, by
// Fate, since the start; 0 for one that is not configured. Safe for concurrent use.
func (m *Metrics) Fates(backend string) (counts [numFates]int64) {
	if s := m.bound.Load().backends[backend]; s != nil {
		for f := range counts {
			counts[f] = standing(s.fates[f])
		}
	}
	return counts
}

// standing is what c stands at, as a whole number.
func standing(c prometheus.Counter) int64 {
	var d dto.Metric
	if c.Write(&d) != nil { // it cannot fail for a counter
		return 0
	}
	return int64(math.Round(d.GetCounter().GetValue()))
}

// History is what was observed, over time.
func (m *Metrics) History() *history.Ring { return m.ring }

// Reloaded counts a configuration that was put into force, or refused.
func (m *Metrics) Reloaded(ok bool) {
	result := "refused"
	if ok {
		result = "ok"
	}
	m.vectors.reloads.WithLabelValues(result).Inc()
}

// StoreUp says whether all that replicas know is shared. Until it is
// first told, the store is not up.
func (m *Metrics) StoreUp(up bool) { m.vectors.storeUp.Set(oneIf(up)) }

// StoreLag says how old the oldest measurement is that the store does not have.
func (m *Metrics) StoreLag(lag time.Duration) { m.vectors.storeLag.Set(lag.Seconds()) }

// Handler serves the Prometheus text. At most 8 scrapes run at once.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: 8,
	})
}

// gather takes one Live for the whole scrape.
func (m *Metrics) gather() ([]*dto.MetricFamily, error) {
	if m.live == nil {
		return m.registry.Gather()
	}
	l := m.live()
	snapshot := prometheus.NewRegistry()
	snapshot.MustRegister(liveCollector{l})
	return prometheus.Gatherers{m.registry, snapshot}.Gather()
}

// Gatherer is what a scrape shows, for who sends it elsewhere.
func (m *Metrics) Gatherer() prometheus.Gatherer { return prometheus.GathererFunc(m.gather) }

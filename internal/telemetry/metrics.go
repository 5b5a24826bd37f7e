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
)

// Metrics collects. It is safe for concurrent use. Observe takes one short
// lock of its route and allocates nothing once a series exists.
type Metrics struct {
	registry *prometheus.Registry
	vectors  *vectors
	live     func() Live // nil = none

	bound atomic.Pointer[bound]
	mu    sync.Mutex // serializes the writers of bound, and guards gone
	gone  []string   // backends that are configured no more, the first that went first
}

// maxGone is how many backends keep what they counted after they are gone: where
// engines are discovered, each that comes has a name of its own.
const maxGone = 64

// New returns metrics whose label sets start with the given routes (with their
// class) and backends at 0. live is called at each scrape; nil = none.
//
// Which backends a route has is what live connects by LiveRoute.Capacity;
// without live every route has every backend.
func New(routes map[string]string, backends []string, live func() Live) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), live: live}
	m.vectors = newVectors(m.registry)
	m.bound.Store(&bound{
		routes:   map[string]*routeSeries{},
		backends: map[string]prometheus.Observer{},
		pairs:    map[pairKey]*pairSeries{},
	})
	m.change(func(b *bound) { m.addPair(b, pairKey{unknownRoute, "", interactive}) })
	m.Configure(routes, backends)
	return m
}

// Configure adds routes and backends after a reload. Routes that are gone keep
// what they counted, and so do the last 64 backends that went.
func (m *Metrics) Configure(routes map[string]string, backends []string) {
	m.change(func(b *bound) {
		m.forget(b, backends)
		for _, name := range backends {
			if b.backends[name] == nil {
				b.backends[name] = m.vectors.ratio.WithLabelValues(name)
			}
		}
		for name, class := range routes {
			if b.routes[name] == nil {
				b.routes[name] = m.vectors.route(name, closedClass(class, interactive))
			}
			class = b.routes[name].class
			m.addPair(b, pairKey{name, "", class})
			if m.live == nil {
				for backend := range b.backends {
					m.addPair(b, pairKey{name, backend, class})
				}
			}
		}
	})
}

// forget drops the backends that have been gone for longest. mu is held.
func (m *Metrics) forget(b *bound, backends []string) {
	m.gone = slices.DeleteFunc(m.gone, func(name string) bool { return slices.Contains(backends, name) })
	for _, name := range slices.Sorted(maps.Keys(b.backends)) {
		if !slices.Contains(backends, name) && !slices.Contains(m.gone, name) {
			m.gone = append(m.gone, name)
		}
	}
	for len(m.gone) > maxGone {
		name := m.gone[0]
		m.gone = m.gone[1:]
		delete(b.backends, name)
		maps.DeleteFunc(b.pairs, func(k pairKey, _ *pairSeries) bool { return k.backend == name })
		m.vectors.forget(name)
	}
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
	switch {
	case route == nil:
		key = pairKey{unknownRoute, "", closedClass(x.Class, interactive)}
	default:
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
		if ratio := x.TPS / x.Predicted; x.Predicted > 0 && ratio > 0 && !math.IsInf(ratio, 1) {
			b.backends[key.backend].Observe(ratio)
		}
	}
	if route != nil {
		route.observe(&x)
	}
}

// observe books what concerns the route alone.
func (r *routeSeries) observe(x *Exchange) {
	if x.Waited > 0 {
		r.queueWait.Observe(x.Waited.Seconds())
	}
	if x.Hedge > NotHedged && x.Hedge < numHedges {
		r.hedges[x.Hedge].Inc()
	}
	if !x.Counted || x.Result >= numResults {
		return
	}
	r.slo[x.Result].Inc()
	if i := slices.Index(shedReasons, x.ShedReason); x.Result == Shed && i >= 0 {
		r.shed[i].Inc()
	}
	r.stats.observe(time.Now(), x)
}

// newPair returns the series of k; of a backend that was forgotten meanwhile,
// those of none.
func (m *Metrics) newPair(k pairKey) (pair *pairSeries) {
	m.change(func(b *bound) {
		if k.backend != "" && b.backends[k.backend] == nil {
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

// Route returns the figures of one route; of an unknown route there are none.
func (m *Metrics) Route(name string) RouteStats {
	if r := m.bound.Load().routes[name]; r != nil {
		return r.stats.read(time.Now())
	}
	var none routeStats
	return none.read(time.Now())
}

// Reloaded counts a configuration that was put into force, or refused.
func (m *Metrics) Reloaded(ok bool) {
	result := "refused"
	if ok {
		result = "ok"
	}
	m.vectors.reloads.WithLabelValues(result).Inc()
}

// StoreUp says whether the last exchange with the store worked. Until it is
// first told, the store is not up.
func (m *Metrics) StoreUp(up bool) {
	v := 0.0
	if up {
		v = 1
	}
	m.vectors.storeUp.Set(v)
}

// StoreLag says how old the oldest measurement is that the store does not have.
func (m *Metrics) StoreLag(lag time.Duration) { m.vectors.storeLag.Set(lag.Seconds()) }

// Handler serves the Prometheus text. At most 8 scrapes run at once.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(prometheus.GathererFunc(m.gather), promhttp.HandlerOpts{
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
	m.connect(l)
	snapshot := prometheus.NewRegistry()
	snapshot.MustRegister(liveCollector{l})
	return prometheus.Gatherers{m.registry, snapshot}.Gather()
}

// connect makes sure that every route has its series for every backend it
// may use.
func (m *Metrics) connect(l Live) {
	b := m.bound.Load()
	var missing []pairKey
	for _, r := range l.Routes {
		route := b.routes[r.Name]
		if route == nil {
			continue
		}
		for backend := range r.Capacity {
			k := pairKey{r.Name, backend, route.class}
			if b.backends[backend] != nil && b.pairs[k] == nil {
				missing = append(missing, k)
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	m.change(func(b *bound) {
		for _, k := range missing {
			m.addPair(b, k)
		}
	})
}

package telemetry

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Live is read at each scrape: what router, profiles and configuration know at
// that moment.
type Live struct {
	Backends []LiveBackend
	Routes   []LiveRoute
	Targets  []LiveTarget

	Discoveries []LiveDiscovery // of backends that stand for several engines

	Causes []LiveCause // of what is wrong; what is well has none

	LogDropped uint64 // lines of the log, since the start
	Build      LiveBuild

	// CertificateEnds is when the certificate of the data port expires; zero = it
	// has none, and nothing of it is exported.
	CertificateEnds time.Time
}

// LiveBuild is which program this is; "" = unknown.
type LiveBuild struct{ Version, Revision, Go string }

// LiveBackend is the load of one backend.
type LiveBackend struct {
	Name, Kind        string
	Waiting, Decoding int     // sequences without and with a first token
	Below             int     // streams that average less than the floor they asked for
	Up                bool    // in service: not down, drained, loading or only tried out
	BreakerState      int     // 0 closed, 1 half-open, 2 open
	Scale             float64 // speed over what was learned, 1 = as learned; NaN or 0 = unknown, and not exported
	Engine            *LiveEngine
}

// LiveEngine is what an engine's own count tells; nil = none is configured, and
// nothing of it is exported.
type LiveEngine struct {
	Up                              bool // it is read, and holds
	ForeignWaiting, ForeignDecoding int  // sequences that are not Pacer's
}

// LiveDiscovery is how it goes with the engines of a backend that are discovered.
type LiveDiscovery struct {
	Backend           string
	Up                bool // the last look was answered
	Engines, Draining int  // those known, and how many of them are about to end
}

// LiveCause is why a route, or a backend, does not do what it should.
type LiveCause struct {
	Route, Backend string // one of them; "" = it is of the other
	Kind           string // a word of history.Kind
}

// LiveRoute is the line of one route, what it promises, and what its targets
// carry.
type LiveRoute struct {
	Name, Class, Prefer string

	Goal     float64       // share of requests that are to keep the floor, in (0, 1); 0 = unknown, and not exported
	FloorTPS float64       // tokens/s of one stream; 0 = none, and not exported
	MaxTTFT  time.Duration // 0 = none, and not exported

	Queued    int            // requests in line
	Capacity  map[string]int // backend → router.TargetRoom.Capacity; 0 = no floor, or it takes nobody
	Free      int            // users that would be let in now
	Running   int            // sequences on its backends, whosever
	Unlimited bool           // nothing known limits Free: neither it nor the users it carries are exported
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

// emit exports one series; NaN is unknown, and not exported. The labels are those
// of the row, in their order.
type emit func(value float64, labels ...string)

// ofLive is a metric that is read at each scrape.
type ofLive struct {
	name, help string
	labels     []string
	counter    bool // else it is a gauge
	each       func(l *Live, to emit)
}

// ofLives is the list of these metrics.
var ofLives = []ofLive{
	{
		name: "pacer_build_info", help: "1, with the version of the program in its labels.", labels: []string{"version", "revision", "goversion"},
		each: func(l *Live, to emit) { to(1, l.Build.Version, l.Build.Revision, l.Build.Go) },
	},
	{
		name: "pacer_backend_info", help: "1, with what kind of engine the backend is in its labels.", labels: []string{"backend", "kind"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) { to(1, b.Name, b.Kind) }),
	},
	{
		name: "pacer_route_info", help: "1, with how the route is served in its labels.", labels: []string{"route", "class", "prefer"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) { to(1, r.Name, r.Class, r.Prefer) }),
	},
	{
		name: "pacer_slo_goal", help: "Share of the route's requests that are to be kept: slo.attainment.", labels: []string{"route"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) { to(positive(r.Goal), r.Name) }),
	},
	{
		name: "pacer_slo_floor_tps", help: "Tokens per second that each stream of the route is promised: slo.min_tps.", labels: []string{"route"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) { to(positive(r.FloorTPS), r.Name) }),
	},
	{
		name: "pacer_slo_max_ttft_seconds", help: "Time to the first token that each stream of the route is promised: slo.max_ttft.", labels: []string{"route"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) { to(positive(r.MaxTTFT.Seconds()), r.Name) }),
	},
	{
		name: "pacer_route_cause", help: "1 while the route does not keep what it promises, with the reason in cause.", labels: []string{"route", "cause"},
		each: func(l *Live, to emit) {
			for _, c := range l.Causes {
				if c.Route != "" {
					to(1, c.Route, c.Kind)
				}
			}
		},
	},
	{
		name: "pacer_backend_cause", help: "1 while the backend does not do what it should, with the reason in cause.", labels: []string{"backend", "cause"},
		each: func(l *Live, to emit) {
			for _, c := range l.Causes {
				if c.Backend != "" {
					to(1, c.Backend, c.Kind)
				}
			}
		},
	},
	{
		name: "pacer_inflight", help: "Sequences of this replica on the backend: waiting for a first token, or decoding.", labels: []string{"backend", "phase"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) {
			to(float64(b.Waiting), b.Name, "waiting")
			to(float64(b.Decoding), b.Name, "decoding")
		}),
	},
	{
		name: "pacer_below_floor_streams", help: "Streams of this replica that decode now and average less than the floor they asked for, over their life so far.", labels: []string{"backend"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) { to(float64(b.Below), b.Name) }),
	},
	{
		name: "pacer_breaker_state", help: "Breaker of the backend: 0 closed, 1 half-open, 2 open.", labels: []string{"backend"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) { to(float64(b.BreakerState), b.Name) }),
	},
	{
		name: "pacer_backend_up", help: "1 while the backend is in service; 0 while its breaker is open, its health page fails, it hangs, its model loads, or an operator has drained it.", labels: []string{"backend"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) { to(oneIf(b.Up), b.Name) }),
	},
	{
		name: "pacer_backend_scale", help: "Speed of the backend over what was learned of it, at all levels of concurrency: 1 as learned, 0.5 half as fast.", labels: []string{"backend"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) { to(positive(b.Scale), b.Name) }),
	},
	{
		name: "pacer_engine_signal_up", help: "1 while the engine's own count of its sequences (metrics_url) is read and holds; with 0 only what passes through Pacer is counted.", labels: []string{"backend"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) {
			if b.Engine != nil {
				to(oneIf(b.Engine.Up), b.Name)
			}
		}),
	},
	{
		name: "pacer_foreign_sequences", help: "Sequences on the backend that did not come through Pacer, by the engine's own count (metrics_url).", labels: []string{"backend", "phase"},
		each: ofLiveBackend(func(b *LiveBackend, to emit) {
			if b.Engine != nil {
				to(float64(b.Engine.ForeignWaiting), b.Name, "waiting")
				to(float64(b.Engine.ForeignDecoding), b.Name, "decoding")
			}
		}),
	},
	{
		name: "pacer_queue_depth", help: "Requests in the line of the route, without those that wait at a backend that hangs.", labels: []string{"route"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) { to(float64(r.Queued), r.Name) }),
	},
	{
		name: "pacer_capacity_streams", help: "Up to how many streams on the backend, whosever, one of the route is let in: while its speed is unknown, as many as slow start lets in; 0 while it is out of service or drained, and for a route without a floor.", labels: []string{"route", "backend"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) {
			for backend, n := range r.Capacity {
				to(float64(n), r.Name, backend)
			}
		}),
	},
	{
		name: "pacer_capacity_users", help: "Users that the backends of the route carry: those who are there now, whosever, and those of the route who would be let in beside them. Absent where nothing known limits it.", labels: []string{"route"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) {
			if !r.Unlimited {
				to(float64(r.Running+r.Free), r.Name)
			}
		}),
	},
	{
		name: "pacer_free_users", help: "Users of the route who would be let in now, one after the other; 0 while somebody stands in line. Absent where nothing known limits it.", labels: []string{"route"},
		each: ofLiveRoute(func(r *LiveRoute, to emit) {
			if !r.Unlimited {
				to(float64(r.Free), r.Name)
			}
		}),
	},
	{
		name: "pacer_curve_tps", help: "Tokens per second of ONE stream when n streams decode on the backend, at the usual prompt load.", labels: []string{"backend", "model", "n"},
		each: ofLivePoint(func(t *LiveTarget, p *LivePoint, to emit) { to(p.TPS, t.Backend, t.Model, strconv.Itoa(p.N)) }),
	},
	{
		name: "pacer_curve_low_tps", help: "Lower bound of pacer_curve_tps, on which decisions are made.", labels: []string{"backend", "model", "n"},
		each: ofLivePoint(func(t *LiveTarget, p *LivePoint, to emit) { to(p.Low, t.Backend, t.Model, strconv.Itoa(p.N)) }),
	},
	{
		name: "pacer_bytes_per_token", help: "Bytes of text that a token of the target has: tokens per second of targets with different tokenizers compare only beside it.", labels: []string{"backend", "model"},
		each: func(l *Live, to emit) {
			for _, t := range l.Targets {
				to(positive(t.BytesPerToken), t.Backend, t.Model)
			}
		},
	},
	{
		name: "pacer_discovery_up", help: "1 while the engines of the backend can be looked up; with 0 those known stay.", labels: []string{"backend"},
		each: func(l *Live, to emit) {
			for _, d := range l.Discoveries {
				to(oneIf(d.Up), d.Backend)
			}
		},
	},
	{
		name: "pacer_discovery_engines", help: "Engines known of a backend that discovers them: in service, or draining because they are about to end.", labels: []string{"backend", "state"},
		each: func(l *Live, to emit) {
			for _, d := range l.Discoveries {
				to(float64(d.Engines-d.Draining), d.Backend, "serving")
				to(float64(d.Draining), d.Backend, "draining")
			}
		},
	},
	{
		name: "pacer_log_dropped_total", help: "Lines of the log that were lost because their reader did not take them in time.", counter: true,
		each: func(l *Live, to emit) { to(float64(l.LogDropped)) },
	},
	{
		name: "pacer_certificate_expiry_timestamp_seconds", help: "When the certificate of the data port expires, in seconds since 1970. Absent without one.",
		each: func(l *Live, to emit) {
			if !l.CertificateEnds.IsZero() {
				to(float64(l.CertificateEnds.Unix()))
			}
		},
	},
}

func ofLiveBackend(each func(*LiveBackend, emit)) func(*Live, emit) {
	return func(l *Live, to emit) {
		for i := range l.Backends {
			each(&l.Backends[i], to)
		}
	}
}

func ofLiveRoute(each func(*LiveRoute, emit)) func(*Live, emit) {
	return func(l *Live, to emit) {
		for i := range l.Routes {
			each(&l.Routes[i], to)
		}
	}
}

func ofLivePoint(each func(*LiveTarget, *LivePoint, emit)) func(*Live, emit) {
	return func(l *Live, to emit) {
		for i := range l.Targets {
			for j := range l.Targets[i].Points {
				each(&l.Targets[i], &l.Targets[i].Points[j], to)
			}
		}
	}
}

// liveDescs are what the rows of ofLives are to Prometheus.
var liveDescs = func() (descs []*prometheus.Desc) {
	for _, row := range ofLives {
		descs = append(descs, prometheus.NewDesc(row.name, row.help, row.labels, nil))
	}
	return descs
}()

// liveCollector exports one Live, taken for one scrape.
type liveCollector struct{ Live }

// Describe implements prometheus.Collector.
func (c liveCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range liveDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c liveCollector) Collect(ch chan<- prometheus.Metric) {
	for i, row := range ofLives {
		kind := prometheus.GaugeValue
		if row.counter {
			kind = prometheus.CounterValue
		}
		row.each(&c.Live, func(v float64, labels ...string) {
			if !math.IsNaN(v) {
				ch <- prometheus.MustNewConstMetric(liveDescs[i], kind, v, labels...)
			}
		})
	}
}

// positive is v, or unknown where v is not above 0.
func positive(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

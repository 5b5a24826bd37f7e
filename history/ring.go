package history

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/keep"
)

const (
	// Step is how long the steps of the last hour are, and Minute those of the
	// hours before.
	Step   = 10 * time.Second
	Minute = time.Minute

	fineSteps     = 360
	coarseSteps   = 360
	finePerCoarse = int64(Minute / Step)

	// MaxNames bounds the routes, and the backends, that are remembered.
	MaxNames = 1024
)

// Ring is the history of all routes and backends. It is safe for concurrent use.
//
// Lock order: Ring.mu before Series.mu.
type Ring struct {
	mu       sync.Mutex
	routes   map[string]*Series
	backends map[string]*Series
	started  time.Time
	oldest   time.Time // since when something is remembered
	at       int64     // the step that runs
	heard    time.Time // when the other replicas were last heard of; zero = never
	replicas int       // then, this one included
}

// NewRing returns an empty ring of a gateway that starts at now.
func NewRing(now time.Time) *Ring {
	return &Ring{routes: map[string]*Series{}, backends: map[string]*Series{}, started: now, oldest: now, at: stepOf(now)}
}

func stepOf(t time.Time) int64 { return t.UnixNano() / int64(Step) }

// Configure makes these the names that are remembered, the first MaxNames of each;
// others are forgotten.
func (r *Ring) Configure(routes, backends []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	series := func(string) *Series { return &Series{} }
	r.routes, _ = keep.Map(r.routes, slices.Values(routes[:min(len(routes), MaxNames)]), series)
	r.backends, _ = keep.Map(r.backends, slices.Values(backends[:min(len(backends), MaxNames)]), series)
}

// Route returns the series of a route, nil when it is not remembered.
func (r *Ring) Route(name string) *Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[name]
}

// Backend returns the series of a backend, nil when it is not remembered.
func (r *Ring) Backend(name string) *Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backends[name]
}

// Advance ends the steps that are over at now. It is to be called once a second;
// what comes late stays in the step that runs. A clock that was set back ends
// nothing until it is where it was.
func (r *Ring) Advance(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := stepOf(now)
	if next <= r.at && r.at-next < fineSteps {
		return
	}
	// Of several steps nobody counted in all but the first; those stay empty.
	last := next/finePerCoarse != r.at/finePerCoarse
	for _, of := range []map[string]*Series{r.routes, r.backends} {
		for _, s := range of {
			s.close(r.at, last)
		}
	}
	r.at = next
}

// Started is when the gateway started.
func (r *Ring) Started() time.Time { return r.started }

// Sample adds the figures of a moment; speed is how fast a backend is, of what was
// learned.
func (r *Ring) Sample(s Snapshot, speed func(backend string) float64) {
	for i := range s.Routes {
		if series := r.Route(s.Routes[i].Name); series != nil {
			series.gauge(Gauges{GaugeFree: s.Routes[i].Free, GaugeWaiting: float64(s.Routes[i].Waiting), 2: math.NaN(), 3: math.NaN()})
		}
	}
	for i := range s.Backends {
		b := &s.Backends[i]
		up := 0.0
		if b.Health == IsUp && !b.Hung {
			up = 1
		}
		if series := r.Backend(b.Name); series != nil {
			series.gauge(Gauges{GaugeN: float64(b.N), GaugeM: float64(b.M), GaugeUp: up, GaugeSpeed: speed(b.Name)})
		}
	}
}

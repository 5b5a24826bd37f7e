package telemetry

import (
	"net/http"
	"time"
)

// Result is what became of a request in the eyes of its route's SLO.
type Result uint8

// offered = met + missed + unmeasured + shed + failed.
const (
	Met Result = iota
	Missed
	Unmeasured
	Shed
	Failed
)

// Exchange is one finished request.
type Exchange struct {
	Route, Backend, Class string // Route "unknown" for an unknown model; Backend "" when none
	Outcome               string // ok | client_gone | upstream_error | cut | rejected | shed
	Counted               bool   // belongs to an SLO: false for rejected requests and clients that left before the first token
	Result                Result
	ShedReason            string // with Shed

	TTFT                                    time.Duration // 0 = no token came
	TPS                                     float64       // 0 or NaN = unmeasured
	Duration                                time.Duration // of the stream
	Waited                                  time.Duration // in line
	Overhead                                time.Duration // own time: arrival to send, without waiting in line
	Predicted                               float64       // tokens/s, 0 = unknown
	InputTokens, CachedTokens, OutputTokens float64
	Source                                  string // of OutputTokens
	CostUSD                                 float64
}

// RouteStats is what a route got so far; quantiles are over the last hours.
type RouteStats struct {
	Offered, Met, Missed, Unmeasured, Shed, Failed uint64
	TPSP10, TPSP50, TPSP90                         float64 // NaN when none
	TTFTP50, TTFTP90, TTFTP99                      float64 // seconds
}

// Live is read at each scrape: what router and profiles know now.
type Live struct {
	Backends []LiveBackend
	Routes   []LiveRoute
	Targets  []LiveTarget
}

type LiveBackend struct {
	Name              string
	Waiting, Decoding int
	BreakerState      int // 0 closed, 1 half-open, 2 open
}

type LiveRoute struct {
	Name     string
	Queued   int
	Capacity map[string]int // backend → largest n with tps ≥ floor
}

type LiveTarget struct {
	Backend, Model string
	Points         []LivePoint
}

type LivePoint struct {
	N        int
	TPS, Low float64
}

// Metrics collects. Safe for concurrent use.
type Metrics struct{}

// New returns metrics whose label sets start with the given routes (with their
// class) and backends at 0. live is called at each scrape; nil = none.
func New(routes map[string]string, backends []string, live func() Live) *Metrics { panic("unwritten") }

// Configure adds routes and backends after a reload.
func (m *Metrics) Configure(routes map[string]string, backends []string) { panic("unwritten") }

// Observe counts one finished request.
func (m *Metrics) Observe(x Exchange) { panic("unwritten") }

// Route returns the figures of one route.
func (m *Metrics) Route(name string) RouteStats { panic("unwritten") }

// StoreUp and StoreLag are set by the loop that talks to the store.
func (m *Metrics) StoreUp(up bool)            { panic("unwritten") }
func (m *Metrics) StoreLag(lag time.Duration) { panic("unwritten") }

// Handler serves the Prometheus text.
func (m *Metrics) Handler() http.Handler { panic("unwritten") }

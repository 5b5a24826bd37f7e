package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Target is one upstream model on one backend.
type Target = profiles.Target

// Class is what a route promises.
type Class uint8

// Interactive routes may have a floor; batch routes have none, fill what is
// left, and never break or lock out a floor.
const (
	Interactive Class = iota
	Batch
)

// classes is how many there are: each route has one waiting line per class.
const classes = 2

// String returns interactive or batch.
func (c Class) String() string {
	if c == Batch {
		return "batch"
	}
	return "interactive"
}

// StepKind is one thing to do when no target is feasible.
type StepKind uint8

// The steps of on_infeasible.
const (
	Queue      StepKind = iota // wait in the route's line, at most Step.Wait
	Spill                      // place on the route Step.Route instead
	BestEffort                 // take the target that is harmed least, with no floor
	Shed                       // refuse
)

// Step is one entry of on_infeasible.
type Step struct {
	Kind  StepKind
	Wait  time.Duration // Queue
	Route string        // Spill
}

// SLO is what a route promises per stream.
type SLO struct {
	MinTPS  float64       // tokens/s of one stream; 0 = no floor
	MaxTTFT time.Duration // 0 = none

	// Grace is by how much the last token of a stream may be late for the floor.
	Grace time.Duration

	Guarantee Guarantee // places that are kept for the route at any load
}

// RouteTarget is one of a route's targets. Model "" sends the client's model
// name up unchanged; the curve is then kept under Target{Backend, ""}.
type RouteTarget struct {
	Target
	InputPrice, OutputPrice float64 // USD per million tokens

	// Weight is the target's part of the requests of its route, relative to those
	// of the others. All 0: the policy of the route chooses.
	Weight float64
}

// Route is what a client names in "model".
type Route struct {
	Name    string
	Class   Class
	Targets []RouteTarget
	SLO     SLO    // of an interactive route; a batch route has no floor, whatever MinTPS says
	Prefer  Prefer // the word of its policy; "" = Headroom

	// NoAffinity has requests go where Prefer says, wherever their prompts are cached. What
	// Request.Warm says then only tells what they have prefilled.
	NoAffinity bool

	// BatchShare is what batch gets even while interactive requests are kept
	// waiting: for each of those that is placed on a backend, so much of a place.
	// The largest of the routes there counts. 0 = 0.02; negative = none.
	BatchShare float64

	// Reserve is how many extra streams must still fit at the highest floor
	// configured on a backend before a batch request goes there. The largest
	// among the batch route and the interactive routes of that backend counts.
	// Default 1, set by the configuration.
	Reserve int

	OnInfeasible []Step
	MaxWaiting   int // length of the waiting line; 0 = 1000
}

// Backend is one upstream engine as configured.
type Backend struct {
	Name           string
	Engine         string // what stands behind the name, its URL say; another one is another incarnation
	MaxConcurrency int    // cap on m, and on requests that do not decode; 0 = none
	Health         Health // of a new incarnation, until BackendHealth says otherwise
}

// Topology is everything configured. Replicas is how many gateways share the
// backends until remote load tells; at least 1.
type Topology struct {
	Backends []Backend
	Routes   []Route
	Replicas int
}

package router

import "time"

// Request is what the router must know of a request.
type Request struct {
	Route   string
	Arrived time.Time // when it came to the gateway: waiting counts from here

	PromptTokens int  // estimate; 0 = unknown
	MaxTokens    int  // asked for; 0 = unknown
	Sequences    int  // decoded at once (n, best_of, prompts of an array); 0 counts as 1
	Stream       bool // a stream tells its first token by Lease.FirstToken; any other counts as decoding from the predicted TTFT on
	NoDecode     bool // embeddings and the like: a lease for caps and health, weight 0

	// Wishes of the request that replace the route's; nil = the route's own.
	Class   *Class
	MinTPS  *float64
	MaxTTFT *time.Duration

	Tenant  string   // for fairness within a line
	Exclude []string // backends already tried for this request
	NoQueue bool     // decide now: a failover does not stand in line

	// Waiter is handed back in the Grant, untouched.
	Waiter any
}

// Candidate is one target as seen by one decision.
type Candidate struct {
	Target   Target
	N, M     int     // sequences decoding, with a lease: before this request
	TPS, Low float64 // at M plus this request; NaN and 0 when unknown
	Floor    float64 // of the request
	Protect  float64 // highest floor that must hold there
	Headroom float64 // Low over the highest floor it has to meet; +Inf without one
	Price    float64
	Feasible bool
	Reason   Reason // OK, or the first rule that said no
}

// Reason is the verdict on one candidate. Its strings are those of the
// decisions API: ok, down, breaker, drain, cap, slow_start, own_floor,
// protects, reserve, ttft, tenant, unknown.
type Reason uint8

// The reasons, in the order in which the rules are asked.
const (
	OK Reason = iota
	ReasonDown
	ReasonBreaker
	ReasonDrain
	ReasonCap
	ReasonSlowStart
	ReasonOwnFloor
	ReasonProtects
	ReasonReserve
	ReasonTTFT
	ReasonTenant
	ReasonUnknown
)

// String returns the reason as in the decisions API.
func (r Reason) String() string { panic("unwritten") }

// ShedReason says why a request was refused. Its strings are the label values
// of pacer_shed_total.
type ShedReason uint8

// The shed reasons.
const (
	ShedFloor        ShedReason = iota // floor
	ShedUnattainable                   // floor_unattainable: not even an idle target could give it
	ShedTTFT                           // ttft
	ShedQueueFull                      // queue_full
	ShedTimeout                        // timeout: waited as long as allowed
	NoBackend                          // none in service: not load, answered 503
)

// String returns the label value; "no_backend" for NoBackend.
func (s ShedReason) String() string { panic("unwritten") }

// Refusal says why a request was not placed and when to come back.
type Refusal struct {
	Reason     ShedReason
	RetryAfter time.Duration // 1 s to 60 s, jittered; 0 when waiting cannot help
	Best       float64       // highest Low on offer, tokens/s; 0 when unknown
	Floor      float64       // what was asked for
}

// Decision is the answer of Place: exactly one of Lease, Ticket and Refusal is
// set.
type Decision struct {
	Lease   *Lease
	Ticket  *Ticket
	Refusal *Refusal

	Chosen  Candidate // with a Lease
	Policy  string    // headroom, order, cheapest, pack, best_effort, round-robin
	Spilled string    // the route it was spilled to, "" if none
	Waited  time.Duration
}

// Ticket is a place in a route's waiting line.
type Ticket struct{}

// Deadline is when waiting ends; the caller then calls Expire.
func (t *Ticket) Deadline() time.Time { panic("unwritten") }

// Expire ends the wait and goes on with the route's next step (spill,
// best_effort, shed). A Grant that is already on its way wins: its decision is
// returned.
func (t *Ticket) Expire(now time.Time) Decision { panic("unwritten") }

// Cancel leaves the line because the client is gone. A lease that was granted
// meanwhile is given back; the Grants are those it makes possible.
func (t *Ticket) Cancel(now time.Time) []Grant { panic("unwritten") }

// Grant is the decision that a waiting ticket got: a lease, or a refusal when
// waiting became pointless.
type Grant struct {
	Ticket   *Ticket
	Waiter   any
	Decision Decision
}

// Place decides where a request goes and reserves its place, under one lock.
// An unknown route is the caller's to refuse; here it is NoBackend.
func (r *Router) Place(now time.Time, req Request) Decision { panic("unwritten") }

// Assign places a request on target without asking whether it is feasible,
// as long as the backend is in service and not excluded: the door for other
// policies than the router's own.
func (r *Router) Assign(now time.Time, req Request, target Target, policy string) Decision {
	panic("unwritten")
}

// Explain returns every candidate for req as Place would see it now, and
// reserves nothing.
func (r *Router) Explain(now time.Time, req Request) []Candidate { panic("unwritten") }

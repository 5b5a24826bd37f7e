package router

import (
	"math"
	"time"
)

// Candidate is one target as seen by one decision.
type Candidate struct {
	Target   Target
	N, M     int     // sequences decoding, with a lease: before this request
	Unheard  int     // beside M: that others are thought to run there, and have not told of
	TPS, Low float64 // at M and Unheard plus this request; NaN and 0 when unknown, or when it does not decode
	Basis    Basis   // what Low, or the verdict on somebody else's floor, rests on
	Floor    float64 // of the request
	Protect  float64 // highest floor that must hold there
	Headroom float64 // Low over the highest floor it has to meet; +Inf without one
	Held     int     // sequences for which a place is kept there, for other routes, and not yet used
	Price    float64 // of this request as expected, in USD; 0 when none is configured
	Warm     Warm    // what its prefix cache is expected to have of the prompt
	Feasible bool
	Reason   Reason // OK, or the first rule that said no
}

// Warm is what a target's prefix cache is expected to have of a prompt. The zero
// value is nothing.
type Warm struct {
	Tokens int           // in the cache
	Prompt int           // of the whole prompt
	Saves  time.Duration // until the first token, and for all who stream there
}

// Reason is the verdict on one candidate. Its strings are those of the
// decisions API: ok, down, breaker, refuses, drain, cap, slow_start, own_floor,
// protects, reserve, guarantee, ttft, tenant, unknown.
type Reason uint8

// The reasons, in the order in which the rules are asked.
const (
	OK Reason = iota
	ReasonDown
	ReasonBreaker
	ReasonRefuses // it refused everything of late, and rests
	ReasonDrain
	ReasonCap
	ReasonSlowStart
	ReasonOwnFloor
	ReasonProtects
	ReasonReserve
	ReasonGuarantee // what is kept there for another route could not be taken
	ReasonTTFT
	ReasonTenant
	ReasonUnknown
)

var reasonNames = [...]string{
	OK:              "ok",
	ReasonDown:      "down",
	ReasonBreaker:   "breaker",
	ReasonRefuses:   "refuses",
	ReasonDrain:     "drain",
	ReasonCap:       "cap",
	ReasonSlowStart: "slow_start",
	ReasonOwnFloor:  "own_floor",
	ReasonProtects:  "protects",
	ReasonReserve:   "reserve",
	ReasonGuarantee: "guarantee",
	ReasonTTFT:      "ttft",
	ReasonTenant:    "tenant",
	ReasonUnknown:   "unknown",
}

// String returns the reason as in the decisions API.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Basis is what the speed in a verdict rests on. Its strings are those of the
// decisions API.
type Basis uint8

// What a verdict may rest on.
const (
	NoBasis     Basis = iota // "": no speed was asked for
	ByLevel                  // level: what the streams there get now, and how the curve falls from there
	ByOneMore                // one_more: the streams there are well above what is needed
	ByCurve                  // curve: its bound
	BySeen                   // seen: what streams got there, against the fit
	ByEdge                   // edge: the curve goes on beyond what was visited
	BySlowStart              // slow_start: nothing is known; a few show what it takes
	ByQuota                  // quota: what its backend told is left of a limit
	ByGrace                  // grace: a little below the floor, for as long as all are ahead of it and others end
	ByLead                   // lead: a stream there would fall behind while the prompt is prefilled
	ByClearing               // clearing: it is to have a prompt first that many share, see clearing
)

var basisNames = [...]string{
	NoBasis: "", ByLevel: "level", ByOneMore: "one_more", ByCurve: "curve",
	BySeen: "seen", ByEdge: "edge", BySlowStart: "slow_start", ByLead: "lead", ByQuota: "quota", ByGrace: "grace", ByClearing: "clearing",
}

// String returns the basis as in the decisions API.
func (b Basis) String() string {
	if int(b) < len(basisNames) {
		return basisNames[b]
	}
	return ""
}

// outOfService reports whether r says that the backend takes nobody, however
// little runs there.
func (r Reason) outOfService() bool {
	switch r {
	case ReasonDown, ReasonBreaker, ReasonRefuses, ReasonDrain, ReasonUnknown:
		return true
	}
	return false
}

// candidate spells out v for those who read decisions.
func (a *ask) candidate(v *verdict) Candidate {
	t := &a.route.conf.Targets[v.index]
	c := Candidate{
		Target: t.Target, TPS: math.NaN(), Low: v.low, Basis: v.basis, Floor: a.floor,
		Protect: v.protect, Headroom: v.headroom, Feasible: v.reason == OK, Reason: v.reason,
	}
	if v.basis == BySlowStart { // no bound decided
		c.Low, c.Headroom = 0, math.Inf(1)
	}
	m := v.model
	if m == nil {
		return c
	}
	c.N, c.M, c.Held = m.group.n(), m.group.m(), a.heldFor(m.group)
	c.Unheard = m.group.present().m - c.M
	c.Price = a.price(t, m)
	if likely, _ := a.warmth(m); likely > 0 {
		c.Warm = Warm{Tokens: likely, Prompt: a.prompt, Saves: a.saved(m)}
	}
	if m.known && a.weight > 0 {
		c.TPS = m.expects(c.M + c.Unheard + a.weight)
	}
	return c
}

package arena

import "github.com/pacer-dev/pacer/internal/baseline"

// Policy is who places requests. Only Pacer, the oracles and LeastCapped refuse any: the
// others have no admission control, as in the gateways that they stand for, and
// send every request somewhere as long as a backend is in service.
type Policy string

// The policies.
const (
	Pacer          Policy = "pacer"                        // the router, with curves learned from the streams
	RoundRobin            = Policy(baseline.RoundRobin)    // each target in turn
	Random                = Policy(baseline.Random)        // at random, by what each target carries at the route's floor
	LeastRequests         = Policy(baseline.LeastRequests) // the fewest requests in flight
	P2C                   = Policy(baseline.P2C)           // the emptier of two drawn at random
	EWMA                  = Policy(baseline.EWMA)          // the highest moving average of tokens/s
	CacheFirst            = Policy(baseline.CacheFirst)    // the most of the prompt in its cache, while nobody has far more requests than others
	SessionHash           = Policy(baseline.SessionHash)   // by the session alone
	LowestLatency         = Policy(baseline.LowestLatency) // the lowest mean time per token of the last requests
	Oracle         Policy = "oracle"                       // the router, told the true curves; the margin by the same rule
	OracleNoMargin Policy = "oracle_no_margin"             // and without a margin

	// LeastCapped is the fewest requests in flight, below a cap of each backend
	// that somebody set by hand who knew the true curves and the lengths of the
	// first minutes; who finds no place waits in line, and is refused in the end.
	LeastCapped Policy = "least_capped"
)

// learns reports whether the policy reads what streams teach: the curves, or,
// of the oracles, the margin.
func (p Policy) learns() bool { return p == Pacer || p == Oracle || p == OracleNoMargin }

// compared reports whether it is one of internal/baseline, and not the routes' own.
func (p Policy) compared() bool { return !p.learns() && p != LeastCapped }

// talkPolicies are those that differ from others where prompts come again.
func talkPolicies() []Policy { return []Policy{CacheFirst, SessionHash} }

// Policies returns all others, Pacer first.
func Policies() []Policy {
	return []Policy{Pacer, Oracle, OracleNoMargin, LeastCapped, EWMA, LowestLatency, LeastRequests, P2C, RoundRobin, Random}
}

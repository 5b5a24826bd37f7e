package arena

// Policy is who places requests. Only Pacer, the oracles and LeastCapped refuse any: the
// others have no admission control, as in the gateways that they stand for, and
// send every request somewhere as long as a backend is in service.
type Policy string

// The policies.
const (
	Pacer          Policy = "pacer"            // the router, with curves learned from the streams
	RoundRobin     Policy = "round_robin"      // each target in turn
	Random         Policy = "random"           // at random, by what each target carries at the route's floor
	LeastRequests  Policy = "least_requests"   // the fewest requests in flight
	P2C            Policy = "p2c"              // the emptier of two drawn at random
	EWMA           Policy = "ewma"             // the highest moving average of tokens/s
	LowestLatency  Policy = "lowest_latency"   // the lowest mean time per token of the last requests
	Oracle         Policy = "oracle"           // the router, told the true curves; the margin by the same rule
	OracleNoMargin Policy = "oracle_no_margin" // and without a margin

	// LeastCapped is the fewest requests in flight, below a cap of each backend
	// that somebody set by hand who knew the true curves and the lengths of the
	// first minutes; who finds no place waits in line, and is refused in the end.
	LeastCapped Policy = "least_capped"
)

// Policies returns all of them, Pacer first.
func Policies() []Policy {
	return []Policy{Pacer, Oracle, OracleNoMargin, LeastCapped, EWMA, LowestLatency, LeastRequests, P2C, RoundRobin, Random}
}

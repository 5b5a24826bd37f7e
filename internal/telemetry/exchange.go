package telemetry

import "time"

// Result is what became of a request in the eyes of its route's SLO.
type Result uint8

// The results: offered = Met + Missed + Unmeasured + Shed + Failed.
const (
	Met Result = iota
	Missed
	Unmeasured // served, but its speed could not be judged: not streamed, too short
	Shed
	Failed

	numResults
)

var resultNames = [numResults]string{"met", "missed", "unmeasured", "shed", "failed"}

// String returns the label value of pacer_slo_total.
func (r Result) String() string {
	if r < numResults {
		return resultNames[r]
	}
	return "unknown"
}

// Hedge is what became of the second attempt of a request whose first one was
// silent for too long.
type Hedge uint8

// The results; the zero value says that nobody had to wait for so long.
const (
	NotHedged    Hedge = iota
	HedgeWon           // the second attempt's answer was kept
	HedgeLost          // it was sent, and its answer not kept
	HedgeRefused       // it was not sent: no target had room, or no send was left

	numHedges
)

var hedgeNames = [numHedges]string{"none", "won", "lost", "refused"}

// String returns the label value of pacer_hedges_total.
func (h Hedge) String() string {
	if h < numHedges {
		return hedgeNames[h]
	}
	return "unknown"
}

// Exchange is one finished request.
type Exchange struct {
	Route   string // "unknown" for an unknown model
	Backend string // "" when it reached none
	Class   string // interactive | batch; "" is the class of the route
	Outcome string // ok | client_gone | upstream_error | cut | rejected | shed

	// Counted says that the request belongs to an SLO: false for rejected
	// requests and for clients that left before the first token.
	Counted    bool
	Result     Result // read when Counted
	ShedReason string // with Shed: a label value of pacer_shed_total

	TTFT      time.Duration // 0 = no token came
	TPS       float64       // of the decoding; 0 or NaN = unmeasured
	Duration  time.Duration // of the stream; 0 = there was none
	Waited    time.Duration // in line; 0 = did not stand in it
	Overhead  time.Duration // own time: arrival to send, without waiting in line; 0 = never sent
	Hedge     Hedge
	Predicted float64 // tokens/s that the curve says for the levels of n it lived at, 0 = unknown

	InputTokens  float64 // the whole prompt
	CachedTokens float64 // of these, served from a prefix cache
	OutputTokens float64 // with those that the backend counted and did not show
	Source       string  // of OutputTokens: usage | continuous | chunks | estimate | none
	CostUSD      float64
}

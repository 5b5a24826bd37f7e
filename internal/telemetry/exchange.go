package telemetry

import (
	"slices"
	"time"

	"github.com/pacer-dev/pacer/history"
)

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

// Exchange is one finished request.
type Exchange struct {
	Route   string // "unknown" for an unknown model
	Backend string // "" when it reached none
	Class   string // interactive | batch; "" is the class of the route
	Outcome string // ok | client_gone | upstream_error | cut | rejected | shed
	TraceID string // of the trace that it is part of, if that is recorded; "" = none

	// Counted says that the request belongs to an SLO: false for rejected
	// requests and for clients that left before the first token.
	Counted    bool
	Result     Result // read when Counted
	ShedReason string // with Shed: a label value of pacer_shed_total

	TTFT      time.Duration // from sending; 0 = no token came
	Unsent    time.Duration // from arriving to that sending: in line, and with attempts that failed
	TPS       float64       // of the decoding; 0 or NaN = unmeasured
	Duration  time.Duration // of the stream; 0 = there was none
	Waited    time.Duration // in line; 0 = did not stand in it
	Back      bool          // it was refused before, and came back as told
	Key       string        // name of the key that asked; "" = there are none. It is no label
	Overhead  time.Duration // own time: arrival to send, without waiting in line; 0 = never sent
	Hedge     Hedge
	Passages  []Passage
	Predicted float64 // tokens/s that the curve says for the levels of n it lived at, 0 = unknown

	InputTokens  float64 // the whole prompt
	CachedTokens float64 // of these, served from a prefix cache
	WarmTokens   float64 // and so many were expected to be
	OutputTokens float64 // with those that the backend counted and did not show
	Source       string  // of OutputTokens: usage | continuous | chunks | estimate | none
	CostUSD      float64
}

// ofRoute is a metric of a route, to which each of its finished requests may
// add. Its series stand there with 0 from the start, and leave with the route.
type ofRoute struct {
	name, help string
	edges      []float64 // of a histogram; nil = it is a counter
	label      string    // of a counter, beside the route: one of words
	words      []string

	// of returns the index of the word that x counts for, and what is added or
	// observed; 0 = x says nothing.
	of func(x Exchange) (word int, value float64)
}

// ofRoutes is the list of these metrics.
var ofRoutes = []ofRoute{
	{
		name: "pacer_slo_total", help: "Requests by what became of them in the eyes of the route's SLO.",
		label: "result", words: resultNames[:],
		of: func(x Exchange) (int, float64) { return int(x.Result), oneIf(x.judged()) },
	},
	{
		name: "pacer_shed_total", help: "Requests refused because of load, by the rule that refused.",
		label: "reason", words: shedReasons,
		of: func(x Exchange) (int, float64) {
			reason := slices.Index(shedReasons, x.ShedReason)
			return reason, oneIf(x.judged() && x.Result == Shed && reason >= 0)
		},
	},
	{
		name: "pacer_hedges_total", help: "Streams that waited too long for their first byte, by what became of a second attempt: won and lost were sent, refused were not.",
		label: "result", words: hedgeNames[NotHedged+1:],
		of: func(x Exchange) (int, float64) {
			return int(x.Hedge) - 1, oneIf(x.Hedge > NotHedged && x.Hedge < numHedges)
		},
	},
	{
		name: "pacer_queue_wait_seconds", help: "Time in line, of requests that stood in it.", edges: waitEdges,
		of: func(x Exchange) (int, float64) { return 0, x.Waited.Seconds() },
	},
	{
		name: "pacer_first_token_seconds", help: "Time from a request's arrival to its first token, in line too, as slo.max_ttft counts it. pacer_ttft_seconds begins at its sending.", edges: ttftEdges,
		of: func(x Exchange) (int, float64) { return 0, x.firstToken().Seconds() },
	},
}

// judged reports whether x has a result in the eyes of an SLO.
func (x *Exchange) judged() bool { return x.Counted && x.Result < numResults }

// outcomeOfRoute is x as the history of its route has it: a user waits for the first
// token in line, too, and so slo.max_ttft counts.
func (x *Exchange) outcomeOfRoute() history.Outcome {
	o := x.outcome()
	o.TTFT = x.firstToken().Seconds()
	return o
}

// firstToken is how long the user waited for the first token; 0 = none came.
func (x *Exchange) firstToken() time.Duration {
	if x.TTFT <= 0 {
		return 0
	}
	return x.Unsent + x.TTFT
}

// outcome is x as the history of its backend has it.
func (x *Exchange) outcome() history.Outcome {
	o := history.Outcome{
		Result: history.Result(x.Result), TPS: x.TPS, TTFT: x.TTFT.Seconds(),
		Duration: x.Duration.Seconds(), Tokens: x.OutputTokens, Back: x.Back, Key: x.Key,
	}
	o.ShedReason = history.Reason(max(slices.Index(shedReasons, x.ShedReason), 0)) // in the same order
	return o
}

package arena

import (
	"math"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// Result is what became of a scenario. Counts and quantiles are of the
// requests that came after the warm-up; a quantile of nothing is NaN.
type Result struct {
	Policy   Policy
	Routes   []RouteResult   // in the order of the scenario
	Backends []BackendResult // in the order of the scenario

	// Measured is the time that was counted: Duration less Warmup.
	Measured time.Duration

	// Requests is how many were played, in the warm-up too, Tokens how many
	// they put out, and Wall how long that took.
	Requests, Tokens int
	Wall             time.Duration
}

// Counts says what became of requests.
// Offered = Met + Missed + Unmeasured + Shed + Failed.
type Counts struct {
	Offered int
	Met     int // kept floor and TTFT, or were promised nothing
	Missed  int
	Late    int // of Missed: their first token was not in time
	Shed    int

	// Unmeasured streams had a floor and too few tokens to judge them by it;
	// Failed ones were cut, or no backend was in service.
	Unmeasured, Failed int

	// PromptTokens is of all that were offered, ServedPromptTokens of those
	// that were met, missed or unmeasured.
	PromptTokens, ServedPromptTokens int
}

// Attainment is the share of what was offered that got what it was promised;
// who could not be judged counts with neither. NaN of nothing.
func (c Counts) Attainment() float64 {
	return float64(c.Met) / float64(c.Offered-c.Unmeasured)
}

// MissedOfServed is the share of the streams that were admitted, ran to their
// end and missed their promise. NaN of nothing.
func (c Counts) MissedOfServed() float64 {
	return float64(c.Missed) / float64(c.Met+c.Missed)
}

// RouteResult is what the clients of one route got.
type RouteResult struct {
	Route string
	Counts

	CachedTokens int // of ServedPromptTokens, that the engines had in their prefix caches

	Goodput float64 // tokens/s of all streams that met their promise, together
	Ended   float64 // the same of those that ended while it was counted, whenever they came

	// MetTokens is the tokens of those streams by the minute of the scenario in
	// which they came.
	MetTokens []float64

	TPSP10, TPSP50       float64       // tokens/s of one stream while decoding
	TTFTP50, TTFTP99     time.Duration // from arrival, so with the wait; 0 of nothing
	WaitedP50, WaitedP99 time.Duration // in line, of those that were placed; 0 of nothing

	// ByPrompt is Counts by length of the prompt, in the order of PromptClasses.
	ByPrompt [len(PromptClasses)]Counts

	// ByManner is Counts by how clients come back who were refused.
	ByManner [manners]Counts

	// Room is what the router says of each of the route's targets when all is over,
	// with what it has learned; nil for a policy that goes by no curve.
	Room []router.TargetRoom

	// Unkept is the same if no route had places guaranteed; nil where none has.
	Unkept []router.TargetRoom

	// FirstPlaced is how long after the route's first arrival one was placed;
	// negative when none was.
	FirstPlaced time.Duration

	// Returned is how many retries came when they were told that there is a place,
	// ReturnedPlaced how many of them were placed.
	Returned, ReturnedPlaced int
}

// PromptClasses are the upper ends, in tokens, of the classes of prompts that
// are counted apart. The last has no end.
var PromptClasses = [...]int{256, 1024, 4096, math.MaxInt}

// BackendResult is what one backend did.
type BackendResult struct {
	Backend string

	MeanM float64 // sequences there, on average over the time that was counted
	PeakM int     // most of them at once

	// Floor is the highest that a route promises here, 0 if none. Users is how
	// many streams keep it by the curve that was learned, TrueUsers by the true
	// one, both at the prompts and answers of this scenario and without margin;
	// Users is 0 where nothing was learned.
	Floor            float64
	Users, TrueUsers int

	PromptTokens, OutputTokens int     // within the time that was counted
	CachedTokens               int     // of PromptTokens, that were in the prefix cache
	TokensUSD                  float64 // by the price
	HourUSD                    float64 // by the hour, for that time
}

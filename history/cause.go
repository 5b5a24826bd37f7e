package history

import (
	"cmp"
	"fmt"
	"time"
)

// Kind is what sort of thing is wrong. Its strings are the label values of
// pacer_route_cause and pacer_backend_cause.
type Kind uint8

// The kinds, the worst first: of several a backend or route has the first. The
// zero value is none.
const (
	None Kind = iota
	BackendDown
	Loading
	Drained
	UpstreamModel
	UpstreamCredentials
	UpstreamQuota
	UpstreamErrors
	FloorUnattainable
	Slower
	Overload
	TTFT
	FloorMissed
	StoreDown
	ConfigRefused

	numKinds
)

// kind is a row of the table of causes.
type kind struct {
	word   string
	mark   string // of the timeline
	raise  int    // seconds that it has to last before it is said
	means  string
	advice string
}

// kinds is the one table of what causes are called, what they mean, and what to do.
// docs/OPERATIONS.md has the same words; a test compares them.
var kinds = [numKinds]kind{
	BackendDown: {
		"backend_down", "backend_down", 1,
		"Requests to the backend fail, or its health page does; or it takes requests and answers nothing. Nothing is sent there but one probe at a time.",
		"Start the engine, or mend the network to it. It is back within 5 s of answering.",
	},
	Loading: {
		"loading", "loading", 1,
		"The engine answers, and says that it still loads its model. Nothing is sent there.",
		"Wait. If it takes longer than usual, read the engine's log.",
	},
	Drained: {
		"drained", "drain", 1,
		"An operator took the backend out of service. What runs there goes on, and nothing new is sent.",
		"Resume it when the work is done: the button on the page, or POST /api/v1/backends/NAME/resume.",
	},
	UpstreamModel: {
		"upstream_model", "errors", 2,
		"The engine does not have the model that the route names there.",
		"Write the name that the engine lists at /v1/models into the target's model, or load the model there.",
	},
	UpstreamCredentials: {
		"upstream_credentials", "errors", 2,
		"The backend refuses the key that Pacer sends, or wants one.",
		"Correct api_key of the backend (401), or what the key may do (403). The file is read again by itself.",
	},
	UpstreamQuota: {
		"upstream_quota", "errors", 2,
		"The account at the backend is empty (402), or the backend takes no more at this rate (429).",
		"Pay, or raise the limit there. Until then set max_concurrency of the backend below it, or add a target.",
	},
	UpstreamErrors: {
		"upstream_errors", "errors", 3,
		"The engine breaks at requests, answers with what is no answer, or does not answer in time.",
		"Read the engine's log. Restart it if it breaks at everything.",
	},
	FloorUnattainable: {
		"floor_unattainable", "floor", 2,
		"Even a stream that is alone on an engine gets less than min_tps. Such requests are refused at once, for waiting cannot help.",
		"Lower min_tps of the route to what an engine gives a stream that is alone, or add a faster one.",
	},
	Slower: {
		"slower", "drift", 3,
		"Streams get that share of the speed that was learned at the same load. Fewer of them fit under the floor.",
		"Look at the engine: clocks and temperature of the GPU, another tenant, another model or version. Drain it if others have room.",
	},
	Overload: {
		"overload", "shedding", 4,
		"More streams come than keep the floor on these engines: the first figure is what users ask for, the second what fits.",
		"Add an engine, lower min_tps, or let the route wait longer or spill (on_infeasible). pacer plan says how many engines it takes. Is it mostly of one key, give that key limits.",
	},
	TTFT: {
		"ttft", "shedding", 4,
		"First tokens would come later than max_ttft: prompts ahead are long, or the engine queues.",
		"Raise max_ttft, add an engine, or send long prompts to a route of their own.",
	},
	FloorMissed: {
		"floor_missed", "floor", 4,
		"Streams that were let in ended later than the route promises, and no engine is slower than it was learned to be.",
		"Look at the decisions of these requests. Long prompts beside them, or load that does not come through Pacer (metrics_url), are the usual reasons.",
	},
	StoreDown: {
		"store_down", "store", 2,
		"Redis does not answer. Requests are served by what this gateway knows; curves, load and limits are not shared. Of several gateways none is told how many users the others have, so curves stay as they are.",
		"Bring Redis back. Curves are learned on then.",
	},
	ConfigRefused: {
		"config_refused", "config_refused", 1,
		"The configuration file was changed, and cannot be used as it is. The one before stays in force, also for users.",
		"Correct the file: pacer check FILE names each problem with its place, and so does the log. It is read again when it changes.",
	},
}

// String returns the label value.
func (k Kind) String() string { return kinds[k].word }

// Means says what a cause of this kind says.
func (k Kind) Means() string { return kinds[k].means }

// Advice says what to do.
func (k Kind) Advice() string { return kinds[k].advice }

// Cause is why a route or backend does not do what it should.
type Cause struct {
	Kind  Kind
	Words string // without since when

	// Backend is the one to look at, "" where it is none alone; Model is the target
	// there that has the cause, "" = all of them.
	Backend, Model string

	speed float64 // of Slower: the share of what was learned; 0 = another kind

	Since time.Time
}

// Text is the cause in words, with since when. The log, the API, the page and the
// timeline say it so.
func (c Cause) Text() string { return c.Words + " since " + clock(c.Since) }

// clock is the time of day; the day is in Since.
func clock(t time.Time) string { return t.UTC().Format("15:04 UTC") }

// Of is what has a cause: the gateway, a route or a backend.
type Of uint8

// What has causes.
const (
	OfGateway Of = iota
	OfRoute
	OfBackend
)

// String returns the word of the API.
func (o Of) String() string { return [...]string{"gateway", "route", "backend"}[o] }

// Standing is a cause and what has it.
type Standing struct {
	Of   Of
	Name string // "" = the gateway
	Cause
}

// subject is "route chat: ", and nothing for the gateway.
func subject(of Of, name string) string {
	if of == OfGateway {
		return ""
	}
	return of.String() + " " + name + ": "
}

// Fault is what a target answers instead of serving, since it last served.
type Fault struct {
	Model   string // the name that goes up; "" = the client's own
	Status  int    // 0 = no answer, or none that is one
	Message string // one line without secrets
	Count   int    // in a row
	Last    time.Time
}

// The least faults in a row that are said, and how long they are remembered while
// nothing comes that could show that they are over.
const (
	leastFaults = 2
	leastErrors = 3
	faultLasts  = 10 * time.Minute
)

// cause is that of a fault; None while it may be an accident, or a client's own.
func (f Fault) cause(now time.Time) (c Cause) {
	if f.Count < leastFaults || now.Sub(f.Last) > faultLasts {
		return c
	}
	c.Model = f.Model
	switch f.Status {
	case 404:
		c.Kind, c.Words = UpstreamModel, fmt.Sprintf("upstream 404: model %q not found", cmp.Or(f.Model, "of the client's choice"))
	case 400, 401, 403, 407:
		c.Kind, c.Words = UpstreamCredentials, fmt.Sprintf("credentials refused: upstream %d", f.Status)
	case 402, 429:
		c.Kind, c.Words = UpstreamQuota, fmt.Sprintf("quota: upstream %d", f.Status)
	case 0:
		c.Kind, c.Words = UpstreamErrors, "upstream: "+f.Message
	default: // what engines say that break may quote what they broke at, which is a user's
		c.Kind, c.Words = UpstreamErrors, fmt.Sprintf("upstream %d", f.Status)
	}
	if c.Kind == UpstreamErrors && f.Count < leastErrors {
		return Cause{}
	}
	return c
}

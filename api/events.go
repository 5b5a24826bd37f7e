package api

import "time"

// Event is what a listener gets once a second.
type Event struct {
	Time time.Time `json:"time"`

	// All says that targets and routes are all there are, in their order. Else, which
	// only happens with deltas=true, they are those that have changed since the
	// event before; none has come or gone.
	All bool `json:"all"`

	// DataURL is where clients of this machine reach the data port; "" = unknown.
	DataURL string `json:"data_url"`

	// Marks are those of the timeline that are new since the event before, or have
	// changed; in the first event the last ones.
	Marks []Mark `json:"marks"`

	Targets []EventTarget `json:"targets"`
	Routes
}

// EventTarget is a target with its drawing, which is left out where it is what
// the listener already has.
type EventTarget struct {
	Identity
	State
	Learned Encoded[Drawing] `json:"learned,omitempty"`
}

// Drawing is a learned curve as the page draws it. Nothing in it changes while
// no evidence comes in.
type Drawing struct {
	Knowledge
	Curve CurveLine `json:"curve"`
	Bins  []Bin     `json:"bins"`
}

// CurveLine is the curve up to twice the support, at the usual prompt load.
type CurveLine struct {
	N   []int `json:"n"`
	TPS Line  `json:"tps"`
	Low Line  `json:"low"`

	// Prior is what the configured prior says, whatever was learned since; absent
	// where there is none.
	Prior Line `json:"prior,omitempty"`
}

// Bin is the evidence at n as it is, not smoothed.
type Bin struct {
	N int `json:"n"`

	// TPS is null without evidence.
	TPS Brief `json:"tps"`

	// Prior is the speed of a point of a prior; null = n is none.
	Prior Brief `json:"prior"`

	P             Brief `json:"p"`
	StreamSeconds Brief `json:"stream_seconds"`
	Tokens        Brief `json:"tokens"`
	Steps         Brief `json:"steps"`
}

package api

import "time"

// History is how it went: figures over time, of each route or of each backend.
type History struct {
	By     string `json:"by" enum:"route,backend"`
	Window string `json:"window" enum:"5m,1h,6h"`

	// StepS is how long each step is, in seconds.
	StepS float64 `json:"step_s"`

	// Times are when the steps began, oldest first. The last one still runs.
	Times []time.Time `json:"times"`

	// Replica and Replicas say whose figures these are, as in Routes.
	Replica  string `json:"replica" enum:"this one only,all"`
	Replicas int    `json:"replicas"`

	Routes   []RouteSeries   `json:"routes,omitempty"`
	Backends []BackendSeries `json:"backends,omitempty"`
}

// RouteSeries is one route over the steps. A figure is null where nothing was
// measured, or the gateway did not run.
type RouteSeries struct {
	Model string `json:"model"`

	// Offered, Met, Missed, Shed and Failed are per second.
	Offered Line `json:"offered_per_s"`
	Met     Line `json:"met_per_s"`
	Missed  Line `json:"missed_per_s"`
	Shed    Line `json:"shed_per_s"`
	Failed  Line `json:"failed_per_s"`

	Attainment Line `json:"attainment"`
	TPSP10     Line `json:"tps_p10"`
	TPSP50     Line `json:"tps_p50"`
	TTFTP99    Line `json:"ttft_p99_s"`

	// Free is users that it would have taken, on average; null also where nothing
	// limits them.
	Free    Line `json:"free"`
	Waiting Line `json:"waiting"`
}

// BackendSeries is one backend over the steps. A figure is null where nothing was
// measured, or the gateway did not run.
type BackendSeries struct {
	Backend string `json:"backend"`

	// Up is the share of the step in which it was in service.
	Up Line `json:"up"`

	// N decode and M wait or decode, on average.
	N Line `json:"n"`
	M Line `json:"m"`

	TokensPerS Line `json:"tokens_per_s"`

	// Speed is what streams got over what was learned before the engine changed: 0.41
	// = the engine is that much slower.
	Speed Line `json:"speed"`

	Requests Line `json:"requests_per_s"`
	Failed   Line `json:"failed_per_s"`
	TPSP10   Line `json:"tps_p10"`
	TPSP50   Line `json:"tps_p50"`
	TTFTP99  Line `json:"ttft_p99_s"`
}

// Timeline is what happened, the latest first.
type Timeline struct {
	Marks []Mark `json:"marks"`
}

// Mark is one thing that happened, or lasts.
type Mark struct {
	// ID is of this mark alone, and grows.
	ID uint64 `json:"id"`

	Time time.Time `json:"time"`

	// Ended is when it was over, or Time for what has no length; null = it lasts.
	Ended *time.Time `json:"ended"`

	Kind string `json:"kind" enum:"backend_down,breaker,config_refused,discovery,drain,drift,errors,floor,loading,reload,shedding,start,store"`

	// Of says what subject names.
	Of string `json:"of" enum:"route,backend,gateway"`

	// Subject is a route or a backend; "" = the gateway.
	Subject string `json:"subject"`

	// Text is one line, the same as in the log.
	Text string `json:"text"`

	// Replica is the gateway that noticed it, by the name of its host; "" = this one. What
	// several have noticed stands once.
	Replica string `json:"replica"`
}

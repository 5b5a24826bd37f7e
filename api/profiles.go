package api

import "time"

// Profiles is every target that a route names, sorted by backend, then model.
type Profiles struct {
	Targets []Target `json:"targets"`
}

// Target is one model on one backend: what runs there, and what is known of its
// speed. It has points at every level with evidence, or at the levels that were
// asked for.
type Target struct {
	Identity
	State
	Knowledge
	Points []Point `json:"points"`

	// OutputTokens is the mean answer that prompt_tokens of the question was
	// divided by; absent when that was not asked.
	OutputTokens *Number `json:"output_tokens,omitempty"`
}

// Identity says which target it is.
type Identity struct {
	// Backend is the name in the configuration.
	Backend string `json:"backend"`

	// Model is the name that goes up; "" = the client's own.
	Model string `json:"model"`

	// Separate = the model is counted by itself: in_flight is of this model alone.
	Separate bool `json:"separate,omitempty"`

	// Kind of the backend in the configuration, such as vllm.
	Kind string `json:"kind"`

	// Labels of the backend in the configuration.
	Labels map[string]string `json:"labels,omitempty"`

	// URL of the backend, without what may be secret in it.
	URL string `json:"url"`

	// MaxConcurrency as configured; null = none.
	MaxConcurrency *int `json:"max_concurrency"`

	// USDPerHour as configured; null = not known.
	USDPerHour Number `json:"usd_per_hour"`
}

// State is how a target is now. It changes with every request.
type State struct {
	// Health is up, down, loading or draining.
	Health string `json:"health" enum:"up,down,loading,draining"`

	// Breaker is closed, half_open or open.
	Breaker string `json:"breaker" enum:"closed,half_open,open"`

	InFlight InFlight `json:"in_flight"`

	// Engine is what the engine itself counts; null = not known.
	Engine *EngineLoad `json:"engine"`

	// TokensByText = the streams of this replica end there without a usage: their tokens
	// are counted by their text, so speeds and curve are estimates.
	TokensByText bool `json:"tokens_by_text,omitempty"`

	// LastError is what went wrong since it last served a request, or of late within
	// answers; null = nothing.
	LastError *LastError `json:"last_error"`

	// Admits is how many more are placed there now, by the router's own rule: of the
	// route that it takes most of; null where neither a floor nor a cap limits any.
	Admits *int `json:"admits"`

	// Warm is of its backend, since this replica started.
	Warm Warm `json:"warm"`

	// Continued is of its backend, since this replica started.
	Continued Continued `json:"continued"`

	// TokensPerS is what the backend's finished streams of this replica brought, over
	// the last 30 seconds.
	TokensPerS Brief `json:"tokens_per_s"`

	// Delivered is the speed of the streams over what the curve predicts, over the last seconds; null
	// while too little runs.
	Delivered Brief `json:"delivered"`

	Cause
}

// InFlight counts sequences on the backend, whatever the model, or of a model
// that is counted by itself those alone.
type InFlight struct {
	// Waiting for their first token, on this replica.
	Waiting int `json:"waiting"`

	// Decoding, on this replica.
	Decoding int `json:"decoding"`

	// BelowFloor are the streams of this replica that average less than the floor
	// they asked for.
	BelowFloor int `json:"below_floor"`

	// N decode, of all replicas and of others.
	N int `json:"n"`

	// M wait or decode, of all replicas and of others.
	M int `json:"m"`
}

// EngineLoad is what the engine at metrics_url counts, whoever sent it.
type EngineLoad struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`

	// Foreign is what of it is taken for the load of others. N and M of in_flight
	// include that.
	Foreign Foreign `json:"foreign"`

	// AgeS is how old the report is, in seconds.
	AgeS Number `json:"age_s"`
}

// Foreign is sequences that did not come through Pacer.
type Foreign struct {
	Waiting  int `json:"waiting"`
	Decoding int `json:"decoding"`
}

// LastError is the last of the failures in a row at a target.
type LastError struct {
	// Status of the answer; null = no answer came, or none that is one.
	Status *int `json:"status"`

	// Message is one line without secrets.
	Message string `json:"message"`

	// Since is when the first of them happened.
	Since time.Time `json:"since"`

	// WithinAnswers says that they happened within answers that had begun. The target serves
	// others meanwhile, so this is kept for a minute.
	WithinAnswers bool `json:"within_answers"`
}

// Warm is how many prompt tokens a prefix cache had, as pacer_prefix_tokens_total
// counts them. Both are 0 where nothing was sent, or nothing is cached.
type Warm struct {
	// Predicted were expected to be there.
	Predicted int64 `json:"predicted"`

	// Reported were there, as the usage of the answers tells.
	Reported int64 `json:"reported"`
}

// Continued is what became of streams in the middle of which a backend died, on routes
// whose streams go on elsewhere, as pacer_continued_total counts them.
type Continued struct {
	// OK went on at another backend.
	OK int64 `json:"ok"`

	// Lost broke off, since no other one took them.
	Lost int64 `json:"lost"`

	// Unfit broke off, since they were of a kind that cannot go on.
	Unfit int64 `json:"unfit"`
}

// Knowledge is what a curve rests on. It changes when evidence comes in.
type Knowledge struct {
	// Scale is the drift g, by which tps and low are already multiplied.
	Scale Number `json:"scale"`

	// Margin is the share that is taken off tps for low, at least.
	Margin Number `json:"margin"`

	// Rho is prompt tokens per output token, learned.
	Rho Number `json:"rho"`

	// Support is the least and the highest n that was seen; null = none.
	Support *[2]int `json:"support"`

	Fit  *Fit  `json:"fit"`
	TTFT *TTFT `json:"ttft"`

	TokensSeen       Number     `json:"tokens_seen"`
	MeanOutputTokens Number     `json:"mean_output_tokens"`
	UpdatedAt        *time.Time `json:"updated_at"`
}

// Fit is seconds per token = a + b·√n + c·n + d·p.
type Fit struct {
	A Number `json:"a"`
	B Number `json:"b"`
	C Number `json:"c"`
	D Number `json:"d"`
}

// TTFT is what is known of the time to the first token: base_s, and the prompt
// tokens, the request's own and those ahead, at that rate; and beyond the slots
// a wait for one.
type TTFT struct {
	BaseS Number `json:"base_s"`

	// PrefillTokensPerS is null when no prompt was ever noticed in the time.
	PrefillTokensPerS Number `json:"prefill_tokens_per_s"`

	// Slots is how many sequences the engine runs together; null = it never queued.
	Slots *int `json:"slots"`
}

// Point is the curve at n. What the bin of n saw at its own prompt load is
// tokens / stream_seconds.
type Point struct {
	// N is sequences that decode together.
	N int `json:"n"`

	// P is prompt tokens per decode step, at which the speeds hold.
	P Number `json:"p"`

	// TPS is tokens/s of ONE stream; null when unknown.
	TPS Number `json:"tps"`

	// Low is the bound that decides; null when unknown.
	Low Number `json:"low"`

	// AggregateTPS is n times tps.
	AggregateTPS Number `json:"aggregate_tps"`

	StreamSeconds Number `json:"stream_seconds"`
	Tokens        Number `json:"tokens"`
	Steps         Number `json:"steps"`

	// AgeS is how old the newest evidence is, in seconds.
	AgeS Number `json:"age_s"`

	// Source is learned, prior or extrapolated; null = unknown.
	Source *string `json:"source" enum:"learned,prior,extrapolated"`
}

package api

import "time"

// Decisions are the latest first.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
}

// Decision is what became of one request, and why.
type Decision struct {
	Time time.Time `json:"time"`

	// RequestID is "" for a request that is only explained.
	RequestID string `json:"request_id"`

	Route string `json:"route"`
	Class string `json:"class" enum:"interactive,batch"`

	// Floor in tokens/s; 0 = none.
	Floor Number `json:"floor"`

	// Outcome is placed, granted (a place after waiting), queued, spilled,
	// best_effort, probe, shed or no_backend.
	Outcome string `json:"outcome" enum:"placed,granted,queued,spilled,best_effort,probe,shed,no_backend"`
	Policy  string `json:"policy"`

	// Chosen is the backend; null unless the request was placed.
	Chosen      *string `json:"chosen"`
	ChosenModel *string `json:"chosen_model"`

	// SpilledTo is a route.
	SpilledTo *string `json:"spilled_to"`
	WaitedS   Number  `json:"waited_s"`

	// MayWaitS is null unless the request is queued.
	MayWaitS Number `json:"may_wait_s"`

	// ShedReason is null unless the request was refused.
	ShedReason *string `json:"shed_reason"`

	// Behind is at most how many in line went before one that waits or was refused: where
	// a candidate is ok it is theirs. 0 of all others.
	Behind int `json:"behind"`

	// RetryAfterS is null unless the request was refused and waiting helps.
	RetryAfterS Number `json:"retry_after_s"`

	// BestLow is the highest bound on offer to a request that was refused; null
	// when unknown.
	BestLow Number `json:"best_low"`

	// Candidates are the targets of the route, and of the one it was spilled
	// to, before the request took its place.
	Candidates []Candidate `json:"candidates"`

	// LeftOut is how many candidates were not kept.
	LeftOut int `json:"left_out"`
}

// Candidate is one target as the decision saw it.
type Candidate struct {
	Backend string `json:"backend"`

	// Model is the name that goes up; "" = the client's own.
	Model string `json:"model"`

	N int `json:"n"`
	M int `json:"m"`

	// Unheard is how many sequences others are thought to run there beside m, and have not
	// told of: what other gateways may have placed since they told, and what the engine may
	// run beside what it reported. tps and low leave room for them.
	Unheard int `json:"unheard"`

	// TPS is with this request; null when unknown.
	TPS Number `json:"tps"`

	// Low is the bound that decided; null when unknown, or none did.
	Low   Number `json:"low"`
	Floor Number `json:"floor"`

	// Protect is the highest floor that must hold there; 0 = none.
	Protect Number `json:"protect"`

	// Headroom is null when nothing has to be met.
	Headroom Number `json:"headroom"`

	// Held is how many places are kept there for other routes, and not yet used.
	Held int `json:"held"`

	// Price is USD, of this request as expected.
	Price Number `json:"price"`

	// Warm is what its prefix cache is expected to have of the prompt; null = nothing.
	Warm *WarmPrompt `json:"warm"`

	Feasible bool `json:"feasible"`

	// Basis is what low rests on: level, one_more, grace, curve, seen, edge or slow_start;
	// lead where the prompt would cost a stream its floor; clearing where nobody is let
	// in until a prompt that many share is there; quota where the backend
	// told that a limit of its own is used up; "" where no speed was asked.
	Basis string `json:"basis"`

	// Reason is ok, or why the target is not feasible.
	Reason string `json:"reason" enum:"ok,down,breaker,refuses,drain,cap,slow_start,own_floor,protects,reserve,guarantee,ttft,tenant,unknown"`
}

// WarmPrompt is what a target's prefix cache is expected to have of one prompt.
type WarmPrompt struct {
	// Tokens are in the cache.
	Tokens int `json:"tokens"`

	// PromptTokens are those of the whole prompt.
	PromptTokens int `json:"prompt_tokens"`

	// SavesS is how many seconds sooner the first token comes.
	SavesS Number `json:"saves_s"`
}

// Question is a request that is only explained. What is absent is the route's
// own, or unknown.
type Question struct {
	Model string `json:"model"`
	Class string `json:"class,omitempty" enum:"interactive,batch"`

	// MinTPS is tokens/s; 0 = none.
	MinTPS *float64 `json:"min_tps,omitempty"`

	PromptTokens int `json:"prompt_tokens,omitempty"`
}

package api

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Scorecard is the targets of each route side by side, as live traffic found them.
type Scorecard struct {
	Time time.Time `json:"time"`

	// Window and WindowS are how far back the quantiles, requests and errors reach.
	Window  string  `json:"window" enum:"1h"`
	WindowS float64 `json:"window_s"`

	// Replica and Replicas say whose figures of the window these are, as in Routes.
	Replica  string `json:"replica" enum:"this one only,all"`
	Replicas int    `json:"replicas"`

	// UsageFrom and UsageTo are the hours that tokens and USD are of: this one and the
	// one before.
	UsageFrom time.Time `json:"usage_from"`
	UsageTo   time.Time `json:"usage_to"`

	// UsageReplica says whose tokens and USD these are.
	UsageReplica string `json:"usage_replica" enum:"this one only,all"`

	Routes []ScoredRoute `json:"routes"`
}

// ScoredRoute is one route and its targets, the best first.
type ScoredRoute struct {
	// Model is the name that clients use.
	Model string `json:"model"`

	// MinTPS is the floor in tokens/s; null = none.
	MinTPS Number `json:"min_tps"`

	// N is the level of concurrency that targets are compared at: what was asked for,
	// else n of the busiest now, and at least 1.
	N int `json:"n"`

	// RankedBy is what the targets are in the order of, at N: bytes of text/s, or
	// tokens/s while the bytes of some target's tokens are not known. What has no
	// speed yet comes last.
	RankedBy string `json:"ranked_by" enum:"text,tokens"`

	Targets []Score `json:"targets"`
}

// Score is one target. Speeds are of its curve, at its usual prompt load.
type Score struct {
	Backend string `json:"backend"`
	Model   string `json:"model"`
	Kind    string `json:"kind"`
	Health  string `json:"health" enum:"up,down,loading,draining"`

	// AtN is the speed at N of the route.
	AtN Speed `json:"at_n"`

	// Now is the speed at the n that runs now.
	Now Speed `json:"now"`

	// Full is the speed at the largest n that the route's floor is kept at, as in
	// capacity of Routes; null = the route has none.
	Full *Speed `json:"full"`

	// CurveTokens is how many tokens the curve rests on; 0 = a prior or nothing.
	CurveTokens Number `json:"curve_tokens"`

	Window ScoreWindow `json:"of_backend"`
	Usage  ScoreUsage  `json:"of_target"`

	// TokensPerByte is tokens of the target's own tokenizer in a byte of text.
	TokensPerByte Number `json:"tokens_per_byte"`

	// TextBytesPerS is what one stream gets at N, in bytes of text.
	TextBytesPerS Number `json:"text_bytes_per_s"`
}

// Speed is of one of n streams.
type Speed struct {
	N int `json:"n"`

	// NIsLowerBound = not the speed ends there, but what is known of it.
	NIsLowerBound bool `json:"n_is_lower_bound"`

	// TPS is tokens/s, and Low its bound; null = not known, or n is 0.
	TPS Number `json:"tps"`
	Low Number `json:"low"`

	// Source is learned, prior or extrapolated; null = not known.
	Source *string `json:"source" enum:"learned,prior,extrapolated"`
}

// SpeedAt is what c says at n.
func SpeedAt(c *profiles.Curve, n int) Speed {
	if n < 1 {
		return Speed{TPS: Unknown(), Low: Unknown()}
	}
	pt := pointOf(time.Time{}, n, c.At(n))
	return Speed{N: n, TPS: pt.TPS, Low: pt.Low, Source: pt.Source}
}

// ScoreWindow is what became of the requests that ended at the backend within the
// window, whatever route and model they were of.
type ScoreWindow struct {
	Requests uint64 `json:"requests"`

	// Failed is the share of them that failed; null = there were none.
	Failed Number `json:"failed"`

	// TPS and TTFTS rest on so many streams.
	TPS         TPSQuantiles  `json:"tps"`
	TPSStreams  uint64        `json:"tps_streams"`
	TTFTS       TTFTQuantiles `json:"ttft_s"`
	TTFTStreams uint64        `json:"ttft_streams"`
}

// ScoreUsage is what requests of the target used within the hours of usage,
// whatever route they came by.
type ScoreUsage struct {
	Requests int64 `json:"requests"`

	// PromptTokens and OutputTokens are the mean of a request; null = there was none.
	PromptTokens Number `json:"mean_prompt_tokens"`
	OutputTokens Number `json:"mean_output_tokens"`

	// Cached is the share of prompt tokens that came from a prefix cache; null = the
	// backend told of none.
	Cached Number `json:"cached"`

	// USDPerMillion is USD per million tokens, input and output together; null = not
	// known.
	USDPerMillion Number `json:"usd_per_million_tokens"`

	// USDSource says where that is from: usage is what the requests cost at their load;
	// price is the configured one, for the mix of tokens of the target, else of its
	// route. Null = not known.
	USDSource *string `json:"usd_source" enum:"usage,price"`
}

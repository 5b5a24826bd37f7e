package api

import "time"

// Routes is what the routes promised and gave. Counts are since since,
// quantiles over the last window_s seconds.
type Routes struct {
	Since   time.Time `json:"since"`
	WindowS float64   `json:"window_s"`
	Routes  []Route   `json:"routes"`
}

// Route is what one route promised and what it gave. offered = met + missed +
// unmeasured + shed + failed.
type Route struct {
	// Model is the name that clients use; "*" = whatever no other route names.
	Model string `json:"model"`

	Class  string `json:"class" enum:"interactive,batch"`
	Prefer string `json:"prefer"`

	// MinTPS is the floor in tokens/s; null = none.
	MinTPS Number `json:"min_tps"`

	// MaxTTFTS is the limit on the first token in seconds; null = none.
	MaxTTFTS Number `json:"max_ttft_s"`

	AttainmentGoal Number `json:"attainment_goal"`

	Offered    uint64 `json:"offered"`
	Met        uint64 `json:"met"`
	Missed     uint64 `json:"missed"`
	Unmeasured uint64 `json:"unmeasured"`
	Shed       uint64 `json:"shed"`
	Failed     uint64 `json:"failed"`

	// Attainment is met / (met + missed + shed + failed): of all requests offered
	// but those that were served and could not be judged. Null while there are
	// none.
	Attainment Number `json:"attainment"`

	TPS TPSQuantiles `json:"tps"`

	// TPSStreams is how many streams the quantiles rest on.
	TPSStreams uint64 `json:"tps_streams"`

	TTFTS       TTFTQuantiles `json:"ttft_s"`
	TTFTStreams uint64        `json:"ttft_streams"`

	// Waiting is requests in line.
	Waiting int `json:"waiting"`

	// Free is users it would take now; null = no floor and no cap limits them.
	Free *int `json:"free"`

	FreeIsLowerBound bool `json:"free_is_lower_bound"`

	Targets []RouteTarget `json:"targets"`
}

// TPSQuantiles are of the decode speed of a stream, in tokens/s.
type TPSQuantiles struct {
	P10 Brief `json:"p10"`
	P50 Brief `json:"p50"`
	P90 Brief `json:"p90"`
}

// TTFTQuantiles are of the time to the first token, in seconds.
type TTFTQuantiles struct {
	P50 Brief `json:"p50"`
	P90 Brief `json:"p90"`
	P99 Brief `json:"p99"`
}

// RouteTarget is one target of a route. A lower bound is one where not the
// speed ends, but what is known of it: twice the n that was seen.
type RouteTarget struct {
	Backend string `json:"backend"`
	Model   string `json:"model"`

	// Capacity is up to how many streams there, whosever, one of this route is let
	// in; null without a floor.
	Capacity             *int `json:"capacity"`
	CapacityIsLowerBound bool `json:"capacity_is_lower_bound"`

	// Admits is how many more of this route are placed there now; null where neither
	// a floor nor a cap limits them.
	Admits             *int `json:"admits"`
	AdmitsIsLowerBound bool `json:"admits_is_lower_bound"`
}

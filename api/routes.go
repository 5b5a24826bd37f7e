package api

import "time"

// Routes is what the routes promised and gave within a window, and what is wrong
// now.
type Routes struct {
	// Since is when the gateway started. The window start reaches back to it; the
	// others reach further, where the history was kept over a restart.
	Since time.Time `json:"since"`

	// Window is 5m, 1h, 6h or start; what nobody asks for is start.
	Window string `json:"window" enum:"5m,1h,6h,start"`

	// WindowS is how far back the counts and quantiles reach, in seconds: less than
	// the window while less is known.
	WindowS float64 `json:"window_s"`

	// Replica says whose figures these are: this one only, or all of those that share a
	// store, of which the others' are some ten seconds old. Of this one only are always
	// the window start, and where the store is lost all windows. What stands beside the
	// counts and quantiles is what this gateway knows: free and causes go by all that run.
	Replica string `json:"replica" enum:"this one only,all"`

	// Replicas is how many gateways the figures are of.
	Replicas int `json:"replicas"`

	Verdict Verdict `json:"verdict"`
	Routes  []Route `json:"routes"`
}

// Verdict is what is wrong, in one line.
type Verdict struct {
	// State is ok, warn (something is wrong, and every route keeps what it promises)
	// or bad (a route does not, or cannot).
	State string `json:"state" enum:"ok,warn,bad"`

	// Text is one line: "2 of 30 routes below what was promised: routes chat, code:
	// slower than learned ×0.41 (gpu-a, 1 of 3 backends) since 09:04 UTC, shedding
	// 52/s in the last 10 s". Of many causes it has three, and always those of the gateway,
	// at the end.
	Text string `json:"text"`

	// Since is when the oldest of the causes began; null = nothing is wrong.
	Since *time.Time `json:"since"`

	// Causes is everything that is wrong, the worst first.
	Causes []Standing `json:"causes"`
}

// Standing is a cause, and what has it.
type Standing struct {
	// Of is what is affected: a route, a backend, or the gateway.
	Of string `json:"of" enum:"route,backend,gateway"`

	// Name of the route or backend; "" = the gateway.
	Name string `json:"name"`

	Cause
}

// Cause says why something does not do what it should; all null where it does.
type Cause struct {
	// Cause in words, with since when: "backend down: connection refused since 09:04
	// UTC". The log, the metrics' label cause_kind, and the page say the same.
	Cause *string `json:"cause"`

	// Kind is the word of the metrics' label cause.
	Kind *string `json:"cause_kind" enum:"backend_down,loading,drained,upstream_model,upstream_credentials,upstream_quota,upstream_errors,floor_unattainable,slower,overload,ttft,floor_missed,store_down,config_refused"`

	// Backend is the one to look at; null where it is none alone.
	Backend *string `json:"cause_backend"`

	// Since is when it began.
	Since *time.Time `json:"since"`

	// Means is what that says, and Advice what to do.
	Means  *string `json:"means"`
	Advice *string `json:"advice"`
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

	Results

	Rates

	// Losing = more requests are lost than the route may lose, and why is not said
	// yet: a cause has to last some seconds.
	Losing bool `json:"losing"`

	Cause

	TPS TPSQuantiles `json:"tps"`

	// TPSStreams is how many streams the quantiles rest on.
	TPSStreams uint64 `json:"tps_streams"`

	// TTFTS is as users wait, and as max_ttft_s counts: with the time in line.
	TTFTS       TTFTQuantiles `json:"ttft_s"`
	TTFTStreams uint64        `json:"ttft_streams"`

	// Guarantee is the places that are kept for the route at any load; null = none.
	Guarantee *Guarantee `json:"guarantee"`

	// Waiting is requests in line, without those that wait at a backend that hangs.
	Waiting int `json:"waiting"`

	// Free is users it would take now; null = no floor and no cap limits them.
	Free *int `json:"free"`

	FreeIsLowerBound bool `json:"free_is_lower_bound"`

	Targets []RouteTarget `json:"targets"`
}

// Results are what became of a route's requests within the window.
type Results struct {
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

	// BudgetLeft is the share of the misses that the goal allows within the window
	// which is left: 1 = none was used, below 0 = more were. Null where the goal
	// allows none.
	BudgetLeft Number `json:"budget_left"`
}

// Rates are means of the last 30 seconds.
type Rates struct {
	// OfferedPerS, MetPerS and ShedPerS are of the last 30 seconds.
	OfferedPerS Brief `json:"offered_per_s"`
	MetPerS     Brief `json:"met_per_s"`
	ShedPerS    Brief `json:"shed_per_s"`
}

// Guarantee is the places that are kept for a route.
type Guarantee struct {
	// Places is how many are promised.
	Places int `json:"places"`

	// Held is how many of them the targets can keep now, used or not.
	Held int `json:"held"`

	// Used is how many sequences of the route this replica has on those targets.
	Used int `json:"used"`
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
// speed ends, but what is known of it: what slow start lets in while the curve is
// unknown, and what was visited, or a few streams more than run there, after that.
type RouteTarget struct {
	Backend string `json:"backend"`
	Model   string `json:"model"`

	// Capacity is up to how many streams there, whosever, one of this route is let
	// in, were its backend in service; null without a floor.
	Capacity             *int `json:"capacity"`
	CapacityIsLowerBound bool `json:"capacity_is_lower_bound"`

	// Admits is how many more of this route are placed there now; null where neither
	// a floor nor a cap limits them.
	Admits             *int `json:"admits"`
	AdmitsIsLowerBound bool `json:"admits_is_lower_bound"`

	// Held is how many places are kept there for this route, used or not.
	Held int `json:"held"`
}

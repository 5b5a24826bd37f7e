package api

// PlanQuestion asks what would become of the load of late, were something else.
// What is absent is as it is.
type PlanQuestion struct {
	// Window is 5m, 1h, 6h or start: the load is what was offered within it. Absent =
	// 1h.
	Window string `json:"window,omitempty" enum:"5m,1h,6h,start"`

	// Load is how many times that load, up to 100; absent = 1.
	Load float64 `json:"load,omitempty"`

	// Engines is how many of a backend there are, by its name: 0 = without it, up to 16.
	Engines map[string]int `json:"engines,omitempty"`

	// MinTPS is the floor of a route in tokens/s, by its name; 0 = none.
	MinTPS map[string]float64 `json:"min_tps,omitempty"`

	// OfferedPerS is the load itself, by route, instead of what was offered.
	OfferedPerS map[string]float64 `json:"offered_per_s,omitempty"`

	// PromptTokens and OutputTokens are means of all requests; absent = as learned.
	PromptTokens float64 `json:"prompt_tokens,omitempty"`
	OutputTokens float64 `json:"output_tokens,omitempty"`
}

// Plan is what became of the load in virtual time: as it is, and as it would be.
type Plan struct {
	// Verdict is one sentence.
	Verdict string `json:"verdict"`

	// Load says what was played, in words.
	Load string `json:"load"`

	// Now is the fleet and load as they are, Then as the question has them.
	Now  PlanRun `json:"now"`
	Then PlanRun `json:"then"`

	// Curves say what the speeds rest on.
	Curves []PlanCurve `json:"curves"`

	// Notes are what limits the figures.
	Notes []string `json:"notes"`

	// TookS is how long playing took, in seconds.
	TookS float64 `json:"took_s"`
}

// PlanState says whether a plan is played now. One is at a time.
type PlanState struct {
	Running bool `json:"running"`

	// Progress is the share of it that was played, from 0 to 1; 0 while none runs.
	Progress float64 `json:"progress"`
}

// PlanCurve is what the curve of a backend rests on.
type PlanCurve struct {
	Backend string `json:"backend"`
	RestsOn string `json:"rests_on"`

	// Support is the levels that are known; beyond them the curve is continued.
	Support               [2]int  `json:"support"`
	SecondsPerPromptToken float64 `json:"seconds_per_prompt_token"`

	// PromptCost says what that rests on.
	PromptCost string `json:"prompt_cost"`

	// Slots is how many sequences run together.
	Slots int `json:"slots"`
}

// PlanRun is one load against one fleet under one policy.
type PlanRun struct {
	Policy string `json:"policy"`

	// Factor on the load.
	Factor float64 `json:"factor"`

	// Replicas of the backend that is searched; absent = none is.
	Replicas int `json:"replicas,omitempty"`

	// MeasuredS is without the warm-up.
	MeasuredS float64 `json:"measured_s"`
	WarmupS   float64 `json:"warmup_s"`

	// Holds = every promise was kept.
	Holds bool `json:"holds"`

	// Kept is the lowest attainment of the routes that promise something.
	Kept     Number        `json:"kept"`
	Routes   []PlanRoute   `json:"routes"`
	Backends []PlanBackend `json:"backends"`

	// USDPerHour is of the machines that state it; null = none does.
	USDPerHour Number `json:"usd_per_hour"`

	// USDPerMillionOutputTokens is null unless all machines state what they cost.
	USDPerMillionOutputTokens Number `json:"usd_per_million_output_tokens"`

	// TokensUSDPerHour is by price; null = no backend states one.
	TokensUSDPerHour Number `json:"tokens_usd_per_hour"`
}

// PlanRoute is what the users of a route got.
type PlanRoute struct {
	Route string `json:"route"`
	Class string `json:"class"`

	// MinTPS is 0 for none.
	MinTPS float64 `json:"min_tps"`

	// MaxTTFTS is 0 for none.
	MaxTTFTS float64 `json:"max_ttft_s"`

	Goal  float64 `json:"attainment_goal"`
	Holds bool    `json:"holds"`

	Offered    int    `json:"offered"`
	Met        int    `json:"met"`
	Missed     int    `json:"missed"`
	Unmeasured int    `json:"unmeasured"`
	Shed       int    `json:"shed"`
	Failed     int    `json:"failed"`
	Attainment Number `json:"attainment"`

	// Goodput is tokens/s of streams that were met.
	Goodput Number `json:"goodput_tps"`

	TPS    PlanTPS       `json:"tps"`
	TTFT   PlanQuantiles `json:"ttft_s"`
	Waited PlanQuantiles `json:"waited_s"`
}

// PlanTPS is quantiles of the decode speed of a stream, in tokens/s.
type PlanTPS struct {
	P10 Number `json:"p10"`
	P50 Number `json:"p50"`
}

// PlanQuantiles are of a time in seconds.
type PlanQuantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// PlanBackend is what one machine did.
type PlanBackend struct {
	Backend string `json:"backend"`

	// Mean is how many sequences were there on average, waiting or decoding, and
	// Peak the most at once.
	Mean float64 `json:"mean"`
	Peak int     `json:"peak"`

	// Utilisation is Mean over how many keep the highest floor that is promised
	// here, by the curve that was played: above 1 more were there than keep it.
	// null where no floor is promised, or nobody keeps it.
	Utilisation Number `json:"utilisation"`

	// Users are by floor, rising.
	Users []PlanUsers `json:"users"`

	OutputTokens              int    `json:"output_tokens"`
	USDPerHour                Number `json:"usd_per_hour"`
	USDPerMillionOutputTokens Number `json:"usd_per_million_output_tokens"`
	TokensUSDPerHour          Number `json:"tokens_usd_per_hour"`
}

// PlanUsers is up to how many streams at once one with the floor is let in, at the
// prompts of the load.
type PlanUsers struct {
	MinTPS float64 `json:"min_tps"`
	Users  int     `json:"users"`

	// UsersIsLowerBound = knowledge ends there, and not speed.
	UsersIsLowerBound bool `json:"users_is_lower_bound"`
}

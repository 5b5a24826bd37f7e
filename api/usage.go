package api

import "time"

// MaxUsageRows is how many rows Usage has at most; Next tells where more are.
const MaxUsageRows = 100_000

// Usage is what was used, and what it cost.
type Usage struct {
	// From and To are whole hours; To is not part of it.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// By are the dimensions that rows are told apart by.
	By []string `json:"by"`

	// Replica says whose figures these are: of this one only where the store does not
	// answer.
	Replica string `json:"replica" enum:"this one only,all"`

	// Rows are by time, and of one time the dearest first.
	Rows []UsageRow `json:"rows"`

	// Next is the path and the query of the rows that follow these; null = none do. Cut
	// says the same. Figures of the hour that runs still grow, so a row of it may move
	// from one page to another: pages of a time that is over have each row once.
	Next *string `json:"next"`
	Cut  bool    `json:"cut"`

	// Total is that of all rows, of this page or not.
	Total UsageRow `json:"total"`

	// Budgets are those of keys and teams, as they are now.
	Budgets []Budget `json:"budgets"`
}

// UsageRow is what was used of one combination of what was asked for. Dimensions
// that were not are absent.
type UsageRow struct {
	// Time is when the hour or the day began; null = neither was asked for.
	Time *time.Time `json:"time"`

	Key     *string `json:"key,omitempty"`
	Team    *string `json:"team,omitempty"`
	Route   *string `json:"route,omitempty"`
	Backend *string `json:"backend,omitempty"`
	Model   *string `json:"model,omitempty"`
	Tags    *string `json:"tags,omitempty"`

	Requests int64 `json:"requests"`

	// InputTokens are all of the prompts; CachedTokens are part of them.
	InputTokens  int64 `json:"input_tokens"`
	CachedTokens int64 `json:"cached_tokens"`

	// OutputTokens are all of the answers; ReasoningTokens are part of them.
	OutputTokens    int64 `json:"output_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`

	USD float64 `json:"usd"`

	// USDPerMillion is USD per million tokens, input and output together; null
	// = there were none.
	USDPerMillion Number `json:"usd_per_million_tokens"`
}

// Budget is what a key or a team may spend, and has.
type Budget struct {
	Of       string    `json:"of" enum:"key,team"`
	Name     string    `json:"name"`
	LimitUSD float64   `json:"limit_usd"`
	SpentUSD float64   `json:"spent_usd"`
	Per      string    `json:"per" enum:"day,week,month"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Then     string    `json:"then" enum:"refuse,spill,warn"`
	Spent    bool      `json:"exhausted"`
}

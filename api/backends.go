package api

// Drained says what became of a backend that an operator took out of service,
// or put back in.
type Drained struct {
	Backend string `json:"backend"`

	// Health is up, down, loading, draining, or gone: the backend was drained, and
	// is not configured or found now.
	Health string `json:"health" enum:"up,down,loading,draining,gone"`

	// InFlight is what still runs there.
	InFlight InFlight `json:"in_flight"`
}

// Refusal is the answer to a question that is not answered. It has the shape of
// the data port's errors.
type Refusal struct {
	Error Error `json:"error"`
}

// Error says what is wrong, and what to write instead.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type"`

	// Param is the query parameter that is wrong; null = none is.
	Param *string `json:"param"`

	Code string `json:"code"`
}

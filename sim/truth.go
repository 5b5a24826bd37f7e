package sim

// Truth is what the engine really did. n = sequences that produced a token in
// that step; a sequence's first token counts in neither seconds nor tokens;
// seconds are as clients see them.
type Truth struct {
	Model     string       `json:"model"`
	Points    []TruthPoint `json:"points"` // levels that were visited, by N
	Running   int          `json:"running"`
	Waiting   int          `json:"waiting"`
	Cancelled int          `json:"cancelled"`

	Cache *CacheTruth `json:"cache,omitempty"` // of an engine with a prefix cache
}

// TruthPoint is one level of concurrency.
type TruthPoint struct {
	N             int     `json:"n"`
	StreamSeconds float64 `json:"stream_seconds"`
	Tokens        float64 `json:"tokens"`
	TPS           float64 `json:"tps"`
}

// Truth returns the record since the start or the last Reset, except Model,
// which an engine does not know.
func (e *Engine) Truth() Truth {
	t := Truth{Points: []TruthPoint{}, Running: e.Running(), Waiting: e.Waiting(), Cancelled: e.record.cancelled}
	for n, l := range e.record.levels {
		if l.tokens > 0 && l.seconds > 0 {
			t.Points = append(t.Points, TruthPoint{N: n, StreamSeconds: l.seconds, Tokens: l.tokens, TPS: l.tokens / l.seconds})
		}
	}
	if e.o.Block > 0 {
		cache := e.cache.counts
		cache.Held = e.cache.held()
		t.Cache = &cache
	}
	return t
}

// Reset clears the record. The step under way began before, so it counts in
// neither seconds nor tokens.
func (e *Engine) Reset() {
	e.record.clear()
	e.cache.counts = CacheTruth{}
	e.record.skip = e.busy
}

// record is what an engine did, by the number of sequences that a step gave a
// token other than their first.
type record struct {
	levels    []level
	cancelled int
	skip      bool // the next step is not counted
}

type level struct {
	seconds float64 // stream-seconds
	tokens  float64
}

func newRecord(maxSeqs int) record { return record{levels: make([]level, maxSeqs+1)} }

// step counts a step that gave n sequences so many tokens, for which they
// waited so many seconds, all together.
func (r *record) step(n, tokens int, seconds float64) {
	if r.skip {
		r.skip = false
		return
	}
	r.levels[n].seconds += seconds
	r.levels[n].tokens += float64(tokens)
}

func (r *record) clear() {
	clear(r.levels)
	r.cancelled = 0
}

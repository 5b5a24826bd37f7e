package router

// Outcome is what became of a request when the router decided about it. Its
// strings are those of the decisions API.
type Outcome uint8

// The outcomes.
const (
	OutcomePlaced     Outcome = iota // placed at once
	OutcomeGranted                   // granted a place after waiting in line
	OutcomeQueued                    // queued: it stands in line
	OutcomeSpilled                   // spilled to another route
	OutcomeBestEffort                // best_effort: placed without its floor
	OutcomeProbe                     // probe: placed without its floor, to see whether that is still out of reach
	OutcomeShed                      // shed
	OutcomeNoBackend                 // no_backend: none in service
)

var outcomeNames = [...]string{
	OutcomePlaced:     "placed",
	OutcomeGranted:    "granted",
	OutcomeQueued:     "queued",
	OutcomeSpilled:    "spilled",
	OutcomeBestEffort: "best_effort",
	OutcomeProbe:      "probe",
	OutcomeShed:       "shed",
	OutcomeNoBackend:  "no_backend",
}

// String returns the outcome as in the decisions API.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "shed"
}

// refused reports whether the request was sent away.
func (o Outcome) refused() bool { return o == OutcomeShed || o == OutcomeNoBackend }

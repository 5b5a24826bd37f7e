package sim

import "fmt"

// standardAcceptance is how often a proposed token is taken. With three
// proposed it makes two and a half tokens of a step, which is what engines
// report.
const standardAcceptance = 0.7

// maxDraft bounds what a step proposes for a sequence.
const maxDraft = 15

// checkDraft checks the options of speculative decoding, and fills in the
// default.
func (o *EngineOptions) checkDraft() error {
	if o.Draft < 0 || o.Draft > maxDraft {
		return fmt.Errorf("sim: Draft is %d, must be from 0 to %d", o.Draft, maxDraft)
	}
	if o.Acceptance == 0 {
		o.Acceptance = standardAcceptance
	}
	if !(o.Acceptance > 0 && o.Acceptance <= 1) {
		return fmt.Errorf("sim: Acceptance is %v, must be above 0 and at most 1", o.Acceptance)
	}
	if o.AcceptanceAt == nil {
		always := o.Acceptance
		o.AcceptanceAt = func(int) float64 { return always }
	}
	return nil
}

// accepted is how many tokens a decode step gives s: one, and the proposed ones up
// to the first that is not taken, and no more than it has left. n sequences decode in
// the step.
func (e *Engine) accepted(s *Sequence, n int) int {
	tokens, chance := 1, e.o.AcceptanceAt(n)
	if e.o.AcceptanceOf != nil {
		chance = e.o.AcceptanceOf(s.Tag)
	}
	for tokens <= e.o.Draft && tokens < s.left && e.drafts.Float64() < chance {
		tokens++
	}
	return tokens
}

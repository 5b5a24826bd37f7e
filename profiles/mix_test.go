package profiles

import (
	"math/rand"
	"testing"
)

// reads has a profile read prompts of mean tokens, one fold for each ten.
func reads(p *profile, r *rand.Rand, prompts int, mean float64) {
	for i := range prompts {
		p.seePrompt(mean * r.ExpFloat64())
		if i%10 == 9 {
			d := Delta{Sums: p.fold}
			p.fold = Sums{}
			p.known.Add(d, defaultHalfLife)
		}
	}
}

// TestPromptsThatGrow: after 500 prompts of 1,000 tokens they have 7,000. Seventy
// of those are enough to know it, and a load that stays as it is changes nothing.
func TestPromptsThatGrow(t *testing.T) {
	for seed := range int64(20) {
		r := rand.New(rand.NewSource(seed))
		p := &profile{}
		p.known.mix = mixSums{T: mixEnough, P: 5000, Y: 1000}
		reads(p, r, 500, 1000)
		if got := p.known.rho(); got != 5 {
			t.Errorf("seed %d: a load that stays gives ρ = %.2f, want 5", seed, got)
		}
		reads(p, r, 70, 7000)
		// What the slow memory holds of the new prompts is in P/Y, too.
		m := &p.known.mix
		if got, want := p.known.rho()/5*(m.X/m.N), 7000.0; got < 0.6*want || got > 1.5*want {
			t.Errorf("seed %d: prompts seem to have %.0f tokens, want %.0f", seed, got, want)
		}
	}
}

// Sums that were stored before there was a mix have the ρ of their bins, and not
// that of the prompts which happen to come in the first second with one.
func TestRhoOfOlderSums(t *testing.T) {
	s := sumsOf(Fit{A: 0.01, D: 1e-5}, even(100, 1, 4), func(n int) float64 { return 3 * float64(n) })
	within(t, "ρ", s.rho(), 3, 1e-9)
	s.mix = mixSums{T: 1, P: 100, Y: 10}
	within(t, "ρ after a second", s.rho(), 3, 0.1)
	s.mix = mixSums{T: mixEnough, P: 40, Y: 10}
	within(t, "ρ of the mix", s.rho(), 4, 1e-9)
}

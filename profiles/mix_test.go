package profiles

import (
	"math"
	"math/rand"
	"testing"
	"time"
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
		if got := p.known.rho(); math.Abs(got/5-1) > 0.04 { // sixteen prompts are little to go by
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

// TestPromptsThatChange: a hundred and twenty prompts of another mean, after as many
// of 1,000 tokens, are enough to tell it; three thousand as they were change nothing.
func TestPromptsThatChange(t *testing.T) {
	for _, times := range []float64{1, 2.5, 0.35} {
		off := 0
		for seed := range int64(20) {
			r := rand.New(rand.NewSource(seed))
			p := &profile{}
			p.known.mix = mixSums{T: mixEnough, P: 5000, Y: 1000}
			before := 120
			if times == 1 {
				before = 3000
			}
			reads(p, r, before, 1000)
			reads(p, r, 120, 1000*times)
			m := &p.known.mix
			if got, want := p.known.rho()/5*(m.X/m.N), 1000*times; times == 1 && math.Abs(p.known.rho()/5-1) > 0.04 || times != 1 && math.Abs(got/want-1) > 0.3 {
				off++
			}
		}
		if off > 2 {
			t.Errorf("prompts %v times as long: %d of 20 loads are told wrongly, want at most 2", times, off)
		}
	}
}

// TestRarePromptsThatAreLong: one prompt in twenty has forty times as many tokens, and the
// first of them comes late. Nothing has changed.
func TestRarePromptsThatAreLong(t *testing.T) {
	off := 0
	for seed := range int64(200) {
		r := rand.New(rand.NewSource(seed))
		p := &profile{}
		for i := range 300 {
			tokens := 1000 * r.ExpFloat64()
			if i > 30 && r.Intn(20) == 0 {
				tokens = 40_000
			}
			if p.seePrompt(tokens); p.known.recent.T+p.fold.recent.T > 0 { // they changed
				off++
				break
			}
		}
	}
	if off > 20 {
		t.Errorf("%d of 200 loads seem to change, want at most 20", off)
	}
}

// What requests bring is prompt tokens for each token of all answers: of those in the
// first chunk as well, and of answers that come at once, which are no evidence.
func TestTheMixHasTheTokensOfAllStreams(t *testing.T) {
	b := newBench(t).calibrated(500, 50)
	b.occ.Set(start, 1)
	told := Usage{PromptTokens: 1000, CompletionTokens: 101}
	for i := range 40 {
		from := time.Duration(i) * 2 * time.Second
		s := b.open(Open{Sent: start.Add(from), PromptTokens: 1000})
		chunks := []int{51, 10, 10, 10, 10, 10} // one second; half of it before the first
		if i%2 == 0 {
			chunks = []int{61, 40}
		}
		for j, tokens := range chunks {
			s.Text(4 * tokens)
			s.Read(start.Add(from+time.Second+time.Duration(j)*100*ms), 1)
		}
		s.Usage(told)
		s.Close(start.Add(from+time.Second+500*ms), true)
		b.book.Fold(start.Add(from + time.Second + 500*ms))
	}
	b.book.Fold(start.Add(time.Hour))
	m := &b.book.profile(target).known.mix
	within(t, "tokens", m.Y, 40*100, 0.01)
	within(t, "prompt tokens for each", m.P/m.Y, 10, 0.03)
	if err := b.book.profile(target).known.Check(); err != nil {
		t.Error(err)
	}
}

// Answers that each come as one chunk show no time, and a store would refuse tokens
// that took none: they wait.
func TestTokensWithoutTimeAreInNoMix(t *testing.T) {
	b := newBench(t).calibrated(100, 100)
	b.occ.Set(start, 1)
	for i := range 100 {
		from := time.Duration(i) * time.Second
		s := b.open(Open{Sent: start.Add(from), PromptTokens: 1000})
		s.Text(400)
		s.Read(start.Add(from+500*ms), 1)
		s.Usage(Usage{PromptTokens: 1000, CompletionTokens: 100})
		s.Close(start.Add(from+500*ms), true)
		for _, d := range b.book.Fold(start.Add(from + 500*ms)) {
			if err := d.Sums.Check(); err != nil {
				t.Fatal(err)
			}
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

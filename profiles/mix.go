package profiles

import (
	"math"
	"time"
)

// mixSums are what the requests of a target bring, in one memory for all n:
//
//	ρ = P/Y · (X'/N')/(X/N)
//
// prompt tokens for each output token, with X'/N' the mean prompt of the
// requests since prompts changed last (recentSums). The bins cannot say it: each
// of them forgets in its own time, so for an hour they would hold of two mixes.
type mixSums struct {
	T    float64 // occupied seconds
	P, Y float64 // prompt tokens prefilled beside streams; tokens of these streams
	N, X float64 // requests; tokens of their prompts, as booked
}

// recentSums are the requests since their prompts became longer, or shorter.
type recentSums struct {
	T        float64 // stands for occupied seconds: a change counts as mixOver
	N, X, XX float64 // requests, Σ x, Σ x² of their prompts of x tokens, as booked
}

// newest is the mean prompt of the last requests, of which each counts half as
// much as the one newestHalf later. It is not stored.
type newest struct{ N, X float64 }

const (
	newestHalf = 16

	// newestWeight is how many independent requests the newest are worth once
	// there are many: (1+k)/(1−k), k = 2^(−1/newestHalf).
	newestWeight = 46

	// mixErrors is how many standard errors the newest prompts have to be off
	// the recent ones for these to be forgotten, in seconds that stand for
	// occupied ones: ten half-lives.
	mixErrors = 4.5
	mixOver   = 10 * float64(defaultHalfLife) / float64(time.Second)

	// mixLeast is how many requests there have to be before anything is a change,
	// and mixKept how many the newest count as when it is one.
	mixLeast = 16
	mixKept  = 4

	// leastVariance is the least variance of a prompt's size that is believed,
	// relative to its mean.
	leastVariance = 0.5

	// mostMix bounds by how much prompts may have changed.
	mostMix = 64

	// mixEnough is how many occupied seconds of a mix are enough: what it lacks is
	// taken from the bins.
	mixEnough = 60
)

func (m *mixSums) fields() []*float64    { return []*float64{&m.T, &m.P, &m.Y, &m.N, &m.X} }
func (q *recentSums) fields() []*float64 { return []*float64{&q.T, &q.N, &q.X, &q.XX} }

var (
	mixNames     = [...]string{"t", "p", "y", "n", "x"}
	recentNames  = [...]string{"t", "n", "x", "xx"}
	storedMix    = prefixed("m.", mixNames[:])
	storedRecent = prefixed("q.", recentNames[:])
)

// rho returns ρ. Sums that were stored before there was a mix have hours of it in
// their bins: a mix of the first seconds, when prompts come and hardly a token,
// must not stand for them.
func (s *Sums) rho() float64 {
	m, q := &s.mix, &s.recent
	prompts, tokens, change := m.P, m.Y, 1.0
	if lack := 1 - m.T/mixEnough; lack > 0 || !(tokens > 0) {
		lack = max(lack, 0.01)
		for i := range s.bins {
			prompts, tokens = prompts+lack*s.bins[i].P, tokens+lack*s.bins[i].Y
		}
	}
	if m.N >= 1 && q.N >= 1 && m.X > 0 && q.X > 0 {
		change = min(max(q.X/q.N/(m.X/m.N), 1.0/mostMix), mostMix)
	}
	if rho := prompts / tokens * change; rho > 0 {
		return min(rho, maxLoad)
	}
	return 0
}

// see takes a prompt.
func (w *newest) see(tokens float64) {
	keep := math.Exp2(-1.0 / newestHalf)
	w.N = w.N*keep + 1
	w.X = w.X*keep + tokens
}

// changed reports whether w has other prompts than q, and how much prompts vary:
// their variance, relative to the mean.
func (q *recentSums) changed(w newest) (variance float64, ok bool) {
	if !(q.N >= mixLeast) || !(q.X > 0) {
		return 0, false
	}
	variance = max(q.N*q.XX/(q.X*q.X)-1, leastVariance)
	off := math.Log(w.X / w.N / (q.X / q.N))
	return variance, math.Abs(off) > mixErrors*math.Sqrt(variance/newestWeight+variance/q.N)
}

// seePrompt takes the prompt of a request whose first token came. Where prompts
// have changed, those before are forgotten.
func (p *profile) seePrompt(tokens float64) {
	p.fold.mix.N++
	p.fold.mix.X += tokens
	f := &p.fold.recent
	q := recentSums{N: p.known.recent.N + f.N, X: p.known.recent.X + f.X, XX: p.known.recent.XX + f.XX}
	p.newest.see(tokens)
	if variance, ok := q.changed(p.newest); ok {
		mean := p.newest.X / p.newest.N
		*f = recentSums{T: f.T + mixOver, N: mixKept, X: mixKept * mean, XX: mixKept * mean * mean * (1 + variance)}
		p.known.recent = recentSums{} // as the fold will have it
		return
	}
	f.N++
	f.X += tokens
	f.XX += tokens * tokens
}

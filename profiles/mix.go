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

// turning finds out that prompts have become longer, or shorter, than those of
// recentSums: Page's CUSUM (see drift) of the logarithm of how much likelier a prompt
// of x tokens is where the mean is mixTimes that of before, or 1/mixTimes:
//
//	z = min((x/μ·(1 − 1/c) − ln c)/v, mixClip),   S = max(0, S + z),   alarm where S > mixAlarm
//
// with c either of both, v the variance of x relative to its mean, as of gamma
// distributions, and μ the mean until S was 0: for c > 1 at the upper end of its standard
// error, else at the lower. One prompt says mixClip at most: where one in twenty is very
// long, the few before the first of them tell neither μ nor v. What came since S was 0 is
// of the new mix. It is not stored.
type turning struct{ longer, shorter cusum }

// cusum is S, and the requests since it was 0.
type cusum struct {
	S        float64
	N, X, XX float64 // as in recentSums
}

const (
	mixAlarm = 20.0
	mixTimes = 1.5
	mixClip  = 1.5 // fourteen prompts at least are a change

	// mixLeast is how many requests there have to be before anything is a change.
	mixLeast = 16

	// mixOver stands for occupied seconds in which what was before a change is
	// forgotten: ten half-lives.
	mixOver = 10 * float64(defaultHalfLife) / float64(time.Second)

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

// see takes a prompt of so many tokens that comes after those of q, and returns what
// prompts are since they changed; ok is false where they did not.
func (t *turning) see(tokens float64, q *recentSums) (since recentSums, ok bool) {
	longer, shorter := t.longer.see(tokens, q, mixTimes), t.shorter.see(tokens, q, 1/mixTimes)
	c := &t.longer
	if shorter > longer {
		c = &t.shorter
	}
	if !(c.S > mixAlarm) {
		return recentSums{}, false
	}
	since = recentSums{N: c.N, X: c.X, XX: c.XX}
	*t = turning{}
	return since, true
}

// see takes a prompt, and returns S. What came since S was 0 is in q as well, and no part
// of what was before.
func (c *cusum) see(tokens float64, q *recentSums, times float64) float64 {
	n, x, xx := q.N-c.N, q.X-c.X, q.XX-c.XX
	if !(n >= mixLeast) || !(x > 0) {
		*c = cusum{}
		return 0
	}
	variance := max(n*xx/(x*x)-1, leastVariance)
	mean, off := x/n, 1+math.Sqrt(variance/n)
	if times < 1 {
		off = 1 / off
	}
	c.S += min((tokens/(mean*off)*(1-1/times)-math.Log(times))/variance, mixClip)
	if c.N, c.X, c.XX = c.N+1, c.X+tokens, c.XX+tokens*tokens; !(c.S > 0) {
		*c = cusum{}
	}
	return c.S
}

// seePrompt takes the prompt of a request whose first token came. Where prompts
// have changed, those before are forgotten.
func (p *profile) seePrompt(tokens float64) {
	p.fold.mix.N++
	p.fold.mix.X += tokens
	f := &p.fold.recent
	q := recentSums{N: p.known.recent.N + f.N, X: p.known.recent.X + f.X, XX: p.known.recent.XX + f.XX}
	if since, ok := p.turning.see(tokens, &q); ok {
		since.T = f.T + mixOver
		*f, p.known.recent = since, recentSums{} // as the fold will have it
		return
	}
	f.N++
	f.X += tokens
	f.XX += tokens * tokens
}

package profiles

import "math"

// Ahead is what stood before a request on its backend, over all replicas, when
// it was sent there. The zero value says that nobody counted.
type Ahead struct {
	Known        bool
	PromptTokens int // waiting for their prefill
	Sequences    int // waiting or decoding
}

// TTFT predicts the time from sending a request to its first token, in
// seconds:
//
//	Base + PerToken·(own prompt) + max(PerToken·(prompts ahead), wait for a slot)
//
// An engine that runs at most Slots sequences lets all further ones wait,
// without limit: the q-th of them begins when the q-th of those that run has
// ended. The zero value knows nothing and predicts 0.
type TTFT struct {
	Base     float64 // without a prompt and with nothing ahead
	PerToken float64 // of a prompt that has to be computed
	Uncached float64 // share of prompt tokens that have to be, 0 to 1
	Slots    int     // 0 = the engine was never seen to queue
	Turnover float64 // sequences that end per second while all slots are taken; 0 = unknown
}

// Known reports whether t predicts anything.
func (t TTFT) Known() bool { return t != TTFT{} }

// Prefill is how long so many prompt tokens take, with the usual share of them
// in a cache.
func (t TTFT) Prefill(tokens int) float64 {
	return t.PerToken * t.Uncached * float64(max(tokens, 0))
}

// Queue is how long a request waits for a slot, on average, when m sequences
// are there before it; 0 while a slot is free or none was ever missing.
func (t TTFT) Queue(m int) float64 {
	if t.Slots == 0 || m < t.Slots || t.Turnover <= 0 {
		return 0
	}
	return float64(m+1-t.Slots) / t.Turnover
}

// QueueBound is a wait for a slot that one request in a hundred exceeds, with m
// as in Queue. Independent answers end like a Poisson process, so the q-th end
// has a gamma distribution; this is its quantile by Wilson and Hilferty. For
// the next to be served it is 4.6 times the mean.
func (t TTFT) QueueBound(m int) float64 {
	wait := t.Queue(m)
	if wait == 0 {
		return 0
	}
	const z = 2.326 // of the 99th percentile
	q := float64(m + 1 - t.Slots)
	root := 1 - 1/(9*q) + z/(3*math.Sqrt(q))
	return wait * root * root * root
}

// Wait is how long a request waits before its own prefill begins, on average.
func (t TTFT) Wait(a Ahead) float64 {
	return max(t.Prefill(a.PromptTokens), t.Queue(a.Sequences))
}

// Predict is the TTFT of a request with so many prompt tokens.
func (t TTFT) Predict(a Ahead, prompt int) float64 {
	return t.Base + t.Prefill(prompt) + t.Wait(a)
}

const (
	// minFirsts is how many first tokens a prediction has to rest on.
	minFirsts = 8

	// usualPrefill stands for what a prompt token takes where neither the
	// prompts nor the curve tell, and heldPrompt for the prompt at which it is
	// held, with the weight of heldFirsts first tokens.
	usualPrefill = 40e-6
	heldPrompt   = 1000
	heldFirsts   = 2

	// minLate is how many late first tokens make a knee, and lateSpread how far
	// apart they may lie: their standard deviation over their mean, or one
	// sequence.
	minLate    = 12
	lateSpread = 0.1
)

// newTTFT draws the prediction from s. c is the curve of the same sums.
func newTTFT(s *Sums, c *Curve) TTFT {
	f := &s.firsts
	if !(f.N >= minFirsts) || !(f.Y > 0) {
		return TTFT{}
	}
	g := gram{
		m: [4][4]float64{{f.W, f.WX}, {f.WX, f.WXX}},
		v: [4]float64{f.WY, f.WXY},
	}
	// Where all prompts are alike, only their sum with the base is known.
	usual := usualPrefill
	if d := c.SecondsPerPromptToken(); d > 0 {
		usual = d
	}
	mean := f.Y / f.N
	g.add([4]float64{0, heldPrompt}, heldPrompt*usual, heldFirsts/(mean*mean))
	theta := g.solve()
	t := TTFT{Base: min(theta[0], longestTTFT), PerToken: min(theta[1], longestTTFT), Uncached: uncached(f.Asked, f.Fresh)}
	if !finite(t.Base) || !finite(t.PerToken) {
		return TTFT{}
	}
	if k := s.knee.slots(); k > 0 {
		t.Slots = k
		t.Turnover = turnover(t, c, max(f.X/f.N, 0))
	}
	return t
}

// turnover is how many sequences end per second while all slots are taken:
// each is taken for the prefill of a prompt and the decoding of an answer. Read
// off the curve it is known before the engine was ever full for long, and it
// follows the drift; completions counted in the past would say the engine's
// speed only where it was full for as long as they were counted.
func turnover(t TTFT, c *Curve, prompt float64) float64 {
	tps := c.TPS(t.Slots)
	if !(tps > 0) || !(c.MeanOutput() > 0) {
		return 0
	}
	return float64(t.Slots) / (t.Base + t.PerToken*prompt + c.MeanOutput()/tps)
}

// slots is the number of sequences that an engine runs at once, as late first
// tokens show it; 0 when they show none. A slot that one sequence has left and
// the next prefills in is not decoding, so their mean lies below; as many as
// are missing on average, about so far they spread.
func (k *kneeSums) slots() int {
	if !(k.Late >= minLate) {
		return 0
	}
	mean, spread := k.spread()
	if !(mean >= 1) || !(mean <= maxLevel) || spread > max(1, lateSpread*mean) {
		return 0
	}
	return int(math.Round(mean + spread))
}

// most is the number of slots that k suggests, however weakly; +Inf when it
// suggests none.
func (k *kneeSums) most() float64 {
	if !(k.Late > 0) {
		return math.Inf(1)
	}
	mean, spread := k.spread()
	return math.Round(mean + spread)
}

// spread returns the mean n of the late first tokens and its standard
// deviation.
func (k *kneeSums) spread() (mean, deviation float64) {
	mean = k.N / k.Late
	return mean, math.Sqrt(max(k.NN/k.Late-mean*mean, 0))
}

package profiles

import "time"

// firstSums are the weighted normal equations of the first tokens,
// y = base + perToken·x, one row per stream.
type firstSums struct {
	T                   float64 // occupied seconds, as in totals
	W, WX, WXX, WY, WXY float64 // Σ w, w·x, w·x², w·y, w·x·y
	N, Y                float64 // first tokens, and Σ y: seconds
	X                   float64 // Σ own prompt tokens that were computed
	Asked, Fresh        float64 // prompt tokens by usage, and of them those in no cache
}

// kneeSums tell of the first tokens that came much later than their prompts
// explain, while others were there before them: at which n they came. An engine
// with k slots gives them out when a running sequence ends, so at about k.
type kneeSums struct {
	T           float64 // stands for occupied seconds, see seeKnee
	Late, N, NN float64 // late first tokens, and Σ n, Σ n² of them
}

func (f *firstSums) fields() []*float64 {
	return []*float64{&f.T, &f.W, &f.WX, &f.WXX, &f.WY, &f.WXY, &f.N, &f.Y, &f.X, &f.Asked, &f.Fresh}
}

func (k *kneeSums) fields() []*float64 {
	return []*float64{&k.T, &k.Late, &k.N, &k.NN}
}

var (
	firstNames   = [...]string{"t", "w", "wx", "wxx", "wy", "wxy", "n", "y", "x", "asked", "fresh"}
	kneeNames    = [...]string{"t", "late", "n", "nn"}
	storedFirsts = prefixed("ft.", firstNames[:])
	storedKnee   = prefixed("kn.", kneeNames[:])
)

// addFirsts merges what d says about first tokens.
func (s *Sums) addFirsts(d *Sums, halfLife time.Duration) {
	if d.firsts != (firstSums{}) {
		mergeFields(s.firsts.fields(), d.firsts.fields(), kept(d.firsts.T, halfLife))
	}
	if d.knee != (kneeSums{}) {
		mergeFields(s.knee.fields(), d.knee.fields(), kept(d.knee.T, halfLife))
	}
}

const (
	// longestTTFT and shortestTTFT bound what a first token may take, in
	// seconds.
	longestTTFT  = 3600
	shortestTTFT = 1e-5

	// A first token is late when it takes lateFactor times what is predicted
	// for its prompt and those ahead, and lateLeast seconds more; where clearly
	// somebody had to end before it, less will do.
	lateFactor  = 3
	lateLeast   = 0.1
	clearFactor = 1.5
	clearLeast  = 0.05

	// The knee is not forgotten with occupied time as speed is: who keeps clear
	// of it would forget it, and run into it again. What makes it fade, in
	// seconds that stand for occupied ones (600 halve it): other late first
	// tokens; a stream that begins beyond it; and, slowly, time, since nobody
	// may ever look beyond it otherwise.
	lateSpan   = 10.0
	beyondSpan = 600.0
	kneeSlower = 16.0

	// lateReach is how far from a knee that is known one late first token may
	// count, in the spread that a knee may have. More than one in ten as far off
	// are another knee, or none.
	lateReach = 3.0

	// beyondKnee is by how much n has to exceed the slots to refute them, at
	// least and as a share of them: a few may have ended unknown to this replica.
	beyondKnee  = 2
	beyondShare = 0.1
)

// teachesTTFT reports whether the first token of s tells how long first tokens
// take: when it was asked for and what stood before it is known, nothing but
// the backend delayed it, and it was not the end of something hidden.
func (s *Stream) teachesTTFT() bool {
	return s.start.ahead.Known && s.evidence() && !s.start.blocked && s.first > s.start.sent &&
		(s.told.usage.ReasoningTokens <= 0 || s.told.reasoning)
}

// learnFirst books the first token of s, once its prompt is known as well as
// it will be. g.mu is held.
func (p *profile) learnFirst(s *Stream) {
	if !s.teachesTTFT() || s.deserted() {
		return
	}
	own, counted := s.told.usage.prefilled(s.start.estimate)
	switch {
	case counted:
		p.fold.firsts.Asked += max(float64(s.told.usage.PromptTokens)-s.start.cached, own)
		p.fold.firsts.Fresh += own
	case s.start.estimate > 0:
		own = s.expected() * p.totals().promptScale()
	default:
		return // nobody knows what was prefilled
	}
	t := p.curve.Load().TTFT()
	asked, fresh := p.known.firsts.Asked+p.fold.firsts.Asked, p.known.firsts.Fresh+p.fold.firsts.Fresh
	x := own + uncached(asked, fresh)*float64(min(max(s.start.ahead.PromptTokens, 0), maxPromptsAhead))
	y := min(max((s.first-s.start.sent).Seconds(), shortestTTFT), longestTTFT)
	expected := p.expectFirst(t, x, y)
	gone := s.gone()
	if t.Known() {
		p.seeKnee(s, gone > 0 && y > lateFactor*expected+lateLeast || gone > 1 && y > clearFactor*expected+clearLeast)
	}
	// Who waits for slots has prompts ahead in proportion: taken for prefill,
	// the wait would pass for a slow one.
	if gone <= 1 && (t.Slots == 0 || s.start.ahead.Sequences < t.Slots) {
		p.fold.firsts.add(x, own, y, expected)
	}
}

// maxPromptsAhead bounds the prompt tokens that a stream found ahead.
const maxPromptsAhead = 1 << 30

// uncached is the share of prompt tokens that have to be computed: all of them
// while no usage tells.
func uncached(asked, fresh float64) float64 {
	if !(asked > 0) {
		return 1
	}
	return min(max(fresh/asked, 0), 1)
}

// expectFirst is what is predicted for x prompt tokens while slots are free, or
// the mean of all first tokens while nothing is.
func (p *profile) expectFirst(t TTFT, x, y float64) float64 {
	if t.Known() {
		return max(t.Base+t.PerToken*x, shortestTTFT)
	}
	n, sum := p.known.firsts.N+p.fold.firsts.N, p.known.firsts.Y+p.fold.firsts.Y
	if n > 0 && sum > 0 {
		return max(sum/n, shortestTTFT)
	}
	return y
}

// seeKnee notes at which n a first token came, if it was late, or came where
// no slot should have been.
func (p *profile) seeKnee(s *Stream, late bool) {
	k := &p.fold.knee
	n := float64(s.start.n)
	known := p.known.knee
	mergeFields(known.fields(), k.fields(), 1)
	if m := known.most(); n >= m+max(beyondKnee, beyondShare*m) {
		k.T += beyondSpan // also while it is a mere suspicion
	}
	if late {
		if known.slots() > 0 {
			mean, _ := known.spread()
			reach := lateReach * max(1, lateSpread*mean)
			n = min(max(n, mean-reach), mean+reach)
		}
		k.T += lateSpan
		k.Late++
		k.N += n
		k.NN += n * n
	}
}

// gone is by how many fewer sequences decode when s begins than were there
// when it was sent, itself among them, in units of what comes and goes
// unnoticed: one, or a tenth of them. Above 1, some had to end before s was
// served, or it took so long that some did.
func (s *Stream) gone() float64 {
	n := float64(s.start.n)
	return (float64(s.start.ahead.Sequences) + 1 - n) / max(1, beyondShare*n)
}

// deserted reports whether most of those who decoded when s was sent had gone
// when it began. No slot was missing then: n was known wrongly (the engine's
// own report came to an end), or a batch ended as one.
func (s *Stream) deserted() bool { return s.start.sentN > 2*s.start.n }

// add adds a first token after y seconds, with x prompt tokens to prefill until
// then, of which own are its own. The weight makes errors relative to what was
// expected, and what is far from it counts little: it waited for something
// else. When everything is far from it, that moves the mean all the same.
func (f *firstSums) add(x, own, y, expected float64) {
	off := (y - expected) / expected
	w := 1 / (expected * expected * (1 + off*off))
	f.W += w
	f.WX += w * x
	f.WXX += w * x * x
	f.WY += w * y
	f.WXY += w * x * y
	f.N++
	f.Y += y
	f.X += own
}

// ageFirsts gives the first tokens of a fold the occupied time that makes older
// ones fade. While none comes that tells of prompts, because all wait for
// slots, none is forgotten.
func (p *profile) ageFirsts() {
	occupied := p.fold.totals.T
	if p.fold.firsts.N > 0 {
		p.fold.firsts.T += occupied
	}
	if p.known.knee.Late > 0 || p.fold.knee.Late > 0 {
		p.fold.knee.T += occupied / kneeSlower
	}
}

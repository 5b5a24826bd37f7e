package profiles

import "time"

const (
	// slotLength is how long gaps at one n are taken together.
	slotLength = 100 * time.Millisecond

	// maxWatching is how many streams of a group note their slots at a time: the
	// streams of a batch share its steps, so a few tell as much as all. notedSlots
	// is how many one of them keeps until it hands them over, and fullSlots how
	// many make it do so with its next arrival.
	maxWatching = 16
	notedSlots  = 32
	fullSlots   = 24

	// maxSlots and maxSpans bound the slots and the prefills of a group that are
	// remembered. Slots beyond are lost.
	maxSlots = 4096
	maxSpans = 128

	// spanReach is how long slots wait to be judged at least: the streams that note
	// them hand them over once a second, and nobody has to be marked as waiting.
	spanReach = 3 * time.Second

	// longestSpan is how long before a first token a prefill may have begun: of a
	// longer one nobody knows what lies in it.
	longestSpan = time.Minute

	// spanLength is how many times as long as expected a prefill may have taken.
	// Too long an interval costs evidence, too short a one takes disturbed time
	// for quiet.
	spanLength = 3
)

// slot is a piece of a stream's time at one n: whole gaps between arrivals, or of
// one gap in which n changed the part at n.
type slot struct {
	by       *noted
	from, to time.Duration // of the whole gaps, since epoch; from < to
	n        int32
	seconds  float64 // at n
	k        float64 // chunks as measured, or tokens where they are counted
}

// span is the interval in which a prompt was prefilled, as far as that can be
// seen: it ends with the first token, and begins no earlier than the request was
// sent, the first token before it came, and spanLength times what so many tokens
// are expected to take. Tokens is 0 where nobody knows what lies in it.
type span struct {
	from, to time.Duration // since epoch; to never falls from one to the next
	batch    time.Duration // when the batch before its own ended, since epoch
	tokens   float64
}

// trail holds the slots of the streams of a group until it is known beside which
// prefills they lay, which only the first tokens after them tell. Then they are
// quiet time or disturbed time of their bins (binSums.Tq and the following). Where
// sequences decode that this replica does not relay, whose prompts it cannot know,
// slots are neither. group.mu guards it.
type trail struct {
	slots    []slot
	spans    [maxSpans]span // a ring
	prefills int            // spans so far
	watching int            // streams that note their slots
	waiting  []*Waiting     // requests without a token, at most maxWaiting
	foreign  time.Duration  // when others decoded beside them last, since epoch; 0 = never
}

// prefilled adds a span. One prefill follows the other, unless their first
// tokens are less than least apart: then one batch held both prompts.
func (t *trail) prefilled(q span, least time.Duration) {
	if t.prefills > 0 {
		last := t.spans[(t.prefills-1)%maxSpans]
		q.to = max(q.to, last.to)
		q.batch = last.to
		if q.to-last.to < least {
			q.batch = last.batch
		}
		q.from = min(max(q.from, q.batch), q.to)
	}
	t.spans[t.prefills%maxSpans] = q
	t.prefills++
}

// beside returns the prompt tokens that were prefilled while sl lasted, and
// whether there was a prefill at all; known is false where nobody can tell.
func (t *trail) beside(sl *slot) (tokens float64, disturbed, known bool) {
	for i := t.prefills - 1; i >= 0; i-- {
		if i < t.prefills-maxSpans {
			return 0, true, false // overwritten: it may have lain in sl
		}
		q := &t.spans[i%maxSpans]
		if q.to <= sl.from {
			break // as all before it
		}
		if sl.to <= q.from && sl.to < q.to {
			continue
		}
		if q.tokens == 0 {
			return 0, true, false
		}
		disturbed = true
		share := 1.0 // of a span without length
		if q.to > q.from {
			share = float64(min(sl.to, q.to)-max(sl.from, q.from)) / float64(q.to-q.from)
		}
		tokens += q.tokens * share
	}
	return tokens * sl.seconds / (sl.to - sl.from).Seconds(), disturbed, true
}

// judge books the slots of which at is far enough away, and that the prefill of
// no request that still waits can have lain beside. Where settled is false the
// engine may just have changed: then they are neither.
func (t *trail) judge(at time.Duration, settled bool) {
	until := at - spanReach
	for _, w := range t.waiting {
		until = min(until, max(w.sent, at-w.span()))
	}
	rest := t.slots[:0]
	for i := range t.slots {
		sl := &t.slots[i]
		if sl.to > at+spanReach { // of a clock that was set back
			continue
		}
		if sl.to > until {
			rest = append(rest, *sl)
			continue
		}
		alone := t.foreign == 0 || sl.to >= t.foreign+spanReach
		if tokens, disturbed, known := t.beside(sl); known && alone && settled {
			sl.by.of.see(sl, tokens, disturbed)
		}
	}
	clear(t.slots[len(rest):])
	t.slots = rest
}

// calm is quiet time of one window, by bin.
type calm struct {
	window int64
	T, K   [NumBins]float64 // as in binSums.Tq and Kq
}

// see books a slot, beside which so many prompt tokens were prefilled. g.mu is
// held.
func (p *profile) see(sl *slot, tokens float64, disturbed bool) {
	n, i := float64(sl.n), BinOf(int(sl.n))
	b, k := &p.fold.bins[i], sl.by.see(i, sl.k/n, disturbed)
	if disturbed {
		b.Td += sl.seconds / n
		b.Kd += k
		b.Pd += tokens / n
		if p.since != nil {
			p.since.bins[i].Td += sl.seconds / n
		}
		return
	}
	if w := windowOf(sl.to); w > p.calm.window {
		p.closeCalm()
		p.calm = calm{window: w}
	}
	b.Tq += sl.seconds / n
	b.Kq += k
	if p.since != nil {
		p.since.bins[i].Tq += sl.seconds / n
	}
	p.calm.T[i] += sl.seconds / n
	p.calm.K[i] += k
}

// closeCalm adds how far each bin was from its quiet step in the window.
func (p *profile) closeCalm() {
	for i := range p.calm.T {
		known := &p.known.bins[i]
		if t := p.calm.T[i]; t > 0 && known.Kq >= visitedSteps {
			off := t - p.calm.K[i]*known.Tq/known.Kq
			p.fold.bins[i].Wq++
			p.fold.bins[i].Vq += off * off
		}
	}
}

// joins says that s decodes from first on, and that its prompt was prefilled
// before. g.mu is held.
func (g *group) joins(s *Stream, first time.Duration) {
	t := &g.trail
	if t.watching < maxWatching && s.sequences == 1 && s.occ != nil {
		t.watching++
		s.held.slots = make([]slot, 0, notedSlots)
		s.held.noted = &noted{of: s.profile}
	}
	expected := s.profile.expectedPrefill(s.start.prompt)
	q := span{from: max(s.start.sent, first-spanLength*expected), to: first, tokens: s.start.prompt}
	if s.start.prompt <= 0 || s.off.piled || first-q.from > longestSpan {
		q = span{from: max(s.start.sent, first-longestSpan), to: first}
	}
	t.prefilled(q, expected/2)
}

// expectedPrefill is how long so many prompt tokens take to prefill, as far as
// that is known.
func (p *profile) expectedPrefill(tokens float64) time.Duration {
	c := p.curve.Load()
	each := max(c.fit.D, c.ttft.PerToken, usualPrefill)
	return time.Duration(min(tokens*each, longestTTFT) * float64(time.Second))
}

// leaves undoes joins. g.mu is held.
func (g *group) leaves(s *Stream) {
	if s.held.slots != nil {
		g.trail.watching--
		s.held.slots = nil
	}
}

// note keeps a slot, if this stream does. own of the n are relayed by this replica.
func (s *Stream) note(from, to time.Duration, n, own int, d time.Duration, k float64) {
	if s.held.slots == nil || to <= from {
		return
	}
	if n > own {
		s.held.foreign = to
	}
	s.held.slots = append(s.held.slots, slot{by: s.held.noted, from: from, to: to, n: int32(max(n, 1)), seconds: d.Seconds(), k: k * s.unit.fill.at(n)})
	if len(s.held.slots) >= fullSlots {
		s.held.turnAt = s.last
	}
}

// noteMore adds k to the slots of the last gap, in which n changed.
func (s *Stream) noteMore(k float64) {
	for i := len(s.held.slots) - 1; i >= 0 && s.held.slots[i].to == s.last && s.held.slots[i].from == s.gap.from; i-- {
		s.held.slots[i].k += k * s.unit.fill.at(int(s.held.slots[i].n)) * s.held.slots[i].seconds / (s.last - s.gap.from).Seconds()
	}
}

// tell hands the slots to the trail, if they are evidence and it is known how many
// tokens one of what they count is; else they are lost. g.mu is held.
func (s *Stream) tell(g *group, known bool, each float64) {
	t := &g.trail
	t.foreign = max(t.foreign, s.held.foreign)
	if known && s.held.slots != nil {
		s.held.noted.each = each
		t.slots = append(t.slots, s.held.slots[:min(len(s.held.slots), maxSlots-len(t.slots))]...)
	}
	s.held.slots = s.held.slots[:0]
}

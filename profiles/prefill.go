package profiles

import "time"

// prefillRate is how many prompt tokens per second a backend is taken to
// prefill, for the sake of spreading a prompt over the time before its first
// token; only the order of magnitude matters.
const prefillRate = 25000

// nominalPrompt stands for a prompt of unknown size when it is spread.
const nominalPrompt = 1000

// promptLoad is prompt tokens prefilled while n ≥ 1, by the bin of n.
type promptLoad struct {
	P  [NumBins]float64 // prompt tokens
	PN [NumBins]float64 // prompt tokens × n
}

// add adds o multiplied by scale.
func (l *promptLoad) add(o *promptLoad, scale float64) {
	for i := range l.P {
		l.P[i] += o.P[i] * scale
		l.PN[i] += o.PN[i] * scale
	}
}

// prefill remembers where one prompt was booked, per prompt token, so that the
// true size can be booked to the same places. The bins of a prefill lie close
// together; what does not fit goes to the last one.
type prefill struct {
	cells  [6]prefillCell
	len    int
	window int64
}

// prefillCell is the share of a prompt that was prefilled in one bin.
type prefillCell struct {
	bin    int
	share  float64
	shareN float64 // share × n
}

// book adds a share of the prompt prefilled beside n streams.
func (p *prefill) book(n int, share float64) {
	bin := BinOf(n)
	i := 0
	for i < p.len && p.cells[i].bin != bin {
		i++
	}
	if i == len(p.cells) {
		i--
	} else if i == p.len {
		p.cells[i] = prefillCell{bin: bin}
		p.len++
	}
	p.cells[i].share += share
	p.cells[i].shareN += share * float64(n)
}

// addTo adds a prompt of so many tokens to l.
func (p *prefill) addTo(l *promptLoad, tokens float64) {
	for _, c := range p.cells[:p.len] {
		l.P[c.bin] += tokens * c.share
		l.PN[c.bin] += tokens * c.shareN
	}
}

// expected is how many prompt tokens are expected to be computed; 0 = unknown.
func (s *Stream) expected() float64 { return s.start.estimate - s.start.cached }

// spread is the time that the prompt is spread over.
func (s *Stream) spread() time.Duration {
	size := s.expected()
	if size <= 0 {
		size = nominalPrompt
	}
	return time.Duration(min(size/prefillRate, 3600) * float64(time.Second))
}

// bookPrompt books the prompt of a stream whose first token came at first. It
// is spread over the time its prefill took; only what fell beside decoding
// streams counts, and this stream is none of them: the walk ends where it
// joins.
func (s *Stream) bookPrompt(first time.Duration) {
	s.start.prefill.window = windowOf(first)
	if s.occ != nil && !s.off.piled { // a pause is no time that it could have slowed down
		from := max(s.start.sent, first-s.spread())
		whole := float64(first - from)
		s.occ.walk(from+s.shift, first+s.shift, func(n, _ int, d time.Duration) {
			if n >= 1 {
				s.start.prefill.book(n, float64(d)/whole)
			}
		})
	}
	s.profile.group.bookPrompt(s, first)
}

// bookPrompt books the prompt of s in the window of its first token.
func (g *group) bookPrompt(s *Stream, first time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trail.over(s.start.waiting)
	s.start.waiting = nil
	s.start.prompt = s.expected() * s.profile.totals().promptScale()
	g.joins(s, first)
	if s.occ == nil || s.off.piled {
		s.start.prompt = 0
		return
	}
	s.start.joined = g.abreast
	if s.start.prompt > 0 {
		s.profile.seePrompt(s.start.prompt)
		if s.occ.prefilled(s.first+s.shift, s.start.prompt) { // not before: nobody would hear of it
			w := g.windowAt(windowOf(s.first))
			w.occ, w.shift = s.occ, s.shift
			return
		}
	}
	if s.start.prompt > 0 && s.start.prefill.len > 0 {
		s.start.prefill.addTo(&g.windowAt(s.start.prefill.window).prompts, s.start.prompt)
	}
}

// settlePrompt corrects the prompt of s to its true size. While the window of
// its first token is open, the correction belongs there; later it goes to the
// bins only, since in the row of another window it would be noise.
func (g *group) settlePrompt(s *Stream) {
	tokens, ok := s.told.usage.prefilled(s.start.estimate)
	if !ok || s.shown.arrivals == 0 {
		return
	}
	switch {
	case s.told.usage.CachedTokens > 0:
		s.profile.caches = true
	case 2*s.start.hoped > s.start.estimate: // who tells nothing of such a prompt tells nothing, or has no cache
		s.profile.caches = false
	}
	if s.start.estimate > 0 {
		// What a cache was wrongly expected to have is no matter of scale.
		s.profile.fold.totals.Estimated += max(s.expected(), min(tokens, s.start.estimate))
		s.profile.fold.totals.Prefilled += tokens
	}
	w := g.windowAt(s.start.prefill.window)
	load := &w.prompts
	if w.index != s.start.prefill.window {
		load = &w.late
	}
	s.start.prefill.addTo(load, tokens-s.start.prompt)
}

package profiles

import "time"

// Where other replicas relay streams of the same engine, how many theirs were is heard
// late: each tells some times a second what came and went since. Booked at once, a second
// of a stream would go to an n of 200 to 400 ms before. So what a stream gathers waits
// until all have told of that time (Occupancy.Told), in pieces; at the end of the stream
// its group keeps the last of them (remains).

const (
	// latePiece is how long a piece is at least, and maxLate how many a stream keeps: as
	// many as cover the time between two tellings twice. Beyond it the last one grows.
	latePiece = 20 * time.Millisecond
	maxLate   = 32

	// longestLate is for how long nobody is waited for: the windows of that time close.
	longestLate = windowGrace
)

// waits reports whether what the stream gathers is booked later: it, or its neighbours,
// are seen late.
func (s *Stream) waits() bool {
	_, all := s.occ.known()
	return s.unseen.time > 0 || !all
}

// due is until when what was gathered may be booked at at.
func (s *Stream) due(at time.Duration) time.Duration {
	until, all := s.occ.known()
	if all {
		return at - s.unseen.time
	}
	return min(at-s.unseen.time, max(until-s.shift, at-longestLate))
}

// dueAtEnd is due where the stream ends at at: who is like it begins no more.
func (s *Stream) dueAtEnd(at time.Duration) time.Duration {
	until, all := s.occ.known()
	if all {
		return everything
	}
	return max(until-s.shift, at-longestLate)
}

// delay is spend for a stream that waits.
func (s *Stream) delay(at time.Duration, k, text float64) {
	s.flush()
	s.release(s.due(at))
	_, s.run.n = s.load()
	s.gap.kind = whole
	least, most := latePiece, maxLate
	if s.unseen.time > 0 {
		least, most = s.unseen.time/4, maxDelayed
	}
	list := s.unseen.delayed
	if l := len(list) - 1; l >= 0 && (l == most-1 || at-list[l].from < least) {
		list[l] = delayed{list[l].from, at, list[l].k + k, list[l].text + text}
		return
	}
	if list == nil {
		list = make([]delayed, 0, maxLate/2)
	}
	s.unseen.delayed = append(list, delayed{s.last, at, k, text})
}

// maxRemains is how many streams of a group that have ended may have left pieces. Beyond
// it the next one's are booked at once.
const maxRemains = 1024

// remains are the last pieces of a stream that has ended.
type remains struct {
	of        *profile
	occ       *Occupancy
	shift     time.Duration // as in Stream
	fill      *fill
	sequences int
	each      float64 // tokens in one of what was counted; 0 = the stream was no evidence
	pieces    []delayed
}

// keep takes what s leaves. g.mu is held.
func (g *group) keep(s *Stream, t tally) {
	if len(s.unseen.delayed) == 0 {
		return
	}
	r := remains{of: s.profile, occ: s.occ, shift: s.shift, fill: s.unit.fill, sequences: s.sequences, pieces: s.unseen.delayed}
	if s.evidence() && (s.flowing || t.source != SourceEstimate) {
		r.each = t.each
	}
	s.unseen.delayed = nil
	if len(g.remains) >= maxRemains {
		g.bookPieces(&r, everything)
		return
	}
	g.remains = append(g.remains, r)
}

// bookRemains books at at what remains of streams and need not wait longer. g.mu is held.
func (g *group) bookRemains(at time.Duration) {
	rest := g.remains[:0]
	for _, r := range g.remains {
		until, all := r.occ.known()
		if until = max(until-r.shift, at-longestLate); all {
			until = everything
		}
		if g.bookPieces(&r, until); len(r.pieces) > 0 {
			rest = append(rest, r)
		}
	}
	clear(g.remains[len(rest):])
	g.remains = rest
}

// bookPieces books the pieces of r that ended by until. g.mu is held.
func (g *group) bookPieces(r *remains, until time.Duration) {
	for len(r.pieces) > 0 && r.pieces[0].to <= until {
		q := r.pieces[0]
		r.pieces = r.pieces[1:]
		g.piece = lives{list: g.piece.list[:0]}
		occupied := 0.0
		r.occ.walk(q.from+r.shift, q.to+r.shift, func(n, own int, d time.Duration) {
			bin, share := BinOf(n), float64(d)/float64(q.to-q.from)
			g.piece.at(bin).pending.book(n, d.Seconds(), q.k*share*r.fill.in(bin))
			occupied += d.Seconds() / float64(max(n, 1))
			if n > own {
				g.trail.foreign = max(g.trail.foreign, q.to)
			}
		})
		w := g.windowAt(windowOf(q.to))
		occupied *= float64(r.sequences)
		w.seen += occupied
		w.of(r.of).seen += occupied
		w.occ, w.shift = r.occ, r.shift
		if r.each > 0 {
			r.of.take(w, g.piece.list, pending, r.each)
		}
	}
}

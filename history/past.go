package history

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Past is what is kept over a restart: the steps and the marks. The totals since
// the start are not among it. Its fields are for an encoder.
type Past struct {
	Saved            time.Time
	Replicas         []string // names of the processes whose history this is, the latest last
	Routes, Backends map[string]PastSteps
	Marks            []Mark
}

// PastSteps are those of one series.
type PastSteps struct{ Fine, Coarse []step }

// Past returns what is to be kept of r and w at now. It shares nothing that
// changes.
func (r *Ring) Past(now time.Time, w *Watch) *Past {
	p := &Past{Saved: now, Routes: map[string]PastSteps{}, Backends: map[string]PastSteps{}}
	w.mu.Lock()
	p.Marks = append(p.Marks, w.lines.marks...)
	w.mu.Unlock()
	r.mu.Lock()
	at, routes, backends := r.at, maps.Clone(r.routes), maps.Clone(r.backends)
	r.mu.Unlock()
	for name, s := range routes {
		p.Routes[name] = s.past(at)
	}
	for name, s := range backends {
		p.Backends[name] = s.past(at)
	}
	return p
}

// Latest is p with that share of the steps of each series, the latest; 1 = all.
func (p *Past) Latest(share float64) *Past {
	if share >= 1 {
		return p
	}
	out := &Past{Saved: p.Saved, Marks: p.Marks, Routes: map[string]PastSteps{}, Backends: map[string]PastSteps{}}
	latest := func(steps []step) []step {
		kept := slices.SortedFunc(slices.Values(steps), func(a, b step) int { return cmp.Compare(a.At, b.At) })
		return kept[len(kept)-int(share*float64(len(kept))):]
	}
	for _, x := range []struct{ from, to map[string]PastSteps }{{p.Routes, out.Routes}, {p.Backends, out.Backends}} {
		for name, s := range x.from {
			x.to[name] = PastSteps{Fine: latest(s.Fine), Coarse: latest(s.Coarse)}
		}
	}
	return out
}

// past is s, of which the step at runs, with what of it has run.
func (s *Series) past(at int64) (p PastSteps) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.fine {
		if st.At > 0 {
			p.Fine = append(p.Fine, st)
		}
	}
	for _, st := range s.coarse {
		if st.At > 0 {
			p.Coarse = append(p.Coarse, st)
		}
	}
	minute := s.minute
	minute.add(&s.open)
	p.Fine = append(p.Fine, s.open.end(at))
	p.Coarse = append(p.Coarse, minute.end(at/finePerCoarse))
	return p
}

// end is c as a step that has ended.
func (c *cell) end(at int64) step {
	return step{At: at, Tally: c.tally, TPS: c.tps.pack(), TTFT: c.ttft.pack()}
}

// Restore takes what was kept, before anything is counted: steps of names that
// are remembered, none of them of the future, and marks, of which those that
// lasted ended when it was saved.
func (r *Ring) Restore(w *Watch, p *Past) {
	w.mu.Lock()
	for _, m := range p.Marks[max(len(p.Marks)-MaxMarks, 0):] {
		if m.Of > OfBackend {
			continue // of another version
		}
		if m.Ended.IsZero() {
			m.Ended = p.Saved
		}
		w.lines.add(m)
	}
	w.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	restore := func(of map[string]*Series, kept map[string]PastSteps) {
		for name, s := range of {
			s.mu.Lock()
			for _, st := range kept[name].Fine {
				if st.sound(r.at) {
					s.restoreFine(st, r.at)
				}
			}
			for _, st := range kept[name].Coarse {
				if st.sound(r.at / finePerCoarse) {
					s.restoreCoarse(st, r.at/finePerCoarse)
					if began := time.Unix(0, st.At*int64(Minute)); began.Before(r.oldest) {
						r.oldest = began
					}
				}
			}
			s.mu.Unlock()
		}
	}
	restore(r.routes, p.Routes)
	restore(r.backends, p.Backends)
}

// sound reports whether st can be a step until now, the one that runs.
func (st *step) sound(now int64) bool {
	return st.At > 0 && st.At <= now && len(st.TPS) <= packedMost && len(st.TTFT) <= packedMost
}

// restoreFine puts st into its place. What of the step that runs, now, was counted
// before the restart goes to the one before: the minute has it already, and would
// get it a second time.
func (s *Series) restoreFine(st step, now int64) {
	place := &s.fine[st.At%fineSteps]
	if st.At == now {
		st.At--
		place = &s.fine[st.At%fineSteps]
		if place.At == st.At {
			var both cell
			both.take(place)
			both.take(&st)
			st = both.end(st.At)
		}
	}
	if place.At <= st.At {
		*place = st
	}
}

// restoreCoarse puts st into its place; the minute that runs goes on.
func (s *Series) restoreCoarse(st step, now int64) {
	if st.At == now {
		if s.before == nil {
			s.before = &cell{}
		}
		s.minute.take(&st)
		s.before.take(&st)
		return
	}
	if place := &s.coarse[st.At%coarseSteps]; place.At < st.At {
		*place = st
	}
}

// take adds a step that has ended.
func (c *cell) take(st *step) {
	c.tally.add(&st.Tally)
	c.tps.unpack(st.TPS)
	c.ttft.unpack(st.TTFT)
}

// unpack adds p to s.
func (s *sketch) unpack(p packed) {
	for _, e := range p {
		s[e>>countBits] += e & packedCount
	}
}

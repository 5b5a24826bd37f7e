package router

import (
	"slices"
	"time"
)

// Record is one decision, for those who ask why.
type Record struct {
	Time    time.Time
	ID      string // Request.ID
	Route   string
	Class   Class
	Floor   float64 // of the request, tokens/s; 0 = none
	Outcome Outcome
	Policy  string
	Waited  time.Duration

	Chosen  Target // zero unless it was placed
	Spilled string // the route it was spilled to, "" if none

	MayWait    time.Duration // of one that is queued: how much longer it may stand in line
	Shed       ShedReason    // of one that was refused
	RetryAfter time.Duration // of one that was refused; 0 when waiting cannot help
	Best       float64       // of one that was refused: highest bound on offer, tokens/s; 0 when unknown

	// Behind is, of one that waits or was refused, at most how many in line go before it: a
	// candidate that is OK is theirs.
	Behind int

	// Candidates are the targets of the route, in their order, as they were
	// before the request took its place; and behind them those of the route it
	// was spilled to. LeftOut counts those that a kept record has no room for;
	// the chosen one is never left out.
	Candidates []Candidate
	LeftOut    int
}

const (
	// keptRecords is how many decisions are kept, keptCandidates how many
	// candidates of each: some 7 MB when every route has so many targets, a
	// fraction of that for usual ones.
	keptRecords    = 1024
	keptCandidates = 64

	// placedEach second are kept of the requests that were placed at once: they
	// are many, and one is like the other. All else is kept always.
	placedEach = 100
)

// journal is a ring of the last decisions. Guarded by Router.mu. A record is
// written where an older one was, its list of candidates included, so that
// once the ring is full nothing is allocated.
type journal struct {
	records [keptRecords]Record
	written uint64 // in all: the next one goes to written % keptRecords

	second int64 // of placed
	placed int   // kept in that second
}

// open keeps what was decided about a, before it is carried out. It returns the
// record for what is known only then, nil when this one is not kept.
func (j *journal) open(a *ask, p *intent) *Record {
	if p.outcome == OutcomePlaced {
		if second := a.now.Unix(); second != j.second {
			j.second, j.placed = second, 0
		}
		if j.placed++; j.placed > placedEach {
			return nil
		}
	}
	rec := &j.records[j.written%keptRecords]
	j.written++
	*rec = Record{Candidates: rec.Candidates[:0]}
	rec.describe(a, p, keptCandidates)
	return rec
}

// describe writes into rec what p says of a, with at most so many candidates.
func (rec *Record) describe(a *ask, p *intent, candidates int) {
	rec.Time, rec.ID, rec.Route = a.now, a.req.ID, a.route.conf.Name
	rec.Class, rec.Floor, rec.Waited = a.class, a.floor, a.waited
	rec.Outcome, rec.Policy = p.outcome, p.policy
	switch {
	case p.spilled != nil:
		there := &p.spilled.route.conf
		rec.Chosen, rec.Spilled = there.Targets[p.chosen.index].Target, there.Name
	case p.chosen != nil:
		rec.Chosen = a.route.conf.Targets[p.chosen.index].Target
	case p.outcome == OutcomeQueued:
		rec.MayWait = p.deadline.Sub(a.now)
	default:
		rec.Shed, rec.Best = p.cause, p.best
	}
	if p.chosen == nil {
		rec.Behind = p.behind
	}
	rec.list(a, p, candidates)
	if p.spilled != nil {
		rec.list(p.spilled, p, candidates)
	}
}

// list adds the verdicts on a's targets. The last place is for the chosen one.
func (rec *Record) list(a *ask, p *intent, limit int) {
	for i := range a.verdicts {
		v := &a.verdicts[i]
		switch {
		case len(rec.Candidates) < limit:
			rec.Candidates = append(rec.Candidates, a.candidate(v))
		case v == p.chosen:
			rec.Candidates[limit-1] = a.candidate(v)
			rec.LeftOut++
		default:
			rec.LeftOut++
		}
	}
}

// Decisions returns the last decisions, the latest first, at most so many. Of
// the requests that were placed at once it has up to 100 of each second.
func (r *Router) Decisions(limit int) []Record {
	r.mu.Lock()
	newest := r.journal.written
	r.mu.Unlock()
	limit = int(min(uint64(max(limit, 0)), keptRecords, newest))
	out := make([]Record, 0, limit)
	for i := range uint64(limit) {
		rec, ok := r.decision(newest - 1 - i)
		if !ok {
			break // written over meanwhile, and so is what is older
		}
		out = append(out, rec)
	}
	// The clock was read before the lock was taken, so two requests may have
	// come to the lock in the other order.
	slices.SortStableFunc(out, func(a, b Record) int { return b.Time.Compare(a.Time) })
	return out
}

// decision copies the record that was the number-th written. The lock is held
// for one at a time: a full ring is more than requests should wait for.
func (r *Router) decision(number uint64) (Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.journal.written-number > keptRecords {
		return Record{}, false
	}
	rec := r.journal.records[number%keptRecords]
	rec.Candidates = append([]Candidate(nil), rec.Candidates...)
	return rec, true
}

package profiles

import "time"

// Prompt is what was prefilled of a prompt whose first token came at At, in tokens; or of
// some that came one after the other.
type Prompt struct {
	At     time.Time
	Tokens float64
}

const (
	// promptsApart is how far apart prompts are that are told and kept one by one, and
	// toldPrompts how many are remembered to be told: those of more than half a second.
	promptsApart = 20 * time.Millisecond
	toldPrompts  = 32

	// maxPrompts is how many are remembered until their windows close, which takes six
	// seconds.
	maxPrompts = 1024
)

// prompted is a prompt by the clock of a record.
type prompted struct {
	at     time.Duration // since origin
	tokens float64
	own    bool // it is of this replica
}

// prefills are the prompts that were prefilled on an engine of late. The zero value is
// of one on which nobody tells of any.
type prefills struct {
	own  [toldPrompts]prompted // a ring: those to tell
	next int                   // slot of own
	all  []prompted            // of all replicas, while the others tell theirs
	from time.Duration         // from then on the others have told all; 0 = they tell none
}

// prefilled notes a prompt of this replica whose first token came at at. It reports
// whether those of the others will be known, too: then beside has all of them.
func (o *Occupancy) prefilled(at time.Duration, tokens float64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &o.prefills
	if last := &p.own[(p.next+toldPrompts-1)%toldPrompts]; last.tokens > 0 && at-last.at < promptsApart {
		last.tokens += tokens
	} else {
		p.own[p.next] = prompted{at: at, tokens: tokens}
		p.next = (p.next + 1) % toldPrompts
	}
	if o.told.Load() == 0 {
		return false
	}
	p.keep(prompted{at, tokens, true})
	return true
}

// Prompts returns those of this replica whose first tokens came after from.
func (o *Occupancy) Prompts(from time.Time) (list []Prompt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.prefills.own {
		if q := o.prefills.own[(o.prefills.next+i)%toldPrompts]; q.tokens > 0 && q.at > from.Sub(o.origin) {
			list = append(list, Prompt{o.origin.Add(q.at), q.tokens})
		}
	}
	return list
}

// keep keeps q until its window closes, as one with another that came at about its time.
func (p *prefills) keep(q prompted) {
	for i := len(p.all) - 1; i >= max(len(p.all)-toldPrompts, 0); i-- {
		if c := &p.all[i]; c.own == q.own && (c.at-q.at).Abs() < promptsApart {
			c.tokens += q.tokens
			return
		}
	}
	if len(p.all) == maxPrompts {
		p.from = max(p.from, p.all[0].at)
		p.all = append(p.all[:0], p.all[1:]...)
	}
	p.all = append(p.all, q)
}

// beside returns the prompts that were prefilled beside streams between from and to, all
// and those of this replica, and for how long any stream decoded. That is 0 where the
// others did not tell of all that time.
func (o *Occupancy) beside(from, to time.Duration) (all, own promptLoad, decoded time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.prefills.all {
		if q.at < from || q.at >= to {
			continue
		}
		whole := max(min(q.tokens, maxPrompt)/prefillRate*float64(time.Second), 1)
		o.cut(q.at-time.Duration(whole), q.at, func(n, _ int, d time.Duration) {
			if n < 1 {
				return
			}
			share := q.tokens * float64(d) / whole
			all.P[BinOf(n)] += share
			all.PN[BinOf(n)] += share * float64(n)
			if q.own {
				own.P[BinOf(n)] += share
				own.PN[BinOf(n)] += share * float64(n)
			}
		})
	}
	if p := &o.prefills; p.from > 0 && p.from <= from && time.Duration(o.told.Load()) >= to {
		o.cut(from, to, func(n, _ int, d time.Duration) {
			if n >= 1 {
				decoded += d
			}
		})
	}
	return all, own, decoded
}

// sharePrompts gives w this replica's share of all prompts that were prefilled on the
// engine, where the others have told theirs. Its own stand for as many on average and for
// anything in one window, and what a prompt token costs would come out too low.
func (w *window) sharePrompts() {
	if w.occ == nil {
		return
	}
	end := windowEnd(w.index) + w.shift
	all, own, decoded := w.occ.beside(end-windowLength, end)
	if decoded > 0 && w.seen > 0 {
		w.prompts.add(&all, min(w.seen/decoded.Seconds(), 1))
		return
	}
	w.prompts.add(&own, 1)
}

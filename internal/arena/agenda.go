package arena

import "time"

// timer is something that has a time to act at.
type timer interface{ fire(w *world) }

// event is a timer with its time. Among equals the one that was entered first
// comes first.
type event struct {
	at    time.Duration
	order uint64
	timer timer
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// agenda holds what is to come: a binary heap, typed so that entering allocates
// nothing. Entries are never taken back: a timer that has nothing to do any
// more does nothing. The zero value is empty.
type agenda struct {
	events []event
	order  uint64
}

func (a *agenda) enter(at time.Duration, t timer) {
	a.order++
	a.events = append(a.events, event{at, a.order, t})
	h := a.events
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// next takes out what comes first; ok is false when nothing is left.
func (a *agenda) next() (e event, ok bool) {
	h := a.events
	if len(h) == 0 {
		return event{}, false
	}
	e = h[0]
	last := len(h) - 1
	h[0], h[last] = h[last], event{}
	a.events = h[:last]
	h = a.events
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return e, true
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

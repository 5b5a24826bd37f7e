package router

import "time"

const (
	// manyRefusals in a row make a target rest. What refuses everything at once
	// (a wrong key, an unknown model) is always empty, and would draw every
	// request. As many failures open a breaker.
	manyRefusals = 5

	// restLeast is how long a target rests before its first probe; then twice as
	// long, and so on up to restMost. A backend that says itself for how long it
	// wants to be left alone is believed up to restTold.
	restLeast = time.Second
	restMost  = 5 * time.Second
	restTold  = 30 * time.Second

	// servedLately is for how long a good answer speaks for its target against
	// refusals that may be the doing of those who were refused.
	servedLately = 10 * time.Second
)

// rest is whether a target is spared, as its answers tell. One that refuses everything rests: as long as a route has another one in
// service, it gets one probe at a time, and nobody else. One good answer ends the
// rest.
//
// Refusals of one tenant's requests alone speak to that tenant alone, so nobody
// can have a backend taken from the others by what it says to him.
//
// The zero value is that of a target of which nothing bad is known. Guarded by
// Router.mu.
type rest struct {
	refusals int       // in a row, held against it
	tenant   string    // whose requests they were
	several  bool      // of more than one tenant
	since    time.Time // the first of them, or when it last said that it is full; zero = never since it served
	until    time.Time // nobody goes there before, then a probe; zero = it does not rest
	wait     time.Duration
	full     bool      // it rests because it is full, did not say for how long, and may have room when one of its streams ends
	opened   time.Time // when one ended, and nobody has found out since whether that made room; zero = none did
	served   time.Time // when it last gave a good answer
}

// refuse notes a refusal, and reports whether it is held against the target: for
// sure, as another one served the same request, or because there was no good
// answer for a while.
func (s *rest) refuse(now time.Time, tenant string, sure bool) bool {
	if since := now.Sub(s.served); !sure && since >= 0 && since < servedLately {
		return false
	}
	s.note(tenant)
	if s.since.IsZero() {
		s.since = now
	}
	if s.refusals++; s.refusals >= manyRefusals && s.until.IsZero() {
		s.begin(now, restLeast)
	}
	return true
}

// note notes whose request the target turned down.
func (s *rest) note(tenant string) {
	if s.since.IsZero() {
		s.tenant = tenant
	}
	s.several = s.several || s.tenant != tenant
}

// fill notes that the target said to a request of tenant, placed then, that it is full.
// It wants to be left alone for as long as told; 0 = it did not say. Where it said so after
// a stream had ended, a limit of so many a minute is used up: only time gives room.
func (s *rest) fill(now, placed time.Time, tenant string, told time.Duration) {
	s.note(tenant)
	s.since = now
	inVain := !s.opened.IsZero() && !placed.Before(s.opened)
	s.full = told <= 0 && !inVain && (s.full || s.until.IsZero())
	if inVain {
		s.opened = time.Time{}
	}
	if told = min(told, restTold); told > 0 {
		s.until, s.wait = later(s.until, now.Add(told)), max(s.wait, restLeast)
	} else if s.until.IsZero() {
		s.begin(now, restLeast)
	}
}

func (s *rest) begin(now time.Time, d time.Duration) {
	s.until, s.wait = now.Add(d), min(2*d, restMost)
}

// try notes that a probe goes there.
func (s *rest) try(now time.Time) { s.begin(now, max(s.wait, restLeast)) }

// serve notes a good answer to a request that was placed then. What was accepted
// before the first refusal says nothing about what comes after it; what came
// between two of them shows that not everything is refused.
func (s *rest) serve(now, placed time.Time) {
	if placed.Before(s.since) && !now.Before(s.since) { // else the clock was set back
		s.served = now
		return
	}
	*s = rest{served: now}
}

// leave notes that a request ended there that had been served: a full target may have
// room again, and the next request finds out. While one does, further ends send nobody:
// they may come faster than the answer.
func (s *rest) leave(now time.Time) {
	if s.full && s.opened.IsZero() {
		s.until, s.opened = now, now
	}
}

// rests reports whether the target rests, as far as tenant is concerned.
func (s *rest) rests(tenant string) bool {
	return !s.until.IsZero() && (s.several || s.tenant == tenant)
}

// due reports whether it is time for a probe: also when the clock was set back.
func (s *rest) due(now time.Time) bool {
	left := s.until.Sub(now)
	return left <= 0 || left > restTold
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// resting reports whether m rests as far as tenant is concerned, or hangs.
func (m *model) resting(tenant string) bool {
	return m.group.backend.hung || m.rest.rests(tenant)
}

// passesOver reports whether m rests, or hangs, and a need not go there: it is a
// second place, or the route has another target in service that may serve it, however
// many run there.
func (a *ask) passesOver(m *model) bool {
	if !m.resting(a.req.Tenant) {
		return false
	}
	if a.req.Spare {
		return true
	}
	for _, other := range a.route.models {
		if other != nil && a.service(other.group.backend) == OK && !other.resting(a.req.Tenant) && a.everFits(other) {
			return true
		}
	}
	return false
}

// everFits reports whether a could be placed on m while nothing runs there.
func (a *ask) everFits(m *model) bool {
	most := m.group.backend.maxConcurrency
	return (most <= 0 || a.weight <= most) && (a.floor <= 0 || !m.outOfReach(a.weight, a.floor))
}

// Refused says that the backend refused the request for a reason that may not be
// the client's: a key that it does not take, a model that it does not have, an
// error of its own; or was silent for so long that another one answered first.
// sure = another backend served the same request well. It reports whether that
// is held against the target, which is at most once, and whether the target
// rests: it takes only probes while the route has another one in service. It may
// be called after Done.
func (l *Lease) Refused(now time.Time, sure bool) (held, rests bool) {
	r := l.group.router
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &l.model.rest
	l.model.group.changed()
	if !l.refused {
		l.refused = s.refuse(now, l.tenant, sure)
	}
	return l.refused, s.rests(l.tenant)
}

// Full says that the backend takes no more for now, and for how long it wants to
// be left alone; 0 = it did not say.
func (l *Lease) Full(now time.Time, wait time.Duration) {
	r := l.group.router
	r.mu.Lock()
	defer r.mu.Unlock()
	l.model.group.changed()
	l.model.rest.fill(now, l.placed, l.tenant, wait)
}

// Served says that the backend answers well. FirstToken says so too. It takes
// effect with Done.
func (l *Lease) Served() { l.relayed.served.Store(true) }

// Probe reports whether the request was sent to find out whether its backend is
// well again.
func (l *Lease) Probe() bool { return l.probe }

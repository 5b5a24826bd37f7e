package gateway

import (
	"container/list"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
)

const (
	// maxIndexed bounds the answers whose backend is remembered: some 30 MB.
	maxIndexed = 1 << 16

	// indexLife is how long after its last use one is remembered.
	indexLife = 24 * time.Hour
)

// responseKey is an answer as its owner names it: nobody reaches that of another
// tenant by guessing an id.
type responseKey struct{ tenant, id string }

// responseHome is where an answer is kept.
type responseHome struct {
	key            responseKey
	backend, route string
	used           time.Time
}

// is reports whether t is on the backend that keeps the answer.
func (p responseHome) is(t config.Target) bool { return p.backend == t.Backend }

// responseIndex remembers which backend keeps which answer of the Responses endpoint:
// maxIndexed, in this replica alone. Whoever has the most of them makes room, so that no
// tenant has those of the others forgotten. The zero value is ready; it is safe for
// concurrent use.
type responseIndex struct {
	mu    sync.Mutex // guards what follows
	byKey map[responseKey]*list.Element
	of    map[string]*list.List // by tenant: of *responseHome, the last used first; none is empty
}

// put remembers p.
func (s *responseIndex) put(p responseHome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey, s.of = map[responseKey]*list.Element{}, map[string]*list.List{}
	}
	own := s.of[p.key.tenant]
	if own == nil {
		own = list.New()
		s.of[p.key.tenant] = own
	}
	if e := s.byKey[p.key]; e != nil {
		e.Value = &p
		own.MoveToFront(e)
		return
	}
	s.byKey[p.key] = own.PushFront(&p)
	for p.used.Sub(own.Back().Value.(*responseHome).used) > indexLife {
		s.forget(own.Back())
	}
	if len(s.byKey) > maxIndexed {
		s.forget(s.spare(p.used, own))
	}
}

// spare is who makes room for own, which has just got one: somebody's that is past its
// time, or else the oldest of who has the most.
func (s *responseIndex) spare(now time.Time, own *list.List) *list.Element {
	most := own
	for _, l := range s.of {
		if now.Sub(l.Back().Value.(*responseHome).used) > indexLife {
			return l.Back()
		}
		if l.Len() > most.Len() {
			most = l
		}
	}
	return most.Back()
}

// forget takes one out.
func (s *responseIndex) forget(e *list.Element) {
	key := e.Value.(*responseHome).key
	delete(s.byKey, key)
	l := s.of[key.tenant]
	if l.Remove(e); l.Len() == 0 {
		delete(s.of, key.tenant)
	}
}

// get returns where the answer is kept, if that is known.
func (s *responseIndex) get(now time.Time, key responseKey) (responseHome, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		return responseHome{}, false
	}
	p := e.Value.(*responseHome)
	if now.Sub(p.used) > indexLife {
		s.forget(e)
		return responseHome{}, false
	}
	p.used = now
	s.of[key.tenant].MoveToFront(e)
	return *p, true
}

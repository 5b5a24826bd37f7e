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
// the last maxIndexed, in this replica alone. The zero value is ready; it is safe
// for concurrent use.
type responseIndex struct {
	mu    sync.Mutex // guards what follows
	byKey map[responseKey]*list.Element
	order list.List // of *responseHome, the last used first
}

// put remembers p.
func (s *responseIndex) put(p responseHome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[responseKey]*list.Element{}
	}
	if e := s.byKey[p.key]; e != nil {
		e.Value = &p
		s.order.MoveToFront(e)
		return
	}
	s.byKey[p.key] = s.order.PushFront(&p)
	for s.order.Len() > maxIndexed || p.used.Sub(s.order.Back().Value.(*responseHome).used) > indexLife {
		delete(s.byKey, s.order.Remove(s.order.Back()).(*responseHome).key)
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
		delete(s.byKey, s.order.Remove(e).(*responseHome).key)
		return responseHome{}, false
	}
	p.used = now
	s.order.MoveToFront(e)
	return *p, true
}

package gateway

import (
	"container/list"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
)

const (
	// maxPins bounds the answers whose backend is remembered: some 30 MB.
	maxPins = 1 << 16

	// pinLife is how long after its last use one is remembered.
	pinLife = 24 * time.Hour
)

// pinKey is an answer as its owner names it: nobody reaches that of another
// tenant by guessing an id.
type pinKey struct{ tenant, id string }

// pin is where an answer is kept.
type pin struct {
	key            pinKey
	backend, route string
	used           time.Time
}

// is reports whether t is on the backend that keeps the answer.
func (p pin) is(t config.Target) bool { return p.backend == t.Backend }

// pins remembers which backend keeps which answer of the Responses endpoint:
// the last maxPins, in this replica alone. The zero value is ready; it is safe
// for concurrent use.
type pins struct {
	mu    sync.Mutex // guards what follows
	byKey map[pinKey]*list.Element
	order list.List // of *pin, the last used first
}

// put remembers p.
func (s *pins) put(p pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[pinKey]*list.Element{}
	}
	if e := s.byKey[p.key]; e != nil {
		e.Value = &p
		s.order.MoveToFront(e)
		return
	}
	s.byKey[p.key] = s.order.PushFront(&p)
	for s.order.Len() > maxPins || p.used.Sub(s.order.Back().Value.(*pin).used) > pinLife {
		delete(s.byKey, s.order.Remove(s.order.Back()).(*pin).key)
	}
}

// get returns where the answer is kept, if that is known.
func (s *pins) get(now time.Time, key pinKey) (pin, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		return pin{}, false
	}
	p := e.Value.(*pin)
	if now.Sub(p.used) > pinLife {
		delete(s.byKey, s.order.Remove(e).(*pin).key)
		return pin{}, false
	}
	p.used = now
	s.order.MoveToFront(e)
	return *p, true
}

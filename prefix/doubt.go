package prefix

import "time"

// An engine that was out of service may have been started anew, or may only have been out
// of reach. So what it had before is in doubt: a prompt is sent there for it, and nobody
// is let in for it. The first prompt of which much was there tells for all.

// Returned says that a backend is back after it was out of service.
func (x *Index) Returned(now time.Time, backend string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for t, h := range x.caches {
		if t.Backend == backend {
			h.mu.Lock()
			h.returned = now.UnixNano()
			h.computing = h.computing[:0] // whatever that was, it has ended
			h.mu.Unlock()
		}
	}
}

// resolve ends the doubt: what was there before is there still, or it is gone.
func (h *cache) resolve(found bool) {
	if !found {
		h.forget(h.returned)
	}
	h.returned = 0
}

// inDoubt is how many bytes of the prompt are in doubt.
func (m *match) inDoubt() (bytes float64) {
	for i := range m.count {
		if s := &m.stretches[i]; s.doubted {
			bytes += float64(s.to - s.from)
		}
	}
	return bytes
}

// lost reports whether the prompt's first token came too late for what was in doubt to be
// there; false where that says nothing. It ends the doubt. The cache is locked.
func (v *Visit) lost(ttft time.Duration) bool {
	h := v.cache
	tokens := v.match.inDoubt() / float64(v.bytes) * float64(v.tokens)
	if tokens < leastTold || tokens*2 < float64(v.tokens) || h.faith.seen == 0 {
		return false
	}
	found := ttft.Seconds() < h.faith.cold*tokens/2
	v.answers(found)
	return !found
}

// answers ends the doubt if it is still the one that v was sent in. The cache is locked.
func (v *Visit) answers(found bool) {
	if h := v.cache; h.returned != 0 && v.sent.UnixNano() >= h.returned {
		h.resolve(found)
	}
}

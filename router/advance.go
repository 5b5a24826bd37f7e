package router

import "time"

// advance brings up to date what changes by time alone, and by what the streams
// tell without the lock: which leases count as decoding, what engines said of
// themselves, who is still expected back, how fast the streams are. Every entry of
// the router calls it first, and judging then only reads.
func (r *Router) advance(now time.Time) {
	if r.began.IsZero() {
		r.began = now
	}
	for l := r.pending.next(); l != nil && !l.links.due.After(now); l = r.pending.next() {
		r.decode(l.links.due, l)
	}
	if !r.forgetAt.IsZero() && now.After(r.forgetAt) {
		r.forgetEngines(now)
	}
	if second := now.Unix(); second != r.sweptAt {
		r.sweptAt = second
		for _, rt := range r.routes {
			rt.promises.sweep(now)
		}
	}
	r.look(now)
}

package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// mostUploads is how many files may come in at once, and mostFiles how many may be
// held to be read: each may be as large as a body.
const mostUploads, mostFiles = 4, 16

// fileRoom bounds the memory, and the work, that files take. It is safe for concurrent
// use.
type fileRoom struct {
	uploads  halves // for one that comes in
	whole    halves // for one that is held whole
	verdicts verdicts
}

func newFileRoom() fileRoom {
	return fileRoom{uploads: halves{most: mostUploads}, whole: halves{most: mostFiles}}
}

// halves are places of which one client has half at most, so that who takes all that
// it may leaves some to the others. It is safe for concurrent use.
type halves struct {
	most int // of all; 2 or more

	mu    sync.Mutex     // guards what follows
	all   int            // that are taken
	taken map[string]int // by client; none is 0
}

// take takes a place for who; it is given back by calling give. alone: there are no
// others to leave anything to.
func (h *halves) take(who string, alone bool) (give func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !alone && h.taken[who] >= h.most/2:
		return nil, errManyFiles
	case h.all >= h.most:
		return nil, errOverloaded
	}
	if h.taken == nil {
		h.taken = map[string]int{}
	}
	h.all++
	h.taken[who]++
	return func() { h.give(who) }, nil
}

func (h *halves) give(who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.taken[who]--; h.taken[who] == 0 {
		delete(h.taken, who)
	}
}

// several reports whether there are keys of more than one name: one that is rotated is
// there twice, by its old secret and by its new one.
func (p *setup) several() bool {
	return slices.ContainsFunc(p.tenants, func(t *tenant) bool { return t.name != p.tenants[0].name })
}

// ManyKeys reports whether there are keys of more than one name, so that one of them
// has half of what they share.
func (g *Gateway) ManyKeys() bool { return g.setup.Load().several() }

// sharer is who takes a part of what clients share: a key, or, where there are none, an
// address, of IPv6 the network of 64 bits. alone: it is the only key.
func (p *setup) sharer(r *http.Request, t *tenant) (who string, alone bool) {
	if len(p.tenants) > 0 {
		return t.name, !p.several()
	}
	who = p.client(r)
	if at, err := netip.ParseAddr(who); err == nil && at.Is6() && !at.Is4In6() {
		if network, err := at.WithZone("").Prefix(64); err == nil {
			who = network.String()
		}
	}
	return who, false
}

// hold takes a place among those who hold a whole file.
func (f *fileRoom) hold(p *setup, r *http.Request, t *tenant) (give func(), err error) {
	return f.whole.take(p.sharer(r, t))
}

// slowest is until when more of a body has to have come, or gone, of which done bytes
// have since start: each wait may last idle, and all of it is bounded by bodyRate.
func slowest(start time.Time, idle time.Duration, done int64) time.Time {
	all := start.Add(idle + time.Duration(done*1000/bodyRate)*time.Millisecond)
	if done == 0 { // most bodies are there with the first read: no clock is asked
		return all
	}
	if deadline := time.Now().Add(idle); deadline.Before(all) {
		return deadline
	}
	return all
}

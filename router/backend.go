package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// backend is one incarnation of a configured backend: a name that another
// engine stands behind is another incarnation, whose counts start at 0. One that
// is removed and added again is the same as long as leases run there, as of an
// engine that its resolver leaves out for a while. Leases point at the
// incarnation that counted them. Everything is guarded by Router.mu.
//
// Invariant: waiting and decoding are the sums of the weights of the leases in
// these phases, idle the number of those of weight 0; none is ever negative.
type backend struct {
	router         *Router
	name, engine   string
	maxConcurrency int // 0 = none
	health         Health
	out            bool // was down since it was last up
	models         []*model
	routes         []*route // that have a target here

	waiting, decoding int // own sequences
	idle              int // own requests that do not decode
	prompt            int // prompt tokens of the own waiting
	remote            Load
	foreign           foreign   // what runs there beside Pacer
	usedAt            time.Time // when there was last a sequence with a lease, as far as noted; at first, when it was configured
	used              bool      // there is one
	told              int       // n as last written to occupancy
	occupancy         *profiles.Occupancy

	probe    *Lease    // the one request of a half-open breaker, nil if none runs
	unserved leaseList // own waiting streams that no later one has overtaken, oldest first
	streams  []*Lease  // own decoding streams

	ramp   ramp
	scanAt time.Time // when streams is to be looked through again
	slow   *Lease    // a stream below its floor, as of the last look: nobody is admitted

	forecast forecast

	// wanted counts the interactive lines with a waiter that could go here:
	// batch stays off until they are served.
	wanted int
}

func newBackend(now time.Time, r *Router, name, engine string) *backend {
	return &backend{
		router: r, name: name, engine: engine,
		occupancy: profiles.NewOccupancy(now), usedAt: now,
		ramp: ramp{cap: slowStartCap},
	}
}

// leased is the number of sequences with a lease, over all replicas.
func (b *backend) leased() int {
	return (b.waiting+b.decoding)*b.router.scale + b.remote.Waiting + b.remote.Decoding
}

// m is the number of sequences on the backend, waiting or decoding: those with
// a lease, and the foreign ones.
func (b *backend) m() int { return b.leased() + b.foreign.all.value }

// n is the number of sequences decoding, over all replicas and with the foreign
// ones.
func (b *backend) n() int {
	return b.decoding*b.router.scale + b.remote.Decoding + b.foreign.running.value
}

// promptWaiting is how many prompt tokens wait for their prefill, over all
// replicas.
func (b *backend) promptWaiting() int {
	return b.prompt*b.router.scale + b.remote.PromptTokens
}

// publish notes what runs on the backend, and writes n where the streams read
// it. It follows every change of the counts.
func (b *backend) publish(now time.Time) {
	b.foreign.note(b)
	used := b.leased() > 0
	if used || b.used {
		b.used, b.usedAt = used, now
	}
	if n := b.n(); n != b.told {
		b.told = n
		b.occupancy.Set(now, n)
	}
}

// model returns the target called name, nil if it is not configured.
func (b *backend) model(name string) *model {
	for _, m := range b.models {
		if m.name == name {
			return m
		}
	}
	return nil
}

// highestFloor is the highest floor of the own leases, 0 if none.
func (b *backend) highestFloor() float64 {
	floor := 0.0
	for _, m := range b.models {
		floor = max(floor, m.floors.highest(m.solo))
	}
	return floor
}

// shareRemoteFloor decides which targets the floor that other replicas
// reported holds for. They do not say which: it is one that was promised so
// much, else one that was promised most.
func (b *backend) shareRemoteFloor() {
	most := 0.0
	for _, m := range b.models {
		most = max(most, m.promised)
	}
	least := min(b.remote.Floor, most)
	for _, m := range b.models {
		m.remoteFloor = 0
		if b.remote.Floor > 0 && m.promised >= least {
			m.remoteFloor = b.remote.Floor
		}
	}
}

// become changes the health. Who comes back from being down ramps up.
func (b *backend) become(h Health) {
	b.health = h
	switch h {
	case Down, Probing, Loading:
		b.out = true
	case Up:
		if b.out {
			b.ramp.recover(b.m())
		}
		b.out = false
	}
	if h != Probing {
		b.probe = nil
	}
}

// inService reports whether the backend may be used at all.
func (b *backend) inService() bool { return b.health == Up || b.health == Probing }

// seconds returns s seconds, at most an hour: beyond it only the fact counts.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 3600) * float64(time.Second))
}

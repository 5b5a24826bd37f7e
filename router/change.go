package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Change is something that the router is told: one of the types of this file.
type Change interface{ change() }

// Tick says only that time has passed.
type Tick struct{}

// Configure replaces the topology. A backend whose name and engine stay keeps
// its incarnation; a removed one lives on only through its leases, and
// is taken up again while there are any.
type Configure struct{ Topology Topology }

// Curves hands in new curves. A configured target that is not named keeps the
// curve it has.
type Curves struct{ ByTarget map[Target]*profiles.Curve }

// Health is whether a backend may be used.
type Health uint8

// Probing admits one request at a time: a half-open breaker.
const (
	Up Health = iota
	Probing
	Down     // breaker open or health check failed
	Draining // no new requests
	Loading  // it answers, and has no model yet
)

// String returns up, probing, down, draining or loading.
func (h Health) String() string {
	switch h {
	case Probing:
		return "probing"
	case Down:
		return "down"
	case Draining:
		return "draining"
	case Loading:
		return "loading"
	}
	return "up"
}

// BackendHealth says what the breaker or an operator thinks of a backend.
//
// Hung = it shows no life. It is left to those who are there, but for a probe now
// and then, as long as a route has another one; where it has not, requests wait there.
// When it shows life it serves at once: what is known of its speed holds.
//
// Answers = its pages answer, so that only those who wait there show that it hangs. Once
// nobody does it is asked sooner.
type BackendHealth struct {
	Backend string
	Health  Health
	Hung    bool
	Answers bool
}

// RemoteLoad replaces what the other replicas together run. Replicas is how
// many are alive, this one included. Lost means that the sharing is out: what was
// told last holds then, and fades, see silence.
type RemoteLoad struct {
	ByBackend map[string]Load
	Replicas  int
	Lost      bool

	// Told is until when all of them have told their moves; zero = not all tell any.
	Told time.Time
}

// EngineLoad is what an engine reports of itself, whoever sent the sequences:
// those that have a slot, decoding or being prefilled, and those that wait for
// one. At is since when the report stands: it holds for EngineLoadLife, and one
// that is no younger than the last says nothing new.
type EngineLoad struct {
	Backend          string
	Running, Waiting int
	At               time.Time
}

func (Tick) change()          {}
func (Configure) change()     {}
func (Curves) change()        {}
func (BackendHealth) change() {}
func (RemoteLoad) change()    {}
func (EngineLoad) change()    {}

// Update tells the router something and returns the tickets that may go now.
func (r *Router) Update(now time.Time, c Change) []Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	var grants []Grant
	switch c := c.(type) {
	case Tick:
	case Configure:
		grants = r.configure(now, c.Topology)
	case Curves:
		for t, curve := range c.ByTarget {
			if curve != nil {
				r.learn(t, curve)
			}
		}
		r.holdPlaces()
	case BackendHealth:
		if b := r.byName[c.Backend]; b != nil {
			b.become(now, c)
			r.holdPlaces()
		}
	case RemoteLoad:
		r.peers.load, r.peers.heard = c, true
		if !c.Lost {
			r.peers.told, r.peers.heardOf = c.ByBackend, r.peers.tellings
			r.peers.tells(now, r.backends)
		}
		r.share(now)
		for _, b := range r.backends {
			b.hear(c)
		}
		if r.peers.many() {
			r.rush.luck = r.rand()
		}
	case EngineLoad:
		r.hearEngine(now, c)
	}
	return append(grants, r.wake(now, nil)...)
}

// learn hands a curve to its target. A target that is not configured has none.
func (r *Router) learn(t Target, c curve) {
	if m := r.model(t); m != nil {
		m.learn(c)
		r.curves[t] = c
	}
}

// model returns the target t, nil if it is not configured.
func (r *Router) model(t Target) *model {
	b := r.byName[t.Backend]
	if b == nil {
		return nil
	}
	g := b.group(t.GroupID())
	if g == nil || g.retired {
		return nil
	}
	return g.model(t.Model)
}

// share spreads the remote load over the backends, as it is told or, while nobody
// tells, as it is thought to be.
func (r *Router) share(now time.Time) {
	silent := r.peers.silent()
	r.peers.scale = 1
	switch {
	case !r.peers.heard:
		r.peers.scale = max(r.peers.replicas, 1)
	case r.peers.load.Lost:
		r.peers.scale = max(r.peers.load.Replicas, 1)
		if !r.peers.silent() { // there is nobody else
			r.peers.told = nil
		}
	}
	if r.peers.silent() && !silent {
		r.peers.since = now
	}
	for _, b := range r.backends {
		r.shareOn(now, b)
	}
}

// shareOn spreads what is known of the others over the groups of b.
func (r *Router) shareOn(now time.Time, b *backend) {
	b.share(now, r.peers.told[b.name])
	for _, g := range b.groups {
		g.reprice()
		g.write(now)
	}
}

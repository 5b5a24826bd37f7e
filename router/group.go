package router

import (
	"slices"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// GroupID names what is counted together: the targets of one backend, or one of
// them alone.
type GroupID = profiles.GroupID

// group is what decodes together on a backend: all of its targets, or where its
// models are separate one of them. Leases point at the group that counted them.
// Everything is guarded by Router.mu.
//
// Invariant: own.waiting and own.decoding are the sums of the weights of the leases
// in these phases; none is ever negative.
type group struct {
	router  *Router
	backend *backend
	id      GroupID
	retired bool // its targets are counted otherwise since a reload, or gone: it has leases still
	models  []*model
	routes  []*route // that have a target here
	held    []*held  // what routes have guaranteed here

	own     running  // sequences of this replica
	remote  Load     // of others, and of retired groups
	silence *silence // of the others; nil while they tell
	spread  int      // sequences that a newcomer has to leave room for beside remote
	foreign foreign  // what runs there beside Pacer
	noted   noted

	ramp ramp
	looked
	price price
	speed speed

	promised   float64       // highest floor that a route promises here, 0 if none
	leastGrace time.Duration // of the interactive routes here; maxLead = there is none

	forecast forecast
	yield    yield
	told     told
	warming
	ends float64 // own sequences that ended with an answer, fading with levelMemory
}

// running is what of this replica runs in a group.
type running struct {
	waiting, decoding int       // sequences
	prompt            int       // prompt tokens of those that wait
	bids, bidPrompt   int       // sequences in line that bid for a place, and their prompt tokens
	before            [2]int    // sequences when the others told last, and the time before
	unserved          leaseList // waiting streams that no later one has overtaken, oldest first
	streams           []*Lease  // decoding ones
}

// noted is what of a group was last written to where its streams read n.
type noted struct {
	occupancy *profiles.Occupancy
	n, others int  // all, and of the other replicas
	guessed   bool // n was a guess
	moves     moves
	used      bool      // there was a sequence with a lease
	usedAt    time.Time // when there was last one; at first, when the group was configured
}

func newGroup(now time.Time, b *backend, id GroupID) *group {
	g := &group{
		router: b.router, backend: b, id: id,
		noted: noted{occupancy: profiles.NewOccupancy(now), usedAt: now},
		ramp:  ramp{cap: slowStartCap}, looked: looked{lead: maxLead}, leastGrace: maxLead,
	}
	g.reprice()
	return g
}

// leased is the number of sequences with a lease, over all replicas.
func (g *group) leased() int {
	return g.own.waiting + g.own.decoding + g.remote.Waiting + g.remote.Decoding
}

// m is the number of sequences in the group, waiting or decoding: those with
// a lease, and the foreign ones.
func (g *group) m() int { return g.leased() + g.foreign.all.value }

// n is the number of sequences decoding, over all replicas and with the foreign
// ones.
func (g *group) n() int {
	return g.own.decoding + g.remote.Decoding + g.foreign.running.value
}

// promptWaiting is how many prompt tokens wait for their prefill, over all
// replicas.
func (g *group) promptWaiting() int {
	return g.own.prompt + g.remote.PromptTokens
}

// publish notes what runs in the group, and writes n where the streams read
// it. It follows every change of the counts.
func (g *group) publish(now time.Time) {
	if g.retired || g.router.peers.silent() {
		g.router.shareOn(now, g.backend)
		return
	}
	g.write(now)
}

func (g *group) write(now time.Time) {
	g.backend.changed()
	g.foreign.note(g)
	g.area = g.areaUntil(now)
	g.areaAt = now
	used := g.leased() > 0
	if used || g.noted.used {
		g.noted.used, g.noted.usedAt = used, now
	}
	if guessed := g.guesses(); guessed != g.noted.guessed {
		g.noted.guessed = guessed
		g.noted.occupancy.Guess(guessed)
	}
	g.noted.moves.note(now, g.own.decoding)
	if n, others := g.n(), g.remote.Decoding; n != g.noted.n || others != g.noted.others {
		g.noted.n, g.noted.others = n, others
		g.noted.occupancy.SetShared(now, n, others)
	}
}

// guesses reports whether n is a guess that nothing is to be learned by: the others
// fell silent, and the engine was known before. Of an engine that nobody knows a guess
// teaches more than nothing.
func (g *group) guesses() bool {
	return g.silence != nil && g.router.peers.told != nil && slices.ContainsFunc(g.models, func(m *model) bool { return m.known && !m.guessed })
}

// model returns the target called name, nil if it is not configured.
func (g *group) model(name string) *model {
	for _, m := range g.models {
		if m.name == name {
			return m
		}
	}
	return nil
}

// highestFloor is the highest floor of the own leases, 0 if none.
func (g *group) highestFloor() float64 {
	floor := 0.0
	for _, m := range g.models {
		floor = max(floor, m.floors.running.highest(m.solo))
	}
	return floor
}

// shareRemoteFloor decides which targets the floor that other replicas
// reported holds for. They do not say which: it is one that was promised so
// much, else one that was promised most.
func (g *group) shareRemoteFloor() {
	most := 0.0
	for _, m := range g.models {
		most = max(most, m.promised)
	}
	least := min(g.remote.Floor, most)
	for _, m := range g.models {
		m.floors.remote = 0
		if g.remote.Floor > 0 && m.promised >= least {
			m.floors.remote = g.remote.Floor
		}
	}
}

// seconds returns s seconds, at most an hour: beyond it only the fact counts.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 3600) * float64(time.Second))
}

package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

const (
	// movesReach is for how long a replica tells what came and went: who reads may have
	// missed the report before, and tells and reads in his own time.
	movesReach = 600 * time.Millisecond

	// mostMoves is how many it tells at most, the newest.
	mostMoves = 32
)

// Move says that so many more sequences decode from some time on, or fewer.
type Move = profiles.Move

// Prompt is one that was prefilled.
type Prompt = profiles.Prompt

// moves are the last changes of how many own sequences decode in a group.
type moves struct {
	origin time.Time // of at; zero = there were none
	ring   [mostMoves]struct {
		at time.Duration
		by int32
	}
	next int
	n    int // own sequences that decoded as of the last
}

// note sees how many decode at now.
func (m *moves) note(now time.Time, n int) {
	if n == m.n {
		return
	}
	if m.origin.IsZero() {
		m.origin = now
	}
	m.ring[m.next].at, m.ring[m.next].by = now.Sub(m.origin), int32(n-m.n)
	m.next, m.n = (m.next+1)%mostMoves, n
}

// since returns those after from.
func (m *moves) since(from time.Time) (list []Move) {
	for i := range m.ring {
		if v := &m.ring[(m.next+i)%mostMoves]; v.by != 0 && v.at > from.Sub(m.origin) {
			list = append(list, Move{At: m.origin.Add(v.at), By: int(v.by)})
		}
	}
	return list
}

// hear sets right at which n the streams of b were, and beside which prompts, by what the
// others told.
func (b *backend) hear(l RemoteLoad) {
	for _, g := range b.groups {
		if b.router.peers.silent() || l.Told.IsZero() || g.retired {
			g.noted.occupancy.Untold()
			continue
		}
		told := l.ByBackend[b.name].of(g.id)
		g.noted.occupancy.Told(l.Told, g.remote.Decoding, told.Moves, told.Prompts)
	}
}

// of is what was told of the group called id alone.
func (l Load) of(id GroupID) Load {
	if id.Separate {
		return l.Models[id.Model]
	}
	return l
}

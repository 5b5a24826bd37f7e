package router

import (
	"math"
	"time"
)

// The others tell of their streams some times a second. Who come at once come to all
// replicas, and each would fill the room that all of them see. So what this replica has
// gained on a group since the others told, every other one is taken to have gained, too,
// as far as they have as much to do as this one. In steady traffic as many end as come,
// and nothing is gained.

const (
	// alikeMemory is in which time it fades to 1/e how much each has to do, and
	// alikeStart how many sequences here say half of it.
	alikeMemory = 30 * time.Second
	alikeStart  = 4.0
)

// alike is how much the others have to do, of what they would if each had as much as this
// replica: means of the sequences of all groups that fade with alikeMemory. The zero value
// knows nothing: then they are alike.
type alike struct {
	own, others float64
	at          time.Time
}

// hear takes what runs here, and what the others together told at now.
func (l *alike) hear(now time.Time, own, others int) {
	keep := 0.0
	if !l.at.IsZero() {
		keep = math.Exp(-max(now.Sub(l.at), 0).Seconds() / alikeMemory.Seconds())
	}
	l.own, l.others, l.at = l.own*keep+float64(own)*(1-keep), l.others*keep+float64(others)*(1-keep), now
}

// of is how many sequences the others of so many replicas have for one here, at most one
// each.
func (l *alike) of(replicas int) float64 {
	far := float64(replicas - 1)
	return far * min((l.others+alikeStart)/(far*l.own+alikeStart), 1)
}

// unheard is how many sequences the others are thought to have placed on g since they
// told. What they told is half as old as the time between two tellings, in the mean.
func (g *group) unheard() int {
	p := &g.router.peers
	if p.load.Replicas <= 1 || p.silent() {
		return 0
	}
	gained := float64(g.own.waiting+g.own.decoding) - float64(g.own.before[0]+g.own.before[1])/2
	if gained <= 0 {
		return 0
	}
	return int(p.alike.of(p.load.Replicas) * gained)
}

// tells notes how much this replica has on each group as the others tell; it comes before
// share, which ends a silence.
func (p *peers) tells(now time.Time, backends []*backend) {
	own, others, first := 0, 0, p.silent() || p.alike.at.IsZero()
	for _, b := range backends {
		for _, g := range b.groups {
			g.own.before[1], g.own.before[0] = g.own.before[0], g.own.waiting+g.own.decoding
			if first {
				g.own.before[1] = g.own.before[0]
			}
			own += g.own.before[0]
		}
	}
	for _, l := range p.told {
		l = l.sane()
		others += l.Waiting + l.Decoding
	}
	p.alike.hear(now, own, others)
}

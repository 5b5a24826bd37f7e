package router

import (
	"math"
	"time"
)

// silence is what is known of the other replicas' part of a backend, or of a group,
// while nobody tells. What was told last holds as long as this replica does not run
// more than it did then: of the room that was left each may take an equal part, so
// of one more here there is one more at each of the others. What was told fades, and
// in the end all have equal parts. So floors hold while nobody hears of anybody,
// whoever fell silent with how much, and however few streams each has on an engine.
//
// Guarded by Router.mu.
type silence struct {
	told  Load // by the others, last
	own   int  // sequences of this replica then
	place int  // from 0 to less than the replicas, drawn: see hush
}

// silenceMemory is in which time what was told last fades to 1/e.
const silenceMemory = 5 * time.Minute

// silent reports whether nobody tells what the others run.
func (p *peers) silent() bool { return p.scale > 1 }

// others is what the other replicas run where told was told last and this replica
// runs own: s is of that place, and nil while they tell.
func (p *peers) others(now time.Time, s **silence, told, own Load, draw func() float64) (others Load, spread int) {
	if !p.silent() {
		*s = nil
		return told, 0
	}
	if *s == nil {
		*s = hush(told, own.Waiting+own.Decoding, p.scale, draw())
	}
	return (*s).others(own, p.scale, now.Sub(p.since))
}

// beyond is by how much the others are thought to run more, and by how much more a
// newcomer has to leave room for, where this replica runs more beside own.
func (p *peers) beyond(now time.Time, s *silence, own, more Load) (others Load, spread int) {
	if s == nil {
		return Load{}, 0
	}
	before, room := s.others(own, p.scale, now.Sub(p.since))
	after, wide := s.others(own.Plus(more), p.scale, now.Sub(p.since))
	return Load{
		Waiting: after.Waiting - before.Waiting, Decoding: after.Decoding - before.Decoding,
		PromptTokens: after.PromptTokens - before.PromptTokens,
	}, wide - room
}

// hush begins a silence of so many replicas, this one included.
//
// The part of a replica is rarely a whole number of places: of 30 places for 20
// replicas each has one and a half. So each draws how much of a last place it rounds
// up from: the higher, the less.
func hush(told Load, own, replicas int, draw float64) *silence {
	return &silence{told: told.sane(), own: own, place: int(draw * float64(replicas))}
}

// others is what the others are thought to run beside own. spread is for how many
// more of them a newcomer has to leave room: for those that they had and may take up
// again, and for those who have their part of a place before us.
func (s *silence) others(own Load, replicas int, silent time.Duration) (others Load, spread int) {
	each := own.Waiting + own.Decoding
	if each+s.own+s.told.Waiting+s.told.Decoding == 0 {
		return others, 0 // nobody is known to run here: one may show what it takes
	}
	far, keeps := float64(replicas-1), math.Exp(-silent.Seconds()/silenceMemory.Seconds())
	held, told := keeps*float64(s.own), keeps*float64(s.told.Waiting+s.told.Decoding)
	// They have as much less of it as we have less of ours, and more as we have more.
	still := min(float64(each+1)/float64(s.own+1), 1)
	grown := far * max(float64(each)-held, 0)
	alike := grown / max(float64(each), 1)
	all := told*still + grown
	others.Waiting = round(keeps*still*float64(s.told.Waiting) + alike*float64(own.Waiting))
	others.Decoding = max(round(all)-others.Waiting, 0)
	others.PromptTokens = round(keeps*still*float64(s.told.PromptTokens) + alike*float64(own.PromptTokens))
	if told >= 0.5 && others.Waiting+others.Decoding > 0 {
		others.Floor = s.told.Floor
	}
	beyond := min(max(float64(each+1)-held, 0), 1) // of a newcomer, what is more than ours
	whole := round(told + grown + max(far*beyond-float64(s.place), 0))
	return others, max(whole-others.Waiting-others.Decoding, 0)
}

func round(x float64) int { return int(x + 0.5) }

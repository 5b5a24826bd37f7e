package prefix

import (
	"time"

	"github.com/pacer-dev/pacer/router"
)

// faith is what is believed of a cache before a fit says what it saves: that it does,
// where the kind of engine keeps prefixes unless told otherwise, or where some first tokens
// came as soon, until a first token speaks against it. Else the first prompts that all begin alike are refused beside
// streams that could bear them, for as long as the first answers last.
type faith struct {
	begun bool // by the kind

	cold      float64 // seconds of a prompt token that was nowhere, fading
	seen      float64 // of how many first tokens
	told      bool    // another replica has seen it to keep prompts, as far as it told last
	toldAt    time.Time
	good, bad int // first tokens of prompts that were to be cached: soon, and late; one of each takes one of the other off
}

const (
	// trusted is what part of what is likely in such a cache counts as sure.
	trusted = 0.9

	coldFades = 0.9

	// leastSoon is how many more first tokens have to be soon than late for it to be believed of
	// a kind of which nobody knows whether it keeps prefixes.
	leastSoon = 4

	// mostFaith is how many first tokens are remembered as soon or late: a cache that
	// begins to forget is doubted after half as many, however long it was good.
	mostFaith = 16
)

// see takes a first token after y seconds, of a prompt of so many tokens of which so
// many were there, that waited for nobody.
func (f *faith) see(tokens, cached int, y float64) {
	switch {
	case cached*4 < tokens:
		f.seen = f.seen*coldFades + 1
		f.cold += (y/float64(tokens) - f.cold) / f.seen
	case cached < leastTold || cached*2 < tokens || f.seen == 0:
	case y < f.cold*float64(cached)/2:
		f.good, f.bad = min(f.good+1, mostFaith), max(f.bad-1, 0)
	default:
		f.good, f.bad = max(f.good-1, 0), min(f.bad+1, mostFaith)
	}
}

// holds reports whether it is believed still. Who has seen no cold prompt cannot tell
// that one came late, and goes by what another replica says that has.
func (f *faith) holds() bool {
	if f.seen == 0 {
		return f.told
	}
	return f.hopes()
}

// toldLife is how long what another replica told holds once none tells any more: they may
// be gone, and the engine another one.
const toldLife = 10 * time.Minute

// hear takes what another replica told.
func (f *faith) hear(now time.Time, keeps bool) { f.told, f.toldAt = keeps, now }

// expire forgets at now what nobody has told for long.
func (f *faith) expire(now time.Time) { f.told = f.told && now.Sub(f.toldAt) <= toldLife }

// hopes reports whether nothing speaks against it, though nobody could tell yet.
// Of another kind it has to be seen.
func (f *faith) hopes() bool {
	if !f.begun {
		return f.good >= f.bad+leastSoon
	}
	return f.bad == 0 || f.good > f.bad
}

// doubted reports whether first tokens came as late as if nothing were there, whatever
// the engine tells.
func (f *faith) doubted() bool { return f.bad > f.good }

// Believe says which targets are engines of a kind that keeps prefixes unless told
// otherwise; of the others nothing is believed before it is seen. It follows Configure.
func (x *Index) Believe(keeps func(router.Target) bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for t, h := range x.caches {
		h.mu.Lock()
		h.faith.begun = keeps(t)
		h.mu.Unlock()
	}
}

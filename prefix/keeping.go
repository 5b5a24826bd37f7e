package prefix

import (
	"math"
	"math/bits"
	"time"
)

const (
	// ages is how many octaves of age are told apart: of tokens from 256 on, of
	// idle time from one second on. The last has no end.
	ages     = 20
	youngest = 256

	// memory is how many blocks of evidence a rate remembers.
	memory = 32.0

	// believedAge is the octave of tokens up to which a cache that keeps prefixes is believed
	// to keep them before that was seen: less than 131,072. The context of many large models
	// is that long, and an engine has room for one such prompt.
	believedAge = 9

	// hoped is what nobody has seen yet is taken for where a wrong guess costs
	// little.
	hoped = 0.9
)

// rate is how often something was there, of how often it was looked for, both
// fading.
type rate struct{ found, looked float64 }

// see adds that a share x of something of weight w was there.
func (r *rate) see(x, w float64) {
	keep := 1 - w/memory
	r.found = r.found*keep + x*w
	r.looked = r.looked*keep + w
}

// mean is the rate, begun with one look that came out as first.
func (r *rate) mean(first float64) float64 { return (r.found + first) / (r.looked + 1) }

// rates are by age. What is older is there no more often than what is younger, so
// an age that was not seen takes what its neighbours allow.
type rates struct {
	of   [ages]rate
	seen uint32 // a bit for each age that was looked for half a time or more
}

// see adds that a share x of something of that age, of weight w, was there.
func (r *rates) see(age int, x, w float64) {
	o := &r.of[age]
	o.see(x, w)
	if r.seen &^= 1 << age; o.looked >= 0.5 {
		r.seen |= 1 << age
	}
}

func (r *rates) at(age int, first float64) float64 {
	least, most := 0.0, 1.0
	for younger := r.seen & (1<<age - 1); younger != 0; younger &= younger - 1 {
		most = min(most, r.of[bits.TrailingZeros32(younger)].mean(first))
	}
	for older := r.seen &^ (2<<age - 1); older != 0; older &= older - 1 {
		o := &r.of[bits.TrailingZeros32(older)]
		least = max(least, o.found/(o.looked+1))
	}
	return r.of[age].mean(max(min(first, most), least))
}

// keeping is what a target's cache was seen to keep: by what was computed there
// since, and by the time since. That one is asked which was right more often: a
// full cache forgets by the first, one that is rented by the second.
type keeping struct {
	byTokens, byTime       rates
	tokensWrong, timeWrong float64 // squares of what they were off, fading
	kept                   rate    // of all blocks, whatever their age
	answers                rate    // of answers that come back in a prompt
	told                   bool    // it has told of cached tokens
	beyond                 rate    // of prompts of which it told more than was ever sent there

	// short is by how many tokens less is there than what was sent, though nothing was
	// forgotten: engines keep whole blocks, and read an answer otherwise than they wrote it.
	short float64
}

// tells reports whether what the engine tells of cached tokens is asked for.
func (k *keeping) tells() bool { return k.told && !k.lies() }

// lies reports whether the engine mostly tells of more than was ever sent there. Then what it
// tells says nothing, as of one that is silent; so it is, for as long, with one that others
// warmed.
func (k *keeping) lies() bool { return k.beyond.mean(0) >= 0.5 }

// hearTold learns from so many cached tokens of a prompt, of which no more than possible
// were sent there before.
func (k *keeping) hearTold(cached, possible float64) {
	if cached <= 0 {
		return
	}
	if !k.told {
		*k = keeping{told: true} // before, first tokens said what was kept
	}
	x := 0.0
	if cached > possible+leastTold {
		x = 1
	}
	k.beyond.see(x, 1)
}

// age is how old a block is.
type age struct{ tokens, time int }

func octave(x float64) int {
	if !(x >= 1) {
		return 0
	}
	return min(bits.Len64(uint64(min(x, math.MaxInt64))), ages-1)
}

func ageOf(tokens float64, idle time.Duration) age {
	return age{tokens: octave(tokens / youngest), time: octave(idle.Seconds())}
}

// chance is how likely a block of that age is there; first is what is taken for
// what nobody has seen.
func (k *keeping) chance(a age, first float64) float64 {
	if k.timeWrong < k.tokensWrong {
		return k.byTime.at(a.time, first)
	}
	return k.byTokens.at(a.tokens, first)
}

// keepsAll reports whether nothing was seen to be forgotten to speak of.
func (k *keeping) keepsAll() bool { return k.kept.mean(1) > trusted }

// reaches reports whether something of that age may be taken for kept that nobody has looked
// for: as old was found, or an engine has room for that much anyway. That it keeps prefixes
// does not say how many.
func (k *keeping) reaches(a age) bool {
	if a.tokens <= believedAge {
		return true
	}
	for i := a.tokens; i < ages; i++ {
		if k.byTokens.of[i].found >= 0.5 {
			return true
		}
	}
	return false
}

// surely is how much of what is there by chance is there for sure, where first is taken for
// what nobody has seen, as far as the cache reaches. Where a cache keeps nearly all that is
// nearly all. Where it forgets a tenth of it, a prompt is there or is not, and who counts on
// the mean misses floors: so each tenth that was looked for and gone takes four off.
func (k *keeping) surely(a age, first float64) float64 {
	if !k.reaches(a) {
		first = 0
	}
	most := k.chance(a, 1)
	there := most
	if first != 1 {
		there = k.chance(a, first)
	}
	return there * max(1-4*(1-most), 0)
}

// miss learns that so many tokens less were there than was expected, where that is no
// more than the end of a prompt.
func (k *keeping) miss(tokens float64) {
	if off := k.short + tokens; off > -leastTold && off < leastTold {
		k.short = max(k.short+tokens/memory, 0)
	}
}

// see learns that a share x of blocks of that age, of weight w, was there.
func (k *keeping) see(a age, x, w float64) {
	off := func(p float64) float64 { return w * (p - x) * (p - x) }
	keep := 1 - w/memory/4
	k.tokensWrong = k.tokensWrong*keep + off(k.byTokens.at(a.tokens, hoped))
	k.timeWrong = k.timeWrong*keep + off(k.byTime.at(a.time, hoped))
	k.kept.see(x, w)
	k.byTokens.see(a.tokens, x, w)
	k.byTime.see(a.time, x, w)
}

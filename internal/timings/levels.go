package timings

import (
	"cmp"
	"slices"
	"time"
)

// Level is what users got while so many of them were answered at once.
type Level struct {
	Tokens  float64
	Seconds float64 // of all its streams together
}

// TPS is tokens/s for one of them.
func (l Level) TPS() float64 { return l.Tokens / l.Seconds }

// change is a moment from which on n streams decode.
type change struct {
	at time.Duration
	n  int
}

// counts is how many answers were under way when, each between from and to.
func counts(all []Answer, from, to func(*Answer) time.Duration) []change {
	var changes []change
	for i := range all {
		changes = append(changes, change{from(&all[i]), 1}, change{to(&all[i]), -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	for i := 1; i < len(changes); i++ {
		changes[i].n += changes[i-1].n
	}
	return changes
}

// Levels says what users got at each n, the answers that decode: each gap
// between two arrivals, with the tokens at its end, goes to the levels that it
// lay in, in proportion to the time.
func Levels(all []Answer) map[int]Level {
	return levels(all, counts(all, (*Answer).First, (*Answer).Last))
}

// Users is Levels by the number of users who wait for an answer or get one: what
// a benchmark calls its concurrency.
func Users(all []Answer) map[int]Level {
	return levels(all, counts(all, func(a *Answer) time.Duration { return a.Sent }, func(a *Answer) time.Duration { return a.Ended }))
}

func levels(all []Answer, changes []change) map[int]Level {
	out := map[int]Level{}
	for i := range all {
		a := &all[i]
		perChunk := 0.0 // 0 = the engine counted
		if !a.Counted() {
			perChunk = float64(a.Tokens) / float64(a.Chunks())
		}
		for i := 1; i < len(a.Arrivals); i++ {
			from, to := a.Arrivals[i-1], a.Arrivals[i]
			tokens := float64(to.Total - from.Total)
			if perChunk > 0 {
				tokens = perChunk * float64(to.Chunks)
			}
			spread(changes, from.At, to.At, func(n int, d time.Duration, part float64) {
				l := out[n]
				l.Seconds += d.Seconds()
				l.Tokens += tokens * part
				out[n] = l
			})
		}
	}
	return out
}

// spread cuts the time from, to into pieces of one n each, and says which part
// of the whole each is.
func spread(changes []change, from, to time.Duration, visit func(n int, d time.Duration, part float64)) {
	// The first change behind from; the one before it says how many there were.
	next, _ := slices.BinarySearchFunc(changes, from, func(c change, at time.Duration) int {
		if c.at > at {
			return 1
		}
		return -1
	})
	for at := from; ; next++ {
		end := to
		if next < len(changes) && changes[next].at < to {
			end = changes[next].at
		}
		part := 1.0 // of a gap that took no time
		if to > from {
			part = float64(end-at) / float64(to-from)
		}
		visit(changes[next-1].n, end-at, part)
		if end >= to {
			return
		}
		at = end
	}
}

// PerPromptToken is what a prompt token took, in seconds, where users were alone:
// the slope of their first tokens over their prompts.
func PerPromptToken(alone []Answer) float64 {
	var n, x, y, xx, xy float64
	for i := range alone {
		p, s := float64(alone[i].Prompt), (alone[i].First() - alone[i].Sent).Seconds()
		n, x, y, xx, xy = n+1, x+p, y+s, xx+p*p, xy+p*s
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// PromptsAt are the prompt tokens that were prefilled beside n decoding streams,
// by the users' clocks: a prompt lies in the time before its first token, each of
// its tokens as long as it is said.
func PromptsAt(all []Answer, each float64) map[int]float64 {
	out := map[int]float64{}
	for i := range all {
		a := &all[i]
		from := max(a.Sent, a.First()-time.Duration(float64(a.Prompt)*each*float64(time.Second)))
		for n, part := range During(all, from, a.First()) {
			out[n] += float64(a.Prompt) * part
		}
	}
	return out
}

// During says which part of the time from, to so many answers decoded.
func During(all []Answer, from, to time.Duration) map[int]float64 {
	out := map[int]float64{}
	changes := counts(all, (*Answer).First, (*Answer).Last)
	if to <= from {
		return out
	}
	if len(changes) == 0 || changes[0].at > from { // nobody, at first
		changes = slices.Insert(changes, 0, change{at: from})
	}
	spread(changes, from, to, func(n int, _ time.Duration, part float64) { out[n] += part })
	return out
}

package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// inTime is rule 5: a gets its first token on m in time, beside c. Its own prefill counts, unless that alone takes too long
// wherever it goes: such a prompt could never be sent.
func (a *ask) inTime(m *model, c *present) bool {
	if a.maxTTFT <= 0 {
		return true
	}
	g := m.group
	wait := g.ttft(a.now, m, c) + reckoned(a.waited)
	switch {
	case wait > a.maxTTFT:
		return false
	case a.prompt == 0 || wait+a.own(m) <= a.maxTTFT:
		return true
	}
	for _, other := range a.route.models {
		if other != nil && other.group.backend.inService() && a.own(other) < a.maxTTFT {
			return false
		}
	}
	return true
}

// reckoned is for how long a wait in line counts, or one for prompts that are prefilled
// before: half as long again. What is predicted is a mean, and who waits for a full engine is let
// in as late as may be: with no time to spare every second one of them would be late. Who
// need not wait can come no sooner, and is let in.
func reckoned(wait time.Duration) time.Duration { return wait + wait/2 }

// unreckoned is by how much less than left somebody may wait, for reckoned to be left.
func unreckoned(left time.Duration) time.Duration { return max(left/3, 0) }

// own is the time to the first token of a on an idle m.
func (a *ask) own(m *model) time.Duration {
	return seconds(m.ttft.Base + m.prefill*float64(a.toPrefill(m)))
}

// ttft predicts how long a newcomer on m waits for its first token, beside its
// own prefill, when c is there: until the prompts ahead are
// prefilled, and, beyond the slots that the engine was learned to have, a time
// by which one of them is almost surely free; and at least as long as the oldest
// stream waits for something else than prefill. That sees a queue which was not
// learned yet, and whoever comes next stands behind it.
func (g *group) ttft(now time.Time, m *model, c *present) time.Duration {
	return max(g.untilServed(m, c), g.overdue(now))
}

// untilServed is ttft as far as it does not depend on the time.
func (g *group) untilServed(m *model, c *present) time.Duration {
	wait := reckoned(seconds(m.prefill * float64(c.prompt)))
	if m.ttft.Slots > 0 && c.m >= m.ttft.Slots {
		wait = max(wait, seconds(m.ttft.QueueBound(c.m)))
	}
	return wait
}

// overdue is by how much the oldest stream without a first token waits longer
// than prefill takes.
func (g *group) overdue(now time.Time) time.Duration {
	if l := g.own.unserved.front; l != nil {
		return now.Sub(l.placed) - l.expected.prefill
	}
	return 0
}

// outlast says what a request that waits in line has to reckon with on m: the
// time to its first token once a slot is free, its own prefill included, for so
// much has to be left when it leaves the line; and the mean wait for a slot,
// which goes by while it is in line. A prefill that alone takes longer than the
// first token may is not counted, or such a prompt could never be sent.
func (a *ask) outlast(m *model) (soonest, queue time.Duration) {
	if a.weight == 0 {
		return 0, 0 // it has no first token
	}
	g := m.group
	own := a.own(m)
	if own >= a.maxTTFT {
		own = 0
	}
	ahead := seconds(m.prefill * float64(g.promptWaiting()))
	soonest = max(ahead+own, g.overdue(a.now))
	return soonest + unreckoned(a.maxTTFT-soonest), seconds(m.ttft.Queue(g.m()))
}

// ahead is what stands before whoever comes next.
func (g *group) ahead() profiles.Ahead {
	return profiles.Ahead{Known: true, PromptTokens: g.promptWaiting(), Sequences: g.m()}
}

// learnTTFT takes what the curve says about first tokens. While it says
// nothing, a prompt token takes what it costs those that decode meanwhile.
func (m *model) learnTTFT(c curve) {
	m.ttft, m.timed = profiles.TTFT{}, false
	if c == nil {
		return
	}
	m.ttft = c.TTFT()
	if m.timed = m.ttft.Known(); !m.timed && c.Known() {
		m.ttft = profiles.TTFT{PerToken: finite(c.SecondsPerPromptToken()), Uncached: 1}
	}
}

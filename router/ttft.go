package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// delay is how long a newcomer waits for its first token, beside its own
// prefill.
type delay struct {
	prefill time.Duration // until the prompts ahead are prefilled
	overdue time.Duration // by how much the oldest stream waits longer than for prefill
	queue   time.Duration // until a slot of the engine is free, on average
	bound   time.Duration // of all of them, that few exceed: rule 5
}

// delay predicts the wait of a newcomer on m: until the prompts ahead are
// prefilled, and, beyond the slots that the engine was learned to have, until
// one of them is free; and at least as long as the oldest stream waits for
// something else than prefill. That sees a queue which was not learned yet, and
// whoever comes next stands behind it.
func (b *backend) delay(now time.Time, m *model) delay {
	d := delay{prefill: seconds(m.ttft.Prefill(b.promptWaiting()))}
	if l := b.unserved.front; l != nil {
		d.overdue = max(now.Sub(l.placed)-l.prefill, 0)
	}
	d.bound = max(d.prefill, d.overdue)
	if k := b.m(); m.ttft.Slots > 0 && k >= m.ttft.Slots {
		d.queue = seconds(m.ttft.Queue(k))
		d.bound = max(d.bound, seconds(m.ttft.QueueBound(k)))
	}
	return d
}

// ownDelay is how long the prefill of the request itself takes on a target:
// when it leaves the line, so much has to be left of its time. Rule 5 does not
// ask for it, and where it is longer than a first token may take, nothing does:
// such a prompt could never be sent.
func (a *ask) ownDelay(v *verdict) time.Duration {
	if v.model == nil {
		return 0
	}
	own := seconds(v.model.ttft.Base + v.model.ttft.Prefill(a.prompt))
	if own >= a.maxTTFT {
		return 0
	}
	return own
}

// ahead is what stands before whoever comes next.
func (b *backend) ahead() profiles.Ahead {
	return profiles.Ahead{Known: true, PromptTokens: b.promptWaiting(), Sequences: b.m()}
}

// learnTTFT takes what the curve says about first tokens. While it says
// nothing, a prompt token takes what it costs those that decode meanwhile.
func (m *model) learnTTFT(c curve) {
	m.ttft = profiles.TTFT{}
	if c == nil {
		return
	}
	if m.ttft = c.TTFT(); !m.ttft.Known() && c.Known() {
		m.ttft = profiles.TTFT{PerToken: finite(c.SecondsPerPromptToken()), Uncached: 1}
	}
}

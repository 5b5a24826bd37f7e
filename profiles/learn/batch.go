package learn

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// batch is deltas on their way to the store: one per target, so that however
// long they wait they take no more room.
type batch struct {
	halfLife time.Duration
	since    time.Time // of the oldest fold in it
	deltas   []profiles.Delta
	at       map[profiles.Target]int // index in deltas
}

func (b *batch) empty() bool { return len(b.deltas) == 0 }

// add takes in a delta that was folded at now.
func (b *batch) add(now time.Time, d profiles.Delta) {
	if b.empty() {
		b.since, b.at = now, map[profiles.Target]int{}
	}
	if i, ok := b.at[d.Target]; ok {
		b.deltas[i].Join(d, b.halfLife)
		return
	}
	b.at[d.Target] = len(b.deltas)
	b.deltas = append(b.deltas, d)
}

// fold takes in what one fold returned at now: a delta of each target at most. An empty
// batch takes it as it is, for a delta is some 11 KB.
func (b *batch) fold(now time.Time, deltas []profiles.Delta) {
	if !b.empty() || len(deltas) == 0 {
		for _, d := range deltas {
			b.add(now, d)
		}
		return
	}
	b.since, b.deltas, b.at = now, deltas, make(map[profiles.Target]int, len(deltas))
	for i := range deltas {
		b.at[deltas[i].Target] = i
	}
}

package usage

import (
	"slices"
	"strings"
	"time"
)

// Batch is cells that are to be added to those of all replicas, once, however
// often they are sent under Seq.
type Batch struct {
	Seq   uint64
	Cells []Cell
}

// Out returns what is to be told: what was told and is not known to have arrived,
// under its old number, or else at most so many cells under a new one. No cells =
// there is nothing to tell.
func (b *Book) Out(most int) Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOut && len(b.pending.cells) > 0 {
		b.isOut = true
		b.seq++
		for at, s := range b.pending.cells {
			if len(b.out.cells) >= most {
				break
			}
			b.out.add(at.hour, at.of, *s)
			b.pending.drop(at)
		}
	}
	return Batch{b.seq, b.out.list(-1<<62, 1<<62)}
}

// Arrived takes note that the batch of that number is in the store, whose birth is
// a name that it was given when it was empty. Another one than before has lost all
// that was told to it: what this replica knows is pending again.
func (b *Book) Arrived(seq uint64, birth string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOut || seq != b.seq {
		return
	}
	if b.birth != "" && b.birth != birth {
		b.pending.join(&b.own)
		b.own = ledger{}
	}
	b.birth = birth
	b.own.join(&b.out)
	b.out, b.isOut = ledger{}, false
}

// Spent is what is told of one budget.
type Spent struct {
	Holder   Holder
	Per      Period
	Start    time.Time // of the period
	End      time.Time
	Limit    Money
	Seq      uint64 // of this report; one that is told again has its old number
	New      Money  // since the last report that arrived
	Known    Money  // what all have spent, as this replica was told last: for a store that has lost it
	Holds    Money  // of what it was allowed: it may spend that beside New while no answer comes
	Reserved Money  // of Holds, for requests that run
	Want     Money  // beside it, for the next request; 0 = there was none for a while
	Expect   Money  // the most that a request is expected to cost; 0 = nothing is known
	Begun    string // when the store was begun, as this replica was told; "" = it was not
	Parts    []Part // of Known, for a store that has lost it
}

// Part is what one replica has spent of a budget.
type Part struct {
	Replica string
	Spent   Money
}

// Told is the answer to what was Spent.
type Told struct {
	Total     Money  // what all have spent
	Allowance Money  // of the rest, what this replica may spend
	Whole     bool   // nobody else may spend anything of the rest
	Expect    Money  // the most that a request is expected to cost, as the others know it; 0 = they do not
	Begun     string // when the store was begun
	Parts     []Part // of Total, those that may have changed
}

// Report returns what is to be told of each budget at now. What was reported and
// was not answered is told again.
func (b *Book) Report(now time.Time) []Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Spent, 0, len(b.accounts))
	for h, a := range b.accounts {
		b.turn(h, a, now)
		if !a.isOut {
			b.reports++ // over all budgets: one that comes back has new numbers
			a.seq, a.sent, a.own, a.isOut = b.reports, a.own, 0, true
		}
		out = append(out, Spent{
			Holder: h, Per: a.budget.Per, Start: a.start, End: a.budget.Per.End(a.start), Limit: a.budget.Limit,
			Seq: a.seq, New: a.sent, Known: a.told, Holds: a.holds(), Reserved: a.reserved, Want: a.wants(now), Expect: a.dearest(), Begun: a.begun, Parts: a.parts,
		})
	}
	return out
}

// holds is what a may spend beside what it has sent: what of its allowance is left, and
// what runs, though an answer may have allowed less since that began.
func (a *account) holds() Money {
	if !a.heard {
		return a.reserved
	}
	return max(a.allowance-a.sent, a.reserved, 0)
}

// wants is what the next request will cost, where there was one of late.
func (a *account) wants(now time.Time) Money {
	if now.Sub(a.wantAt) > wantFor {
		return 0
	}
	return a.want
}

// Answer takes the answer to s. What was told before may be more than its total, from
// a store that has lost something: it stands until the others have told theirs again.
func (b *Book) Answer(s Spent, t Told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[s.Holder]
	if a == nil || !a.start.Equal(s.Start) || !a.isOut || a.seq != s.Seq {
		return
	}
	a.sent, a.isOut = 0, false
	a.shared, a.told = max(t.Total, a.shared), t.Total
	a.allowance, a.whole, a.heard, a.alone = t.Allowance, t.Whole, true, false
	a.othersExpect = t.Expect
	a.begun, a.parts = t.Begun, joinParts(a.parts, t.Parts)
	b.notice(s.Holder, a)
}

// joinParts returns those of both, by name; of one that both have the larger. A part
// only grows, and one that the store tells no more is still true. Neither have nor what
// is returned is changed later.
func joinParts(have, told []Part) []Part {
	if len(told) == 0 {
		return have
	}
	slices.SortFunc(told, func(a, b Part) int { return strings.Compare(a.Replica, b.Replica) })
	out := make([]Part, 0, max(len(have), len(told)))
	for len(have) > 0 && len(told) > 0 {
		switch p, q := have[0], told[0]; strings.Compare(p.Replica, q.Replica) {
		case -1:
			out, have = append(out, p), have[1:]
		case 1:
			out, told = append(out, q), told[1:]
		default:
			p.Spent = max(p.Spent, q.Spent)
			out, have, told = append(out, p), have[1:], told[1:]
		}
	}
	return append(append(out, have...), told...)
}

// Alone takes note that nobody tells what the others spend. Each of so many replicas goes
// on with its allowance: all of them together are what was left. Of a budget of which
// nothing was told yet it is an even share.
func (b *Book) Alone(replicas int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = max(replicas, 1)
	for _, a := range b.accounts {
		a.alone = true
		if !a.heard {
			a.allowance = b.first(a.budget.Limit).allowance
		}
	}
}

// Replicas takes note of how many replicas there are, at least 1: each begins a period
// with an even share.
func (b *Book) Replicas(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = max(n, 1)
}

// Past is what is kept over a restart without a store.
type Past struct {
	Cells    []Cell
	Accounts []KeptAccount
}

// KeptAccount is what was spent of one budget.
type KeptAccount struct {
	Holder Holder
	Per    Period
	Start  time.Time
	Spent  Money
	Warned bool
	Said   bool
}

// Past returns what is to be kept.
func (b *Book) Past() *Past {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &Past{Cells: b.own.list(-1<<62, 1<<62)}
	for h, a := range b.accounts {
		p.Accounts = append(p.Accounts, KeptAccount{h, a.budget.Per, a.start, a.total(), a.warned, a.spent})
	}
	return p
}

// Restore takes over what was kept, into a book that has counted nothing yet. What
// belongs to a budget that is not configured yet waits for it.
func (b *Book) Restore(p *Past) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range p.Cells {
		b.own.add(c.Hour, c.Of, c.Sums)
	}
	b.kept = make(map[Holder]KeptAccount, len(p.Accounts))
	for _, k := range p.Accounts {
		b.kept[k.Holder] = k
		b.takeOver(k.Holder)
	}
}

// takeOver puts what was kept of h into its account, once there is one. mu is held.
func (b *Book) takeOver(h Holder) {
	k, ok := b.kept[h]
	if a := b.accounts[h]; ok && a != nil {
		delete(b.kept, h)
		if a.budget.Per == k.Per {
			a.start, a.own, a.warned, a.spent = k.Start, k.Spent, k.Warned, k.Said
		}
	}
}

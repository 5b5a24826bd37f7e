package usage

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxNotices is how many notices wait to be taken.
const maxNotices = 1024

// Owned is a backend that costs USDPerHour, whoever uses it.
type Owned struct{ USDPerHour float64 }

// Book is what passed through this replica, and its part of the budgets. It is
// safe for concurrent use. The zero value is not; New makes one.
type Book struct {
	mu       sync.Mutex // guards what follows; a leaf
	own      ledger     // all of this replica that counts under birth, or without a store for ever
	pending  ledger     // of it, not told
	out      ledger     // of it, told under seq and not known to have arrived
	isOut    bool
	seq      uint64
	birth    string // of the store that own counts in; "" = none told yet
	accounts map[Holder]*account
	kept     map[Holder]KeptAccount // of before, whose budgets are not known yet
	reports  uint64                 // number of the last report of a budget
	notices  []Notice
	machines map[string]*machine // by backend
	owned    map[string]Owned
	sharing  bool   // there is a store
	replicas int    // that share a budget of which nobody has told yet; at least 1
	changes  uint64 // requests that were added
	news     uint64 // of these, those of which a budget has something to tell
}

// New returns an empty book. sharing says that a store takes what is pending.
func New(sharing bool) *Book {
	return &Book{accounts: map[Holder]*account{}, machines: map[string]*machine{}, sharing: sharing, replicas: 1}
}

// Configure says which budgets there are, and which backends cost by the hour. What
// was spent of a budget that stays is kept, whatever its limit is.
func (b *Book) Configure(budgets map[Holder]Budget, owned map[string]Owned) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for h, budget := range budgets {
		a := b.accounts[h]
		switch {
		case a == nil:
			a = &account{budget: budget}
			a.begin(time.Time{}, b.first(budget.Limit))
			b.accounts[h] = a
			b.takeOver(h)
		case a.budget.Per != budget.Per:
			a.budget = budget
			a.begin(time.Time{}, b.first(budget.Limit))
		case a.budget != budget:
			a.budget, a.warned, a.spent = budget, false, false
			if !a.heard {
				a.allowance = b.first(budget.Limit).allowance
			}
		}
	}
	b.news++ // the next exchange tells of them
	maps.DeleteFunc(b.accounts, func(h Holder, _ *account) bool { _, stays := budgets[h]; return !stays })
	b.owned = owned
	maps.DeleteFunc(b.machines, func(name string, _ *machine) bool { _, stays := owned[name]; return !stays })
}

// turn has a, the account of h, begin the period that now lies in. What was spent of one
// that begins again is told by the store, or is in the cells. mu is held.
func (b *Book) turn(h Holder, a *account, now time.Time) {
	if a.turn(now, b.first(a.budget.Limit)) && !b.sharing {
		a.own = b.own.spentBy(h, HourOf(a.start), HourOf(a.budget.Per.End(a.start)))
	}
}

func (a *account) state(h Holder) State {
	return State{Holder: h, Budget: a.budget, Start: a.start, End: a.budget.Per.End(a.start), Spent: a.total()}
}

// first is what this replica may spend of a limit before anybody has told what the others
// do: without a store all of it, else an even share.
func (b *Book) first(limit Money) first {
	if !b.sharing {
		return first{allowance: math.MaxInt64 / 4, whole: true}
	}
	return first{allowance: limit / Money(b.replicas)}
}

// Add takes a settled request.
func (b *Book) Add(r Record) { b.Book(r, &Reservation{}) }

// Book takes a settled request, or what one has used so far that runs on: it is paid out
// of its reservation.
func (b *Book) Book(r Record, of *Reservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of.book(r.Cost)
	b.changes++
	hour := HourOf(r.At)
	if b.sharing {
		b.pending.add(hour, r.Of, r.Sums)
	} else {
		b.own.add(hour, r.Of, r.Sums)
	}
	for _, h := range []Holder{{Name: r.Key}, {Team: true, Name: r.Team}} {
		if a := b.accounts[h]; a != nil {
			b.turn(h, a, r.At)
			a.own += r.Cost
			b.news++
			b.notice(h, a)
		}
	}
}

// notice notes that a has passed its warning or its limit, once a period. mu is
// held.
func (b *Book) notice(h Holder, a *account) {
	total, limit := a.total(), a.budget.Limit
	say := func(exhausted bool) {
		if len(b.notices) < maxNotices {
			b.notices = append(b.notices, Notice{State: a.state(h), Exhausted: exhausted})
		}
	}
	if !a.warned && a.budget.Warn > 0 && float64(total) >= a.budget.Warn*float64(limit) {
		a.warned = true
		if total < limit {
			say(false)
		}
	}
	if !a.spent && total >= limit {
		a.warned, a.spent = true, true
		say(true)
	}
}

// Notices takes the notices since the last call, oldest first.
func (b *Book) Notices() []Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.notices
	b.notices = nil
	return out
}

// States are all budgets at now, by holder.
func (b *Book) States(now time.Time) []State {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]State, 0, len(b.accounts))
	for h, a := range b.accounts {
		b.turn(h, a, now)
		out = append(out, a.state(h))
	}
	slices.SortFunc(out, func(a, b State) int { return strings.Compare(a.Holder.String(), b.Holder.String()) })
	return out
}

// Sample notes how many sequences each backend runs, over all replicas.
func (b *Book) Sample(now time.Time, running map[string]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.owned {
		g := b.machines[name]
		if g == nil {
			g = &machine{}
			b.machines[name] = g
		}
		g.sample(now, running[name])
	}
}

// OwnedCost is what a request costs that a backend that costs by the hour ran from
// sent to end; 0 where the backend is none.
func (b *Book) OwnedCost(backend string, sent, end time.Time) Money {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.owned[backend]
	if !ok || sent.IsZero() {
		return 0
	}
	g := b.machines[backend]
	if g == nil {
		g = &machine{}
	}
	return Dollars(g.used(sent, end) / 3600 * o.USDPerHour)
}

// Cells are those of this replica in [from, to): all there is without a store,
// and what the store may not have yet with one.
func (b *Book) Cells(from, to Hour) []Cell {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.sharing {
		return b.own.list(from, to)
	}
	return append(b.pending.list(from, to), b.out.list(from, to)...)
}

// All are the cells of this replica since it was started, or without a store of
// all that was kept.
func (b *Book) All(from, to Hour) []Cell {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Concat(b.own.list(from, to), b.pending.list(from, to), b.out.list(from, to))
}

// News changes when a budget has something to tell.
func (b *Book) News() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.news
}

// Changes is how many requests were added since the start.
func (b *Book) Changes() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes
}

// Forget drops hours that are too old at now.
func (b *Book) Forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range []*ledger{&b.own, &b.pending, &b.out} {
		l.forget(HourOf(now) - KeepHours)
	}
	b.isOut = b.isOut && len(b.out.cells) > 0 // else nobody would answer
}

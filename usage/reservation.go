package usage

import "time"

const (
	// wantFor is for how long a replica wants its part to have room for one more
	// request after the last one came: a client that was refused comes back after a
	// second or later.
	wantFor = 5 * time.Second

	// mostExpected is how many routes an account tells apart.
	mostExpected = 256
)

// expectation is what a request may cost, by those of its route that have ended: as much
// as the dearest of the last hundred or so. The fewer were seen, the more is added, for the
// dearest may be to come. The zero value has seen nothing.
type expectation struct {
	peak float64 // billionths of a dollar
	seen float64 // requests
}

const (
	fade       = 0.99 // by how much the peak falls with each request that is cheaper
	fewest     = 8.0  // with so many requests twice the peak is expected
	unknown    = 64   // times what is guessed, where nothing was seen
	mostCounts = 1e6
)

func (e *expectation) learn(cost Money) {
	e.peak = max(float64(cost), fade*e.peak)
	e.seen = min(e.seen+1, mostCounts)
}

func (e *expectation) cost() Money { return Money(e.peak * (1 + fewest/(e.seen*e.seen))) }

// Asked is a request that wants to be let in.
type Asked struct {
	Key, Team, Route string

	// Most is what it costs at most, as far as its client says how long the answer
	// may be; 0 = it does not say.
	Most Money

	// Guess is what it is taken to cost where no request of its route has ended yet.
	Guess Money
}

// Reservation is a request's place within the budgets of its key and team: what it is
// expected to cost is spent by nobody else while it runs. The zero value holds nothing.
// It belongs to one goroutine at a time.
type Reservation struct {
	of     [2]reserved
	route  string
	booked Money // what was added for the request so far
}

// reserved is what a reservation holds of one account; nil = of none.
type reserved struct {
	of     *account
	amount Money // what of it was not booked yet
}

// Holds reports whether r holds anything.
func (r *Reservation) Holds() bool { return r.of[0].of != nil || r.of[1].of != nil }

// Reserve lets a request in at now, and takes what it is expected to cost out of what its
// budgets may still spend here, or says which of them does not let it in. It is to be
// given back by Release.
func (b *Book) Reserve(now time.Time, q Asked) (Reservation, Ruling) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := Reservation{route: q.Route}
	var worst Ruling
	for i, h := range [...]Holder{{Name: q.Key}, {Team: true, Name: q.Team}} {
		a := b.accounts[h]
		if a == nil || a.budget.Then == OnlySay {
			continue
		}
		b.turn(h, a, now)
		amount := a.expect(q)
		a.want, a.wantAt = amount, now
		out.of[i] = reserved{of: a, amount: amount}
		worst = worst.or(a.admit(h, amount))
	}
	if worst.Refuses() {
		b.news++ // the next exchange asks for a larger part
		return Reservation{}, worst
	}
	for _, r := range out.of {
		if r.of != nil {
			r.of.reserved += r.amount
			r.of.running++
		}
	}
	return out, Ruling{}
}

// Check says whether a request of key, which belongs to team ("" = none), may be let in
// at now, whatever it is. It holds nothing.
func (b *Book) Check(now time.Time, key, team string) Ruling {
	return b.look(now, key, team, func(a *account, h Holder) Ruling {
		v := a.admit(h, 0)
		if v.Reserved {
			a.want, a.wantAt = max(a.want, 1), now
			b.news++
		}
		return v
	})
}

// Ended says whether what runs for key, which belongs to team ("" = none), has to end at
// now: all is spent, or, while nobody tells what the others spend, the part that is this
// replica's.
func (b *Book) Ended(now time.Time, key, team string) Ruling {
	return b.look(now, key, team, func(a *account, h Holder) Ruling {
		return Ruling{Exhausted: a.total() >= a.budget.Limit || a.alone && a.left() <= 0, State: a.state(h)}
	})
}

func (b *Book) look(now time.Time, key, team string, rule func(*account, Holder) Ruling) Ruling {
	b.mu.Lock()
	defer b.mu.Unlock()
	var worst Ruling
	budgeted := false
	for _, h := range [...]Holder{{Name: key}, {Team: true, Name: team}} {
		if a := b.accounts[h]; a != nil && a.budget.Then != OnlySay {
			b.turn(h, a, now)
			budgeted = true
			if v := rule(a, h); v.Refuses() {
				worst = worst.or(v)
			}
		}
	}
	worst.Budgeted = budgeted
	return worst
}

// Raise takes note that the request of r has cost so much so far, though it runs on: what
// is above its reservation is spent by nobody else either.
func (b *Book) Raise(r *Reservation, cost Money) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range r.of {
		if a := r.of[i].of; a != nil {
			if more := cost - r.booked - r.of[i].amount; more > 0 {
				r.of[i].amount += more
				a.reserved += more
				b.news++
			}
		}
	}
}

// Release gives back what r still holds: its request has ended, and all that it cost was
// added. What that was is what the next ones are expected to cost. Calls after the first do nothing.
func (b *Book) Release(r *Reservation) {
	if !r.Holds() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range r.of {
		if a := of.of; a != nil {
			a.reserved -= of.amount
			a.running--
			if r.booked > 0 {
				a.learn(r.route, r.booked)
			}
		}
	}
	*r = Reservation{}
}

// book takes what was added for the request out of what is reserved for it.
func (r *Reservation) book(cost Money) {
	r.booked += cost
	for i := range r.of {
		if a := r.of[i].of; a != nil {
			part := min(max(cost, 0), r.of[i].amount)
			r.of[i].amount -= part
			a.reserved -= part
		}
	}
}

// expect is what a request is expected to cost. Where none of its route has ended here, it
// is what others expect, or else far more than is guessed.
func (a *account) expect(q Asked) Money {
	cost := min(q.Guess, Dollars(1e6)) * unknown
	if e := a.expected[q.Route]; e != nil {
		cost = e.cost()
	} else if a.othersExpect > 0 {
		cost = a.othersExpect
	}
	if q.Most > 0 {
		cost = min(cost, q.Most)
	}
	return cost
}

func (a *account) learn(route string, cost Money) {
	e := a.expected[route]
	if e == nil {
		if len(a.expected) >= mostExpected {
			return
		}
		if a.expected == nil {
			a.expected = map[string]*expectation{}
		}
		e = &expectation{}
		a.expected[route] = e
	}
	e.learn(cost)
}

// dearest is the most that a request of any route is expected to cost; 0 = none has ended.
func (a *account) dearest() (most Money) {
	for _, e := range a.expected {
		most = max(most, e.cost())
	}
	return most
}

// admit says whether a request that is expected to cost so much may begin.
//
// One that costs more than is left begins all the same where nothing else of the budget
// can be spent by anybody: else the last cents could not be spent, nor a budget that is
// smaller than a request.
func (a *account) admit(h Holder, amount Money) Ruling {
	left := a.left()
	switch {
	case a.total() >= a.budget.Limit:
		return Ruling{Exhausted: true, State: a.state(h)}
	case left > a.reserved && left-a.reserved >= amount, left > 0 && a.running == 0 && a.whole:
		return Ruling{}
	}
	return Ruling{Reserved: true, State: a.state(h)}
}

// Ruling is what the budgets of a request say: the worst of them. The zero value
// lets it in.
type Ruling struct {
	Budgeted  bool  // there is a budget that may refuse it
	Exhausted bool  // all is spent
	Reserved  bool  // what is left is held for requests that run, here or elsewhere
	State     State // of the budget that refuses it
}

// Refuses reports whether the request is not let in.
func (v Ruling) Refuses() bool { return v.Exhausted || v.Reserved }

// or returns the worse one of two: a budget that refuses goes before one that spills, and
// one that is spent before one that is reserved.
func (v Ruling) or(w Ruling) Ruling {
	switch {
	case !w.Refuses():
		return v
	case !v.Refuses():
		return w
	case v.State.Budget.Then != w.State.Budget.Then:
		if w.State.Budget.Then == Refuse {
			return w
		}
		return v
	case w.Exhausted && !v.Exhausted:
		return w
	}
	return v
}

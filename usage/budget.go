package usage

import "time"

// Holder says whose a budget is.
type Holder struct {
	Team bool // a team's, else a key's
	Name string
}

// String returns key:NAME or team:NAME.
func (h Holder) String() string {
	if h.Team {
		return "team:" + h.Name
	}
	return "key:" + h.Name
}

// Then is what happens to requests when a budget is spent.
type Then uint8

// The zero value refuses them.
const (
	Refuse  Then = iota
	Spill        // they go to another route
	OnlySay      // nothing but a word about it
)

// Budget is what a key or a team may spend within each period.
type Budget struct {
	Limit Money
	Per   Period
	Warn  float64 // share of Limit at which it is said; 0 = it is not
	Then  Then
	Spill string // with Spill: the route
}

// account is what was spent of one budget within the period that began at start.
//
// shared is what all replicas have told, sent what this one has told and does not
// know to have arrived, own what it has not told. What others may spend besides
// is not in it: allowance is how much more than shared this replica may spend
// before it hears from the others again. Without others it is all that is left.
type account struct {
	budget    Budget
	start     time.Time
	shared    Money
	sent, own Money
	allowance Money
	divided   bool   // allowance was given; else all that is left is
	begun     string // when the store was begun that told last
	told      Money  // by it
	parts     []Part // of told, by name; never changed
	isOut     bool   // sent is told under seq, and not answered
	seq       uint64
	warned    bool
	spent     bool // it was said that nothing is left
}

// turnBack is how far a clock has to go back for a period to begin again: requests that
// settle around midnight come in any order.
const turnBack = time.Hour

// turn begins the period that now lies in. The clock may have been ahead: then an earlier
// one begins again, and again is true.
func (a *account) turn(now time.Time) (again bool) {
	again = now.Before(a.start.Add(-turnBack))
	if start := a.budget.Per.Start(now); again || start.After(a.start) {
		*a = account{budget: a.budget, start: start}
	}
	return again
}

// total is what was spent, as far as this replica knows.
func (a *account) total() Money { return a.shared + a.sent + a.own }

// left is what may still be spent here; 0 or less = nothing.
func (a *account) left() Money {
	left := a.budget.Limit - a.total()
	if a.divided {
		left = min(left, a.allowance-a.sent-a.own)
	}
	return left
}

// exhausted reports whether no request is let in any more.
func (a *account) exhausted() bool { return a.left() <= 0 }

// State is what is known of one budget.
type State struct {
	Holder Holder
	Budget Budget
	Start  time.Time // of the period
	End    time.Time
	Spent  Money
}

// Notice is that a budget has passed its warning, or its limit.
type Notice struct {
	State
	Exhausted bool // else it is the warning
}

// Ruling is what the budgets of a request say: the worst of them. The zero value
// lets it in.
type Ruling struct {
	Exhausted bool
	State     State // of the budget that is spent
}

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

// account is what was spent of one budget within the period that began at start, and
// how much of the rest this replica may spend.
//
// shared is what all replicas have told, sent what this one has told and does not
// know to have arrived, own what it has not told. allowance is how much more than shared
// this replica may spend; what runs here is expected to cost reserved of it.
type account struct {
	budget    Budget
	start     time.Time
	shared    Money
	sent, own Money
	allowance Money
	whole     bool   // nobody else may spend anything of what is left
	alone     bool   // nobody tells what the others spend
	heard     bool   // the store has told something of this period
	begun     string // when the store was begun that told last; "" = none has told
	told      Money  // by it
	parts     []Part // of told, by name; never changed
	isOut     bool   // sent is told under seq, and not answered
	seq       uint64
	warned    bool
	spent     bool // it was said that nothing is left

	running  int   // reservations
	reserved Money // by them
	want     Money // what the last one that came was expected to cost
	wantAt   time.Time
	expected map[string]*expectation // what a request may cost, by route

	othersExpect Money // the same, of any route, as the others know it; 0 = they do not
}

// turnBack is how far a clock has to go back for a period to begin again: requests that
// settle around midnight come in any order.
const turnBack = time.Hour

// turn begins the period that now lies in. The clock may have been ahead: then an earlier
// one begins again, and again is true.
func (a *account) turn(now time.Time, first first) (again bool) {
	again = now.Before(a.start.Add(-turnBack))
	if start := a.budget.Per.Start(now); again || start.After(a.start) {
		a.begin(start, first)
	}
	return again
}

// first is what an account has before anybody has told what the others spend.
type first struct {
	allowance Money
	whole     bool
}

// begin begins a period. What runs goes on, and is paid for in it.
func (a *account) begin(start time.Time, first first) {
	before := *a
	*a = account{
		budget: before.budget, start: start, allowance: first.allowance, whole: first.whole, alone: before.alone,
		running: before.running, reserved: before.reserved, want: before.want, wantAt: before.wantAt, expected: before.expected, othersExpect: before.othersExpect,
	}
}

// total is what was spent, as far as this replica knows.
func (a *account) total() Money { return a.shared + a.sent + a.own }

// left is what may still be spent here; 0 or less = nothing.
func (a *account) left() Money { return min(a.budget.Limit-a.total(), a.allowance-a.sent-a.own) }

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

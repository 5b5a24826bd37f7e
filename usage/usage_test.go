package usage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/must"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) // a Monday

func TestPeriods(t *testing.T) {
	for _, c := range []struct {
		p          Period
		at         string
		start, end string
	}{
		{Day, "2026-11-23T23:59:59Z", "2026-11-23", "2026-11-24"},
		{Week, "2026-11-23T00:00:00Z", "2026-11-23", "2026-11-30"},
		{Week, "2026-11-22T23:59:59Z", "2026-11-16", "2026-11-23"},
		{Week, "2027-01-01T12:00:00Z", "2026-12-28", "2027-01-04"},
		{Month, "2026-12-31T23:59:59Z", "2026-12-01", "2027-01-01"},
		{Month, "2027-02-01T00:30:00+02:00", "2027-01-01", "2027-02-01"},
	} {
		at := must.Get(time.Parse(time.RFC3339, c.at))(t)
		start := c.p.Start(at)
		if got := start.Format(time.DateOnly); got != c.start {
			t.Errorf("the %v of %s begins on %s, want %s", c.p, c.at, got, c.start)
		}
		if got := c.p.End(start).Format(time.DateOnly); got != c.end {
			t.Errorf("the %v of %s ends on %s, want %s", c.p, c.at, got, c.end)
		}
	}
}

func TestPrice(t *testing.T) {
	s := Tokens{Input: 1000, Cached: 400, Output: 300, Reasoning: 100, AudioInput: 200, AudioOutput: 50}
	for _, c := range []struct {
		p    Price
		want float64 // USD
	}{
		{Price{}, 0},
		{Price{Input: 2, Output: 8}, (1000*2 + 300*8) / 1e6},
		{Price{Input: 2, Output: 8, Cached: 0.5}, (600*2 + 400*0.5 + 300*8) / 1e6},
		{Price{Input: 2, Output: 8, AudioInput: 40, AudioOutput: 80}, (800*2 + 200*40 + 250*8 + 50*80) / 1e6},
		{Price{Input: 2, Output: 8, Cached: 0.5, Reasoning: 10}, (600*2 + 400*0.5 + 200*8 + 100*10) / 1e6},
	} {
		if got := c.p.Of(s); got != Dollars(c.want) {
			t.Errorf("%+v: %v USD, want %v", c.p, got.USD(), c.want)
		}
	}
	if got := (Price{Input: 1}).Of(Tokens{Input: 10, Cached: 50}).USD(); got != 1e-5 {
		t.Errorf("more cached than there were: %v USD, want 0.00001", got)
	}
	if got := Dollars(math.NaN()); got != 0 {
		t.Errorf("NaN is %v", got)
	}
}

// Whoever runs on a machine pays for it together what it costs, whatever comes and
// goes: the sum over all requests is the price of the busy time.
func TestRequestsShareAMachine(t *testing.T) {
	b := New(false)
	b.Configure(nil, map[string]Owned{"gpu": {USDPerHour: 3600}}) // a dollar a second
	type request struct{ from, to int }
	requests := []request{{0, 10}, {2, 8}, {2, 6}, {20, 30}, {25, 28}, {25, 26}}
	for tenth := range 400 {
		m := 0
		for _, r := range requests {
			if tenth > 10*r.from && tenth <= 10*r.to {
				m++
			}
		}
		b.Sample(noon.Add(time.Duration(tenth)*100*time.Millisecond), map[string]int{"gpu": m})
	}
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	var sum float64
	for _, r := range requests {
		sum += b.OwnedCost("gpu", at(r.from), at(r.to)).USD()
	}
	if math.Abs(sum-20) > 0.05 {
		t.Errorf("all requests cost %.3f USD, want that of the 20 s in which the machine was busy", sum)
	}
	// 10 s of which it was alone 4, with one other 2, with two 4: 4 + 1 + 4/3.
	if got, want := b.OwnedCost("gpu", at(0), at(10)).USD(), 4+1+4./3; math.Abs(got-want) > 0.05 {
		t.Errorf("the first request costs %.3f USD, want %.3f", got, want)
	}
	if got := b.OwnedCost("other", at(0), at(10)); got != 0 {
		t.Errorf("a backend that nobody owns costs %v", got)
	}
}

// However a client names things, the sums stay right, and bounded.
func TestTheLedgerIsBoundedAndLosesNothing(t *testing.T) {
	b := New(false)
	var want Sums
	for i := range 50_000 {
		s := Sums{Requests: 1, Input: int64(i), Cost: Money(i)}
		want.Add(s)
		b.Add(Record{At: noon, Of: Of{Key: "k", Team: "t", Model: fmt.Sprint(i), Tags: fmt.Sprint(i)}, Sums: s})
	}
	cells := b.Cells(0, math.MaxInt64)
	var got Sums
	for _, c := range cells {
		got.Add(c.Sums)
		if c.Key != "k" || c.Team != "t" {
			t.Fatalf("cell %+v has lost its key", c.Of)
		}
	}
	if got != want || len(cells) > mostPerHour+2 {
		t.Errorf("%d cells with %+v, want %+v in at most %d", len(cells), got, want, mostPerHour+2)
	}
	b.Forget(noon.Add((KeepHours + 1) * time.Hour))
	if n := len(b.Cells(0, math.MaxInt64)); n != 0 {
		t.Errorf("%d cells after two months, want none", n)
	}
}

// What one key makes up, hour by hour, hides nothing of what others used.
func TestOneKeyDoesNotFillTheLedger(t *testing.T) {
	b := New(false)
	const hours = 60 // it would fill all of them
	for h := range hours {
		for i := range mostPerHour + 10 {
			b.Add(Record{At: noon.Add(time.Duration(h) * time.Hour), Of: Of{Key: "crowd", Tags: fmt.Sprint(i)}, Sums: Sums{Requests: 1}})
		}
	}
	want := Of{Key: "k", Route: "chat", Model: "m", Tags: "proj=a"}
	b.Add(Record{At: noon.Add(hours * time.Hour), Of: want, Sums: Sums{Requests: 1}})
	b.Add(Record{At: noon, Of: want, Sums: Sums{Requests: 1}})
	n := 0
	for _, c := range b.Cells(0, math.MaxInt64) {
		if c.Of == want {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d of the two cells of another key are told apart", n)
	}
	b.Forget(noon.Add((KeepHours + hours + 1) * time.Hour))
	if n := len(b.own.ofKey); n != 0 {
		t.Errorf("%d counts of keys are left when all is forgotten", n)
	}
}

// Where there are no keys nobody is hidden, and all that is told apart is theirs.
func TestWithoutKeysNothingIsHalved(t *testing.T) {
	b := New(false)
	for i := range mostPerHour {
		b.Add(Record{At: noon, Of: Of{Tags: fmt.Sprint(i)}, Sums: Sums{Requests: 1}})
	}
	for _, c := range b.Cells(0, math.MaxInt64) {
		if c.Tags == Other {
			t.Fatalf("%d requests of %d are not told apart", c.Requests, mostPerHour)
		}
	}
}

func TestRows(t *testing.T) {
	h := HourOf(noon)
	cells := []Cell{
		{h, Of{Key: "a", Route: "x"}, Sums{Requests: 1, Cost: 5}},
		{h, Of{Key: "b", Route: "x"}, Sums{Requests: 1, Cost: 7}},
		{h + 1, Of{Key: "a", Route: "y"}, Sums{Requests: 1, Cost: 4}},
		{h + 12, Of{Key: "a", Route: "y"}, Sums{Requests: 1, Cost: 1}},
	}
	for _, c := range []struct {
		by   []string
		want []Money
	}{
		{nil, []Money{17}},
		{[]string{"key"}, []Money{10, 7}},
		{[]string{"key", "route"}, []Money{7, 5, 5}},
		{[]string{"day"}, []Money{16, 1}},
		{[]string{"hour"}, []Money{12, 4, 1}},
	} {
		var got []Money
		for _, r := range Rows(cells, c.by) {
			got = append(got, r.Cost)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("by %v: %v, want %v", c.by, got, c.want)
		}
	}
}

// store is what the scripts do, in one place.
type store struct {
	total   map[string]Money
	seq     map[string]uint64
	allowed map[string]Money // by replica, of the one budget there is
	needs   map[string]Money
}

func (s *store) spend(replica string, r Spent, alive int) (total, allowance Money, whole bool) {
	k := r.Start.String()
	s.total[k] = max(s.total[k], r.Known)
	if r.Seq > s.seq[replica+k] {
		s.total[k] += r.New
		s.seq[replica+k] = r.Seq
	}
	left := max(r.Limit-s.total[k], 0)
	var held Money
	for name, a := range s.allowed {
		if name != replica {
			held += a
		}
	}
	s.needs[replica] = r.Reserved + r.Want
	needed := Money(0)
	for _, n := range s.needs {
		needed += n
	}
	switch free := left - held; {
	case needed <= left:
		allowance = min(s.needs[replica]+(left-needed)/Money(alive), free)
	case free >= s.needs[replica]:
		allowance = s.needs[replica]
	case held == 0:
		allowance = free
	default:
		allowance = min(r.Reserved, free)
	}
	allowance = max(allowance, 0)
	s.allowed[replica] = max(allowance, r.Holds)
	return s.total[k], allowance, held == 0
}

// Three replicas with answers that are lost and come late: all that was spent is in
// the sum once, and nobody is let in once the budget and what was running are spent.
func TestABudgetIsNeverPassedByMoreThanWhatWasRunning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rnd := rand.New(rand.NewPCG(seed, 1))
		const replicas, limit = 3, 1000 * Dollar
		h := Holder{Name: "k"}
		s := &store{map[string]Money{}, map[string]uint64{}, map[string]Money{}, map[string]Money{}}
		books := make([]*Book, replicas)
		for i := range books {
			books[i] = New(true)
			books[i].Configure(map[Holder]Budget{h: {Limit: limit, Per: Month}}, nil)
		}
		exchange := func(i int, lose float64) {
			for _, r := range books[i].Report(noon) {
				if rnd.Float64() < lose { // it does not get there
					continue
				}
				total, allowance, whole := s.spend(fmt.Sprint(i), r, replicas)
				if rnd.Float64() < lose { // the answer is lost
					continue
				}
				books[i].Answer(r, Told{Total: total, Allowance: allowance, Whole: whole})
			}
		}
		for i := range books {
			exchange(i, 0)
		}
		var spent Money
		type running struct {
			cost Money
			held Reservation
		}
		runs := make([][]running, replicas)
		settle := func(i int) {
			q := runs[i][0]
			runs[i] = runs[i][1:]
			spent += q.cost
			books[i].Book(Record{At: noon, Of: Of{Key: "k"}, Sums: Sums{Requests: 1, Cost: q.cost}}, &q.held)
			books[i].Release(&q.held)
		}
		var most Money
		for range 3000 {
			i := rnd.IntN(replicas)
			switch {
			case rnd.IntN(8) == 0:
				exchange(i, 0.2)
			case rnd.IntN(2) == 0 && len(runs[i]) < 4:
				if held, v := books[i].Reserve(noon, Asked{Key: "k", Guess: Dollar}); !v.Refuses() {
					runs[i] = append(runs[i], running{Money(1 + rnd.Int64N(int64(3*Dollar))), held})
				}
			case len(runs[i]) > 0:
				settle(i)
			}
			now := Money(0)
			for _, r := range runs {
				for _, q := range r {
					now += q.cost
				}
			}
			most = max(most, now)
		}
		for i := range runs {
			for len(runs[i]) > 0 {
				settle(i)
			}
		}
		for range 2 {
			for i := range books {
				exchange(i, 0)
			}
		}
		if got := books[0].States(noon)[0].Spent; got != spent {
			t.Fatalf("seed %d: the replicas know of %v USD, want %v", seed, got.USD(), spent.USD())
		}
		if over := spent - limit; over > most {
			t.Fatalf("seed %d: %.2f USD over the limit, want at most the %.2f that were running", seed, over.USD(), most.USD())
		}
		if spent < limit {
			return // it did not get so far
		}
		for i := range books {
			if !books[i].Check(noon, "k", "").Exhausted {
				t.Fatalf("seed %d: replica %d lets requests in after the end of the budget", seed, i)
			}
		}
	})
}

func TestBudgetsOfKeyAndTeam(t *testing.T) {
	b := New(false)
	key, team := Holder{Name: "k"}, Holder{Team: true, Name: "t"}
	b.Configure(map[Holder]Budget{
		key:  {Limit: 10, Warn: 0.8, Then: Spill, Spill: "cheap"},
		team: {Limit: 15, Warn: 0.8},
	}, nil)
	spend := func(m Money) { b.Add(Record{At: noon, Of: Of{Key: "k", Team: "t"}, Sums: Sums{Cost: m}}) }
	check := func(want string) {
		t.Helper()
		got := "in"
		if v := b.Check(noon, "k", "t"); v.Exhausted {
			got = v.State.Holder.String()
		}
		if got != want {
			t.Errorf("the verdict is %s, want %s", got, want)
		}
	}
	check("in")
	spend(8)
	check("in")
	spend(2)
	check("key:k")
	spend(5)
	check("team:t") // who refuses goes before who spills
	var said []string
	for _, n := range b.Notices() {
		said = append(said, fmt.Sprint(n.Holder, n.Exhausted))
	}
	if want := []string{"key:k false", "key:k true", "team:t true"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	if v := b.Check(noon.AddDate(0, 1, 0), "k", "t"); v.Exhausted {
		t.Error("the next month begins with what the last one spent")
	}
	if len(b.Notices()) != 0 {
		t.Error("a notice is told twice")
	}
}

// Alone each replica spends what it was allowed, or, where nobody told of a budget, an even
// share.
func TestAlone(t *testing.T) {
	b := New(true)
	h := Holder{Name: "k"}
	b.Configure(map[Holder]Budget{h: {Limit: 90}, {Name: "new"}: {Limit: 60}}, nil)
	for _, r := range b.Report(noon) {
		if r.Holder == h {
			b.Answer(r, Told{Total: 30, Allowance: 20})
		}
	}
	b.Alone(3)
	for name, want := range map[string]int{"k": 20, "new": 20} {
		spent := 0
		for ; !b.Check(noon, name, "").Refuses() && spent < 90; spent++ {
			b.Add(Record{At: noon, Of: Of{Key: name}, Sums: Sums{Cost: 1}})
			b.Alone(3)
		}
		if spent != want {
			t.Errorf("%s: %d is spent alone, want %d", name, spent, want)
		}
		if v := b.Ended(noon, name, ""); !v.Exhausted {
			t.Errorf("%s: what runs goes on though its part is spent", name)
		}
	}
}

// A request is let in where what it may cost is left beside what runs, and the last one
// wherever nobody else holds anything.
func TestReserve(t *testing.T) {
	b := New(false)
	h := Holder{Name: "k"}
	b.Configure(map[Holder]Budget{h: {Limit: 100}, {Team: true, Name: "t"}: {Limit: 1000}}, nil)
	ask := func(most Money) (Reservation, Ruling) {
		return b.Reserve(noon, Asked{Key: "k", Team: "t", Most: most, Guess: most})
	}
	end := func(r *Reservation, cost Money) {
		b.Book(Record{At: noon, Of: Of{Key: "k", Team: "t"}, Sums: Sums{Requests: 1, Cost: cost}}, r)
		b.Release(r)
		b.Release(r) // once
	}
	one, _ := ask(60)
	if _, v := ask(60); !v.Reserved || v.Exhausted || v.State.Holder != h {
		t.Fatalf("a second one of 60 of 100: %+v, want it refused for what runs", v)
	}
	two, v := ask(40)
	if v.Refuses() {
		t.Fatalf("40 beside 60 of 100: %+v", v)
	}
	b.Raise(&two, 50) // it costs more than was expected
	end(&one, 10)
	if _, v := ask(50); !v.Reserved {
		t.Errorf("50 beside 50, with 10 of 100 spent: %+v, want it refused", v)
	}
	end(&two, 50)
	last, v := ask(70)
	if v.Refuses() {
		t.Errorf("nothing runs and 40 are left: %+v, want the last one let in", v)
	}
	if _, v := ask(1); !v.Reserved {
		t.Errorf("beside the last one: %+v, want it refused", v)
	}
	end(&last, 45)
	if _, v := ask(1); !v.Exhausted {
		t.Errorf("105 of 100 are spent: %+v", v)
	}
	if a := b.accounts[h]; a.reserved != 0 || a.running != 0 || b.accounts[Holder{Team: true, Name: "t"}].reserved != 0 {
		t.Errorf("%d is held by %d that run, want nothing", a.reserved, a.running)
	}
}

// Without a word of the client a request is expected to cost what the dearest one of late
// did, and while little is known far more.
func TestExpectation(t *testing.T) {
	a := &account{}
	expect := func(q Asked, want Money) {
		t.Helper()
		if got := a.expect(q); got != want {
			t.Errorf("%+v is expected to cost %d, want %d", q, got, want)
		}
	}
	expect(Asked{Guess: 10}, 640)
	expect(Asked{Guess: 10, Most: 50}, 50)
	a.othersExpect = 300
	expect(Asked{Guess: 10}, 300)
	a.learn("", 100)
	expect(Asked{}, 900)
	for range 7 {
		a.learn("", 100)
	}
	expect(Asked{}, 112) // 100·(1 + 8/64)
	a.learn("", 1000)
	expect(Asked{}, 1098) // 1000·(1 + 8/81)
	expect(Asked{Most: 200}, 200)
	for range 500 {
		a.learn("", 100)
	}
	expect(Asked{}, 100)
	if a.dearest() != 100 {
		t.Errorf("the dearest is %d, want 100", a.dearest())
	}
}

// What a store has lost is told again, and nothing twice.
func TestAStoreThatWasEmptied(t *testing.T) {
	b := New(true)
	add := func(n int64) { b.Add(Record{At: noon, Of: Of{Key: "k"}, Sums: Sums{Requests: n}}) }
	sum := func(cells []Cell) (n int64) {
		for _, c := range cells {
			n += c.Requests
		}
		return n
	}
	add(1)
	first := b.Out(10)
	add(2)
	if again := b.Out(10); again.Seq != first.Seq || sum(again.Cells) != 1 {
		t.Fatalf("a batch that did not arrive is %+v, want the same", again)
	}
	b.Arrived(first.Seq, "one")
	second := b.Out(10)
	if sum(second.Cells) != 2 {
		t.Fatalf("the second batch is %+v", second)
	}
	b.Arrived(second.Seq, "two") // the store has begun anew, and has this one
	third := b.Out(10)
	if sum(third.Cells) != 1 {
		t.Fatalf("after the loss %+v is told, want what the first batch had", third)
	}
	b.Arrived(third.Seq, "two")
	if last := b.Out(10); len(last.Cells) != 0 || sum(b.All(0, math.MaxInt64)) != 3 {
		t.Fatalf("%+v is told, and %d are known; want nothing, and 3", last, sum(b.All(0, math.MaxInt64)))
	}
}

func BenchmarkAdd(b *testing.B) {
	book := New(false)
	book.Configure(map[Holder]Budget{{Name: "k"}: {Limit: Dollar}}, nil)
	b.ReportAllocs() // budget: 2 µs for a request in and out, no allocation
	for b.Loop() {
		book.Check(noon, "k", "")
		held, _ := book.Reserve(noon, Asked{Key: "k", Route: "r", Guess: 1})
		book.Book(Record{At: noon, Of: Of{Key: "k", Route: "r", Backend: "b", Model: "m"}, Sums: Sums{Requests: 1, Input: 100, Output: 100, Cost: 1}}, &held)
		book.Release(&held)
	}
}

// A key that is taken away and comes back within its period goes on in the store
// where it was: its reports have numbers that the store has not seen.
func TestABudgetThatComesBackIsReportedOn(t *testing.T) {
	b := New(true)
	h := Holder{Name: "k"}
	budgets := map[Holder]Budget{h: {Limit: 10 * Dollar}}
	b.Configure(budgets, nil)
	last, total := uint64(0), Money(0)
	exchange := func() {
		for _, s := range b.Report(noon) {
			if s.Seq > last {
				last, total = s.Seq, total+s.New
			}
			b.Answer(s, Told{Total: total, Allowance: 10*Dollar - total})
		}
	}
	for range 5 {
		b.Add(Record{At: noon, Of: Of{Key: "k"}, Sums: Sums{Cost: Dollar}})
		exchange()
	}
	b.Configure(nil, nil)
	b.Configure(budgets, nil)
	exchange()
	for range 3 {
		b.Add(Record{At: noon, Of: Of{Key: "k"}, Sums: Sums{Cost: Dollar}})
		exchange()
	}
	if total != 8*Dollar {
		t.Errorf("the store has %v USD, want 8", total.USD())
	}
}

// What a key spent is kept over a restart, also where the key is known only after
// what was kept is read, as those are that are handed out.
func TestSpendingOfAKeyThatIsKnownLater(t *testing.T) {
	budgets := map[Holder]Budget{{Name: "k"}: {Limit: 10 * Dollar}}
	before := New(false)
	before.Configure(budgets, nil)
	before.Add(Record{At: noon, Of: Of{Key: "k"}, Sums: Sums{Cost: 11 * Dollar}})

	b := New(false)
	b.Restore(before.Past())
	b.Configure(budgets, nil)
	if v := b.Check(noon.Add(time.Hour), "k", ""); !v.Exhausted {
		t.Errorf("a spent budget is whole again after a restart: %+v", b.States(noon.Add(time.Hour)))
	}
	if v := b.Check(noon.AddDate(0, 1, 0), "k", ""); v.Exhausted {
		t.Error("the budget of a month lasts into the next")
	}
}

// Cells that became too old to be told do not hold up those that come after them.
func TestToldTooLate(t *testing.T) {
	b := New(true)
	r := Record{At: noon, Of: Of{Key: "k"}, Sums: Sums{Requests: 1}}
	b.Add(r)
	b.Out(10)
	late := noon.AddDate(0, 3, 0)
	b.Forget(late)
	r.At = late
	b.Add(r)
	if out := b.Out(10); len(out.Cells) != 1 {
		t.Errorf("%d cells are told, want the one of now", len(out.Cells))
	}
}

// A clock that was ahead by a month and is put right: the month that runs goes on with
// what was spent of it. Requests that settle around midnight turn nothing back.
func TestAClockThatWasAhead(t *testing.T) {
	for _, sharing := range []bool{false, true} {
		b := New(sharing)
		holder := Holder{Name: "mobile"}
		b.Configure(map[Holder]Budget{holder: {Limit: 10 * Dollar}, {Team: true, Name: "apps"}: {Limit: 100 * Dollar, Per: Day}}, nil)
		spend := func(at time.Time, usd Money) {
			b.Add(Record{At: at, Of: Of{Key: "mobile", Team: "apps"}, Sums: Sums{Requests: 1, Cost: usd * Dollar}})
		}
		spent := func(at time.Time) (key, team float64) {
			states := b.States(at)
			return states[0].Spent.USD(), states[1].Spent.USD()
		}
		store := Money(0) // what it knows of the key in this month
		exchange := func(at time.Time) {
			if !sharing {
				return
			}
			for _, s := range b.Report(at) {
				if s.Holder == holder && s.Start.Equal(Month.Start(noon)) {
					store += s.New
					b.Answer(s, Told{Total: store, Allowance: max(10*Dollar-store, 0), Begun: "1"})
				}
			}
		}
		spend(noon, 4)
		exchange(noon)
		ahead := noon.AddDate(0, 1, 3)
		if b.Check(ahead, "mobile", "apps").Exhausted {
			t.Error("nothing was spent of the next month")
		}
		spend(ahead, 1)
		if key, team := spent(ahead); key != 1 || team != 1 {
			t.Errorf("sharing %v: a month ahead %v and %v USD are spent, want 1 and 1", sharing, key, team)
		}
		back := noon.Add(2 * time.Hour)
		b.Check(back, "mobile", "apps")
		exchange(back)
		if key, team := spent(back); key != 4 || team != 4 && !sharing {
			t.Errorf("sharing %v: back again %v and %v USD are spent, want 4 and 4", sharing, key, team)
		}
		spend(back, 6)
		if v := b.Check(back, "mobile", ""); !v.Exhausted || !v.State.Start.Equal(Month.Start(noon)) {
			t.Errorf("sharing %v: %+v, want the budget of November spent", sharing, v)
		}
		midnight := Day.End(Day.Start(back))
		b.Check(midnight, "mobile", "apps")
		spend(midnight.Add(-time.Microsecond), 7)
		spend(midnight.Add(time.Microsecond), 8)
		if _, team := spent(midnight); team != 15 {
			t.Errorf("sharing %v: %v USD of the new day, want 15: the period was not to turn back", sharing, team)
		}
	}
}

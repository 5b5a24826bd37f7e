package redisusage

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/share"
	"github.com/pacer-dev/pacer/usage"
)

var seeds = flag.Uint64("seeds", 64, "how many budgets are spent at random")

var holder = usage.Holder{Name: "mobile"}

// silence has it that those of names were last heard of so long before now, as the
// store remembers.
func silence(server *redistest.Server, d time.Duration, names ...string) {
	for _, key := range server.Do("KEYS", "*budget*").([]any) {
		if server.Do("TYPE", key) != "hash" {
			continue
		}
		for _, name := range names {
			for _, field := range []string{name, "@" + name} {
				var ms, second, third int64
				text, _ := server.Do("HGET", key, field).(string)
				if n, _ := fmt.Sscan(text, &ms, &second, &third); n == 3 {
					server.Do("HSET", key, field, fmt.Sprint(ms-d.Milliseconds(), " ", second, " ", third))
				}
			}
		}
	}
}

// replica is a gateway as far as it spends.
type replica struct {
	loop    *Loop
	book    *usage.Book
	running []running
}

// running is a request that was let in.
type running struct {
	cost usage.Money
	held usage.Reservation
}

func newReplica(t *testing.T, server *redistest.Server, name string, limit usage.Money) *replica {
	t.Helper()
	link := must.Get(share.NewLink(share.Options{Replicas: 3, Log: slog.New(slog.DiscardHandler)}))(t)
	r := &replica{book: usage.New(true)}
	r.book.Configure(map[usage.Holder]usage.Budget{holder: {Limit: limit, Per: usage.Month}}, nil)
	r.loop = must.Get(New(Options{Conn: server.Client(t), Replica: name, Book: r.book, Link: link, Log: slog.New(slog.DiscardHandler)}))(t)
	return r
}

func (r *replica) exchange(t *testing.T) {
	t.Helper()
	must.Do(t, r.loop.exchange(context.Background()))
}

// let lets a request in that will cost so much, if the budget has room. Nobody says what
// it costs at most, and what is guessed is wrong.
func (r *replica) let(cost usage.Money) bool {
	held, ruling := r.book.Reserve(time.Now(), usage.Asked{Key: holder.Name, Guess: usage.Dollar / 100})
	if ruling.Refuses() {
		return false
	}
	r.running = append(r.running, running{cost, held})
	return true
}

// settle ends the oldest request that runs and returns what it cost.
func (r *replica) settle() usage.Money {
	if len(r.running) == 0 {
		return 0
	}
	q := r.running[0]
	r.running = r.running[1:]
	r.book.Book(usage.Record{At: time.Now(), Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1, Cost: q.cost}}, &q.held)
	r.book.Release(&q.held)
	return q.cost
}

func (r *replica) costs() (sum usage.Money) {
	for _, q := range r.running {
		sum += q.cost
	}
	return sum
}

func (r *replica) known() usage.Money { return r.book.States(time.Now())[0].Spent }

// Of two replicas whose clocks are an hour ahead and an hour behind, each tells what the
// other one used.
func TestClocksTwoHoursApart(t *testing.T) {
	server := redistest.Start(t)
	ahead, behind := newReplica(t, server, "ahead", usage.Dollar), newReplica(t, server, "behind", usage.Dollar)
	for r, hours := range map[*replica]time.Duration{ahead: 2, behind: 0} { // as the one behind sees it
		r.book.Add(usage.Record{At: time.Now().Add(hours * time.Hour), Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1}})
		must.Do(t, r.loop.tell(t.Context(), 4))
	}
	now := usage.HourOf(time.Now())
	cells, err := behind.loop.Cells(t.Context(), now-3, now+6)
	var requests int64
	for _, c := range cells {
		requests += c.Requests
	}
	if err != nil || requests != 2 {
		t.Errorf("%d requests, %v; want both", requests, err)
	}
}

// However many replicas tell of what one key makes up, it has half of an hour's cells.
func TestOneKeyDoesNotFillAnHour(t *testing.T) {
	server := redistest.Start(t)
	const each = mostPerHour/2 - 100
	at := time.Now()
	for i, name := range []string{"one", "two", "three"} {
		r := newReplica(t, server, name, usage.Dollar)
		for tag := range each {
			r.book.Add(usage.Record{At: at, Of: usage.Of{Key: "crowd", Tags: fmt.Sprint(i, " ", tag)}, Sums: usage.Sums{Requests: 1}})
		}
		must.Do(t, r.loop.tell(t.Context(), 64))
	}
	r := newReplica(t, server, "four", usage.Dollar)
	own := usage.Of{Key: holder.Name, Tags: "proj=a"}
	r.book.Add(usage.Record{At: at, Of: own, Sums: usage.Sums{Requests: 1}})
	must.Do(t, r.loop.tell(t.Context(), 4))

	now := usage.HourOf(at)
	cells := must.Get(newReplica(t, server, "five", usage.Dollar).loop.Cells(t.Context(), now-1, now+2))(t)
	apart, requests, found := 0, int64(0), false
	for _, c := range cells {
		requests += c.Requests
		found = found || c.Of == own
		if c.Key == "crowd" && c.Tags != usage.Other {
			apart++
		}
	}
	if requests != 3*each+1 || !found || apart > mostPerHour/2 {
		t.Errorf("%d requests, want %d; %d cells of the crowd, want at most %d; that of another key is there: %v", requests, 3*each+1, apart, mostPerHour/2, found)
	}
}

// Where there are no keys all of an hour's cells are told apart.
func TestWithoutKeysNothingIsHalved(t *testing.T) {
	r := newReplica(t, redistest.Start(t), "one", usage.Dollar)
	at := time.Now()
	for tag := range mostPerHour {
		r.book.Add(usage.Record{At: at, Of: usage.Of{Tags: fmt.Sprint(tag)}, Sums: usage.Sums{Requests: 1}})
	}
	must.Do(t, r.loop.tell(t.Context(), 64))
	now := usage.HourOf(at)
	cells := must.Get(r.loop.Cells(t.Context(), now-1, now+2))(t)
	if len(cells) != mostPerHour {
		t.Errorf("%d cells are told apart, want %d", len(cells), mostPerHour)
	}
}

// prices are what requests cost in one run of the test below.
var prices = []func(rnd *rand.Rand) usage.Money{
	func(*rand.Rand) usage.Money { return usage.Dollar / 2 },
	func(rnd *rand.Rand) usage.Money { return usage.Money(1 + rnd.Int64N(int64(usage.Dollar))) },
	func(rnd *rand.Rand) usage.Money { return usage.Dollars(0.3 * rnd.ExpFloat64()) },
	func(rnd *rand.Rand) usage.Money { // a tenth costs twenty times more
		if rnd.IntN(10) == 0 {
			return 2 * usage.Dollar
		}
		return usage.Dollar / 10
	},
}

// A budget of three replicas on a real Redis that is emptied again and again, or cannot be
// reached, while replicas are killed and others take their places: what they know is what was
// spent, to the last billionth, nobody was let in past the limit but what was running at one
// time, and all of it can be spent. The one that is killed has told what it spent, and somebody
// has heard it; what it had not is in no sum (decision 51).
func TestABudgetOutlivesAnEmptiedRedis(t *testing.T) {
	server := redistest.Start(t)
	seeds := *seeds
	if racetest.On {
		seeds = min(seeds, 16)
	}
	worst := 0.0
	for seed := range seeds {
		over, most := spendAll(t, server, seed)
		worst = max(worst, float64(over)/float64(most))
		if over > most {
			t.Errorf("seed %d: %.3f USD over the limit, at most %.3f were running", seed, over.USD(), most.USD())
		}
	}
	t.Logf("%d budgets were passed by at most %.0f %% of what was running", seeds, 100*worst)
}

// spendAll spends a budget to its end and returns by how much it was passed, and what ran
// at most at one time.
func spendAll(t *testing.T, server *redistest.Server, seed uint64) (over, most usage.Money) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	price := prices[seed%uint64(len(prices))]
	limit := []usage.Money{40, 40, 4, 1}[seed/4%4] * usage.Dollar
	server.Do("FLUSHALL")
	replicas := make([]*replica, 3)
	for i := range replicas {
		replicas[i] = newReplica(t, server, fmt.Sprintf("%04x%d", seed, i), limit)
		replicas[i].exchange(t)
	}
	var spent usage.Money
	var dead []string
	down, refused := 0, 0
	for step := 0; refused < 60 && step < 20_000; step++ {
		r := replicas[rnd.IntN(len(replicas))]
		down--
		switch n := rnd.IntN(200); {
		case n < 60:
			if down <= 0 {
				r.exchange(t)
			}
		case n < 130 && len(r.running) < 4:
			if r.let(price(rnd)) {
				refused = 0
			} else if down <= 0 {
				refused++ // of those alone who could know better
			}
		case n < 196:
			spent += r.settle()
		case n == 196 && step < 2000:
			server.Do("FLUSHALL")
		case n == 197 && step < 2000:
			down = rnd.IntN(60)
		case n == 198 && step < 2000 && down <= 0: // it is killed, and another one starts
			for _, r := range replicas { // what nobody has heard is lost with Redis
				r.exchange(t)
			}
			for _, r := range replicas {
				r.exchange(t)
			}
			i := rnd.IntN(len(replicas))
			dead = append(dead, replicas[i].loop.o.Replica)
			replicas[i] = newReplica(t, server, fmt.Sprintf("%04x%d%d", seed, i, step), limit)
			replicas[i].exchange(t)
			silence(server, 2*partExpiry, dead...)
			if rnd.IntN(2) == 0 { // in a day all others have exchanged
				for _, r := range append(replicas, replicas...) {
					r.exchange(t)
				}
				silence(server, 25*time.Hour, dead...)
			}
		}
		most = max(most, replicas[0].costs()+replicas[1].costs()+replicas[2].costs())
	}
	for _, r := range replicas {
		for len(r.running) > 0 {
			spent += r.settle()
		}
	}
	for range 2 {
		for _, r := range replicas {
			r.exchange(t)
		}
	}
	for i, r := range replicas {
		if got := r.known(); got != spent {
			t.Errorf("seed %d: replica %d knows of %.9f USD, want %.9f", seed, i, got.USD(), spent.USD())
		}
	}
	if spent < limit {
		t.Errorf("seed %d: %.3f of %.3f USD are spent, and nobody is let in", seed, spent.USD(), limit.USD())
	}
	return spent - limit, most
}

// The first replica that comes to an emptied Redis gets no more than it held, though
// it sees nobody else.
func TestTheFirstToAnEmptiedRedisGetsItsPart(t *testing.T) {
	server := redistest.Start(t)
	const limit = 90 * usage.Dollar
	var replicas []*replica
	for i := range 3 {
		replicas = append(replicas, newReplica(t, server, fmt.Sprint(i), limit))
		replicas[i].exchange(t)
	}
	spend := func(r *replica) (n int) {
		for r.let(usage.Dollar) {
			r.settle()
			n++
		}
		return n
	}
	replicas[0].let(usage.Dollar)
	replicas[0].settle()
	for range 2 {
		for _, r := range replicas {
			r.exchange(t)
		}
	}
	server.Do("FLUSHALL")
	replicas[0].exchange(t)
	alone := spend(replicas[0])
	if alone > 31 {
		t.Errorf("it spends %d USD of 89, want its third", alone)
	}
	young := newReplica(t, server, "young", limit) // before the others have come
	young.exchange(t)
	sum := 1 + alone + spend(young)
	for _, r := range replicas[1:] {
		sum += spend(r)
	}
	if sum > 90+30 { // the young one could not know what the two others hold
		t.Errorf("%d USD of 90 are spent", sum)
	}
	for range 2 {
		for _, r := range append(replicas, young) {
			r.exchange(t)
		}
	}
	if got := young.known().USD(); got != float64(sum) {
		t.Errorf("%v USD are known, want %d", got, sum)
	}
}

// A replica that was never told of anything spent gets no more than it held either: the
// others have spent since, and Redis has lost what they told.
func TestTheFirstToAnEmptiedRedisMayKnowOfNothingSpent(t *testing.T) {
	server := redistest.Start(t)
	all := trio(t, server, 90*usage.Dollar)
	sum := 0
	for _, r := range all[1:] {
		sum += spendHere(t, r, 1)
	}
	server.Do("FLUSHALL")
	sum += spendHere(t, all[0], 3)
	for range 12 {
		for _, r := range all {
			sum += spendHere(t, r, 1)
		}
	}
	if sum != 90 {
		t.Errorf("%d USD of 90 are spent", sum)
	}
}

// spendHere has r spend as much as it may, a dollar at a time, and tells it.
func spendHere(t *testing.T, r *replica, rounds int) (n int) {
	t.Helper()
	for range rounds {
		for r.let(usage.Dollar) {
			r.settle()
			n++
		}
		r.exchange(t)
	}
	return n
}

// trio are three replicas of one budget, each of which has its part.
func trio(t *testing.T, server *redistest.Server, limit usage.Money) (all []*replica) {
	t.Helper()
	for i := range 3 {
		all = append(all, newReplica(t, server, fmt.Sprint(i), limit))
		all[i].exchange(t)
	}
	for _, key := range server.Do("KEYS", "*budget*").([]any) { // an hour ago
		server.Do("HSET", key, "@begun", fmt.Sprint(time.Now().Add(-2*time.Hour).UnixMilli(), " ", time.Now().Add(-time.Hour).UnixMicro(), " 0"))
	}
	for range 3 {
		for _, r := range all {
			r.exchange(t)
		}
	}
	return all
}

// What a replica holds that is killed is the others' after partExpiry, and not before; what
// one holds that ends is theirs at once.
func TestWhatADeadReplicaHolds(t *testing.T) {
	for _, killed := range []bool{true, false} {
		server := redistest.Start(t)
		all := trio(t, server, 90*usage.Dollar)
		a, b, c := all[0], all[1], all[2]
		if !killed {
			b.loop.ends = true
			b.exchange(t)
		}
		spend := func() (n int) {
			for range 30 {
				n += spendHere(t, a, 1)
				c.exchange(t)
			}
			return n
		}
		before := spend()
		silence(server, partExpiry-time.Second, "1")
		before += spend()
		silence(server, 2*partExpiry, "1")
		after := spend()
		if killed && (before < 55 || before > 61 || before+after != 90) {
			t.Errorf("killed: %d USD are spent at once and %d later, want 60 of 90, and what the dead one held later", before, after)
		}
		if !killed && before != 90 {
			t.Errorf("ended: %d USD are spent at once and %d later, want 90 at once", before, after)
		}
	}
}

// When nobody could reach Redis for a while, the first one that comes back leaves the others
// what they hold.
func TestAfterAnOutageOthersHoldTheirParts(t *testing.T) {
	server := redistest.Start(t)
	all := trio(t, server, 90*usage.Dollar)
	sum := 0
	silence(server, 2*partExpiry, "0", "1", "2")
	for _, r := range all {
		r.loop.cutOff = true
	}
	for range 5 {
		sum += spendHere(t, all[0], 1)
	}
	for _, r := range all[1:] { // they are not back, and spend what they hold
		for r.let(usage.Dollar) {
			r.settle()
			sum++
		}
	}
	if sum > 90 {
		t.Errorf("%d USD of 90 are spent", sum)
	}
	for range 20 {
		for _, r := range all {
			sum += spendHere(t, r, 1)
		}
	}
	if sum != 90 {
		t.Errorf("%d USD of 90 are spent at last, want all", sum)
	}
}

// A budget that is smaller than what its requests may cost is spent to its end, one request
// at a time, and by each replica that is asked.
func TestATinyBudgetIsEverybodys(t *testing.T) {
	server := redistest.Start(t)
	const limit = usage.Dollar
	all := trio(t, server, limit)
	const cost = limit / 100
	ask := func(r *replica) bool { // its client says that it may cost 50 times as much
		held, v := r.book.Reserve(time.Now(), usage.Asked{Key: holder.Name, Most: limit / 2, Guess: limit / 2})
		if v.Refuses() {
			return false
		}
		r.book.Book(usage.Record{At: time.Now(), Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1, Cost: cost}}, &held)
		r.book.Release(&held)
		return true
	}
	served := make([]int, len(all))
	sum, rounds := 0, 0
	for ; rounds < 2000 && sum < 100; rounds++ {
		for i, r := range all {
			if ask(r) {
				served[i]++
				sum++
			}
			r.exchange(t)
		}
	}
	t.Logf("%v are served in %d rounds", served, rounds)
	if sum != 100 || min(served[0], served[1], served[2]) < 10 {
		t.Errorf("%v of 100 are served after %d rounds, want all, and some of each replica", served, rounds)
	}
}

// What a replica has spent that has been silent for days is in the sum all the same
// when Redis is lost, also where nobody lives that knew it, and the first one to come is
// new.
func TestABudgetOutlivesThoseWhoSpentIt(t *testing.T) {
	server := redistest.Start(t)
	const limit = 90 * usage.Dollar
	spend := func(r *replica, times int) {
		for range times {
			if !r.let(usage.Dollar) {
				t.Fatal("the budget has ended")
			}
			r.settle()
		}
		r.exchange(t)
	}
	old := newReplica(t, server, "old", limit)
	old.exchange(t)
	spend(old, 20)
	var last *replica
	for i := range 4 { // one day each, and the one before is gone
		name := fmt.Sprint("day", i)
		last = newReplica(t, server, name, limit)
		last.exchange(t)
		spend(last, 3)
		silence(server, 25*time.Hour, "old", fmt.Sprint("day", i-1))
		last.exchange(t)
	}
	if got := last.known(); got != 32*usage.Dollar {
		t.Fatalf("%v USD are known, want 32", got.USD())
	}
	for _, key := range server.Do("KEYS", "*budget*").([]any) {
		if ttl := server.Do("PTTL", key).(int64); ttl <= 0 {
			t.Errorf("%s lives for ever", key)
		}
	}
	server.Do("FLUSHALL")
	young := newReplica(t, server, "young", limit)
	young.exchange(t)
	for range 2 {
		last.exchange(t)
		young.exchange(t)
	}
	for name, r := range map[string]*replica{"the last one": last, "a new one": young} {
		if got := r.known(); got != 32*usage.Dollar {
			t.Errorf("%s knows of %v USD, want 32", name, got.USD())
		}
	}
}

// A replica that was cut off for a day tells what was not answered again; the store had
// it, and counts it once.
func TestAReportIsCountedOnceADayLater(t *testing.T) {
	server := redistest.Start(t)
	a, b := newReplica(t, server, "a", 90*usage.Dollar), newReplica(t, server, "b", 90*usage.Dollar)
	a.exchange(t)
	b.exchange(t)
	a.let(usage.Dollar)
	a.settle()
	must.Get(a.loop.o.Conn.Run(t.Context(), a.loop.spend, a.loop.calls(a.book.Report(time.Now()), 2, false)...))(t) // and the answer is lost
	silence(server, 25*time.Hour, "a")
	b.exchange(t)
	a.exchange(t)
	a.let(2 * usage.Dollar)
	a.settle()
	for range 2 {
		a.exchange(t)
		b.exchange(t)
	}
	if x, y := a.known(), b.known(); x != 3*usage.Dollar || y != x {
		t.Errorf("%v and %v USD are known, want 3", x.USD(), y.USD())
	}
}

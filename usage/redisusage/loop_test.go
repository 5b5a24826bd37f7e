package redisusage

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/share"
	"github.com/pacer-dev/pacer/usage"
)

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
	running []usage.Money
}

func newReplica(t *testing.T, server *redistest.Server, name string, limit usage.Money) *replica {
	t.Helper()
	conn, err := redisconn.Open(redisconn.Options{
		Store: config.Store{Addrs: []string{server.Addr}, Prefix: "pacer"}, IOTimeout: 20 * time.Second,
		MinBackoff: time.Nanosecond, MaxBackoff: time.Nanosecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	link, err := share.NewLink(share.Options{Replicas: 3, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{book: usage.New(true)}
	r.book.Configure(map[usage.Holder]usage.Budget{holder: {Limit: limit, Per: usage.Month}}, nil)
	if r.loop, err = New(Options{Conn: conn, Replica: name, Book: r.book, Link: link, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *replica) exchange(t *testing.T) {
	t.Helper()
	if err := r.loop.exchange(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// let lets a request in that will cost so much, if the budget has room.
func (r *replica) let(cost usage.Money) bool {
	if r.book.Check(time.Now(), holder.Name, "").Exhausted {
		return false
	}
	r.running = append(r.running, cost)
	return true
}

// settle ends the oldest request that runs and returns what it cost.
func (r *replica) settle() usage.Money {
	if len(r.running) == 0 {
		return 0
	}
	cost := r.running[0]
	r.running = r.running[1:]
	r.book.Add(usage.Record{At: time.Now(), Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1, Cost: cost}})
	return cost
}

func (r *replica) known() usage.Money { return r.book.States(time.Now())[0].Spent }

// Of two replicas whose clocks are an hour ahead and an hour behind, each tells what the
// other one used.
func TestClocksTwoHoursApart(t *testing.T) {
	server := redistest.Start(t)
	ahead, behind := newReplica(t, server, "ahead", usage.Dollar), newReplica(t, server, "behind", usage.Dollar)
	for r, hours := range map[*replica]time.Duration{ahead: 2, behind: 0} { // as the one behind sees it
		r.book.Add(usage.Record{At: time.Now().Add(hours * time.Hour), Of: usage.Of{Key: holder.Name}, Sums: usage.Sums{Requests: 1}})
		if err := r.loop.tell(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
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

// A budget of three replicas on a real Redis that is emptied again and again, while
// one of them is killed and another one takes its place: what they know is what was
// spent, to the last billionth, and nobody was let in past the limit but what was
// running. The one that is killed has told what it spent, and somebody has heard it;
// what it had not is in no sum (decision 51).
func TestABudgetOutlivesAnEmptiedRedis(t *testing.T) {
	server := redistest.Start(t)
	month, ended := usage.Month.Start(time.Now()), 0
	seeds := uint64(40)
	if racetest.On {
		seeds = 8
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 1))
		const limit = 40 * usage.Dollar
		server.Do("FLUSHALL")
		replicas := make([]*replica, 3)
		for i := range replicas {
			replicas[i] = newReplica(t, server, fmt.Sprintf("%04x%d", seed, i), limit)
			replicas[i].exchange(t)
		}
		var spent usage.Money
		var dead []string
		most := usage.Money(0) // that ran at once
		for step := range 900 {
			r := replicas[rnd.IntN(len(replicas))]
			switch n := rnd.IntN(100); {
			case n < 30:
				r.exchange(t)
			case n < 65 && len(r.running) < 4:
				r.let(usage.Money(1 + rnd.Int64N(int64(usage.Dollar))))
			case n < 98:
				spent += r.settle()
			case n == 98:
				server.Do("FLUSHALL")
			case step < 600: // it is killed, and another one starts
				r.exchange(t)
				i := rnd.IntN(len(replicas))
				replicas[i].exchange(t)
				replicas[(i+1)%3].exchange(t) // what nobody has heard is lost with Redis
				dead = append(dead, replicas[i].loop.o.Replica)
				replicas[i] = newReplica(t, server, fmt.Sprintf("%04x%d%d", seed, i, step), limit)
				replicas[i].exchange(t)
				if rnd.IntN(2) == 0 { // in a day all others have exchanged
					for _, r := range append(replicas, replicas...) {
						r.exchange(t)
					}
					silence(server, 25*time.Hour, dead...)
				}
			}
			var running usage.Money
			for _, r := range replicas {
				for _, cost := range r.running {
					running += cost
				}
			}
			most = max(most, running)
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
		if spent >= limit {
			ended++
		}
		if over := spent - limit; over > most {
			t.Errorf("seed %d: %.3f USD over the limit, at most %.3f were running", seed, over.USD(), most.USD())
		}
	}
	if month == usage.Month.Start(time.Now()) && ended == 0 {
		t.Error("no budget came to its end: nothing was tried")
	}
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
	if _, err := a.loop.run(t.Context(), a.loop.spend, a.loop.calls(a.book.Report(time.Now()), 2, false)); err != nil {
		t.Fatal(err)
	} // and the answer is lost
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

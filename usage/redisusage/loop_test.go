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
				replicas[i] = newReplica(t, server, fmt.Sprintf("%04x%d%d", seed, i, step), limit)
				replicas[i].exchange(t)
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

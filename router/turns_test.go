package router

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func tenant(name string) func(*Request) { return func(r *Request) { r.Tenant = name } }

// spacious is full, with a long line.
func spacious(tb testing.TB) (*bench, []*Lease) {
	return full(tb, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(time.Minute)})
}

// A thousand requests of one tenant put another's first one off by one grant.
func TestTenantsTakeTurns(t *testing.T) {
	b, leases := spacious(t)
	for range usualMaxWaiting - 2 {
		b.stand("chat", tenant("flood"), waiter("flood"))
		b.sleep(time.Microsecond)
	}
	b.stand("chat", tenant("b"), waiter("b1"))
	b.stand("chat", tenant("b"), waiter("b2"))
	served := func() any {
		b.sleep(time.Millisecond)
		grants := leases[0].Done(b.now, 100)
		if len(grants) != 1 || grants[0].Decision.Lease == nil {
			t.Fatalf("one place came free, grants %+v", grants)
		}
		leases[0] = grants[0].Decision.Lease
		return grants[0].Waiter
	}
	var got []any
	for range 3 {
		got = append(got, served())
	}
	b.stand("chat", tenant("c"), waiter("c1")) // has b2's and flood's turn before it
	for range 5 {
		got = append(got, served())
	}
	if want := []any{"flood", "b1", "flood", "b2", "flood", "c1", "flood", "flood"}; !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
}

// Who asks for more than there is keeps the turn, and holds up nobody but the
// own tenant.
func TestATenantHoldsUpNobodyElse(t *testing.T) {
	b, leases := spacious(t)
	b.stand("chat", tenant("big"), waiter("big"), sequences(3))
	b.stand("chat", tenant("big"), waiter("behind"))
	b.stand("chat", tenant("as big"), waiter("as big"), sequences(3))
	b.stand("chat", tenant("small"), waiter("small"))
	b.wantGrants(leases[0].Done(b.now, 100), "small")
	b.wantGrants(leases[1].Done(b.now, 100))
	small := b.backends[0].groups[0].own.unserved.back
	b.wantGrants(leases[2].Done(b.now, 100))
	b.wantGrants(small.Done(b.now, 100), "big") // all three places
}

// The line is never longer than allowed, and still no tenant can keep another
// out of it.
func TestAFullLineHasRoomForOtherTenants(t *testing.T) {
	b, leases := full(t) // a line of 5
	var flood []*Ticket
	for i := range 5 {
		flood = append(flood, b.stand("chat", tenant("flood"), waiter(fmt.Sprint("flood ", i))))
	}
	b.wantRefusal(b.place("chat", tenant("flood")), ShedQueueFull)
	b.stand("chat", tenant("b"), waiter("b 0"))
	b.stand("chat", tenant("b"), waiter("b 1"))
	b.wantRefusal(b.place("chat", tenant("b")), ShedQueueFull) // it would have as many as flood
	if got := b.Routes(b.now)[0].Waiting; got != 5 {
		t.Errorf("%d wait, want 5", got)
	}
	grants := b.tick()
	if len(grants) != 2 || grants[0].Ticket != flood[4] || grants[1].Ticket != flood[3] {
		t.Fatalf("grants %+v, want the last two of the flood", grants)
	}
	for _, g := range grants {
		b.wantRefusal(g.Decision, ShedQueueFull)
		if d := g.Ticket.Expire(b.now); d.Refusal != g.Decision.Refusal {
			t.Error("expiring after the grant gives another answer")
		}
	}
	if again := b.tick(); len(again) != 0 {
		t.Errorf("told twice: %+v", again)
	}
	b.wantGrants(leases[0].Done(b.now, 100), "flood 0")
	b.wantGrants(leases[1].Done(b.now, 100), "b 0")
	b.wantGrants(leases[2].Done(b.now, 100), "flood 1")
}

// Of the same demands: within a tenant the earliest deadline is first, and
// between tenants nobody gets two places while another waits all the time.
func TestTurnsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(nil, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: time.Hour}, OnInfeasible: queue(time.Hour), MaxWaiting: 40})
		b.learn("x", carrying(3, 30, 40))
		running := b.fill("chat", 3, tenant("first"))
		waiting := map[string][]*Ticket{}
		passed := map[string]map[string]int{} // grants to one while another waits, since that one's last
		order := map[*Ticket]int{}            // of joining
		granted := func(tk *Ticket, l *Lease) {
			name := tk.req.Tenant
			for _, other := range waiting[name] {
				if other.deadline.Before(tk.deadline) || other.deadline.Equal(tk.deadline) && order[other] < order[tk] {
					t.Fatalf("%s: served %v before %v", name, tk.deadline, other.deadline)
				}
			}
			i := slices.Index(waiting[name], tk)
			waiting[name] = slices.Delete(waiting[name], i, i+1)
			passed[name] = map[string]int{}
			for other, list := range waiting {
				if other == name || len(list) == 0 {
					continue
				}
				if passed[other][name]++; passed[other][name] > 1 {
					t.Fatalf("%s got two places while %s waited", name, other)
				}
			}
			running = append(running, l)
		}
		settle := func(grants []Grant) {
			for _, g := range grants {
				if g.Decision.Lease != nil {
					granted(g.Ticket, g.Decision.Lease)
					continue
				}
				list := waiting[g.Ticket.req.Tenant]
				i := slices.Index(list, g.Ticket) // displaced: the last of the longest
				if i < 0 || slices.ContainsFunc(list, func(o *Ticket) bool { return o.deadline.After(g.Ticket.deadline) }) {
					t.Fatalf("displaced %v of %d", g.Ticket.deadline, len(list))
				}
				waiting[g.Ticket.req.Tenant] = slices.Delete(list, i, i+1)
			}
		}
		for range rapid.IntRange(50, 200).Draw(t, "events") {
			b.sleep(time.Millisecond)
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant")
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1, 2:
				deadline := time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute
				d := b.place("chat", tenant(name), ttft(deadline))
				if d.Lease != nil {
					running = append(running, d.Lease)
				}
				if d.Ticket != nil {
					order[d.Ticket] = len(order)
					if len(waiting[name]) == 0 {
						passed[name] = map[string]int{}
					}
					waiting[name] = append(waiting[name], d.Ticket)
				}
				settle(b.tick()) // who was displaced, if somebody was
			case 3, 4:
				if len(running) > 0 {
					l := running[0]
					running = running[1:]
					settle(l.Done(b.now, 10))
				}
			case 5:
				if list := waiting[name]; len(list) > 0 {
					i := rapid.IntRange(0, len(list)-1).Draw(t, "i")
					tk := list[i]
					waiting[name] = slices.Delete(slices.Clone(list), i, i+1)
					settle(tk.Cancel(b.now))
				}
			}
			count := 0
			for name, list := range waiting {
				count += len(list)
				if own := b.routes[0].lines[Interactive].fresh.tenants[name]; (own != nil) != (len(list) > 0) || own != nil && len(own.tickets) != len(list) {
					t.Fatalf("%s: the line does not have its %d", name, len(list))
				}
			}
			if q := &b.routes[0].lines[Interactive]; q.len() != count || b.lines.waiting != count || count > 40 {
				t.Fatalf("%d in line, %d counted, want %d", q.len(), b.lines.waiting, count)
			}
		}
	})
}

// Who had to make room is told although nobody waits any more.
func TestTheDisplacedAreToldAlthoughNobodyWaits(t *testing.T) {
	b, _ := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(time.Minute), MaxWaiting: 3})
	var flood []*Ticket
	for range 3 {
		flood = append(flood, b.stand("chat", tenant("flood")))
	}
	short := b.stand("chat", tenant("b"))
	for _, tk := range append(flood[:2:2], short) {
		tk.Expire(b.now)
	}
	if b.NextWake(b.now).IsZero() {
		t.Error("one was displaced, and nobody would ever tell him")
	}
	if grants := b.tick(); len(grants) != 1 || grants[0].Ticket != flood[2] {
		t.Errorf("grants %+v", grants)
	}
	if !b.NextWake(b.now).IsZero() {
		t.Error("a wake for nobody")
	}
}

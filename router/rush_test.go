package router

import (
	"testing"
	"time"
)

// On the last target with room as many of twenty replicas take a place as of four. Who is
// told of the others again has another chance, a place that a stream of one's own has left
// is taken at once, and who may not wait takes one.
func TestManyReplicasDoNotRunAfterOnePlace(t *testing.T) {
	for _, c := range []struct{ replicas, least, most int }{{4, 400, 400}, {20, 50, 110}, {400, 1, 12}} {
		b := newBench(t, []string{"x", "y"}, chatQueue())
		b.learn("x", carrying(32, 30, 60))
		b.learn("y", carrying(32, 30, 60))
		b.fill("chat", 2)
		told := RemoteLoad{Replicas: c.replicas, ByBackend: map[string]Load{"x": {Decoding: 32, Floor: 30}, "y": {Decoding: 20, Floor: 30}}}
		taken := 0
		for range 400 {
			b.Update(b.now, told)
			if d := b.place("chat"); d.Lease != nil {
				taken++
				d.Lease.Done(b.now, 10)
			} else {
				d.Ticket.Cancel(b.now)
			}
		}
		t.Logf("%d of 400 times one of %d replicas takes a place", taken, c.replicas)
		if taken < c.least || taken > c.most {
			t.Errorf("%d of 400 times one of %d replicas takes a place, want %d to %d", taken, c.replicas, c.least, c.most)
		}
	}
}

// Nobody is refused beside free places for the sake of other replicas: who cannot wait,
// or not any longer, takes one, and where there is one for all nobody waits.
func TestLeavingAPlaceRefusesNobody(t *testing.T) {
	queue := chatQueue()
	shed, effort, spill := queue, queue, queue
	shed.OnInfeasible = []Step{{Kind: Shed}}
	effort.OnInfeasible = []Step{{Kind: BestEffort}}
	spill.OnInfeasible = []Step{{Kind: Spill, Route: "small"}}
	for _, c := range []struct {
		name    string
		route   Route
		others  int
		waiting bool
	}{
		{"room for all", queue, 2, false},
		{"it can wait", queue, 22, true},
		{"it would be refused", shed, 22, false},
		{"it would lose its floor", effort, 22, false},
		{"it would be sent elsewhere", spill, 22, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, c.route, Route{Name: "small"})
			b.learn("x", carrying(32, 30, 60))
			b.Update(b.now, RemoteLoad{Replicas: 20, ByBackend: map[string]Load{"x": {Decoding: c.others, Floor: 30}}})
			b.rush.luck = 0.99
			d := b.place("chat")
			if (d.Ticket != nil) != c.waiting || d.Lease != nil && (d.Lease.Target().Backend != "x" || d.Lease.floor <= 0) || d.Refusal != nil {
				t.Fatalf("got %+v, want to wait: %v, else a place with its floor", d, c.waiting)
			}
			if c.waiting {
				if d = d.Ticket.Expire(d.Ticket.Deadline()); d.Lease == nil {
					t.Errorf("it is refused at the end of its wait: %+v", d)
				}
			}
		})
	}
}

func TestAPlaceOfOnesOwnIsTaken(t *testing.T) {
	b := newBench(t, []string{"x"}, chatQueue())
	b.learn("x", carrying(32, 30, 60))
	mine := b.fill("chat", 1)
	b.Update(b.now, RemoteLoad{Replicas: 400, ByBackend: map[string]Load{"x": {Decoding: 31, Floor: 30}}})
	b.rush.luck = 0.99
	d := b.place("chat")
	if d.Ticket == nil {
		t.Fatalf("placed on a full target: %+v", d)
	}
	if grants := mine[0].Done(b.now, 10); len(grants) != 1 {
		t.Errorf("%d go when a stream of this replica ends, want 1", len(grants))
	}
	b.Update(b.now, RemoteLoad{Replicas: 400, ByBackend: map[string]Load{"x": {Decoding: 20, Floor: 30}}})
	b.rush.luck = 0.99
	if d := b.place("chat"); d.Lease != nil {
		t.Error("it takes a place before the others, without luck")
	}
	b.now = b.now.Add(time.Minute)
	if d := b.place("chat", func(r *Request) { r.NoQueue = true }); d.Lease == nil {
		t.Error("who may not wait is refused, and there is room")
	}
}

// Where many have room, each replica chooses among some of them.
func TestManyReplicasSpread(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for replicas, want := range map[int]int{4: 2, 20: 6} {
		b := newBench(t, names)
		load := map[string]Load{}
		for i, name := range names {
			b.learn(name, carrying(32, 30, 60))
			load[name] = Load{Decoding: 2 + 2*i, Floor: 30}
		}
		b.Update(b.now, RemoteLoad{Replicas: replicas, ByBackend: load})
		seen := map[string]int{}
		for range 300 {
			l := b.place("chat").Lease
			seen[l.Target().Backend]++
			l.Done(b.now, 10)
		}
		if t.Logf("%d replicas: %v", replicas, seen); len(seen) < want || replicas == 4 && len(seen) > want {
			t.Errorf("one of %d replicas chooses %v, want %d targets", replicas, seen, want)
		}
		if seen["a"] < 75 {
			t.Errorf("the emptiest is chosen %d of 300 times", seen["a"])
		}
	}
}

package router

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What is called free is what Place takes, one request after the other.
func TestFreeIsWhatPlaceTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"x", "y", "z"}
		class := rapid.SampledFrom([]Class{Interactive, Batch}).Draw(t, "class")
		chat := Route{Name: "chat", SLO: SLO{MinTPS: rapid.SampledFrom([]float64{0, 20, 30}).Draw(t, "floor")}, Class: class, Reserve: 1}
		if rapid.Bool().Draw(t, "in time") {
			chat.SLO.MaxTTFT = 2 * time.Second
		}
		other := Route{Name: "other", SLO: SLO{MinTPS: rapid.SampledFrom([]float64{0, 25, 40}).Draw(t, "other floor")}}
		b := newBench(nil, names, chat, other)
		for i := range b.topo.Backends {
			if rapid.IntRange(0, 3).Draw(t, "capped") == 0 {
				b.topo.Backends[i].MaxConcurrency = rapid.IntRange(1, 20).Draw(t, "cap")
			}
		}
		b.configure()
		for _, name := range names {
			if rapid.IntRange(0, 2).Draw(t, "known") > 0 {
				c := carrying(rapid.IntRange(2, 40).Draw(t, "carries"), 30, 60)
				if rapid.Bool().Draw(t, "seen") {
					c.visited = rapid.IntRange(1, 30).Draw(t, "visited")
				}
				if rapid.Bool().Draw(t, "slots") {
					c.first.PerToken, c.first.Uncached = 1e-4, 1
					c.first.Slots, c.first.Turnover = rapid.IntRange(1, 20).Draw(t, "slots"), 2
				}
				b.learn(name, c)
			}
			b.health(name, rapid.SampledFrom([]Health{Up, Up, Up, Up, Down, Draining}).Draw(t, "health"))
		}
		b.fill("other", rapid.IntRange(0, 20).Draw(t, "others"))
		s := b.Routes(b.now)[0]
		if s.Unlimited {
			if got := len(b.fill("chat", 2000)); got != 2000 || s.Free != 0 || s.FreeLowerBound {
				t.Fatalf("%d were placed, and there was no limit (%+v)", got, s)
			}
			return
		}
		if got := len(b.fill("chat", s.Free+1)); got != s.Free {
			t.Fatalf("%d were placed, %d were free", got, s.Free)
		}
		if again := b.Routes(b.now)[0]; again.Free != 0 || again.Unlimited {
			t.Fatalf("%d are free when nobody is placed", again.Free)
		}
	})
}

func TestFreeWithoutAFloor(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "any"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	want := func(route, free int, unlimited bool) {
		t.Helper()
		if s := b.Routes(b.now)[route]; s.Free != free || s.Unlimited != unlimited {
			t.Errorf("%s: free %d, unlimited %v; want %d, %v", s.Route.Name, s.Free, s.Unlimited, free, unlimited)
		}
	}
	want(0, 0, true)
	want(1, slowStartCap, false) // unknown: what slow start takes
	b.learn("x", carrying(20, 30, 60))
	want(0, 0, true)
	want(1, 20, false)
	b.fill("chat", 5)
	want(0, 15, false) // whoever runs there keeps the floor
	b.topo.Backends[0].MaxConcurrency = 9
	b.configure()
	want(0, 4, false)
	b.health("x", Probing)
	want(0, 1, false)
	b.health("x", Down)
	want(0, 0, false)
}

// A capacity is no more than the engine runs at once, also where twice what was seen bounds
// it: by the rules it has no end, since who waits for his prefill does not decode.
func TestACapacityIsWithinTheSlots(t *testing.T) {
	for slots, want := range map[int]int{0: 16, 30: 16, 12: 12} {
		b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Minute}})
		c := form{a: 1.0 / 120, b: 1e-5, visited: 8, d: 1e-6, answer: 28}
		c.first.Slots, c.first.Turnover = slots, 2
		b.learn("x", c)
		leases := b.fill("chat", 2, prompt(1000))
		b.sleep(200 * time.Millisecond)
		b.run(leases, c.TPS(2), 5*time.Second)
		if room := b.Routes(b.now)[0].Targets[0]; room.Capacity != want || room.CapacityLowerBound == (slots == want) {
			t.Errorf("%d slots: a capacity of %d, lower bound %v; want %d", slots, room.Capacity, room.CapacityLowerBound, want)
		}
	}
}

// Nobody is free to come while others wait.
func TestNothingIsFreeBehindALine(t *testing.T) {
	b, leases := full(t)
	b.stand("chat", sequences(2))
	leases[0].Done(b.now, 100)
	if s := b.Routes(b.now)[0]; s.Free != 0 || s.Waiting != 1 {
		t.Errorf("free %d with %d in line, want none", s.Free, s.Waiting)
	}
}

// How far a capacity is known is a question of evidence alone: not of the health
// of the backend, and not of who is there.
func TestCapacityOfSlowStartIsALowerBound(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	want := func(capacity int, lowerBound bool) {
		t.Helper()
		room := b.Routes(b.now)[0].Targets[0]
		if room.Capacity != capacity || room.CapacityLowerBound != lowerBound {
			t.Errorf("%+v: want a capacity of %d, lower bound: %v", room, capacity, lowerBound)
		}
	}
	for _, h := range []Health{Up, Down, Loading, Draining, Probing, Up} {
		b.health("x", h)
		want(slowStartCap, true)
	}
	b.fill("chat", slowStartCap)
	want(slowStartCap, true)
	b = newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	b.learn("x", carrying(20, 30, 60))
	want(20, false)
	b.health("x", Down)
	want(20, false)
}

package router

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// A backend that was too slow for the route is used again some minutes after it
// has recovered, and costs few their floor meanwhile.
func TestAnOldVerdictIsProbed(t *testing.T) {
	for _, c := range racetest.Rows([]struct {
		name   string
		routes []Route
		most   int // that may miss their floor after the recovery
	}{
		{"by users", []Route{chatQueue()}, 2},
		{"by batch", []Route{chatQueue(), {Name: "nightly", Class: Batch, Reserve: 1, OnInfeasible: queue(time.Minute)}}, 0},
	}) {
		t.Run(c.name, func(t *testing.T) {
			slow := &engine{a: 0.042, b: 0.00016, d: 5e-5, budget: 2048}
			w := newWorld(newBench(t, []string{"x", "y"}, c.routes...), map[string]*engine{"x": flat(), "y": slow})
			w.book = profiles.NewBook(profiles.Options{})
			w.users = users(20, user{route: "chat", prompt: 200, tokens: 300, spread: true, at: start})
			if len(c.routes) > 1 {
				w.users = append(w.users, users(2, user{route: "nightly", prompt: 200, tokens: 300, spread: true, at: start})...)
			}
			w.until(3 * time.Minute)
			if v := w.reasons("chat"); v[1] != ReasonOwnFloor {
				t.Fatalf("y is %v, want too slow", v[1])
			}
			slow.a = 0.0193
			w.missed = 0
			for minute := 3; minute < 20; minute++ {
				w.until(time.Duration(minute+1) * time.Minute)
				if v := w.reasons("chat"); v[1] == OK {
					t.Logf("used again after %d minutes; %d missed their floor, %d kept it", minute-2, w.missed, w.kept)
					if w.missed > c.most || minute-2 > 12 {
						t.Errorf("%d missed their floor within %d minutes, want at most %d within 12", w.missed, minute-2, c.most)
					}
					return
				}
			}
			t.Errorf("y is still %v after 17 minutes", w.reasons("chat")[1])
		})
	}
}

// Who is too slow for a floor is tried by one request after a while, then after
// a quarter longer, and so on, never beside others, and no more once it keeps one.
func TestStaleTargetsAreTriedOneAtATime(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(40, 30, 60))
	b.learn("y", carrying(5, 10, 12))
	place := func(edit ...func(*Request)) string {
		d := b.place("chat", edit...)
		outcome, target := b.Decisions(1)[0].Outcome, d.Lease.Target().Backend
		if (outcome == OutcomeProbe) != (target == "y") || outcome == OutcomeProbe && d.Lease.Floor() != 0 {
			t.Errorf("%v on %s with a floor of %v", outcome, target, d.Lease.Floor())
		}
		d.Lease.Done(b.now, 10)
		return target
	}
	count := func(d time.Duration, edit ...func(*Request)) (probes int) {
		for end := b.now.Add(d); b.now.Before(end); b.sleep(time.Second) {
			if place(edit...) == "y" {
				probes++
			}
		}
		return probes
	}
	for _, c := range []struct {
		during time.Duration
		want   int
	}{{staleAfter, 0}, {2 * staleAfter, 2}, {4 * staleAfter, 2}, {8 * staleAfter, 2}} {
		if got := count(c.during); got != c.want {
			t.Errorf("within %v tried %d times, want %d", c.during, got, c.want)
		}
	}
	b.sleep(staleMost)
	if got := place(wish(49)); got != "x" { // four times as fast as y ever was
		t.Errorf("tried on %s with a floor far out of reach", got)
	}
	if got := place(noQueue); got != "x" {
		t.Errorf("a failover went to %s to try it", got)
	}
	held := b.place("chat", prompt(1), func(r *Request) { r.MinTPS = new(float64) }).Lease // no floor: to try it is everybody's
	for held.Target().Backend != "y" {
		held = b.place("chat", func(r *Request) { r.MinTPS = new(float64); r.Exclude = []string{"x"} }).Lease
	}
	b.sleep(staleMost)
	if got := place(); got != "x" {
		t.Error("tried beside one that runs there")
	}
	held.Done(b.now, 10)
	b.sleep(staleMost)
	if got := place(); got != "y" {
		t.Error("not tried after half an hour")
	}
	b.learn("y", carrying(5, 30, 60))
	b.fill("chat", 45)
	if m := b.backends[1].groups[0].models[0]; m.tries.after != 0 {
		t.Errorf("it keeps a floor, and is tried after %v", m.tries.after)
	}
}

// What was slow for long is tried a quarter of that later at most, and tries become rare
// all the same.
func TestTheNextTryComesAQuarterLater(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(40, 30, 60))
	b.learn("y", carrying(5, 15, 20))
	began, last, tried := b.now, b.now, 0
	for ; b.now.Sub(began) < 2*time.Hour; b.sleep(time.Second) {
		l := b.place("chat").Lease
		if l.Target().Backend == "y" {
			if gap, most := b.now.Sub(last), last.Sub(began)/4+staleAfter+time.Second; gap > most {
				t.Errorf("tried %v after the last time, which was after %v; want %v at most", gap, last.Sub(began), most)
			}
			b.run([]*Lease{l}, 20, 300*time.Millisecond)
			last = b.now
			tried++
		}
		l.Done(b.now, 6)
	}
	if tried < 15 || tried > 22 { // Σ 15·1.25^k s
		t.Errorf("tried %d times within two hours, want some 20", tried)
	}
}

// slowed is a curve of an engine that became slower, by how much as a share.
type slowed struct {
	form
	scale float64
}

func (s slowed) Scale() float64 { return s.scale }

// One short answer moves no curve. So who was tried and kept the floor that was asked for
// is tried again at once; who did not, later.
func TestATryThatKeepsTheFloorIsFollowedByAnother(t *testing.T) {
	for _, c := range []struct {
		name string
		tps  float64
		want string
	}{{"fast again", 40, "y"}, {"still slow", 20, "x"}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x", "y"})
			b.learn("x", carrying(40, 30, 60))
			b.learn("y", carrying(5, 15, 20))
			b.sleep(staleAfter)
			for range 3 {
				l := b.place("chat").Lease
				if got := l.Target().Backend; got != "y" {
					t.Fatalf("placed on %s, want a try", got)
				}
				b.run([]*Lease{l}, c.tps, 300*time.Millisecond)
				l.Done(b.now, c.tps*0.3)
				next := b.place("chat").Lease
				if got := next.Target().Backend; got != c.want {
					t.Fatalf("after %v tokens/s the next one is on %s, want %s", c.tps, got, c.want)
				}
				next.Done(b.now, 10)
				b.sleep(staleMost)
			}
		})
	}
}

// An engine that became so slow that the floor is far out of reach is tried as one
// that is a little too slow: it had the floor before.
func TestWhatBecameFarTooSlowIsTried(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(40, 30, 60))
	far := carrying(5, 5, 6) // 30 is five times as much
	for _, c := range []struct {
		scale float64
		want  string
	}{{1, "x"}, {0.2, "y"}} {
		b.learn("y", slowed{far, c.scale})
		b.sleep(staleMost)
		l := b.place("chat").Lease
		if got := l.Target().Backend; got != c.want {
			t.Errorf("%v as fast as before: placed on %s, want %s", c.scale, got, c.want)
		}
		l.Done(b.now, 10)
	}
}

// An engine that never had a high floor serves a low one. That it is kept there says
// nothing of the high one, whose tries get rarer all the same.
func TestALowFloorBringsNoTriesOfAHighOne(t *testing.T) {
	for _, c := range []struct {
		name string
		low  func(b *bench) *Lease // of somebody who is content with the slow engine
	}{
		{"placed there", func(b *bench) *Lease { return b.place("slow").Lease }},
		{"tried there", func(b *bench) *Lease { return b.place("fast", wish(24)).Lease }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x", "y"}, Route{Name: "fast", SLO: SLO{MinTPS: 60}}, Route{Name: "slow", SLO: SLO{MinTPS: 20}, Targets: targets("y")})
			b.learn("x", carrying(40, 60, 90))
			b.learn("y", carrying(3, 20, 25))
			use := func(l *Lease) (tried int) {
				if l.Target().Backend == "y" {
					tried = 1
					b.run([]*Lease{l}, 25, 2*time.Second)
				}
				l.Done(b.now, 50)
				return tried
			}
			tried := 0
			for began := b.now; b.now.Sub(began) < time.Hour; b.sleep(20 * time.Second) {
				use(c.low(b))
				b.sleep(20 * time.Second)
				tried += use(b.place("fast").Lease)
			}
			if tried > 8 { // fewer than with nobody on it: it is idle for short times only
				t.Errorf("%d with a floor of 60 within an hour were put on an engine that gives 25", tried)
			}
		})
	}
}

// Two tokens that come together are no speed.
func TestATryHasToShowSomething(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(40, 30, 60))
	b.learn("y", carrying(5, 15, 20))
	b.sleep(staleAfter)
	l := b.place("chat").Lease
	l.FirstToken(b.now)
	b.sleep(5 * time.Millisecond)
	l.Progress(b.now, profiles.Count{Tokens: 1})
	l.Done(b.now, 2)
	if got := b.place("chat").Lease.Target().Backend; got != "x" {
		t.Errorf("after one token in 5 ms the next one is on %s", got)
	}
}

// A try takes no place that is kept for others, and is of one sequence: many are too
// slow on any engine.
func TestWhoIsNotTried(t *testing.T) {
	vip := Route{Name: "vip", SLO: SLO{MinTPS: 10, Guarantee: Guarantee{Places: 5}}, Targets: targets("y")}
	b := newBench(t, []string{"x", "y"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}}, vip)
	b.learn("x", carrying(40, 30, 60))
	b.learnNow("y", carrying(5, 10, 20))
	b.sleep(staleMost)
	if got := b.place("chat").Lease.Target().Backend; got != "x" {
		t.Error("a try took a place that is kept for others")
	}
	b = newBench(t, []string{"x", "y"})
	b.learn("x", carrying(40, 30, 60))
	b.learn("y", carrying(5, 30, 60))
	b.sleep(staleMost)
	if d := b.place("chat", sequences(8)); d.Lease.Target().Backend != "x" {
		t.Error("eight sequences were tried on an engine that carries five, though there is room elsewhere")
	}
}

// That an engine was tried in vain with a high floor says nothing of a low one, which it
// had until it became slow.
func TestTriesOfAHighFloorDelayNoLowOne(t *testing.T) {
	b := newBench(t, []string{"x", "y"}, Route{Name: "fast", SLO: SLO{MinTPS: 60}}, Route{Name: "slow", SLO: SLO{MinTPS: 20}})
	b.learn("x", carrying(40, 60, 90))
	b.learn("y", carrying(3, 20, 25))
	use := func(route string, tps float64) (tried bool) {
		l := b.place(route).Lease
		if tried = l.Target().Backend == "y"; tried {
			b.run([]*Lease{l}, tps, 2*time.Second)
		}
		l.Done(b.now, 2*tps)
		return tried
	}
	for began := b.now; b.now.Sub(began) < 3*time.Hour; b.sleep(20 * time.Second) {
		use("fast", 25)
	}
	b.learn("y", carrying(3, 12, 15))
	for range 2 { // the high one got it last, so at once, and then by time
		b.sleep(staleAfter)
		if !use("slow", 15) {
			t.Error("the lower floor is not tried")
		}
	}
	tried := 0
	for began := b.now; b.now.Sub(began) < time.Hour; b.sleep(5 * time.Second) {
		for _, route := range []string{"fast", "slow"} {
			if use(route, 15) {
				tried++
			}
		}
	}
	if tried > 18 { // each time a quarter later, whatever the floor
		t.Errorf("tried %d times within an hour", tried)
	}
}

// A try that got its floor is followed by one at once, and by no more where that one shows
// nothing: an answer that is not streamed tells of no speed.
func TestATryThatShowsNothingIsFollowedByNoOther(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	b.learn("x", carrying(40, 30, 60))
	b.learn("y", carrying(5, 15, 20))
	b.sleep(staleAfter)
	first := b.place("chat").Lease
	b.run([]*Lease{first}, 40, 2*time.Second)
	first.Done(b.now, 80)
	tried := 0
	for range 100 {
		l := b.place("chat", whole).Lease
		if l.Target().Backend == "y" {
			tried++
		}
		b.sleep(10 * time.Second)
		l.Done(b.now, 50)
	}
	if tried > 13 { // at once, and then by time
		t.Errorf("%d of 100 were tried", tried)
	}
}

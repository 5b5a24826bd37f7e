package router

import (
	"testing"
	"time"
)

// A prompt that would stop all streams for longer than they can bear stands in line. Whose
// own is cached takes nothing from it, and does not wait behind it.
func TestWhoIsCachedPassesWhomLeadsKeepOut(t *testing.T) {
	for name, c := range map[string]struct {
		edit []func(*Request)
		want bool
	}{
		"cached":     {[]func(*Request){prompt(12_000), warm(11_900, "a")}, true},
		"not cached": {[]func(*Request){prompt(100)}, false}, // short ones would keep long ones out for ever
	} {
		w := newBench(t, []string{"a"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(5 * time.Second)})
		f := carrying(40, 30, 60)
		f.d, f.answer = 1e-4, 250
		w.learn("a", f)
		there := w.fill("chat", 5)
		w.run(there, 45, time.Second)
		w.stand("chat", prompt(16_000), waiter("long")) // 1.6 s, beside leads of 1.5 s
		ticket := w.stand("chat", append(c.edit, waiter("short"))...)
		grants := w.run(there, 45, 200*time.Millisecond)
		if got := len(grants) == 1 && grants[0].Waiter == "short" && grants[0].Decision.Lease != nil; got != c.want || len(grants) > 1 {
			t.Errorf("%s: granted %v, want it to pass: %v", name, waiters(grants), c.want)
		}
		ticket.Cancel(w.now)
	}
}

// Of engines of which nothing is known yet the one that has the prompt is taken.
func TestAFreshEngineThatHasThePromptIsTaken(t *testing.T) {
	for _, has := range []string{"a", "b"} {
		w := newBench(t, []string{"a", "b"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
		for _, name := range []string{"a", "b"} {
			w.force(Request{Route: "chat", Stream: true}, Target{Backend: name, Model: "m"}).Lease.FirstToken(w.now)
		}
		d := w.place("chat", prompt(8000), warm(7900, has))
		if d.Lease == nil || d.Lease.Target().Backend != has {
			t.Errorf("%+v, want a place on %s", d, has)
		}
	}
}

// Who waits for the only engine that has its prompt takes no place on the others, and is no
// reason to leave one there empty: whose prompt is cached there passes it, though it has more
// to prefill than that one has where it waits.
func TestWhoIsCachedPassesWhoWaitsForAnotherEngine(t *testing.T) {
	for name, c := range map[string]struct {
		waiting int
		edit    []func(*Request)
		want    bool
	}{
		"cached":                {1, []func(*Request){prompt(16_000), warm(15_600, "a")}, true},
		"cached, behind many":   {6, []func(*Request){prompt(16_000), warm(15_600, "a")}, true},
		"not cached":            {1, []func(*Request){prompt(400)}, false},
		"cached where it waits": {1, []func(*Request){prompt(16_000), warm(15_600, "b")}, false},
	} {
		w := newBench(t, []string{"a", "b"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(5 * time.Second)})
		for _, name := range []string{"a", "b"} {
			f := carrying(40, 30, 60)
			f.d, f.answer = 1e-4, 250
			w.learn(name, f)
		}
		var there []*Lease
		for i := range 76 {
			on := "a"
			if i >= 36 {
				on = "b"
			}
			there = append(there, w.force(Request{Route: "chat", Stream: true}, Target{Backend: on, Model: "m"}).Lease)
		}
		at := func(d time.Duration) (grants []Grant) {
			for end := w.now.Add(d); w.now.Before(end); { // in turns, so each at half of that
				grants = append(grants, w.run(there[:36], 2*34, 50*time.Millisecond)...)
				grants = append(grants, w.run(there[36:], 2*33, 50*time.Millisecond)...)
			}
			return grants
		}
		at(25 * time.Second) // leads of 4 s on a
		w.wantReasons("chat", "protects level, own_floor", prompt(16_000), warm(15_900, "b"))
		for range c.waiting {
			w.stand("chat", prompt(16_000), warm(15_900, "b"), waiter("first"))
		}
		w.stand("chat", append(c.edit, waiter("second"))...)
		grants := at(200 * time.Millisecond)
		if got := len(grants) == 1 && grants[0].Waiter == "second" && grants[0].Decision.Lease != nil; got != c.want || len(grants) > 1 {
			t.Errorf("%s: granted %v, want it to pass: %v", name, waiters(grants), c.want)
		}
	}
}

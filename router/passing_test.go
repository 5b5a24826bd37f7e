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

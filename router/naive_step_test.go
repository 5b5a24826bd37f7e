package router

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

func (w *naive) step() {
	w.pass(time.Duration(w.pick(150)) * time.Millisecond)
	switch w.pick(16) {
	default:
		w.place()
	case 5, 6, 7:
		if len(w.leases) > 0 {
			i := w.pick(len(w.leases))
			l := w.leases[i]
			w.leases = slices.Delete(w.leases, i, i+1)
			w.settle(l.Done(w.now, w.tokens[l]))
		}
	case 8, 9:
		for _, l := range w.leases {
			if w.pick(3) > 0 && l.stream {
				l.FirstToken(w.now)
				w.tokens[l] += float64(w.pick(12))
				l.Progress(w.now, profiles.Count{Tokens: w.tokens[l], Rough: w.pick(50) == 0})
			}
		}
		w.pass(scanEvery)
		w.settle(w.tick())
		w.busy()
	case 10:
		w.settle(w.health(oneOf(w, w.topo.Backends...).Name, oneOf(w, Up, Up, Up, Down, Probing, Draining)))
	case 11:
		if w.pick(3) == 0 {
			w.teach(oneOf(w, w.topo.Backends...).Name)
		}
	case 12:
		w.tellRemote()
	case 13:
		w.free()
	case 14:
		w.reload()
	case 15:
		w.tellEngine()
	}
	w.leave()
}

// pass lets time pass. While the others are silent the router hears so again and again.
func (w *naive) pass(d time.Duration) {
	w.sleep(d)
	if w.scaled > 1 {
		w.settle(w.Update(w.now, RemoteLoad{Replicas: 2, Lost: true}))
	}
}

func (w *naive) tellRemote() {
	w.Own(w.now)
	w.remote, w.scaled = nil, 1
	switch w.pick(3) {
	case 0:
		far := Load{Waiting: w.pick(2), Decoding: 1 + w.pick(4), Floor: oneOf(w, 0.0, 20, 30, 100)}
		far.PromptTokens = far.Waiting * w.pick(5000)
		if w.pick(2) == 0 {
			far.Leads = Leads{Streams: far.Decoding, Least: time.Duration(w.pick(3000)-200) * time.Millisecond}
			far.Level = Level{Tokens: 600, Seconds: oneOf(w, 15.0, 20, 30), AtN: 80, Steps: 100, Time: 10}
		}
		name := oneOf(w, w.topo.Backends...).Name
		if w.apart[name] {
			other := Load{Decoding: w.pick(3)}
			far.Models = map[string]Load{"m": {Waiting: far.Waiting, Decoding: far.Decoding, PromptTokens: far.PromptTokens, Floor: far.Floor, Leads: far.Leads, Level: far.Level}, "n": other}
			far.Decoding += other.Decoding
		}
		w.remote = map[string]Load{name: far}
		w.settle(w.Update(w.now, RemoteLoad{Replicas: 2, ByBackend: w.remote}))
	case 1:
		w.scaled = 2
		w.settle(w.Update(w.now, RemoteLoad{Replicas: 2, Lost: true}))
	default:
		w.settle(w.Update(w.now, RemoteLoad{Replicas: 1}))
	}
}

// tellEngine reports what an engine runs, long enough to be believed.
func (w *naive) tellEngine() {
	b := oneOf(w, w.topo.Backends...).Name
	if w.apart[b] {
		return // such a report does not tell models apart, and is not configured
	}
	for range 3 {
		w.sleep(time.Second)
		w.settle(w.Update(w.now, EngineLoad{Backend: b, Running: 2 + w.pick(6), Waiting: w.pick(3), At: w.now}))
	}
}

// reload changes the configuration while requests run and wait: a backend or a
// route goes and comes back, another engine stands behind a name, a route
// promises something else.
func (w *naive) reload() {
	if w.apart != nil {
		return // what runs of a model that is gone counts with all others
	}
	after := w.topo
	during := Topology{Backends: slices.Clone(after.Backends), Routes: slices.Clone(after.Routes)}
	switch w.pick(4) {
	case 0:
		during.Backends = during.Backends[1:]
	case 1:
		during.Routes = during.Routes[1:]
	case 2:
		during.Backends[w.pick(len(during.Backends))].Engine += "'"
		after = during
	case 3:
		rt := &during.Routes[w.pick(len(during.Routes))]
		rt.SLO.MinTPS, rt.Class = oneOf(w, 0.0, 10, 50), oneOf(w, Interactive, Batch)
		after = during
	}
	w.topo = during
	w.settle(w.configure())
	if len(during.Routes) > 0 {
		w.place()
	}
	w.topo = after
	w.settle(w.configure())
}

// leave ends the wait of those whose time is over, and of a few more.
func (w *naive) leave() {
	for _, t := range slices.Clone(w.tickets) {
		switch {
		case !slices.Contains(w.tickets, t): // granted meanwhile
		case t.state != inLine:
			w.t.Fatalf("%v: out of line without a grant", w.now.Sub(start))
		case !t.Deadline().After(w.now):
			w.forget(t)
			if d := t.Expire(w.now); d.Lease != nil {
				w.leases = append(w.leases, d.Lease)
			} else if d.Ticket != nil {
				w.t.Fatalf("%v: waits again after its deadline", w.now.Sub(start))
			}
		case w.pick(40) == 0:
			w.forget(t)
			w.settle(t.Cancel(w.now))
		}
	}
}

// Place, its previews, the lines and what is called free agree with the rules,
// whatever the curves, floors, reserves, caps, prompts, outages and reloads.
func TestTheRulesReadTwice(t *testing.T) {
	var outcomes [OutcomeNoBackend + 1]int
	for seed := range uint64(racetest.Some(400)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newNaive(t, seed)
			for range 150 {
				w.step()
			}
			for i, n := range w.outcomes {
				outcomes[i] += n
			}
		})
	}
	for o, n := range outcomes {
		t.Logf("%v: %d", Outcome(o), n)
		if n < racetest.Some(50) && Outcome(o) != OutcomeProbe { // these take minutes; TestAnOldVerdictIsProbed
			t.Errorf("only %d of %v", n, Outcome(o))
		}
	}
}

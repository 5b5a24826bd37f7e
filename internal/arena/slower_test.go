package arena

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/history"
)

var slowerFlag = flag.Int("slower", 0, "worlds of drawn traffic, and as many with events, in which to count how long engines are called slower than learned; 0 = none")

// called is for how many seconds of how many gateways watches had backends called slower than learned.
type called struct {
	sound, soundSlower float64 // while the engine was as ever, for 30 s at least, and tokens came from it
	slow, slowSlower   float64 // while it took 1.3 times as long or more
	changes, found     int     // engines that became that slow, and of these those that were called so
	delay              float64 // seconds until then, of all
}

func (c *called) plus(o called) {
	c.sound += o.sound
	c.soundSlower += o.soundSlower
	c.slow += o.slow
	c.slowSlower += o.slowSlower
	c.changes += o.changes
	c.found += o.found
	c.delay += o.delay
}

func (c called) String() string {
	return fmt.Sprintf("sound %.0f s, called slower for %.1f %% of it; slower %.0f s, called so for %.0f %%; %d of %d found, after %.1f s",
		c.sound, 100*c.soundSlower/max(c.sound, 1), c.slow, 100*c.slowSlower/max(c.slow, 1), c.found, c.changes, c.delay/max(float64(c.found), 1))
}

// observer has each gateway's watch look on, each second, as the program does.
type observer struct {
	called
	watches map[string]*history.Watch
	drifts  map[string]*drifting
}

// drifting is how slow an engine is, since when, and who has called it so.
type drifting struct {
	drift float64
	since time.Duration
	by    map[string]bool
}

func (o *observer) fire(w *world) {
	for name, e := range w.byName {
		d := o.drifts[name]
		if d == nil {
			d = &drifting{drift: e.drift, since: -time.Minute}
			o.drifts[name] = d
		}
		if d.drift != e.drift {
			*d = drifting{drift: e.drift, since: w.now, by: map[string]bool{}}
			if e.drift >= 1.3 {
				o.changes++
			}
		}
	}
	for _, g := range w.gateways {
		if !g.dead {
			o.look(w, g)
		}
	}
	w.agenda.enter(w.now+time.Second, o)
}

func (o *observer) look(w *world, g *gateway) {
	watch := o.watches[g.replica()]
	if watch == nil {
		watch = history.NewWatch(history.NewRing(w.clock))
		o.watches[g.replica()] = watch
	}
	scales := map[string]float64{}
	for _, t := range w.targets() {
		if c := g.curve(t); c != nil && c.Known() {
			scales[t.Backend] = c.Scale()
		}
	}
	var s history.Snapshot
	for _, l := range g.router.Loads() {
		scale, ok := scales[l.Backend]
		if !ok {
			scale = math.NaN()
		}
		s.Backends = append(s.Backends, history.Backend{Name: l.Backend, N: l.N, M: l.M, Seen: l.Seen, Expected: l.Expected, Compared: l.Compared, Scale: scale})
	}
	watch.Tick(w.clock, s)
	slower := map[string]bool{}
	for _, c := range watch.Causes() {
		if c.Kind == history.Slower {
			slower[c.Backend] = true
		}
	}
	for _, b := range s.Backends {
		d := o.drifts[b.Name]
		if d == nil || math.IsNaN(watch.Speed(b.Name)) && !slower[b.Name] {
			continue
		}
		switch is := slower[b.Name]; {
		case d.drift >= 1.3:
			o.slow++
			if is {
				o.slowSlower++
				if len(d.by) == 0 {
					o.found++
					o.delay += (w.now - d.since).Seconds()
				}
				d.by[g.replica()] = true
			}
		case d.drift == 1 && w.now-d.since >= 30*time.Second:
			o.sound++
			if is {
				o.soundSlower++
			}
		}
	}
}

// calledIn plays s, and counts.
func calledIn(t *testing.T, s Scenario) called {
	t.Helper()
	if err := s.complete(); err != nil {
		t.Fatal(err)
	}
	more, stop := iter.Pull(s.Load)
	defer stop()
	w := newWorld(s, more)
	if err := w.build(); err != nil {
		t.Fatal(err)
	}
	o := &observer{watches: map[string]*history.Watch{}, drifts: map[string]*drifting{}}
	w.agenda.enter(time.Second, o)
	if err := w.play(context.Background()); err != nil {
		t.Fatal(err)
	}
	return o.called
}

// Engines that are as ever are seldom called slower than learned, however requests come; those that
// become slower are found within seconds.
func TestSoundEnginesAreSeldomCalledSlower(t *testing.T) {
	n, first := 2, uint64(61000)
	if *slowerFlag > 0 {
		n, first = *slowerFlag, uint64(*firstFlag)
	}
	var traffic, events called
	for i := range uint64(n) {
		traffic.plus(calledIn(t, drawTraffic(first+i).scenario(Pacer, first+i)))
		w := drawWorld(first + i)
		events.plus(calledIn(t, w.scenario(Pacer, first+i)))
	}
	t.Logf("drawn traffic: %v", traffic)
	t.Logf("drawn worlds: %v", events)
	if *slowerFlag > 0 {
		return
	}
	traffic.plus(events)
	if share := traffic.soundSlower / traffic.sound; !(share < 0.01) {
		t.Errorf("sound engines are called slower for %.1f %% of their time, want less than 1 %%", 100*share)
	}
	if traffic.changes == 0 || traffic.found < traffic.changes {
		t.Errorf("%d of %d engines that became slower are called so, want all", traffic.found, traffic.changes)
	}
}

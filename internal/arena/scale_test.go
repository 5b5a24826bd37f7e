package arena

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
)

var (
	scaleFlag    = flag.String("scale", "", "file for the table of many gateways and engines with late news of each other")
	scaleSize    = flag.String("fleet", "10x40", "gateways x engines of that table")
	scaleSeconds = flag.Int("seconds", 60, "how long it is played")
	scaleLearn   = flag.Duration("learn", time.Second, "how often gateways draw their curves")
)

// many are so many engines of one curve, each known to the gateways.
func many(n int) []Backend {
	var list []Backend
	for i := range n {
		list = append(list, backend(fmt.Sprint("e", i), "deepseek-r1/h200/sglang"))
	}
	return list
}

// full is a fleet of which half as many again want to be served as it carries.
func full(engines int, length time.Duration) pool {
	h := many(engines)
	return pool{
		name: "scale", backends: h, routes: []Route{chat("chat", 30, h)}, length: length,
		load: chatting(1.5*perEngine*float64(engines), length),
	}
}

// schooled is what two engines of such a fleet teach in three minutes, for all of so
// many: a fleet of that size has been learned long before it is full.
func schooled(t *testing.T, engines int) map[profiles.Target]profiles.Sums {
	t.Helper()
	const school = 2
	p := full(school, 3*time.Minute)
	s := p.scenario(Pacer, 2)
	must.Do(t, s.complete())
	more, stop := iter.Pull(s.Load)
	defer stop()
	w := newWorld(s, more)
	must.Do(t, w.build())
	must.Do(t, w.play(t.Context()))
	learned, known := w.store.All(), map[profiles.Target]profiles.Sums{}
	targets := w.targets()
	for i, b := range full(engines, time.Minute).routes[0].Targets {
		known[b.Target] = learned[targets[i%school]]
	}
	return known
}

// TestScale plays a full fleet with gateways that hear of each other late, or not at
// all for a while: make scale.
func TestScale(t *testing.T) {
	if *scaleFlag == "" {
		t.Skip("make scale plays it")
	}
	var gateways, engines int
	must.Get(fmt.Sscanf(*scaleSize, "%dx%d", &gateways, &engines))(t)
	length := time.Duration(*scaleSeconds) * time.Second
	known := schooled(t, engines)
	var b strings.Builder
	fmt.Fprintf(&b, "%d gateways, %d engines, %v of chats, half as many again as they carry; the first third is not counted.\n\n| news of each other | met of offered | missed of served | shed | played in |\n|---|---|---|---|---|\n", gateways, engines, length)
	for _, c := range []struct {
		name   string
		delay  time.Duration
		faults []Fault
	}{
		{name: "0.2 s old", delay: 200 * time.Millisecond},
		{name: "1 s old", delay: time.Second},
		{name: "5 s old", delay: 5 * time.Second},
		{name: "0.2 s old, none for the middle third", delay: 200 * time.Millisecond, faults: []Fault{{At: length / 3, Kind: RedisLost}, {At: 2 * length / 3, Kind: RedisBack}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := full(engines, length)
			p.replicas, p.faults, p.warmup = gateways, c.faults, length/3
			s := p.scenario(Pacer, 1)
			s.ShareDelay, s.LearnEvery, s.known = c.delay, *scaleLearn, known
			r := play(t, s)
			sum := p.promised(r)
			row := fmt.Sprintf("| %s | %.2f %% | %.2f %% | %.2f %% | %.0f s |", c.name, 100*sum.Attainment(), 100*sum.MissedOfServed(), 100*float64(sum.Shed)/float64(sum.Offered), r.Wall.Seconds())
			t.Log(row)
			b.WriteString(row + "\n")
		})
	}
	must.Do(t, os.WriteFile(*scaleFlag, []byte(b.String()), 0o644))
}

// perEngine is how many chats a second an engine of alike() carries with a floor of
// 30: 32 users, each there for about 300 tokens.
const perEngine = 2.9

// scaleOuts are fleets that grow under load: two engines of four are there, and the
// load is what three carry; two cold ones come after a minute, and then everybody can
// be served. What is counted of those called after begins half a minute later.
func scaleOuts() (list []pool) {
	const joins, length = time.Minute, 3 * time.Minute
	for _, name := range []string{"O", "O prior"} {
		h := alike()
		if name != "O" {
			h = withPriors(h)
		}
		h = slices.Clone(h)
		h[2].Joins, h[3].Joins = joins, joins
		p := pool{
			name: name, what: "two engines of four join after a minute, with 75 % of what all carry",
			backends: h, routes: []Route{chat("chat", 30, h)}, replicas: 2, load: chatting(3*perEngine, length), length: length,
		}
		after := p
		after.name, after.warmup = name+" after", joins+30*time.Second
		list = append(list, p, after)
	}
	return list
}

// Fifty gateways on four engines have none or one stream each on an engine that carries
// 32. They fall silent under load, and floors hold all the same.
func TestFloorsAreKeptInSilence(t *testing.T) {
	skipUnderRace(t)
	const length = time.Minute
	p := full(4, length)
	p.replicas, p.faults, p.warmup = 50, []Fault{{At: length / 3, Kind: RedisLost}}, length/3
	var all Counts
	for seed := range uint64(3) {
		s := p.scenario(Pacer, seed+1)
		s.known = schooled(t, 4)
		all = all.plus(p.promised(play(t, s)))
	}
	t.Logf("met %.1f %%, missed of served %.2f %%", 100*all.Attainment(), 100*all.MissedOfServed())
	if all.MissedOfServed() > mostMissed || all.Shed == 0 {
		t.Errorf("%.2f %% of those served missed their floor, and %d were refused; want %.0f %% at most, and some", 100*all.MissedOfServed(), all.Shed, 100*mostMissed)
	}
	// Each has two or three places in all, which are not always taken.
	if all.Attainment() < 0.3 {
		t.Errorf("%.1f %% are served and met, want 30 %%", 100*all.Attainment())
	}
}

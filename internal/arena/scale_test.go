package arena

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	scaleFlag    = flag.String("scale", "", "file for the table of many gateways and engines with late news of each other")
	scaleSize    = flag.String("fleet", "10x40", "gateways x engines of that table")
	scaleSeconds = flag.Int("seconds", 60, "how long it is played")
	scaleAnswer  = flag.Float64("answer", 300, "mean tokens of an answer of that table")
	scaleLearn   = flag.Duration("learn", time.Second, "how often gateways draw their curves")
)

// many are so many engines of one curve, each known to the gateways.
func many(n int) []Backend {
	var list []Backend
	for i := range n {
		list = append(list, backend(fmt.Sprint("e", i), "deepseek-r1/h200/sglang"))
	}
	return withPriors(list)
}

// TestScale plays a full fleet with gateways that hear of each other late, or not at
// all for a while: make scale.
func TestScale(t *testing.T) {
	if *scaleFlag == "" {
		t.Skip("make scale plays it")
	}
	var gateways, engines int
	if _, err := fmt.Sscanf(*scaleSize, "%dx%d", &gateways, &engines); err != nil {
		t.Fatal(err)
	}
	length := time.Duration(*scaleSeconds) * time.Second
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
			h := many(engines)
			g := chats(0, 1)
			g.Output.Mean = *scaleAnswer
			g.Rate, g.Duration = 1.5*perEngine*300/g.Output.Mean*float64(engines), length
			p := pool{name: "scale", backends: h, routes: []Route{chat("chat", 30, h)}, replicas: gateways, faults: c.faults, length: length, warmup: length / 3, load: generated(g, "chat")}
			s := p.scenario(Pacer, 1)
			s.ShareDelay, s.LearnEvery = c.delay, *scaleLearn
			r := play(t, s)
			sum := p.promised(r)
			row := fmt.Sprintf("| %s | %.2f %% | %.2f %% | %.2f %% | %.0f s |", c.name, 100*sum.Attainment(), 100*sum.MissedOfServed(), 100*float64(sum.Shed)/float64(sum.Offered), r.Wall.Seconds())
			t.Log(row)
			b.WriteString(row + "\n")
		})
	}
	if err := os.WriteFile(*scaleFlag, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// perEngine is how many chats a second an engine of alike() carries with a floor of
// 30: 32 users, each there for about 300 tokens.
const perEngine = 2.9

// A fleet grows under load: two engines of four are there, and the load is what three
// carry; two cold ones come after 60 s, and then everybody is served. Who was let in
// keeps the floor throughout, with a prior and without.
func TestFloorsAreKeptThroughAScaleOut(t *testing.T) {
	skipUnderRace(t)
	const joins, length = 60 * time.Second, 180 * time.Second
	for name, prior := range map[string]bool{"cold": false, "with a prior": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := alike()
			if prior {
				h = withPriors(h)
			}
			h = slices.Clone(h)
			h[2].Joins, h[3].Joins = joins, joins
			load := chatting(3*perEngine, length)
			var all, late Counts
			for seed := range uint64(2) {
				p := pool{name: "scale out", backends: h, routes: []Route{chat("chat", 30, h)}, replicas: 2, load: load, length: length}
				all = all.plus(p.promised(play(t, p.scenario(Pacer, seed+1))))
				p.warmup = joins + 30*time.Second
				late = late.plus(p.promised(play(t, p.scenario(Pacer, seed+1))))
			}
			t.Logf("all: met %.1f %%, missed of served %.2f %%; from 30 s after: met %.1f %%", 100*all.Attainment(), 100*all.MissedOfServed(), 100*late.Attainment())
			if all.MissedOfServed() > mostMissed {
				t.Errorf("%.2f %% of those served missed their floor, want %.0f %% at most", 100*all.MissedOfServed(), 100*mostMissed)
			}
			if all.Shed == 0 {
				t.Error("nobody was refused before the fleet grew: this has shown nothing")
			}
			if late.Attainment() < 0.97 {
				t.Errorf("%.1f %% are served from 30 s after the growth on, want 97 %%", 100*late.Attainment())
			}
		})
	}
}

package arena

import (
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
)

// outcomes are the runs of one pool and policy by seed: of the routes with a floor.
type outcomes struct {
	sum     Counts
	goodput []float64 // tokens/s, by seed
	missed  []float64 // of the served, by seed
}

func playAll(t *testing.T, name string, policy Policy, seeds int) (o outcomes) {
	t.Helper()
	list := changes()
	i := slices.IndexFunc(list, func(p pool) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("no pool %q", name)
	}
	p := &list[i]
	for seed := range seeds {
		r := play(t, p.scenario(policy, uint64(seed+1)))
		c, goodput := p.promised(r), 0.0
		for k := range r.Routes {
			if p.routes[k].floored() {
				goodput += r.Routes[k].Goodput
			}
		}
		o.sum = o.sum.plus(c)
		o.goodput, o.missed = append(o.goodput, goodput), append(o.missed, c.MissedOfServed())
	}
	return o
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

const changeSeeds = 3

// What a pool has to reach of another's, or of the policy of caps by hand.
func TestTheDayItChanges(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		name, of string
		policy   Policy // of the other
		least    float64
		missed   float64
	}{
		{"T hiccup", "T", Pacer, 0.95, 0.003},
		{"H hiccup", "H day", Pacer, 0.95, 0.003},
		{"T", "T", LeastCapped, 1, 0.003},
		{"H day", "H day", LeastCapped, 1, 0.003},
		{"J", "J", LeastCapped, 1.3, 0.003},
		{"D long", "D long", LeastCapped, 1.3, 0.003},
		{"P", "P", LeastCapped, 1.3, 0.003},
		{"N 19+19", "N 19", Pacer, 0.97, 0.005},
		{"N 25+25", "N 25", Pacer, 0.96, 0.005},
	} {
		t.Run(c.name+" of "+string(c.policy), func(t *testing.T) {
			t.Parallel()
			got, other := playAll(t, c.name, Pacer, changeSeeds), playAll(t, c.of, c.policy, changeSeeds)
			ratio := mean(got.goodput) / mean(other.goodput)
			t.Logf("goodput %.0f, %.2f of %s under %s; missed %.2f %%", got.goodput, ratio, c.of, c.policy, 100*got.sum.MissedOfServed())
			if !(ratio >= c.least) {
				t.Errorf("%.1f %% of the goodput of %s under %s, want %.0f %%", 100*ratio, c.of, c.policy, 100*c.least)
			}
			if missed := got.sum.MissedOfServed(); !(missed <= c.missed) {
				t.Errorf("%.2f %% of the served missed their floor, want at most %.1f %%", 100*missed, 100*c.missed)
			}
		})
	}
}

// Prompts of up to 64k tokens, and cold starts, break few floors.
func TestFewMissTheirFloor(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []struct {
		name string
		most float64
	}{{"L", 0.005}, {"L prior", 0.005}, {"L bursts", 0.01}, {"L bursts prior", 0.01}, {"K cold", 0.01}, {"K slow", 0.02}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := playAll(t, c.name, Pacer, 5)
			missed := got.sum.MissedOfServed()
			t.Logf("%.2f %% of %d served missed what they were promised, worst seed %.2f %%", 100*missed, got.sum.Met+got.sum.Missed, 100*slices.Max(got.missed))
			if !(missed <= c.most) {
				t.Errorf("%.2f %% missed, want at most %.1f %%", 100*missed, 100*c.most)
			}
		})
	}
}

// writeChanges writes the table of the days on which something changes: mean and
// worst seed.
func writeChanges(t *testing.T, w io.Writer, seeds int) {
	fmt.Fprintln(w, "| pool | what | policy | met | goodput, mean (worst seed) | missed, mean (worst seed) | prompts served |\n|---|---|---|---|---|---|---|")
	for _, p := range changes() {
		for _, policy := range []Policy{Pacer, LeastCapped} {
			o := playAll(t, p.name, policy, seeds)
			worst := 0.0
			for _, m := range o.missed {
				if !math.IsNaN(m) {
					worst = max(worst, m)
				}
			}
			fmt.Fprintf(w, "| %s | %s | %s | %.1f %% | %.0f (%.0f) | %.2f %% (%.2f %%) | ×%.2f |\n", p.name, p.what, policy, 100*o.sum.Attainment(),
				mean(o.goodput), slices.Min(o.goodput), 100*o.sum.MissedOfServed(), 100*worst,
				o.sum.servedPrompt()/(float64(o.sum.PromptTokens)/float64(o.sum.Offered)))
		}
	}
	fmt.Fprintln(w)
}

// TestChangeTable writes the table of changes alone.
func TestChangeTable(t *testing.T) {
	if *changesFlag == 0 {
		t.Skip("go test -run TestChangeTable ./internal/arena -args -changes 5 prints it")
	}
	writeChanges(t, t.Output(), *changesFlag)
}

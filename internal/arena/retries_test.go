package arena

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	retriesFlag = flag.Int("retries", 0, "seeds for the table of retries; 0 = no table")
	retriesOnly = flag.String("retries-only", "", "play only those rows of the table of retries whose name has this in it")
	retriesSeed = flag.Uint64("retries-seed", 1, "the first of the seeds")
)

// crowd is a fleet at a load, whose clients come back in some mix of manners.
type crowd struct {
	fleet   string
	load    int // percent of what the fleet carries
	name    string
	manners [manners]float64
	tenants int // among whom the clients are; 0 = one

	// uneven are prompts of all lengths. Where nobody comes back the short ones are
	// served, for they fit first, and cost the least; who keeps promises serves all.
	uneven bool
}

// obeys are those who heed Retry-After, hammers those who do not.
var (
	obeys   = []Manner{Obeying, Sloppy, Persistent}
	hammers = []Manner{BackingOff, Hammering, Disguised}
)

var mixes = []crowd{
	{name: "told", manners: [manners]float64{Obeying: 1}},
	{name: "told, uneven", manners: [manners]float64{Obeying: 1}, uneven: true},
	{name: "told, uneven, 20 tenants", manners: [manners]float64{Obeying: 1}, tenants: 20, uneven: true},
	{name: "told, 20 tenants", manners: [manners]float64{Obeying: 1}, tenants: 20},
	{name: "sloppy", manners: [manners]float64{Sloppy: 1}},
	{name: "persistent", manners: [manners]float64{Persistent: 1}},
	{name: "libraries", manners: [manners]float64{Obeying: 2, Persistent: 1, BackingOff: 1}},
	{name: "half hammer", manners: [manners]float64{Obeying: 1, Hammering: 1}},
	{name: "half disguised", manners: [manners]float64{Obeying: 1, Disguised: 1}},
	{name: "half disguised, uneven", manners: [manners]float64{Obeying: 1, Disguised: 1}, uneven: true},
	{name: "half disguised, 20 tenants", manners: [manners]float64{Obeying: 1, Disguised: 1}, tenants: 20},
	{name: "all hammer", manners: [manners]float64{Hammering: 1}},
	{name: "all disguised", manners: [manners]float64{Disguised: 1}},
	{name: "all kinds", manners: [manners]float64{1, 1, 1, 1, 1, 1}},
}

// pool is what c plays: what comes is counted when the first of those who were
// told to wait a minute have come back.
func (c crowd) pool(retries int) pool {
	p := pool{name: c.fleet, backends: mixed(), length: 6 * time.Minute, warmup: 100 * time.Second, retries: retries, manners: c.manners}
	capacity, prompt, output := 19.0, Lengths{Mean: 400}, Lengths{Mean: 300, Sigma: 0.7}
	if c.fleet == "slow" {
		p.backends, p.length, capacity = slowPrefill(), 15*time.Minute, 4.4
		prompt, output = Lengths{Mean: 150}, Lengths{Mean: 150}
	}
	if !c.uneven {
		prompt.Kind = Fixed
	}
	p.routes = []Route{chat("chat", 30, p.backends)}
	p.load = generated(Generator{Rate: capacity * float64(c.load) / 100, Duration: p.length, Prompt: prompt, Output: output}, "chat")
	if c.tenants > 0 {
		load := p.load
		p.load = func(seed uint64) iter.Seq[Arrival] {
			i := 0
			return edited(load, func(a *Arrival) {
				a.Tenant = fmt.Sprint("tenant ", i%c.tenants)
				i++
			})(seed)
		}
	}
	return p
}

// crowdResult is what came of a crowd, by seed.
type crowdResult struct {
	goodput  []float64 // of the run in which nobody comes back
	missed   []float64 // of the served
	placed   []float64 // of those who came back when they were told
	returned int
	obeys    []float64 // met of those who obey; NaN where nobody does
	hammers  []float64
}

// alone are the runs in which nobody comes back: tokens/s by fleet, load and seed.
type alone map[string]float64

func (c crowd) play(t *testing.T, before alone, first, seeds uint64) (o crowdResult) {
	t.Helper()
	for seed := first; seed < first+seeds; seed++ {
		key := fmt.Sprint(c.fleet, c.load, c.uneven, seed)
		if _, ok := before[key]; !ok {
			p := crowd{fleet: c.fleet, load: c.load, uneven: c.uneven}.pool(0)
			before[key] = play(t, p.scenario(Pacer, seed)).Routes[0].Ended
		}
		p := c.pool(3)
		r := play(t, p.scenario(Pacer, seed)).Routes[0]
		share := func(list []Manner) float64 {
			var sum Counts
			for _, m := range list {
				sum = sum.plus(r.ByManner[m])
			}
			return float64(sum.Met) / float64(sum.Offered)
		}
		o.goodput = append(o.goodput, r.Ended/before[key])
		o.missed = append(o.missed, r.MissedOfServed())
		o.placed = append(o.placed, float64(r.ReturnedPlaced)/float64(r.Returned))
		o.returned += r.Returned
		o.obeys, o.hammers = append(o.obeys, share(obeys)), append(o.hammers, share(hammers))
	}
	return o
}

func sum(shares [manners]float64) (all float64) {
	for _, share := range shares {
		all += share
	}
	return all
}

// least of xs that are known.
func least(xs []float64) float64 {
	low := math.NaN()
	for _, x := range xs {
		if !math.IsNaN(x) && !(x >= low) {
			low = x
		}
	}
	return low
}

// TestRetryTable writes what comes of clients that come back.
func TestRetryTable(t *testing.T) {
	if *retriesFlag == 0 {
		t.Skip("go test -run TestRetryTable -v ./internal/arena -args -retries 5 prints it")
	}
	w := t.Output()
	fmt.Fprintln(w, "| fleet, load | clients | goodput of the run without retries, mean (worst) | placed of those who came when told, mean (worst) | met, who obeys | met, who does not | missed, worst |\n|---|---|---|---|---|---|---|")
	before := alone{}
	for _, fleet := range []string{"mixed", "slow"} {
		for _, load := range []int{110, 150, 225, 300} {
			for _, c := range mixes {
				c.fleet, c.load = fleet, load
				if !strings.Contains(fmt.Sprintf("%s %d %s.", fleet, load, c.name), *retriesOnly) {
					continue
				}
				o := c.play(t, before, cmp.Or(*retriesSeed, 1), uint64(*retriesFlag))
				fmt.Fprintf(w, "| %s %d %% | %s | %.1f (%.1f) | %.0f (%.0f) of %d | %.1f | %.1f | %.2f |\n", fleet, load, c.name, 100*mean(o.goodput), 100*least(o.goodput),
					100*mean(o.placed), 100*least(o.placed), o.returned/len(o.placed), 100*mean(o.obeys), 100*mean(o.hammers), 100*slices.Max(o.missed))
			}
		}
	}
}

// At more than twice the load nearly all who are told to come back and do find a
// place, and nothing is lost by waiting for them; nobody gets more by coming each
// second, as somebody new or not.
func TestWhoComesBackAsToldIsServed(t *testing.T) {
	skipUnderRace(t)
	for _, c := range []crowd{
		{fleet: "mixed", name: "told", manners: [manners]float64{Obeying: 1}},
		{fleet: "slow", name: "told", manners: [manners]float64{Obeying: 1}},
		{fleet: "mixed", name: "told, uneven", manners: [manners]float64{Obeying: 1}, uneven: true},
		{fleet: "slow", name: "told, uneven", manners: [manners]float64{Obeying: 1}, uneven: true},
		{fleet: "mixed", name: "half disguised", manners: [manners]float64{Obeying: 1, Disguised: 1}},
		{fleet: "slow", name: "half hammer", manners: [manners]float64{Obeying: 1, Hammering: 1}},
	} {
		t.Run(c.fleet+" "+c.name, func(t *testing.T) {
			t.Parallel()
			c.load = 225
			o := c.play(t, alone{}, 1, 2)
			t.Logf("goodput %.3f of the run without retries; placed %.3f of those who came when told; met %.3f of those who obey, %.3f of those who do not", o.goodput, o.placed, o.obeys, o.hammers)
			most := 0.97
			if c.uneven { // without retries the short prompts alone are served, which cost less
				most = 0.93
			}
			if low := least(o.goodput); !(low >= most) {
				t.Errorf("goodput is %.1f %% of the run without retries, want %.0f %%", 100*low, 100*most)
			}
			want := 0.8
			if c.manners[Obeying] < sum(c.manners) { // what is expected of a crowd goes by chance
				want = 0.7
			}
			if placed := mean(o.placed); !(placed >= want) {
				t.Errorf("%.1f %% of those who came when told are placed, want %.0f %%", 100*placed, 100*want)
			}
			for i, obeys := range o.obeys {
				if obeys < o.hammers[i] {
					t.Errorf("%.1f %% of those who obey are served, and %.1f %% of those who do not", 100*obeys, 100*o.hammers[i])
				}
			}
		})
	}
}

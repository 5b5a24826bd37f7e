package arena

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

var (
	seedsFlag = flag.Int("seeds", 0, "seeds that each pool and policy is played with for the table; 0 = no table")
	tableFlag = flag.String("table", "", "file to write the table to")
)

// gradeSeeds are those of the goals and of the days on which something changes.
const gradeSeeds = 5

// cell is one policy on one pool, over all seeds.
type cell struct {
	promised, all    Counts
	goodput          float64 // of the routes with a floor, mean of the seeds
	p10              float64 // tokens/s, lowest of the seeds
	ttft             time.Duration
	requests, tokens int
	wall             time.Duration
}

func (c *cell) add(p *pool, r *Result, seeds int) {
	sum := p.promised(r)
	c.promised = c.promised.plus(sum)
	for i := range r.Routes {
		x := &r.Routes[i]
		c.all = c.all.plus(x.Counts)
		if !p.routes[i].floored() {
			continue
		}
		c.goodput += x.Goodput / float64(seeds)
		if c.p10 == 0 || x.TPSP10 < c.p10 {
			c.p10 = x.TPSP10
		}
		c.ttft = max(c.ttft, x.TTFTP99)
	}
	c.requests += r.Requests
	c.tokens += r.Tokens
	c.wall += r.Wall
}

// TestTable plays every policy on every pool and writes what docs/ARENA-TABLE.md
// shows: make arena.
func TestTable(t *testing.T) {
	if *seedsFlag == 0 {
		t.Skip("make arena plays it")
	}
	list := pools()
	cells := make([]map[Policy]*cell, len(list))
	bounds, assignments := make([]float64, len(list)), make([]float64, len(list))
	t.Run("pools", func(t *testing.T) {
		for i := range list {
			cells[i] = map[Policy]*cell{}
			t.Run(list[i].name, func(t *testing.T) {
				t.Parallel()
				for seed := range *seedsFlag {
					bounds[i] += list[i].upperBound(uint64(seed + 1))
					assignments[i] += list[i].assignment(uint64(seed + 1))
				}
				for _, policy := range Policies() {
					c := &cell{}
					for seed := range *seedsFlag {
						c.add(&list[i], play(t, list[i].scenario(policy, uint64(seed+1))), *seedsFlag)
					}
					cells[i][policy] = c
					if most := math.Ceil(bounds[i]); float64(c.promised.Met) > most {
						t.Errorf("%s: %d met of at most %.0f", policy, c.promised.Met, most)
					}
				}
			})
		}
	})
	loads := highestLoads(t)
	f := must.Get(os.Create(*tableFlag))(t)
	defer f.Close()
	p := newPlays(t)
	writeGrades(p, f, 1, gradeSeeds)
	writeChanges(p, f, 1, gradeSeeds)
	writeTable(f, list, cells, bounds, assignments)
	writeLoads(f, loads)
}

// highest finds the highest load that a policy takes with 99 % attainment.
func highest(t *testing.T, p pool, policy Policy, from, to float64) float64 {
	for to-from > 0.25 {
		rate := (from + to) / 2
		p.load = steady(rate)
		c := p.promised(play(t, p.scenario(policy, 1)))
		if c.Attainment() >= 0.99 {
			from = rate
		} else {
			to = rate
		}
	}
	return from
}

// highestLoads are the requests/s that each policy takes on the mixed pool,
// from a cold start and after 100 s.
func highestLoads(t *testing.T) map[Policy][2]float64 {
	var mu sync.Mutex
	loads := map[Policy][2]float64{}
	t.Run("loads", func(t *testing.T) {
		for _, policy := range Policies() {
			t.Run(string(policy), func(t *testing.T) {
				t.Parallel()
				h := pools()[0]
				cold := highest(t, h, policy, 0.5, 26)
				h.warmup = 100 * time.Second
				warm := highest(t, h, policy, 0.5, 26)
				mu.Lock()
				defer mu.Unlock()
				loads[policy] = [2]float64{cold, warm}
			})
		}
	})
	return loads
}

func writeTable(w io.Writer, list []pool, cells []map[Policy]*cell, bounds, assignments []float64) {
	for i, p := range list {
		fmt.Fprintf(w, "**%s**: %s\n\n", p.name, p.what)
		fmt.Fprintln(w, "| policy | attainment | missed of served | shed | prompts served | goodput | TPS p10 | TTFT p99 | all requests: met |")
		fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
		offered := cells[i][Pacer].promised
		judged := float64(offered.Offered - offered.Unmeasured)
		fmt.Fprintf(w, "| upper bound | %.1f %% | | | | | | | |\n| assignment | %.1f %% | | | | | | | |\n", 100*bounds[i]/judged, 100*assignments[i]/judged)
		for _, policy := range Policies() {
			c := cells[i][policy]
			x := &c.promised
			fmt.Fprintf(w, "| %s | %.1f %% | %.2f %% | %.1f %% | ×%.3f | %.0f | %.1f | %.1f s | %.1f %% |\n", policy,
				100*x.Attainment(), 100*x.MissedOfServed(), 100*float64(x.Shed)/float64(x.Offered),
				x.servedPrompt()/(float64(x.PromptTokens)/float64(x.Offered)),
				c.goodput, c.p10, c.ttft.Seconds(), 100*float64(c.all.Met)/float64(c.all.Offered))
		}
		fmt.Fprintln(w)
	}
}

func writeLoads(w io.Writer, loads map[Policy][2]float64) {
	fmt.Fprintln(w, "| highest load on H at 99 % | from a cold start | after 100 s |\n|---|---|---|")
	for _, policy := range Policies() {
		fmt.Fprintf(w, "| %s | %.1f/s | %.1f/s |\n", policy, loads[policy][0], loads[policy][1])
	}
}

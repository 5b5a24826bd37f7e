package arena

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// The goals, with one seed and 300 s; make arena plays more seeds, every policy,
// and prints the table of docs/ARENA-TABLE.md.
const (
	ofOracle      = 0.98 // of the oracle's attainment
	ofNoMargin    = 0.90 // and of that without a margin
	mostMissed    = 0.01 // of the admitted, by their floor
	promptMix     = 0.05 // by which the served prompts may be shorter than the oracle's
	soonest       = 2 * time.Second
	returnsPlaced = 0.80 // of those who come back when they were told
)

// play runs one scenario.
func play(t *testing.T, s Scenario) *Result {
	t.Helper()
	r := must.Get(Run(t.Context(), s))(t)
	return &r
}

func skipUnderRace(t *testing.T) {
	if racetest.On {
		t.Skip("minutes of traffic on one goroutine: make numbers runs it")
	}
}

// promised adds up the routes with a floor.
func (p *pool) promised(r *Result) Counts {
	var sum Counts
	for i := range p.routes {
		if !p.routes[i].floored() {
			continue
		}
		sum = sum.plus(r.Routes[i].Counts)
	}
	return sum
}

func (c Counts) plus(o Counts) Counts {
	c.Offered += o.Offered
	c.Met += o.Met
	c.Missed += o.Missed
	c.Late += o.Late
	c.Shed += o.Shed
	c.Unmeasured += o.Unmeasured
	c.Failed += o.Failed
	c.PromptTokens += o.PromptTokens
	c.ServedPromptTokens += o.ServedPromptTokens
	return c
}

// servedPrompt is the mean prompt of those that were served.
func (c *Counts) servedPrompt() float64 {
	return float64(c.ServedPromptTokens) / float64(c.Met+c.Missed+c.Unmeasured)
}

func TestEveryPoolComesCloseToItsOracle(t *testing.T) {
	skipUnderRace(t)
	for _, p := range pools() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			// The oracle's margin is what Pacer's was at the same second.
			margins := make([]margins, max(p.seeds, 1))
			sum := func(policy Policy, told bool) (all Counts, last *Result) {
				for i := range margins {
					s := p.scenario(policy, uint64(i+1))
					if told {
						s.margins = &margins[i]
					}
					last = play(t, s)
					all = all.plus(p.promised(last))
				}
				return all, last
			}
			got, pacer := sum(Pacer, true)
			oracle, _ := sum(Oracle, true)
			bare, _ := sum(OracleNoMargin, false)
			most := 0.0
			for i := range margins {
				most += p.upperBound(uint64(i + 1))
			}
			if met := max(got.Met, oracle.Met, bare.Met); float64(met) > math.Ceil(most) {
				t.Errorf("%d met, which is more than the %.0f that any policy can", met, most)
			}
			t.Logf("attainment %.2f %%, oracle %.2f %%, without margin %.2f %%; missed %.2f %% of the served; prompts %.0f, oracle %.0f",
				100*got.Attainment(), 100*oracle.Attainment(), 100*bare.Attainment(), 100*got.MissedOfServed(), got.servedPrompt(), oracle.servedPrompt())
			if len(margins[0].taught) == 0 {
				t.Error("no margin of Pacer's was noted")
			}
			if ratio := got.Attainment() / oracle.Attainment(); !(ratio >= ofOracle) {
				t.Errorf("%.1f %% of the oracle's attainment, want %.0f %%", 100*ratio, 100*ofOracle)
			}
			if ratio := got.Attainment() / bare.Attainment(); !(ratio >= ofNoMargin) {
				t.Errorf("%.1f %% of the attainment without a margin, want %.1f %%", 100*ratio, 100*ofNoMargin)
			}
			if missed := got.MissedOfServed(); !(missed <= mostMissed) {
				t.Errorf("%.2f %% of the admitted missed their floor, want at most %.0f %%", 100*missed, 100*mostMissed)
			}
			if ratio := got.servedPrompt() / oracle.servedPrompt(); !(ratio >= 1-promptMix) {
				t.Errorf("the prompts that were served are %.1f %% of the oracle's: long ones are shed", 100*ratio)
			}
			if p.name != "N" {
				return
			}
			if first := pacer.route("chat").FirstPlaced; first < 0 || first > soonest {
				t.Errorf("the first user was placed after %v, want %v at most", first, soonest)
			}
		})
	}
}

// What Pacer takes with 99 %, from a cold start and, since a policy that herds at
// first may recover, of what comes after 100 s: twice as much as least requests, and
// 1.15 times as much as a moving average. make arena searches for the highest loads.
func TestTheMixedPoolTakesMore(t *testing.T) {
	skipUnderRace(t)
	for _, warmup := range []time.Duration{0, 100 * time.Second} {
		for policy, rate := range map[Policy]float64{Pacer: 18, LeastRequests: 18 / 2, EWMA: 18 / 1.15} {
			t.Run(string(policy)+" after "+warmup.String(), func(t *testing.T) {
				t.Parallel()
				h := pools()[0]
				h.warmup, h.load = warmup, steady(rate)
				c := h.promised(play(t, h.scenario(policy, 1)))
				t.Logf("%.2f %% at %.1f requests/s", 100*c.Attainment(), rate)
				if takes := c.Attainment() >= 0.99; takes != (policy == Pacer) {
					t.Errorf("%.1f %% of %.1f requests/s after %v", 100*c.Attainment(), rate, warmup)
				}
			})
		}
	}
}

func TestAPoolOfEqualsIsNoWorse(t *testing.T) {
	skipUnderRace(t)
	for _, p := range pools() {
		if p.name != "I" {
			continue
		}
		for _, rate := range []float64{6, 8.5, 11} {
			p.load = steady(rate)
			got := p.promised(play(t, p.scenario(Pacer, 1)))
			least := p.promised(play(t, p.scenario(LeastRequests, 1)))
			t.Logf("at %.1f requests/s %.2f %%, least requests %.2f %%", rate, 100*got.Attainment(), 100*least.Attainment())
			if got.Attainment() < least.Attainment()-0.01 {
				t.Errorf("at %.1f requests/s %.2f %%, least requests have %.2f %%", rate, 100*got.Attainment(), 100*least.Attainment())
			}
		}
	}
}

func TestWhoComesBackWhenToldIsPlaced(t *testing.T) {
	skipUnderRace(t)
	for _, p := range pools() {
		if p.name != "S" {
			continue
		}
		p.retries = 10
		r := play(t, p.scenario(Pacer, 1)).route("chat")
		share := float64(r.ReturnedPlaced) / float64(r.Returned)
		t.Logf("%d came back, %.1f %% were placed; attainment %.1f %%", r.Returned, 100*share, 100*r.Attainment())
		if r.Returned < 100 || share < returnsPlaced {
			t.Errorf("%d came back and %.1f %% were placed, want %.0f %%", r.Returned, 100*share, 100*returnsPlaced)
		}
		if served := float64(r.Met) / float64(r.Offered); served < 0.995 || r.Returned > 2000 {
			t.Errorf("%.2f %% were served after %d returns, want 99.5 %% and at most 2,000", 100*served, r.Returned)
		}
	}
}

// BenchmarkRun is a simulated request: a third of a millisecond is the budget,
// so that one core plays 3,000 a second.
func BenchmarkRun(b *testing.B) {
	for _, policy := range []Policy{Pacer, Oracle, LeastRequests} {
		b.Run(string(policy), func(b *testing.B) {
			b.ReportAllocs()
			h := pools()[0]
			requests := 0
			for b.Loop() {
				r := must.Get(Run(b.Context(), h.scenario(policy, 1)))(b)
				requests += r.Requests
			}
			b.ReportMetric(float64(requests)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

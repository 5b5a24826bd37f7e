package arena

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// writeChanges writes the table of the days on which something changes: mean and
// worst seed.
func writeChanges(p *plays, w io.Writer, first, seeds int) {
	fmt.Fprintln(w, "| pool | what | policy | met | goodput, mean (worst seed) | missed, mean (worst seed) | prompts served |\n|---|---|---|---|---|---|---|")
	for _, q := range slices.Concat(changes(), formPools()) {
		for _, policy := range []Policy{Pacer, LeastCapped} {
			var sum Counts
			var goodput, missed []float64
			for i := range seeds {
				seed := uint64(first + i)
				c := p.promised(q.name, policy, seed)
				sum = sum.plus(c)
				goodput, missed = append(goodput, p.goodput(q.name, policy, seed)), append(missed, c.MissedOfServed())
			}
			fmt.Fprintf(w, "| %s | %s | %s | %.1f %% | %.0f (%.0f) | %.2f %% (%.2f %%) | ×%.2f |\n", q.name, q.what, policy, 100*sum.Attainment(),
				mean(goodput), slices.Min(goodput), 100*sum.MissedOfServed(), 100*slices.Max(missed),
				sum.servedPrompt()/(float64(sum.PromptTokens)/float64(sum.Offered)))
		}
	}
	fmt.Fprintln(w)
}

// While all engines are too slow nobody can be served. In the second minute after
// they are well again as many are as if nothing had been.
func TestAFloorComesBackIntoReach(t *testing.T) {
	skipUnderRace(t)
	engines := append(slowPrefill(), slowed("llama", "llama-3.1-70b/h200/vllm", 2.6))
	const seed, minutes = 3, 4
	second := func(faults []Fault) float64 {
		r := play(t, Scenario{
			Backends: engines, Routes: []Route{chat("chat", 30, engines)}, Load: chatting(9, minutes*time.Minute)(seed),
			Policy: Pacer, Duration: minutes * time.Minute, Seed: seed, Faults: faults,
		})
		return r.Routes[0].MetTokens[minutes-1] / 60
	}
	want := second(nil)
	if got := second(slowdown(engines, time.Minute, time.Minute, 3)); got < 0.85*want {
		t.Errorf("%.0f tokens/s of kept streams, want at least 85 %% of %.0f", got, want)
	}
}

package arena

import (
	"fmt"
	"io"
	"slices"
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

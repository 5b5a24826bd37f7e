package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/report"
)

// Card puts results side by side at one level, the fastest first.
type Card struct {
	// N is the level, in users at once.
	N       int         `json:"n"`
	Results []CardEntry `json:"results"`
}

// CardEntry is what one result says of the level, and under which conditions.
type CardEntry struct {
	URL     string    `json:"url"`
	Model   string    `json:"model"`
	Prompt  string    `json:"prompt_tokens"`
	Output  string    `json:"output_tokens"`
	Started time.Time `json:"started"`

	// At is the level; null = it was not measured.
	At *Point `json:"at"`

	// FailedShare is of all requests of the level those that failed; null = there were none.
	FailedShare *float64 `json:"failed"`

	// USDPerMillion is USD per million output tokens at this level; null = no price.
	USDPerMillion *float64 `json:"usd_per_million_output_tokens"`
}

// NewCard compares answers at n users; n = 0 is the largest level that all have, else
// that any has. usdPerHour is what each costs an hour, in their order; empty = not
// known. The error says which level is missing.
func NewCard(answers []*Answer, n int, usdPerHour []float64) (*Card, error) {
	if len(usdPerHour) > 0 && len(usdPerHour) != len(answers) {
		return nil, fmt.Errorf("%d prices for %d results; write one for each", len(usdPerHour), len(answers))
	}
	if n == 0 {
		n = commonLevel(answers)
	}
	c := &Card{N: n}
	some := false
	for i, a := range answers {
		e := CardEntry{URL: a.URL, Model: a.Model, Prompt: a.Prompt, Output: a.Output, Started: a.Started}
		if e.At = a.at(n); e.At != nil {
			some = true
			if all := e.At.Streams + e.At.Shed + e.At.Failed; all > 0 {
				share := float64(e.At.Failed+e.At.Shed) / float64(all)
				e.FailedShare = &share
			}
			if len(usdPerHour) > 0 && e.At.AggregateTPS > 0 {
				usd := usdPerHour[i] / (e.At.AggregateTPS * 3600) * 1e6
				e.USDPerMillion = &usd
			}
		}
		c.Results = append(c.Results, e)
	}
	if !some {
		return nil, fmt.Errorf("no result has the level n = %d; measure it with pacer bench --n %d", n, n)
	}
	slices.SortStableFunc(c.Results, func(a, b CardEntry) int { return cmp.Compare(b.tps(), a.tps()) })
	return c, nil
}

func (e *CardEntry) tps() float64 {
	if e.At == nil {
		return math.Inf(-1)
	}
	return e.At.TPS
}

// at is the level of n users; nil = it was not measured.
func (a *Answer) at(n int) *Point {
	for i := range a.Points {
		if p := &a.Points[i]; p.N == n && p.Rate == 0 {
			return p
		}
	}
	return nil
}

// commonLevel is the largest level that most of the answers have.
func commonLevel(answers []*Answer) int {
	best, most := 0, 0
	for _, a := range answers {
		for i := range a.Points {
			n, have := a.Points[i].N, 0
			if a.Points[i].Rate > 0 {
				continue
			}
			for _, b := range answers {
				if b.at(n) != nil {
					have++
				}
			}
			if have > most || have == most && n > best {
				best, most = n, have
			}
		}
	}
	return best
}

// Print writes a Markdown table, and the conditions.
func (c *Card) Print(out io.Writer) error {
	w := report.NewWriter(out)
	line := func(cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line("target", fmt.Sprintf("TPS at n = %d", c.N), "TPS p10 / p50", "TTFT p50 / p99", "failed", "tokens/s in all", "USD/M output tokens", "prompt", "answer", "measured", "streams")
	line(slices.Repeat([]string{"---"}, 11)...)
	for i := range c.Results {
		e := &c.Results[i]
		name := cardCell(e.URL + " · " + e.Model)
		when := e.Started.Format("2006-01-02 15:04 UTC")
		if e.At == nil {
			line(name, "–", "–", "–", "–", "–", "–", cardCell(e.Prompt), cardCell(e.Output), when, "–")
			continue
		}
		p, failed, usd := e.At, "–", "–"
		if e.FailedShare != nil {
			failed = report.Percent(*e.FailedShare)
		}
		if e.USDPerMillion != nil {
			usd = report.Brief(*e.USDPerMillion)
		}
		tps := report.Brief(p.TPS)
		if p.TPSCI > 0 {
			tps += " ± " + report.Brief(p.TPSCI)
		}
		line(name, tps, perSecond(p.TPOT.P90)+" / "+perSecond(p.TPOT.P50), report.Seconds(p.TTFTs.P50)+" / "+report.Seconds(p.TTFTs.P99), failed,
			report.Brief(p.AggregateTPS), usd, cardCell(e.Prompt), cardCell(e.Output), when, fmt.Sprint(p.Streams))
	}
	fmt.Fprintf(w, "\nThe fastest first, at %d users at once. TPS p10: nine of ten streams were faster. Failed: with those that were shed. Tokens are each target's own: the same text may be up to 40 %% more of them elsewhere. –: not known.\n", c.N)
	return w.Err()
}

// perSecond is the speed of a stream with so many seconds a token.
func perSecond(tpot float64) string {
	if tpot <= 0 {
		return "–"
	}
	return report.Brief(1 / tpot)
}

// cardCell is text of others in a table of Markdown.
func cardCell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "`", "'").Replace(report.Harmless(text))
}

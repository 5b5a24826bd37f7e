package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/pacer-dev/pacer/internal/report"
)

// Print writes the tables.
func (a *Answer) Print(out io.Writer) error {
	w := report.NewWriter(out)
	fmt.Fprintf(w, "%s · %s: prompts of %s tokens, answers of %s at most, %s", a.URL, report.Harmless(a.Model), a.Prompt, a.Output, a.Length())
	if a.Repeats > 1 {
		fmt.Fprintf(w, ", %d times each", a.Repeats)
	}
	fmt.Fprintf(w, "\n\n%8s %18s %14s %12s %9s %9s %6s %6s\n", "n", "TOKENS/S EACH", "TOKENS/S ALL", "GOODPUT/S", "TOKENS", "STREAMS", "SHED", "FAILED")
	for _, p := range a.Points {
		each := fmt.Sprintf("%.4g", p.TPS)
		if p.TPSCI > 0 {
			each += fmt.Sprintf(" ± %.2g", p.TPSCI)
		}
		fmt.Fprintf(w, "%8s %18s %14.5g %12.4g %9.0f %9d %6d %6d\n", label(&p), each, p.AggregateTPS, p.Goodput, p.Tokens, p.Streams, p.Shed, p.Failed)
	}
	fmt.Fprintf(w, "\n%8s %26s   %29s   %26s\n", "", "TTFT s", "TPOT ms", "E2E s")
	fmt.Fprintf(w, "%8s %8s %8s %8s   %9s %9s %9s   %8s %8s %8s\n", "n", "p50", "p90", "p99", "p50", "p90", "p99", "p50", "p90", "p99")
	for _, p := range a.Points {
		fmt.Fprintf(w, "%8s %8.3g %8.3g %8.3g   %9.4g %9.4g %9.4g   %8.3g %8.3g %8.3g\n", label(&p),
			p.TTFTs.P50, p.TTFTs.P90, p.TTFTs.P99, 1e3*p.TPOT.P50, 1e3*p.TPOT.P90, 1e3*p.TPOT.P99, p.E2E.P50, p.E2E.P90, p.E2E.P99)
	}
	fmt.Fprintln(w)
	if a.Knee > 0 {
		fmt.Fprintf(w, "knee: beyond n = %.0f more users bring little more in all\n", a.Knee)
	}
	switch {
	case a.Floor <= 0 || a.Points[0].Rate > 0:
	case a.AtFloor == 0:
		fmt.Fprintf(w, "at %g tokens/s each: nobody\n", a.Floor)
	case a.AtFloorLeast:
		fmt.Fprintf(w, "at %g tokens/s each: %.0f users at least\n", a.Floor, a.AtFloor)
	default:
		fmt.Fprintf(w, "at %g tokens/s each: %.0f users\n", a.Floor, a.AtFloor)
	}
	for _, l := range a.Failed {
		fmt.Fprintf(w, "%s was not measured: %s\n", l, l.Error)
	}
	return w.Err()
}

// Length says how long each level is.
func (a *Answer) Length() string {
	if a.Requests > 0 {
		return fmt.Sprintf("%d requests a level", a.Requests)
	}
	return fmt.Sprintf("%v s a level after %v s of warm-up", a.DurationS, a.WarmupS)
}

// label names a level in a table.
func label(p *Point) string {
	if p.Rate > 0 {
		return fmt.Sprintf("%.3g/s", p.Rate)
	}
	return strconv.Itoa(p.N)
}

// CSV writes what a prior reads.
func (a *Answer) CSV(out io.Writer) error {
	w := report.NewWriter(out)
	fmt.Fprintln(w, "n,tps,ttft_s")
	for _, p := range a.Points {
		fmt.Fprintf(w, "%d,%s,%s\n", p.N, strconv.FormatFloat(p.TPS, 'g', 6, 64), strconv.FormatFloat(p.TTFT, 'g', 6, 64))
	}
	return w.Err()
}

// Read reads what --json wrote.
func Read(name string, data []byte) (*Answer, error) {
	var a Answer
	if json.Unmarshal(data, &a) != nil || len(a.Points) == 0 {
		return nil, fmt.Errorf("%s is no result of pacer bench --json", name)
	}
	return &a, nil
}

// Change is one level of two runs.
type Change struct {
	Level string `json:"level"`
	A     *Point `json:"a"`
	B     *Point `json:"b"`

	// TPS is by how much B is faster, as a share; Sure says that it is more than what
	// the repeats of both differ by.
	TPS  float64 `json:"tps_change"`
	Sure *bool   `json:"beyond_confidence"` // null = a run has no repeats
}

// Compare puts the levels of two runs side by side; those of one alone are left
// out.
func Compare(a, b *Answer) []Change {
	out := []Change{}
	for i := range a.Points {
		for j := range b.Points {
			p, q := &a.Points[i], &b.Points[j]
			if (p.Rate > 0) != (q.Rate > 0) || p.Rate == 0 && p.N != q.N || p.Rate > 0 && math.Abs(p.Rate/q.Rate-1) > 0.1 {
				continue
			}
			c := Change{Level: label(p), A: p, B: q, TPS: q.TPS/p.TPS - 1}
			if p.TPSCI > 0 && q.TPSCI > 0 {
				sure := math.Abs(q.TPS-p.TPS) > math.Hypot(p.TPSCI, q.TPSCI)
				c.Sure = &sure
			}
			out = append(out, c)
			break
		}
	}
	return out
}

// PrintChanges writes the table of Compare.
func PrintChanges(out io.Writer, a, b *Answer, changes []Change) error {
	w := report.NewWriter(out)
	fmt.Fprintf(w, "a: %s · %s, %s\nb: %s · %s, %s\n\n", a.URL, report.Harmless(a.Model), a.Started.Format("2006-01-02 15:04"), b.URL, report.Harmless(b.Model), b.Started.Format("2006-01-02 15:04"))
	fmt.Fprintf(w, "%8s %12s %12s %9s   %10s %10s   %10s %10s   %s\n", "n", "TOKENS/S a", "b", "", "TTFT p50 a", "b", "TTFT p99 a", "b", "")
	for _, c := range changes {
		word := ""
		if c.Sure != nil {
			word = map[bool]string{true: "beyond the confidence of both", false: "within the confidence of both"}[*c.Sure]
		}
		fmt.Fprintf(w, "%8s %12.4g %12.4g %+8.1f%%   %8.3g s %8.3g s   %8.3g s %8.3g s   %s\n",
			c.Level, c.A.TPS, c.B.TPS, 100*c.TPS, c.A.TTFTs.P50, c.B.TTFTs.P50, c.A.TTFTP99, c.B.TTFTP99, word)
	}
	return w.Err()
}

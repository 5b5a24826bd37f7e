package accuracy

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/internal/racetest"
)

var (
	seedsFlag = flag.Int("seeds", 0, "seeds of each row; 0 = a few")
	tableFlag = flag.String("table", "", "file to write the table of all rows to")
)

// seeds is how many runs each row rests on.
func seeds() int { return cmp.Or(*seedsFlag, 9) }

// figure is one measured number.
type figure struct {
	name  string
	got   float64
	goal  float64 // what was set out for; 0 = none, it is shown
	gate  float64 // what the test holds, where the goal is out of reach; 0 = the goal
	least bool    // goal and gate are the least it may be, not the most
}

func (f figure) beyond(limit float64) bool {
	return limit != 0 && (math.IsNaN(f.got) || f.least && f.got < limit || !f.least && f.got > limit)
}

// line is one line of the table.
type line struct {
	what     string
	figures  []figure
	controls []string // what else ran on the same streams
	why      string   // a goal is missed
}

// row measures some lines.
type row struct {
	name    string
	measure func(t *testing.T) []line
}

// TestGoals measures every row and holds it against its goals. A goal that is
// not reached is named beside the gate that keeps what is reached.
func TestGoals(t *testing.T) {
	if racetest.On {
		t.Skip("nothing here is concurrent: make numbers runs it")
	}
	var mu sync.Mutex
	lines := map[string][]line{}
	t.Run("row", func(t *testing.T) {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				list := r.measure(t)
				for _, l := range list {
					l.check(t)
				}
				mu.Lock()
				defer mu.Unlock()
				lines[r.name] = list
			})
		}
	})
	if *tableFlag != "" {
		var b strings.Builder
		b.WriteString("| what | goal | measured | | beside it |\n|---|---|---|---|---|\n")
		for _, r := range rows {
			for _, l := range lines[r.name] {
				b.WriteString(l.String())
			}
		}
		fmt.Fprintf(&b, "\n%d seeds.\n", seeds())
		if err := os.WriteFile(*tableFlag, []byte(b.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func (l line) check(t *testing.T) {
	t.Helper()
	t.Logf("%s", l)
	for _, f := range l.figures {
		limit, bound := f.gate, "at most"
		if limit == 0 {
			limit = f.goal
		}
		if f.least {
			bound = "at least"
		}
		if f.beyond(limit) {
			t.Errorf("%s: %s is %.2f, want %s %.4g", l.what, f.name, f.got, bound, limit)
		}
		if f.beyond(f.goal) && f.gate == 0 {
			t.Errorf("%s: %s misses its goal of %.4g", l.what, f.name, f.goal)
		}
	}
}

// String is the line as a line of a table.
func (l line) String() string {
	var goals, got []string
	verdict := "reached"
	none := true
	for _, f := range l.figures {
		got = append(got, f.name+" "+number(f.got))
		if f.goal == 0 {
			continue
		}
		none = false
		sign := "≤"
		if f.least {
			sign = "≥"
		}
		goals = append(goals, fmt.Sprintf("%s %s %.4g", f.name, sign, f.goal))
		if f.beyond(f.goal) {
			verdict = "**missed**: " + l.why
		}
	}
	if none {
		verdict = "shown"
		if l.why != "" {
			verdict += ": " + l.why
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", l.what, strings.Join(goals, ", "), strings.Join(got, ", "), verdict, strings.Join(l.controls, "; "))
}

// quantile is the value at q of 0 to 1, by the nearest rank; NaN of nothing.
func quantile(list []float64, q float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median(list []float64) float64 { return quantile(list, 0.5) }

// number writes a figure with three digits, and a rounding error as 0.
func number(x float64) string {
	if math.Abs(x) < 1e-7 {
		return "0"
	}
	return fmt.Sprintf("%.3g", x)
}

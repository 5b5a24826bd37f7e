package report

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		Figure(math.NaN(), 1): "–", Figure(1.5, 2): "1.50", Positive(0.0, 1): "–", Positive(2.0, 1): "2.0",
		Percent(0.99999): "99.9 %", Percent(1.0): "100.0 %",
		Brief(1234.5): "1234", Brief(0.12345): "0.123", Cell(math.Inf(1)): "", Count(1.2e6): "1.2 M", Count(999): "999",
		Thousands(0): "0", Thousands(999): "999", Thousands(11_900): "11,900", Thousands(-1_234_567): "-1,234,567",
		Seconds(0): "0", Seconds(1.234): "1.23s", Seconds(123): "123s",
		Ago(99 * time.Second): "99 s", Ago(100 * time.Second): "2 min", Ago(47 * time.Hour): "47 h", Ago(48 * time.Hour): "2 days",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A narrow terminal loses the columns that are named, in their order, and no
// more than it has to.
func TestTableFits(t *testing.T) {
	rows := Table{Head: []string{"name", "first", "second", "third"}, Left: 1, Drop: []string{"second", "first"}, Indent: "  "}
	rows.Add("a\x1b[2J", "1", "22", "é")
	for width, want := range map[int]string{
		80: "  name   first  second  third\n  a?[2J      1      22      é\n",
		28: "  name   first  third\n  a?[2J      1      é\n",
		21: "  name   first  third\n  a?[2J      1      é\n",
		20: "  name   third\n  a?[2J      é\n",
		1:  "  name   third\n  a?[2J      é\n",
	} {
		var out strings.Builder
		rows.Print(&out, width)
		if out.String() != want {
			t.Errorf("%d columns:\n%swant\n%s", width, out.String(), want)
		}
	}
}

// A curve and a sweep are drawn in as many columns as there are, down to a grid
// of 20.
func TestPlotsFit(t *testing.T) {
	c := Curve{Support: &[2]int{1, 8}, Now: 5, Floors: []Floor{{"chat\n", 30}, {"a-name-that-is-long", 10}}, Bins: []Bin{{4, 41}}}
	for n := 1; n <= 16; n++ {
		c.Line = append(c.Line, Level{n, 100 / float64(n+1), 80 / float64(n+1)})
	}
	s := Sweep{Policies: []string{"pacer", "other"}, Goal: 0.99}
	for i := range 4 {
		s.Runs = append(s.Runs, Kept{"pacer", 0.5 + float64(i), 1}, Kept{"other", 0.5 + float64(i), 1 - 0.2*float64(i)})
	}
	for _, width := range []int{50, 100} {
		var out strings.Builder
		c.Plot(&out, width)
		s.Plot(&out, width)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns on %d: %q", n, width, line)
			}
		}
		for _, want := range []string{"chat? 30", "▲ now 5", "━", "░", "•", "·", "o", "● pacer, ○ other, ┄ wanted", "×0.5", "×3.5"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, out.String())
			}
		}
	}
}

func TestWriterRemembersItsError(t *testing.T) {
	broken := errors.New("broken")
	w := NewWriter(writerFunc(func([]byte) (int, error) { return 0, broken }))
	if n, err := w.Write([]byte("abc")); n != 3 || err != nil || !errors.Is(w.Err(), broken) {
		t.Errorf("%d, %v, and then %v", n, err, w.Err())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// What a terminal cannot hold is counted, and one line more than it holds is never
// written; a line that says "1 more" would itself take its place.
func TestCropped(t *testing.T) {
	for _, c := range []struct {
		lines, rows int
		want        string
	}{
		{3, 3, "1\n2\n3\n"},
		{4, 3, "1\n2\n… and 2 more lines\n"},
		{9, 3, "1\n2\n… and 7 more lines\n"},
		{3, 0, "1\n… and 2 more lines\n"},
		{0, 3, ""},
	} {
		var text strings.Builder
		for i := range c.lines {
			fmt.Fprintln(&text, i+1)
		}
		if got := Cropped(text.String(), c.rows); got != c.want {
			t.Errorf("%d lines in %d rows: %q, want %q", c.lines, c.rows, got, c.want)
		}
	}
}

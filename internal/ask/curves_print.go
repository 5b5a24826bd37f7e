package ask

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/report"
)

// Print draws every target, and lists its points under it.
func (a *Curves) Print(out io.Writer, width int) error {
	w := report.NewWriter(out)
	for _, line := range report.Wrap("tokens/s for ONE of n streams, after its first token, from "+a.From, width) {
		fmt.Fprintln(w, line)
	}
	if len(a.Targets) == 0 {
		fmt.Fprintln(w, "\nno targets: no route names one")
	}
	for i := range a.Targets {
		a.Targets[i].print(w, width)
	}
	if len(a.Notes) > 0 {
		fmt.Fprintln(w, "\nnot used:")
	}
	for _, n := range a.Notes {
		fmt.Fprintf(w, "  %s\n", report.Harmless(n))
	}
	return w.Err()
}

func (t *Target) print(w io.Writer, width int) {
	fmt.Fprintf(w, "\n%s\n", report.Harmless(t.title()))
	report.Indented(w, t.conditions(), width)
	if len(t.Line) == 0 {
		fmt.Fprintln(w, "  nothing is known yet: a curve takes 30 decode steps, or a prior")
	} else {
		fmt.Fprintln(w)
		t.drawing().Plot(w, width)
	}
	for _, f := range t.Floors {
		report.Indented(w, f.sentence(len(t.Line) > 0), width)
	}
	if len(t.Points) > 0 {
		fmt.Fprintln(w)
		t.table(w, width)
	}
}

// title names the target and its state.
func (t *Target) title() string {
	title := t.Backend
	if t.Model != "" {
		title += " · " + t.Model
	}
	var state []string
	if t.Kind != "" {
		state = append(state, t.Kind)
	}
	if t.State != nil && t.Health != "" {
		state = append(state, t.Health)
	}
	if len(state) > 0 {
		title += " (" + strings.Join(state, ", ") + ")"
	}
	if t.State != nil {
		title += fmt.Sprintf(": n = %d decoding, m = %d placed", t.InFlight.N, t.InFlight.M)
	}
	return title
}

// conditions say what the figures hold for and rest on.
func (t *Target) conditions() string {
	text := t.Load
	switch {
	case t.TokensSeen > 0:
		text += fmt.Sprintf("; rests on %s tokens", report.Figure(t.TokensSeen, 0))
	case t.Support != nil:
		text += "; a prior: rests on no token seen here"
	}
	if t.Age != "" {
		text += fmt.Sprintf(", the newest %s old", t.Age)
	}
	if t.Support != nil {
		seen := "seen"
		if !(t.TokensSeen > 0) {
			seen = "stated"
		}
		text += fmt.Sprintf("; %s from n = %d to %d", seen, t.Support[0], t.Support[1])
		text += fmt.Sprintf("; the bound takes off %.3g %% or more", 100*float64(t.Margin))
	}
	return text
}

func (f *Floor) sentence(known bool) string {
	if !known {
		return fmt.Sprintf("%s promises %.4g tokens/s", f.Route, float64(f.MinTPS))
	}
	reach := func(n int, isLowerBound bool) string {
		switch {
		case n == 0:
			return "not even at n = 1"
		case isLowerBound:
			return fmt.Sprintf("at least up to n = %d", n)
		}
		return fmt.Sprintf("up to n = %d", n)
	}
	text := fmt.Sprintf("%s promises %.4g tokens/s: kept %s by the curve", f.Route, float64(f.MinTPS), reach(f.Holds, f.HoldsIsLowerBound))
	if f.Capacity != nil {
		text += "; users are let in " + reach(*f.Capacity, f.CapacityIsLowerBound)
	}
	if f.Admits != nil && *f.Admits > 0 {
		least := ""
		if f.AdmitsIsLowerBound {
			least = "at least "
		}
		text += fmt.Sprintf(", %s%d more now", least, *f.Admits)
	}
	return text
}

// table lists the points. A narrow terminal loses what follows from the rest.
func (t *Target) table(w io.Writer, width int) {
	rows := report.Table{Head: []string{"n", "p", "tps", "low", "aggregate", "tokens", "steps", "age", "source"}, Indent: "  "}
	if width < 72 {
		rows.Hide("aggregate", "tokens")
	}
	for _, p := range t.Points {
		age := "–"
		if p.AgeS.Known() && p.Steps > 0 {
			age = report.Ago(time.Duration(float64(p.AgeS) * float64(time.Second)))
		}
		rows.Add(fmt.Sprint(p.N), report.Figure(p.P, 1), report.Figure(p.TPS, 1), report.Figure(p.Low, 1), report.Figure(p.AggregateTPS, 0),
			report.Figure(p.Tokens, 0), report.Figure(p.Steps, 0), age, cmp.Or(sourceOf(p), "unknown"))
	}
	rows.Print(w, width)
	report.Indented(w, "p: prompt tokens prefilled per decode step; low: the lower bound; age: of the target's newest evidence", width)
}

// drawing is the target as a plot shows it.
func (t *Target) drawing() *report.Curve {
	c := &report.Curve{Support: t.Support}
	if t.State != nil {
		c.Now = t.InFlight.N
	}
	for _, p := range t.Line {
		c.Line = append(c.Line, report.Level{N: p.N, TPS: float64(p.TPS), Low: float64(p.Low)})
	}
	for _, p := range t.Points {
		if p.StreamSeconds > 0 && p.Tokens > 0 { // else the bin saw nothing itself
			c.Bins = append(c.Bins, report.Bin{N: p.N, TPS: float64(p.Tokens / p.StreamSeconds)})
		}
	}
	for _, f := range t.Floors {
		c.Floors = append(c.Floors, report.Floor{Route: f.Route, MinTPS: float64(f.MinTPS)})
	}
	return c
}

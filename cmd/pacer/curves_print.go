package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// print draws every target, and lists its points under it.
func (a *curvesAnswer) print(out io.Writer, width int) error {
	w := &failing{out: out}
	for _, line := range wrap("tokens/s for ONE of n streams, after its first token, from "+a.From, width) {
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
		fmt.Fprintf(w, "  %s\n", harmless(n))
	}
	return w.err
}

func (t *curvesTarget) print(w io.Writer, width int) {
	fmt.Fprintf(w, "\n%s\n", harmless(t.title()))
	for _, line := range wrap(t.conditions(), width-2) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if len(t.line) == 0 {
		fmt.Fprintln(w, "  nothing is known yet: a curve takes 30 decode steps, or a prior")
	} else {
		fmt.Fprintln(w)
		plotOf(t).draw(w, width)
	}
	for _, f := range t.Floors {
		for _, line := range wrap(f.sentence(len(t.line) > 0), width-2) {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	if len(t.Points) > 0 {
		fmt.Fprintln(w)
		t.table(w, width)
	}
}

// title names the target and its state.
func (t *curvesTarget) title() string {
	title := t.Backend
	if t.Model != "" {
		title += " · " + t.Model
	}
	var state []string
	for _, s := range []string{t.Kind, t.Health} {
		if s != "" {
			state = append(state, s)
		}
	}
	if len(state) > 0 {
		title += " (" + strings.Join(state, ", ") + ")"
	}
	if t.InFlight != nil {
		title += fmt.Sprintf(": n = %d decoding, m = %d placed", t.InFlight.N, t.InFlight.M)
	}
	return title
}

// conditions say what the figures hold for and rest on.
func (t *curvesTarget) conditions() string {
	text := t.load
	switch {
	case t.TokensSeen > 0:
		text += fmt.Sprintf("; rests on %s tokens", t.TokensSeen.text(0))
	case t.Support != nil:
		text += "; a prior: rests on no token seen here"
	}
	if t.age != "" {
		text += fmt.Sprintf(", the newest %s old", t.age)
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

func (f *curvesFloor) sentence(known bool) string {
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
	return fmt.Sprintf("%s promises %.4g tokens/s: kept %s by the curve, %s by the bound, which decides", f.Route, float64(f.MinTPS),
		reach(f.Holds, f.HoldsIsLowerBound), reach(f.Admits, f.AdmitsIsLowerBound))
}

// table lists the points. A narrow terminal loses what follows from the rest.
func (t *curvesTarget) table(w io.Writer, width int) {
	wide := width >= 72
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	row := func(n, p, tps, low, aggregate, tokens, steps, age, source string) {
		if wide {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", n, p, tps, low, aggregate, tokens, steps, age, source)
		} else {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", n, p, tps, low, steps, age, source)
		}
	}
	row("n", "p", "tps", "low", "aggregate", "tokens", "steps", "age", "source")
	for _, p := range t.Points {
		age, source := "–", p.Source
		if p.AgeS.known() && p.Steps > 0 {
			age = ago(time.Duration(float64(p.AgeS) * float64(time.Second)))
		}
		if source == "" {
			source = "unknown"
		}
		row(fmt.Sprint(p.N), p.P.text(1), p.TPS.text(1), p.Low.text(1), p.AggregateTPS.text(0),
			p.Tokens.text(0), p.Steps.text(0), age, source)
	}
	tw.Flush()
	for _, line := range wrap("p: prompt tokens prefilled per decode step; low: the bound that decides; age: of the target's newest evidence", width-2) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// wrap breaks text into lines of at most width columns, at blanks.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

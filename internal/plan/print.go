package plan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/report"
)

// Print writes the answer for people.
func (a *Answer) Print(out io.Writer, width int) error {
	w := report.NewWriter(out)
	report.Paragraph(w, "", a.Verdict, width)
	fmt.Fprintln(w)
	report.Paragraph(w, "load    ", a.Load.Text+"; "+a.uncounted(), width)
	report.Paragraph(w, "fleet   ", a.fleet(), width)
	for _, c := range a.Curves {
		report.Paragraph(w, "curve   ", fmt.Sprintf("%s: %s; a prompt token takes %.3g ms (%s)",
			c.Backend, c.RestsOn, 1000*c.SecondsPerPromptToken, c.PromptCost), width)
	}
	for _, g := range a.Guarantees {
		report.Paragraph(w, "held    ", g.sentence(), width)
	}
	for _, n := range a.Notes {
		report.Paragraph(w, "note    ", n, width)
	}
	fmt.Fprintln(w)
	detailed := a.Runs
	switch {
	case a.Least != nil:
		a.printTried(w, width)
		detailed = a.found()
	case a.swept:
		a.printSweep(w, width)
		detailed = nil
	}
	if len(detailed) > 0 {
		printRoutes(w, detailed, width)
		printBackends(w, detailed, width)
	}
	if a.example {
		fmt.Fprintf(w, "\nThis is an example. Write your fleet down like it, and play your load:\n  pacer plan -c pacer.yaml --rate 5/s --prompt 1000 --output 300\n  pacer plan -c pacer.yaml --trace requests.csv\n\n%s", Example)
	}
	return w.Err()
}

// sentence says what a guarantee keeps and costs.
func (g *Guarantee) sentence() string {
	text := fmt.Sprintf("%s for %s on %s", report.Plural(g.Held, "place"), g.Route, g.Backend)
	if len(g.Costs) == 0 {
		return text + ", which no other route uses"
	}
	var costs []string
	for _, c := range g.Costs {
		without := "without limit"
		if c.Without != nil {
			without = strconv.Itoa(*c.Without)
		}
		costs = append(costs, fmt.Sprintf("%s has room for %d there, not %s", c.Route, c.Users, without))
	}
	return text + ": while nobody uses them, " + strings.Join(costs, "; ")
}

// fleet is the machines of all runs, which differ in a search alone.
func (a *Answer) fleet() string {
	text := a.Config + ": " + report.Plural(len(a.Runs[0].Backends), "machine")
	if a.Least != nil {
		return a.Config + ", with other numbers of " + a.Least[0].Backend
	}
	if usd := a.Runs[0].USDPerHour; usd.Known() {
		text += ", " + report.Figure(usd, 2) + " USD an hour"
	}
	return text
}

func (a *Answer) uncounted() string {
	if a.Runs[0].WarmupS == 0 {
		return "all of it is counted"
	}
	return fmt.Sprintf("the first %.0f s are not counted", a.Runs[0].WarmupS)
}

// found are the runs that a search ended with: by policy the least number that
// keeps what is promised, or the most that was tried.
func (a *Answer) found() []Run {
	var out []Run
	for _, l := range a.Least {
		var last *Run
		for i := range a.Runs {
			r := &a.Runs[i]
			if r.Policy == l.Policy && (l.Replicas == nil || r.Replicas == *l.Replicas) {
				last = r
			}
		}
		out = append(out, *last)
	}
	return out
}

func (a *Answer) printTried(w io.Writer, width int) {
	t := report.Table{Head: []string{a.Least[0].Backend, "policy", "kept", "enough", "USD/h", "USD/M tokens"}, Left: 2}
	for _, r := range a.Runs {
		enough := "no"
		if r.Holds {
			enough = "yes"
		}
		t.Add(strconv.Itoa(r.Replicas), r.Policy, report.Percent(r.Kept), enough, report.Figure(r.USDPerHour, 2), report.Figure(r.USDPerMillionOutputTokens, 3))
	}
	t.Print(w, width)
	fmt.Fprintln(w)
}

func (a *Answer) printSweep(w io.Writer, width int) {
	t := report.Table{Head: []string{"load", "requests/s"}, Left: 0}
	var policies []string
	for _, h := range a.Highest {
		policies = append(policies, h.Policy)
	}
	t.Head = append(t.Head, policies...)
	for i := 0; i < len(a.Runs); i += len(policies) {
		row := []string{fmt.Sprintf("×%.3g", a.Runs[i].Factor), report.Brief(a.Runs[i].Factor * a.Load.RequestsPerS)}
		for _, r := range a.Runs[i : i+len(policies)] {
			row = append(row, report.Percent(r.Kept))
		}
		t.Add(row...)
	}
	t.Print(w, width)
	fmt.Fprintln(w)
	a.sweep(policies).Plot(w, width)
	fmt.Fprintln(w)
	for _, h := range a.Highest {
		if h.Factor == nil {
			fmt.Fprintf(w, "%s: not kept at any of these loads\n", h.Policy)
			continue
		}
		fmt.Fprintf(w, "%s: kept up to ×%.3g, %s requests/s\n", h.Policy, *h.Factor, report.Brief(*h.Factor*a.Load.RequestsPerS))
	}
}

func (a *Answer) sweep(policies []string) *report.Sweep {
	s := &report.Sweep{Policies: policies, Goal: a.goal}
	for _, r := range a.Runs {
		s.Runs = append(s.Runs, report.Kept{Policy: r.Policy, Factor: r.Factor, Share: float64(r.Kept)})
	}
	return s
}

func printRoutes(w io.Writer, runs []Run, width int) {
	t := report.Table{
		Head: []string{"route", "policy", "promised", "offered", "met", "missed", "unmeasured", "shed", "failed", "kept", "goodput tok/s", "TPS p10", "TPS p50", "TTFT p50", "TTFT p99", "waited p99"},
		Left: 3,
		Drop: []string{"waited p99", "goodput tok/s", "met", "TTFT p50", "TPS p50", "missed", "shed"},
	}
	hideUnless(&t, "unmeasured", runs, func(r Route) bool { return r.Unmeasured > 0 })
	hideUnless(&t, "failed", runs, func(r Route) bool { return r.Failed > 0 })
	hideUnless(&t, "waited p99", runs, func(r Route) bool { return r.Waited.P99 > 0 })
	for _, r := range runs {
		for _, route := range r.Routes {
			t.Add(route.Route, r.Policy, promise(&route), strconv.Itoa(route.Offered), strconv.Itoa(route.Met), strconv.Itoa(route.Missed), strconv.Itoa(route.Unmeasured),
				strconv.Itoa(route.Shed), strconv.Itoa(route.Failed), report.Percent(route.Attainment), report.Figure(route.Goodput, 0),
				report.Figure(route.TPS.P10, 1), report.Figure(route.TPS.P50, 1), report.Seconds(route.TTFT.P50), report.Seconds(route.TTFT.P99), report.Seconds(route.Waited.P99))
		}
	}
	t.Print(w, width)
}

// promise is what the route promises, in words.
func promise(r *Route) string {
	var words []string
	if r.MinTPS > 0 {
		words = append(words, "≥ "+report.Brief(r.MinTPS)+" tok/s")
	}
	if r.MaxTTFTS > 0 {
		words = append(words, "TTFT ≤ "+report.Seconds(r.MaxTTFTS))
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

func printBackends(w io.Writer, runs []Run, width int) {
	fmt.Fprintln(w)
	t := report.Table{
		Head: []string{"backend", "policy", "full", "mean", "peak", "users at a floor", "tok/s", "USD/h", "USD/M tokens", "by price USD/h"}, Left: 2,
		Drop: []string{"by price USD/h", "mean", "tok/s"},
	}
	priced := slices.ContainsFunc(runs, func(r Run) bool { return r.TokensUSDPerHour.Known() })
	if !priced {
		t.Hide("by price USD/h")
	}
	for _, r := range runs {
		tokens := 0
		for _, b := range r.Backends {
			var users []string
			for _, u := range b.Users {
				least := ""
				if u.UsersIsLowerBound {
					least = "≥ "
				}
				users = append(users, fmt.Sprintf("%s%d at %s", least, u.Users, report.Brief(u.MinTPS)))
			}
			tokens += b.OutputTokens
			t.Add(b.Backend, r.Policy, report.Percent(b.Utilisation), fmt.Sprintf("%.1f", b.Mean), strconv.Itoa(b.Peak), strings.Join(users, ", "),
				fmt.Sprintf("%.0f", float64(b.OutputTokens)/r.MeasuredS), report.Figure(b.USDPerHour, 2), report.Figure(b.USDPerMillionOutputTokens, 3), report.Figure(b.TokensUSDPerHour, 2))
		}
		t.Add("all", r.Policy, "", "", "", "", fmt.Sprintf("%.0f", float64(tokens)/r.MeasuredS),
			report.Figure(r.USDPerHour, 2), report.Figure(r.USDPerMillionOutputTokens, 3), report.Figure(r.TokensUSDPerHour, 2))
	}
	t.Print(w, width)
}

// hideUnless hides a column of routes that says nothing.
func hideUnless(t *report.Table, column string, runs []Run, says func(Route) bool) {
	for _, r := range runs {
		if slices.ContainsFunc(r.Routes, says) {
			return
		}
	}
	t.Hide(column)
}

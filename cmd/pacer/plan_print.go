package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// print writes the answer for people.
func (a *planAnswer) print(out io.Writer, width int) error {
	w := &failing{out: out}
	a.paragraph(w, "", a.Verdict, width)
	fmt.Fprintln(w)
	a.paragraph(w, "load    ", a.Load.Text+"; "+a.uncounted(), width)
	a.paragraph(w, "fleet   ", a.fleet(), width)
	for _, c := range a.Curves {
		a.paragraph(w, "curve   ", fmt.Sprintf("%s: %s; a prompt token takes %.3g ms (%s)",
			c.Backend, c.RestsOn, 1000*c.SecondsPerPromptToken, c.PromptCost), width)
	}
	for _, n := range a.Notes {
		a.paragraph(w, "note    ", n, width)
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
		fmt.Fprintf(w, "\nThis is an example. Write your fleet down like it, and play your load:\n  pacer plan -c pacer.yaml --rate 5/s --prompt 1000 --output 300\n  pacer plan -c pacer.yaml --trace requests.csv\n\n%s", planExample)
	}
	return w.err
}

// paragraph writes text behind a word, which later lines leave blank.
func (a *planAnswer) paragraph(w io.Writer, word, text string, width int) {
	for _, line := range wrap(text, max(width-len(word), 30)) {
		fmt.Fprintf(w, "%s%s\n", word, line)
		word = strings.Repeat(" ", len(word))
	}
}

// fleet is the machines of all runs, which differ in a search alone.
func (a *planAnswer) fleet() string {
	text := a.Config + ": " + plural(len(a.Runs[0].Backends), "machine")
	if a.Least != nil {
		return a.Config + ", with other numbers of " + a.Least[0].Backend
	}
	if usd := a.Runs[0].USDPerHour; usd.known() {
		text += ", " + usd.text(2) + " USD an hour"
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (a *planAnswer) uncounted() string {
	if a.Runs[0].WarmupS == 0 {
		return "all of it is counted"
	}
	return fmt.Sprintf("the first %.0f s are not counted", a.Runs[0].WarmupS)
}

// found are the runs that a search ended with: by policy the least number that
// keeps what is promised, or the most that was tried.
func (a *planAnswer) found() []planRun {
	var out []planRun
	for _, l := range a.Least {
		var last *planRun
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

func (a *planAnswer) printTried(w io.Writer, width int) {
	t := table{head: []string{a.Least[0].Backend, "policy", "kept", "enough", "USD/h", "USD/M tokens"}, left: 2}
	for _, r := range a.Runs {
		enough := "no"
		if r.Holds {
			enough = "yes"
		}
		t.add(strconv.Itoa(r.Replicas), r.Policy, percent(r.Kept), enough, r.USDPerHour.text(2), r.USDPerMillionOutputTokens.text(3))
	}
	t.print(w, width)
	fmt.Fprintln(w)
}

func (a *planAnswer) printSweep(w io.Writer, width int) {
	t := table{head: []string{"load", "requests/s"}, left: 0}
	var policies []string
	for _, h := range a.Highest {
		policies = append(policies, h.Policy)
	}
	t.head = append(t.head, policies...)
	for i := 0; i < len(a.Runs); i += len(policies) {
		row := []string{fmt.Sprintf("×%.3g", a.Runs[i].Factor), brief(a.Runs[i].Factor * a.Load.RequestsPerS)}
		for _, r := range a.Runs[i : i+len(policies)] {
			row = append(row, percent(r.Kept))
		}
		t.add(row...)
	}
	t.print(w, width)
	fmt.Fprintln(w)
	newSweepPlot(a).draw(w, width)
	fmt.Fprintln(w)
	for _, h := range a.Highest {
		if h.Factor == nil {
			fmt.Fprintf(w, "%s: not kept at any of these loads\n", h.Policy)
			continue
		}
		fmt.Fprintf(w, "%s: kept up to ×%.3g, %s requests/s\n", h.Policy, *h.Factor, brief(*h.Factor*a.Load.RequestsPerS))
	}
}

func printRoutes(w io.Writer, runs []planRun, width int) {
	t := table{
		head: []string{"route", "policy", "promised", "offered", "met", "missed", "unmeasured", "shed", "failed", "kept", "goodput tok/s", "TPS p10", "TPS p50", "TTFT p50", "TTFT p99", "waited p99"},
		left: 3,
		drop: []string{"waited p99", "goodput tok/s", "met", "TTFT p50", "TPS p50", "missed", "shed"},
	}
	t.hideUnless("unmeasured", runs, func(r planRoute) bool { return r.Unmeasured > 0 })
	t.hideUnless("failed", runs, func(r planRoute) bool { return r.Failed > 0 })
	t.hideUnless("waited p99", runs, func(r planRoute) bool { return r.Waited.P99 > 0 })
	for _, r := range runs {
		for _, route := range r.Routes {
			t.add(route.Route, r.Policy, route.promise(), strconv.Itoa(route.Offered), strconv.Itoa(route.Met), strconv.Itoa(route.Missed), strconv.Itoa(route.Unmeasured),
				strconv.Itoa(route.Shed), strconv.Itoa(route.Failed), percent(route.Attainment), route.Goodput.text(0),
				route.TPS.P10.text(1), route.TPS.P50.text(1), seconds(route.TTFT.P50), seconds(route.TTFT.P99), seconds(route.Waited.P99))
		}
	}
	t.print(w, width)
}

// promise is what the route promises, in words.
func (r *planRoute) promise() string {
	var words []string
	if r.MinTPS > 0 {
		words = append(words, "≥ "+brief(r.MinTPS)+" tok/s")
	}
	if r.MaxTTFTS > 0 {
		words = append(words, "TTFT ≤ "+seconds(r.MaxTTFTS))
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// brief is x in three digits, or as many as it has before the point.
func brief(x float64) string {
	if x >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func printBackends(w io.Writer, runs []planRun, width int) {
	fmt.Fprintln(w)
	t := table{
		head: []string{"backend", "policy", "busy", "peak", "users at a floor", "tok/s", "USD/h", "USD/M tokens", "by price USD/h"}, left: 2,
		drop: []string{"by price USD/h", "tok/s"},
	}
	priced := slices.ContainsFunc(runs, func(r planRun) bool { return r.TokensUSDPerHour.known() })
	if !priced {
		t.hide("by price USD/h")
	}
	for _, r := range runs {
		tokens := 0
		for _, b := range r.Backends {
			var users []string
			for _, u := range b.Users {
				users = append(users, fmt.Sprintf("%d at %s", u.Users, brief(u.MinTPS)))
			}
			tokens += b.OutputTokens
			t.add(b.Backend, r.Policy, percent(figure(b.Utilisation)), strconv.Itoa(b.Peak), strings.Join(users, ", "),
				fmt.Sprintf("%.0f", float64(b.OutputTokens)/r.MeasuredS), b.USDPerHour.text(2), b.USDPerMillionOutputTokens.text(3), b.TokensUSDPerHour.text(2))
		}
		t.add("all", r.Policy, "", "", "", fmt.Sprintf("%.0f", float64(tokens)/r.MeasuredS),
			r.USDPerHour.text(2), r.USDPerMillionOutputTokens.text(3), r.TokensUSDPerHour.text(2))
	}
	t.print(w, width)
}

// table is text in columns, the first few of them to the left and the others to
// the right.
type table struct {
	head []string
	left int
	drop []string // columns that a narrow terminal loses, in this order
	rows [][]string

	hidden []string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) hide(column string) { t.hidden = append(t.hidden, column) }

// hideUnless hides a column of routes that says nothing.
func (t *table) hideUnless(column string, runs []planRun, says func(planRoute) bool) {
	for _, r := range runs {
		if slices.ContainsFunc(r.Routes, says) {
			return
		}
	}
	t.hide(column)
}

// print writes the columns that fit.
func (t *table) print(w io.Writer, width int) {
	widths := make([]int, len(t.head))
	for i := range t.head {
		for _, row := range append(t.rows, t.head) {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	hidden := slices.Clone(t.hidden)
	for _, column := range t.drop {
		sum := -2
		for i, name := range t.head {
			if !slices.Contains(hidden, name) {
				sum += widths[i] + 2
			}
		}
		if sum <= width {
			break
		}
		hidden = append(hidden, column)
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			if slices.Contains(hidden, t.head[i]) {
				continue
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < t.left {
				line.WriteString(cell + pad + "  ")
			} else {
				line.WriteString(pad + cell + "  ")
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

package ask

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// PrintDecisions writes a paragraph and a table for each decision. dated says
// whether they were made, at some time for some request, or only asked for.
func PrintDecisions(out io.Writer, decisions []api.Decision, dated bool, width int) error {
	w := report.NewWriter(out)
	if len(decisions) == 0 {
		fmt.Fprintln(w, "no decision yet")
	}
	for i := range decisions {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printDecision(w, &decisions[i], dated, width)
	}
	return w.Err()
}

// printDecision says what became of the request, and lists the candidates.
func printDecision(w io.Writer, d *api.Decision, dated bool, width int) {
	head := d.Route + " (" + d.Class
	if d.Floor > 0 {
		head += fmt.Sprintf(", floor %.4g tokens/s", float64(d.Floor))
	} else {
		head += ", no floor"
	}
	head += "): " + sentenceOf(d)
	if dated {
		head = d.Time.Local().Format("15:04:05.000") + " " + cmp.Or(d.RequestID, "–") + " " + head
	}
	for _, line := range report.Wrap(head, width) {
		fmt.Fprintln(w, line)
	}
	if len(d.Candidates) > 0 {
		tableOf(d, width).Print(w, width)
	}
	if i := slices.IndexFunc(d.Candidates, func(c api.Candidate) bool { return c.Unheard > 0 }); i >= 0 {
		c := &d.Candidates[i]
		note := fmt.Sprintf("m of %s: %d run there, and room is left for %d more: other gateways may have placed them, or the engine runs them beside what it reported", c.Backend, c.M, c.Unheard)
		for _, line := range report.Wrap(note, max(width-2, 1)) {
			fmt.Fprintln(w, "  "+line)
		}
	}
	if d.LeftOut > 0 {
		fmt.Fprintf(w, "  and %d more candidates\n", d.LeftOut)
	}
}

// sentence says the outcome in words.
func sentenceOf(d *api.Decision) string {
	on := "placed on " + text(d.Chosen)
	switch d.Outcome {
	case "granted":
		return fmt.Sprintf("%s after %s s in line", on, report.Figure(d.WaitedS, 2))
	case "queued":
		return fmt.Sprintf("waits in line, at most %s s", report.Figure(d.MayWaitS, 1)) + behind(d)
	case "spilled":
		return fmt.Sprintf("spilled to %s, %s", text(d.SpilledTo), on)
	case "best_effort":
		return on + " without its floor: best effort"
	case "probe":
		return on + " without its floor, to see whether that is still out of reach"
	case "shed", "no_backend":
		why, known := shedWords[text(d.ShedReason)]
		switch {
		case !known:
			why = text(d.ShedReason)
		case text(d.ShedReason) == "floor" && behind(d) != "":
			why = "no place is left for it"
		}
		said := "refused: " + why + behind(d)
		if text(d.ShedReason) == "floor_unattainable" && d.BestLow.Known() {
			said += fmt.Sprintf(", the best gives %s tokens/s", report.Figure(d.BestLow, 1))
		}
		if d.RetryAfterS.Known() {
			said += fmt.Sprintf("; come back in %s s", report.Figure(d.RetryAfterS, 1))
		}
		return said
	}
	return on + " by " + d.Policy
}

// behind says that others in line go before it, where a candidate could take it.
func behind(d *api.Decision) string {
	if d.Behind == 0 || !slices.ContainsFunc(d.Candidates, func(c api.Candidate) bool { return c.Reason == "ok" }) {
		return ""
	}
	return fmt.Sprintf(", behind %d in line, who have the place that is ok", d.Behind)
}

var shedWords = map[string]string{
	"floor":              "no target keeps every floor with it",
	"floor_unattainable": "no target gives so much even when idle",
	"ttft":               "its first token would come too late",
	"queue_full":         "the line is full",
	"timeout":            "it waited as long as it may",
	"no_backend":         "no backend is in service",
}

// whyOf is reasonOf, and what of the prompt the candidate's cache has.
func whyOf(c *api.Candidate) string {
	w := c.Warm
	if w == nil {
		return reasonOf(c)
	}
	return fmt.Sprintf("%s; warm: %s of %s tokens, saves %s s", reasonOf(c), report.Thousands(w.Tokens), report.Thousands(w.PromptTokens), report.Figure(w.SavesS, 2))
}

// reasonOf says why a candidate is, or is not, feasible.
func reasonOf(c *api.Candidate) string {
	switch {
	case c.Reason == "ok" && c.Headroom.Known():
		return "every floor is kept"
	case c.Reason == "ok" && (c.Floor > 0 || c.Protect > 0) && c.TPS.Known():
		return "too little is known of its speed yet"
	case c.Reason == "ok" && (c.Floor > 0 || c.Protect > 0):
		return "its speed is not known yet"
	case c.Reason == "ok":
		return "no floor to keep"
	case c.Reason == "own_floor" && c.Low.Known():
		return fmt.Sprintf("it would get %s of its %s", report.Figure(c.Low, 1), report.Figure(c.Floor, 1))
	case c.Reason == "cap" && c.Basis == "quota":
		return "a rate limit of its own is used up, as it told"
	case c.Reason == "guarantee" && c.Held > 0:
		return fmt.Sprintf("%d places are kept there for other routes", c.Held)
	case c.Reason == "protects" && c.Basis == "clearing":
		return "it takes nobody until it has a prompt that many share"
	case c.Reason == "protects":
		return fmt.Sprintf("those running there need their %s", report.Figure(c.Protect, 1))
	}
	if words, known := reasonWords[c.Reason]; known {
		return words
	}
	return c.Reason
}

var reasonWords = map[string]string{
	"down":       "out of service, or already tried",
	"breaker":    "one request probes it, and no other",
	"refuses":    "it refused what it was sent of late, and only probes go there",
	"drain":      "draining: takes nobody new",
	"cap":        "at its max_concurrency",
	"slow_start": "not known yet: filled step by step",
	"own_floor":  "it would get less than its floor",
	"reserve":    "kept free for interactive requests",
	"guarantee":  "kept for routes that have places guaranteed",
	"ttft":       "its first token would come too late",
	"tenant":     "not for this key",
	"unknown":    "not configured",
}

// tableOf lists the candidates. A narrow terminal loses what follows from the
// rest, or is the same in every row.
func tableOf(d *api.Decision, width int) *report.Table {
	t := &report.Table{
		Head: []string{"backend", "model", "n", "m", "tps", "low", "floor", "protect", "headroom", "price", "verdict", "why"},
		Left: 12, Indent: "  ",
	}
	if width < 110 {
		t.Hide("floor", "protect", "price")
	}
	for i := range d.Candidates {
		c := &d.Candidates[i]
		verdict := "no"
		switch {
		case c.Backend == text(d.Chosen) && c.Model == text(d.ChosenModel):
			verdict = "chosen"
		case c.Feasible:
			verdict = "feasible"
		}
		t.Add(c.Backend, report.OrDash(c.Model), fmt.Sprint(c.N), inAll(c), report.Figure(c.TPS, 1), report.Figure(c.Low, 1),
			report.Positive(c.Floor, 1), report.Positive(c.Protect, 1), report.Figure(c.Headroom, 2), report.Positive(c.Price, 6), verdict, whyOf(c))
	}
	return t
}

// inAll is m, with what others are thought to run beside it.
func inAll(c *api.Candidate) string {
	if c.Unheard > 0 {
		return fmt.Sprintf("%d+%d", c.M, c.Unheard)
	}
	return fmt.Sprint(c.M)
}

// text is what s points to; "" = nothing.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// explained is one decision as the admin port tells it.
type explained struct {
	Time        time.Time            `json:"time"`
	RequestID   string               `json:"request_id"`
	Route       string               `json:"route"`
	Class       string               `json:"class"`
	Floor       figure               `json:"floor"` // 0 = none
	Outcome     string               `json:"outcome"`
	Policy      string               `json:"policy"`
	Chosen      string               `json:"chosen"` // "" = none
	ChosenModel string               `json:"chosen_model"`
	SpilledTo   string               `json:"spilled_to"`
	WaitedS     figure               `json:"waited_s"`
	MayWaitS    figure               `json:"may_wait_s"`
	ShedReason  string               `json:"shed_reason"`
	RetryAfterS figure               `json:"retry_after_s"`
	BestLow     figure               `json:"best_low"`
	Candidates  []explainedCandidate `json:"candidates"`
	LeftOut     int                  `json:"left_out"`
}

type explainedCandidate struct {
	Backend  string `json:"backend"`
	Model    string `json:"model"`
	N        int    `json:"n"`
	M        int    `json:"m"`
	TPS      figure `json:"tps"`
	Low      figure `json:"low"`
	Floor    figure `json:"floor"`
	Protect  figure `json:"protect"`
	Headroom figure `json:"headroom"`
	Price    figure `json:"price"`
	Feasible bool   `json:"feasible"`
	Reason   string `json:"reason"`
}

// print says what became of the request, and lists the candidates.
func (d *explained) print(w io.Writer, dated bool, width int) {
	head := d.Route + " (" + d.Class
	if d.Floor > 0 {
		head += fmt.Sprintf(", floor %.4g tokens/s", float64(d.Floor))
	} else {
		head += ", no floor"
	}
	head += "): " + d.sentence()
	if dated {
		id := d.RequestID
		if id == "" {
			id = "–"
		}
		head = d.Time.Local().Format("15:04:05.000") + " " + id + " " + head
	}
	for _, line := range wrap(head, width) {
		fmt.Fprintln(w, line)
	}
	if len(d.Candidates) > 0 {
		d.table(w, width)
	}
	if d.LeftOut > 0 {
		fmt.Fprintf(w, "  and %d more candidates\n", d.LeftOut)
	}
}

// sentence says the outcome in words.
func (d *explained) sentence() string {
	on := "placed on " + d.Chosen
	switch d.Outcome {
	case "granted":
		return fmt.Sprintf("%s after %s s in line", on, d.WaitedS.text(2))
	case "queued":
		return fmt.Sprintf("waits in line, at most %s s", d.MayWaitS.text(1))
	case "spilled":
		return fmt.Sprintf("spilled to %s, %s", d.SpilledTo, on)
	case "best_effort":
		return on + " without its floor: best effort"
	case "probe":
		return on + " without its floor, to see whether that is still out of reach"
	case "shed", "no_backend":
		why, known := shedWords[d.ShedReason]
		if !known {
			why = d.ShedReason
		}
		text := "refused: " + why
		if d.ShedReason == "floor_unattainable" && d.BestLow.known() {
			text += fmt.Sprintf(", the best gives %s tokens/s", d.BestLow.text(1))
		}
		if d.RetryAfterS.known() {
			text += fmt.Sprintf("; come back in %s s", d.RetryAfterS.text(1))
		}
		return text
	}
	return on + " by " + d.Policy
}

var shedWords = map[string]string{
	"floor":              "no target keeps every floor with it",
	"floor_unattainable": "no target gives so much even when idle",
	"ttft":               "its first token would come too late",
	"queue_full":         "the line is full",
	"timeout":            "it waited as long as it may",
	"no_backend":         "no backend is in service",
}

// words says why a candidate is, or is not, feasible.
func (c *explainedCandidate) words() string {
	switch {
	case c.Reason == "ok" && c.Headroom.known():
		return "every floor is kept"
	case c.Reason == "ok" && (c.Floor > 0 || c.Protect > 0):
		return "its speed is not known yet"
	case c.Reason == "ok":
		return "no floor to keep"
	case c.Reason == "own_floor" && c.Low.known():
		return fmt.Sprintf("it would get %s of its %s", c.Low.text(1), c.Floor.text(1))
	case c.Reason == "protects":
		return fmt.Sprintf("those running there need their %s", c.Protect.text(1))
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
	"ttft":       "its first token would come too late",
	"tenant":     "not for this key",
	"unknown":    "not configured",
}

// table lists the candidates. A narrow terminal loses what follows from the
// rest, or is the same in every row.
func (d *explained) table(w io.Writer, width int) {
	wide := width >= 110
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(cells ...string) {
		if !wide { // without floor, protect and price
			cells = append(append(append([]string{}, cells[:6]...), cells[8]), cells[10:]...)
		}
		for i := range cells {
			cells[i] = harmless(cells[i])
		}
		fmt.Fprintln(tw, "  "+strings.Join(cells, "\t"))
	}
	row("backend", "model", "n", "m", "tps", "low", "floor", "protect", "headroom", "price", "verdict", "why")
	for i := range d.Candidates {
		c := &d.Candidates[i]
		verdict := "no"
		switch {
		case c.Backend == d.Chosen && c.Model == d.ChosenModel:
			verdict = "chosen"
		case c.Feasible:
			verdict = "feasible"
		}
		row(c.Backend, orDash(c.Model), fmt.Sprint(c.N), fmt.Sprint(c.M), c.TPS.text(1), c.Low.text(1),
			positive(c.Floor, 1), positive(c.Protect, 1), c.Headroom.text(2), positive(c.Price, 6), verdict, c.words())
	}
	tw.Flush()
}

// positive is the text of f, – where 0 stands for nothing.
func positive(f figure, digits int) string {
	if !(f > 0) {
		return "–"
	}
	return f.text(digits)
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

package ask

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// ScorecardQuestion says which scorecard of a gateway is asked for.
type ScorecardQuestion struct {
	Admin string
	Token string // "" = none is needed
	Model string // "" = every route
	N     int    // level to compare at; 0 = that of the busiest target
	Dial  Dial   // nil = TCP
}

// Ask returns the scorecard as it is now.
func (q *ScorecardQuestion) Ask(ctx context.Context) (*api.Scorecard, error) {
	g, err := newAdminPort(q.Admin, q.Dial)
	if err != nil {
		return nil, report.Usage(err)
	}
	g.token, g.ask = q.Token, "one route with --model"
	query := url.Values{}
	if q.Model != "" {
		query.Set("model", q.Model)
	}
	if q.N > 0 {
		query.Set("n", strconv.Itoa(q.N))
	}
	var card api.Scorecard
	return &card, g.get(ctx, "/api/v1/scorecard", query, &card)
}

// PrintScorecard writes a Markdown table for each route, and the conditions.
func PrintScorecard(out io.Writer, card *api.Scorecard) error {
	w := report.NewWriter(out)
	for _, r := range card.Routes {
		fmt.Fprintf(w, "## %s\n\n", cell(r.Model))
		row(w, "target", fmt.Sprintf("TPS (bound) at n = %d", r.N), "now", "at the floor", "TPS p10 / p50", "TTFT p50 / p99", "failed", "cached",
			"USD/M tokens", "tokens/byte", "text B/s", "requests", "prompt", "answer")
		row(w, "---", "---", "---", "---", "---", "---", "---", "---", "---", "---", "---", "---", "---", "---")
		for i := range r.Targets {
			scoreRow(w, &r.Targets[i])
		}
		floor := ""
		if r.MinTPS.Known() {
			floor = fmt.Sprintf(" The floor is %.4g tokens/s.", float64(r.MinTPS))
		}
		fmt.Fprintf(w, "\nThe best first, by %s of one of %d streams.%s\n\n", map[string]string{"text": "bytes of text/s", "tokens": "tokens/s"}[r.RankedBy], r.N, floor)
	}
	fmt.Fprintf(w, "At %s. TPS at n: the curve, with its bound. TPS p10 / p50, TTFT, failed: all requests of the backend in the last %s (%s). Cached, USD, requests, prompt and answer (mean tokens): those of the target from %s to %s (%s). –: not known.\n",
		card.Time.Format("2006-01-02 15:04:05 UTC"), card.Window, card.Replica, card.UsageFrom.Format("15:04"), card.UsageTo.Format("15:04 UTC"), card.UsageReplica)
	return w.Err()
}

func scoreRow(w io.Writer, s *api.Score) {
	full := "–"
	if s.Full != nil {
		full = speedCell(*s.Full)
	}
	usd := figure(float64(s.Usage.USDPerMillion), "", 1)
	if s.Usage.USDSource != nil && *s.Usage.USDSource == "price" {
		usd += " (price)"
	}
	name := s.Backend
	if s.Model != "" {
		name += " · " + s.Model
	}
	row(w, cell(name), bounded(s.AtN), speedCell(s.Now), full,
		figure(float64(s.Window.TPS.P10), "", 1)+" / "+figure(float64(s.Window.TPS.P50), "", 1),
		figure(float64(s.Window.TTFTS.P50), " s", 1)+" / "+figure(float64(s.Window.TTFTS.P99), " s", 1),
		figure(float64(s.Window.Failed), " %", 100), figure(float64(s.Usage.Cached), " %", 100), usd,
		figure(float64(s.TokensPerByte), "", 1), figure(float64(s.TextBytesPerS), "", 1), strconv.FormatInt(s.Usage.Requests, 10),
		figure(float64(s.Usage.PromptTokens), "", 1), figure(float64(s.Usage.OutputTokens), "", 1))
}

// speedCell is a speed with its n.
func speedCell(s api.Speed) string {
	n := "n = " + strconv.Itoa(s.N)
	if s.NIsLowerBound {
		n = "n ≥ " + strconv.Itoa(s.N)
	}
	if s.N == 0 {
		return n
	}
	return n + ": " + bounded(s)
}

func bounded(s api.Speed) string {
	return figure(float64(s.TPS), "", 1) + " (" + figure(float64(s.Low), "", 1) + ")"
}

// cell is a name in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "`", "'").Replace(report.Harmless(text))
}

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

package ask

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// Top asks a gateway for what the first table of its page shows.
type Top struct {
	Admin  string
	Token  string // "" = none is needed
	Window string // 5m, 1h, 6h or start
	Dial   Dial   // nil = TCP
}

// Ask returns the routes as they are.
func (q *Top) Ask(ctx context.Context) (*api.Routes, error) {
	g, err := newAdminPort(q.Admin, q.Dial)
	if err != nil {
		return nil, report.Usage(err)
	}
	g.token = q.Token
	var routes api.Routes
	return &routes, g.get(ctx, "/api/v1/routes", url.Values{"window": {q.Window}}, &routes)
}

// PrintTop writes the table in lines of at most width columns, and returns how many
// there are.
func PrintTop(out io.Writer, routes []api.Route, width int) (lines int, err error) {
	w := report.NewWriter(out)
	row := func(text string) {
		if r := []rune(text); len(r) > width {
			text = string(r[:max(width-1, 0)]) + "…"
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
		lines++
	}
	name := len("ROUTE")
	for _, r := range routes {
		name = max(name, min(len([]rune(r.Model)), 32))
	}
	row(fmt.Sprintf("%-*s %7s %7s %8s %7s %7s %7s %9s %7s %6s  %s", name, "ROUTE", "FLOOR", "KEPT", "ASKED/s", "SHED/s", "TPS p10", "p50", "TTFT p99", "WAITING", "FREE", "WHAT IS WRONG"))
	for _, r := range routes {
		free := "any"
		if r.Free != nil {
			if free = strconv.Itoa(*r.Free); r.FreeIsLowerBound {
				free += "+"
			}
		}
		wrong := ""
		if r.Cause.Cause != nil {
			wrong = report.Harmless(*r.Cause.Cause)
		}
		row(fmt.Sprintf("%-*.32s %7s %7s %8s %7s %7s %7s %9s %7d %6s  %s", name, report.Harmless(r.Model), figure(float64(r.MinTPS), "", 1), figure(float64(r.Attainment), "%", 100),
			figure(float64(r.OfferedPerS), "", 1), figure(float64(r.ShedPerS), "", 1), figure(float64(r.TPS.P10), "", 1), figure(float64(r.TPS.P50), "", 1),
			figure(float64(r.TTFTS.P99), " s", 1), r.Waiting, free, wrong))
	}
	return lines, w.Err()
}

// figure is x in some digits, – where it is not known.
func figure(x float64, unit string, times float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	return strconv.FormatFloat(x*times, 'g', 3, 64) + unit
}

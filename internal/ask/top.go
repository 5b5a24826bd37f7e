package ask

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

// longestName is how much of a route's name a terminal shows, in columns.
const longestName = 32

// PrintTop writes what is wrong with the gateway, and the table, what is wrong first. Why stands at the end of each row,
// or below its route where not all of it fits into width columns. On a terminal no line is longer than that, so that the table can be
// drawn over: whole columns go, those of least worth first, and never a part of a
// figure. Elsewhere nothing is left out.
func PrintTop(out io.Writer, answer *api.Routes, width int, terminal bool) error {
	routes := slices.Clone(answer.Routes)
	slices.SortStableFunc(routes, func(a, b api.Route) int {
		rank := func(r api.Route) int {
			if r.Cause.Cause != nil {
				return 0
			}
			return 1
		}
		return cmp.Compare(rank(a), rank(b))
	})
	rows, causes := tableOfRoutes(routes, width, terminal), make([]string, len(routes))
	wide := utf8.RuneCountInString(rows[0]) + 2 // where a cause begins
	for i, r := range routes {
		if r.Cause.Cause != nil {
			causes[i] = report.Harmless(*r.Cause.Cause)
		}
	}
	const head = "WHAT IS WRONG"
	beside := wide+len(head) <= width
	for i, cause := range causes {
		beside = beside && utf8.RuneCountInString(rows[i+1])+2+utf8.RuneCountInString(cause) <= width
	}
	w := report.NewWriter(out)
	row := func(text string) {
		fmt.Fprintln(w, text)
	}
	wrapped := func(cause string) {
		for _, line := range report.Wrap("what is wrong: "+cause, max(width-2, 1)) {
			for part := range slices.Chunk([]rune(line), max(width-2, 1)) { // a word may be longer than the line
				row("  " + string(part))
			}
		}
	}
	for _, c := range answer.Verdict.Causes {
		if c.Of == "gateway" && c.Cause.Cause != nil {
			row("GATEWAY")
			wrapped(report.Harmless(*c.Cause.Cause))
		}
	}
	if beside {
		rows[0] += "  " + head
	}
	row(rows[0])
	for i, cause := range causes {
		switch {
		case cause == "":
			row(rows[i+1])
		case beside:
			row(rows[i+1] + "  " + cause)
		default:
			row(rows[i+1])
			wrapped(cause)
		}
	}
	return w.Err()
}

// tableOfRoutes returns the head and a row for each route, without what is wrong.
func tableOfRoutes(routes []api.Route, width int, terminal bool) []string {
	t := report.Table{
		Head: []string{"ROUTE", "FLOOR", "KEPT", "ASKED/s", "SHED/s", "TPS p10", "p50", "TTFT p99", "WAITING", "FREE"},
		Left: 1,
	}
	fits := math.MaxInt
	if terminal {
		fits = width
		t.Drop = []string{"p50", "ASKED/s", "SHED/s", "TTFT p99", "TPS p10", "FLOOR", "WAITING", "KEPT", "FREE"}
	}
	for i := range routes {
		r := &routes[i]
		name := r.Model
		if terminal {
			name = report.Shortened(name, max(min(longestName, width/2), 1))
		}
		free := "any"
		if r.Free != nil {
			if free = strconv.Itoa(*r.Free); r.FreeIsLowerBound {
				free += "+"
			}
		}
		t.Add(name, figure(float64(r.MinTPS), "", 1), figure(float64(r.Attainment), "%", 100),
			figure(float64(r.OfferedPerS), "", 1), figure(float64(r.ShedPerS), "", 1), figure(float64(r.TPS.P10), "", 1), figure(float64(r.TPS.P50), "", 1),
			figure(float64(r.TTFTS.P99), " s", 1), strconv.Itoa(r.Waiting), free)
	}
	var text strings.Builder
	t.Print(&text, fits)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// figure is x in some digits, – where it is not known.
func figure(x float64, unit string, times float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	return strconv.FormatFloat(x*times, 'g', 3, 64) + unit
}

package admin

import (
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/usage"
)

// usualUsage is how far back usage reaches that is asked for without from.
const usualUsage = 24 * time.Hour

// serveUsage answers GET /api/v1/usage, as JSON or, with format=csv, as CSV.
func (p *port) serveUsage(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		badQuery(w, "", "the query cannot be read: "+err.Error())
		return
	}
	format, ok := wordOf(w, r, "format", "json", []string{"json", "csv"})
	if !ok {
		return
	}
	by, from, to, ok := usageQuery(w, q, time.Now())
	if !ok {
		return
	}
	answer := api.Usage{From: from.Start(), To: to.Start(), By: by, Replica: "all", Rows: []api.UsageRow{}, Budgets: []api.Budget{}}
	if p.o.Usage != nil {
		cells, all := p.o.Usage(r.Context(), from, to)
		if !all {
			answer.Replica = thisReplica
		}
		rows := usage.Rows(cells, by)
		var total usage.Sums
		for i, row := range rows {
			total.Add(row.Sums)
			if answer.Cut = i >= api.MaxUsageRows; !answer.Cut {
				answer.Rows = append(answer.Rows, usageRow(row, by))
			}
		}
		answer.Total = usageRow(usage.Row{Sums: total}, nil)
	}
	if p.o.Budgets != nil {
		for _, s := range p.o.Budgets() {
			answer.Budgets = append(answer.Budgets, budgetOf(s))
		}
	}
	if format == "csv" {
		writeUsage(w, &answer)
		return
	}
	send(w, http.StatusOK, answer)
}

// usageQuery reads by, from and to; false = the request was answered.
func usageQuery(w http.ResponseWriter, q url.Values, now time.Time) (by []string, from, to usage.Hour, ok bool) {
	by = []string{}
	for _, list := range q["by"] {
		for word := range strings.SplitSeq(list, ",") {
			switch {
			case !slices.Contains(usage.Dimensions, word):
				badQuery(w, "by", "by: write some of "+strings.Join(usage.Dimensions, ", ")+", with commas between")
				return nil, 0, 0, false
			case !slices.Contains(by, word):
				by = append(by, word)
			}
		}
	}
	end, fine := timeOf(w, q, "to", now)
	if !fine {
		return nil, 0, 0, false
	}
	start, fine := timeOf(w, q, "from", end.Add(-usualUsage))
	if !fine {
		return nil, 0, 0, false
	}
	from, to = usage.HourOf(start), usage.HourOf(end.Add(time.Hour-1))
	if from >= to {
		badQuery(w, "from", "from: write a time before to")
		return nil, 0, 0, false
	}
	return by, from, to, true
}

// timeOf reads a time, or a day in UTC.
func timeOf(w http.ResponseWriter, q url.Values, name string, usual time.Time) (time.Time, bool) {
	given := q[name]
	if len(given) == 0 {
		return usual, true
	}
	if len(given) == 1 {
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if at, err := time.Parse(layout, given[0]); err == nil && at.Year() >= 1970 && at.Year() < 10_000 {
				return at, true
			}
		}
	}
	badQuery(w, name, name+": write one time such as 2027-01-31T15:00:00Z, or a day such as 2027-01-31")
	return time.Time{}, false
}

func usageRow(r usage.Row, by []string) api.UsageRow {
	out := api.UsageRow{
		Requests: r.Requests, InputTokens: r.Input, CachedTokens: r.Cached, OutputTokens: r.Output, ReasoningTokens: r.Reasoning,
		USD: r.Cost.USD(), USDPerMillion: api.Number(math.NaN()),
	}
	if tokens := r.Input + r.Output; tokens > 0 {
		out.USDPerMillion = api.Number(1e6 * r.Cost.USD() / float64(tokens))
	}
	for _, name := range by {
		switch name {
		case "hour", "day":
			at := r.Hour.Start()
			out.Time = &at
		case "key":
			out.Key = &r.Key
		case "team":
			out.Team = &r.Team
		case "route":
			out.Route = &r.Route
		case "backend":
			out.Backend = &r.Backend
		case "model":
			out.Model = &r.Model
		case "tags":
			out.Tags = &r.Tags
		}
	}
	return out
}

func budgetOf(s usage.State) api.Budget {
	b := api.Budget{
		Of: "key", Name: s.Holder.Name, LimitUSD: s.Budget.Limit.USD(), SpentUSD: s.Spent.USD(), Per: s.Budget.Per.String(),
		Start: s.Start, End: s.End, Then: [...]string{"refuse", "spill", "warn"}[s.Budget.Then], Spent: s.Spent >= s.Budget.Limit,
	}
	if s.Holder.Team {
		b.Of = "team"
	}
	return b
}

// writeUsage writes the rows of a as CSV. A text that a spreadsheet would take for a
// formula gets an apostrophe.
func writeUsage(w http.ResponseWriter, a *api.Usage) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	c := csv.NewWriter(w)
	defer c.Flush()
	_ = c.Write(append(slices.Clone(a.By), "requests", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "usd"))
	for _, r := range a.Rows {
		var line []string
		for _, name := range a.By {
			text := map[string]*string{"key": r.Key, "team": r.Team, "route": r.Route, "backend": r.Backend, "model": r.Model, "tags": r.Tags}[name]
			switch {
			case text == nil:
				line = append(line, r.Time.Format(time.RFC3339))
			case strings.IndexAny(*text, "=+-@\t\r") == 0:
				line = append(line, "'"+*text)
			default:
				line = append(line, *text)
			}
		}
		for _, n := range []int64{r.Requests, r.InputTokens, r.CachedTokens, r.OutputTokens, r.ReasoningTokens} {
			line = append(line, fmt.Sprint(n))
		}
		_ = c.Write(append(line, strconv.FormatFloat(r.USD, 'f', -1, 64))) // the client's loss if it is gone
	}
}

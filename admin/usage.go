package admin

import (
	"cmp"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/usage"
)

const (
	// usualUsage is how far back usage reaches that is asked for without from.
	usualUsage = 24 * time.Hour

	// maxUntimed is how many rows are told apart over all of the time that is asked
	// for: they are in memory together.
	maxUntimed = 250_000

	// usageWrite is how long reading a day and writing it may take.
	usageWrite = 30 * time.Second
)

var (
	errTooManyRows = fmt.Errorf("more than %d rows over all of this time: ask by=day, for a shorter time, or by fewer names", maxUntimed)
	errHalfUsage   = errors.New("the Redis was lost or came back midway: ask again")
)

// usageQuery is what of the usage is asked for.
type usageQuery struct {
	by       []string
	from, to usage.Hour
	csv      bool
	limit    int        // rows; 0 = all
	after    *usage.Row // the last row of the page before; nil = from the first row on
}

// serveUsage answers GET /api/v1/usage, as JSON or, with format=csv, as CSV.
func (p *port) serveUsage(w http.ResponseWriter, r *http.Request) {
	q, ok := readUsageQuery(w, r, time.Now())
	switch {
	case !ok:
	case q.csv && q.limit == 0:
		p.streamUsage(w, r, q)
	default:
		p.pageUsage(w, r, q)
	}
}

// usageRows gives all rows of q to each, in their order and in parts, with whether they
// are of all replicas. Rows with a time are read a day at a time.
func (p *port) usageRows(w http.ResponseWriter, r *http.Request, q *usageQuery, each func(rows []usage.Row, all bool) error) error {
	if p.o.Usage == nil {
		return each(nil, true)
	}
	timed := slices.Contains(q.by, "hour") || slices.Contains(q.by, "day")
	to := min(q.to, usage.End(time.Now()))
	from := max(q.from, to-usage.KeepHours-3)
	table, all := usage.NewTable(q.by), true
	rc := http.NewResponseController(w)
	for at := from; at < to; at = at.Day() + 24 {
		_ = rc.SetWriteDeadline(time.Now().Add(usageWrite)) // a writer in tests knows none
		cells, whole := p.o.Usage(r.Context(), at, min(at.Day()+24, to))
		if at > from && whole != all {
			return errHalfUsage
		}
		all = whole
		table.Add(cells)
		switch {
		case timed:
			if err := each(table.Rows(), all); err != nil {
				return err
			}
			table = usage.NewTable(q.by)
		case table.Len() > maxUntimed:
			return errTooManyRows
		}
	}
	return each(table.Rows(), all)
}

// usagePage is the rows of one answer.
type usagePage struct {
	q     *usageQuery
	most  int // rows
	rows  []usage.Row
	more  bool // there are more than most
	total usage.Sums
}

// add takes rows that follow those before.
func (g *usagePage) add(rows []usage.Row) {
	for _, row := range rows {
		g.total.Add(row.Sums)
		switch {
		case g.q.after != nil && usage.CompareRows(row, *g.q.after) <= 0:
		case len(g.rows) < g.most:
			g.rows = append(g.rows, row)
		default:
			g.more = true
		}
	}
}

// pageUsage answers with at most as many rows as q asks for, and with where the next
// ones are.
func (p *port) pageUsage(w http.ResponseWriter, r *http.Request, q *usageQuery) {
	answer := api.Usage{From: q.from.Start(), To: q.to.Start(), By: q.by, Replica: "all", Rows: []api.UsageRow{}, Budgets: []api.Budget{}}
	page := usagePage{q: q, most: cmp.Or(q.limit, api.MaxUsageRows)}
	err := p.usageRows(w, r, q, func(rows []usage.Row, all bool) error {
		if page.add(rows); !all {
			answer.Replica = thisReplica
		}
		return nil
	})
	if err != nil {
		failUsage(w, err)
		return
	}
	if page.more {
		next := q.next(page.rows[len(page.rows)-1])
		answer.Next, answer.Cut = &next, true
	}
	if q.csv {
		w.Header().Set("X-Pacer-Replica", answer.Replica)
		if answer.Next != nil {
			w.Header().Set("Link", "<"+*answer.Next+`>; rel="next"`)
		}
		_ = newUsageCSV(w, q.by).write(page.rows) // the client's loss if it is gone
		return
	}
	for _, row := range page.rows {
		answer.Rows = append(answer.Rows, usageRow(row, q.by))
	}
	answer.Total = usageRow(usage.Row{Sums: page.total}, nil)
	if p.o.Budgets != nil {
		for _, s := range p.o.Budgets() {
			answer.Budgets = append(answer.Budgets, budgetOf(s))
		}
	}
	send(w, http.StatusOK, answer)
}

// streamUsage writes all rows of q as CSV while they are read. An answer that cannot be
// ended is broken off, so that nobody takes a part for the whole.
func (p *port) streamUsage(w http.ResponseWriter, r *http.Request, q *usageQuery) {
	var out *usageCSV
	err := p.usageRows(w, r, q, func(rows []usage.Row, all bool) error {
		if out == nil {
			w.Header().Set("X-Pacer-Replica", map[bool]string{true: "all", false: thisReplica}[all])
			out = newUsageCSV(w, q.by)
		}
		page := usagePage{q: q, most: math.MaxInt}
		page.add(rows)
		return out.write(page.rows)
	})
	switch {
	case err != nil && out == nil:
		failUsage(w, err)
	case err != nil:
		panic(http.ErrAbortHandler)
	}
}

// failUsage says why there are no rows.
func failUsage(w http.ResponseWriter, err error) {
	if errors.Is(err, errTooManyRows) {
		badQuery(w, "by", "by: "+err.Error())
		return
	}
	fail(w, http.StatusServiceUnavailable, "store_unavailable", err.Error())
}

// readUsageQuery reads the query; false = the request was answered.
func readUsageQuery(w http.ResponseWriter, r *http.Request, now time.Time) (*usageQuery, bool) {
	values, ok := queryOf(w, r)
	if !ok {
		return nil, false
	}
	q := &usageQuery{}
	format, ok := wordOf(w, r, "format", "json", []string{"json", "csv"})
	if q.csv = format == "csv"; !ok {
		return nil, false
	}
	if q.by, q.from, q.to, ok = usageOf(w, values, now); !ok {
		return nil, false
	}
	if q.limit, ok = wholeOf(w, values, "limit", 0, api.MaxUsageRows); !ok {
		return nil, false
	}
	if given := values["after"]; len(given) > 0 {
		if q.after, ok = rowOf(given[0]); !ok || len(given) > 1 {
			badQuery(w, "after", "after: take it from next of the page before")
			return nil, false
		}
	}
	return q, true
}

// next is where the rows after last are: from and to stand in it, so that all pages are
// of the same time.
func (q *usageQuery) next(last usage.Row) string {
	values := url.Values{"from": {q.from.Start().Format(time.RFC3339)}, "to": {q.to.Start().Format(time.RFC3339)}, "after": {cursorOf(last)}}
	if len(q.by) > 0 {
		values.Set("by", strings.Join(q.by, ","))
	}
	if q.limit > 0 {
		values.Set("limit", strconv.Itoa(q.limit))
	}
	if q.csv {
		values.Set("format", "csv")
	}
	return "/api/v1/usage?" + values.Encode()
}

// cursor is where a row stands among the others.
type cursor struct {
	Hour   usage.Hour  `json:"h"`
	Cost   usage.Money `json:"c"`
	Tokens int64       `json:"t"`
	Names  usage.Of    `json:"n"`
}

func cursorOf(r usage.Row) string {
	data, err := json.Marshal(cursor{r.Hour, r.Cost, r.Input + r.Output, r.Of})
	if err != nil {
		panic(err) // numbers and strings always have a form
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// rowOf returns a row that stands where the one did that text was made of.
func rowOf(text string) (*usage.Row, bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	var c cursor
	if err != nil || json.Unmarshal(data, &c) != nil {
		return nil, false
	}
	return &usage.Row{Hour: c.Hour, Of: c.Names, Sums: usage.Sums{Input: c.Tokens, Cost: c.Cost}}, true
}

// usageOf reads by, from and to; false = the request was answered.
func usageOf(w http.ResponseWriter, q url.Values, now time.Time) (by []string, from, to usage.Hour, ok bool) {
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

// usageCSV writes rows as CSV.
type usageCSV struct {
	w  *csv.Writer
	by []string
}

func newUsageCSV(w http.ResponseWriter, by []string) *usageCSV {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	c := &usageCSV{csv.NewWriter(w), by}
	_ = c.w.Write(append(slices.Clone(by), "requests", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "usd"))
	return c
}

// write writes rows, and says whether the client has gone.
func (c *usageCSV) write(rows []usage.Row) error {
	for _, r := range rows {
		var line []string
		for _, name := range c.by {
			switch name {
			case "hour", "day":
				line = append(line, r.Hour.Start().Format(time.RFC3339))
			default:
				line = append(line, harmless(r.Of.Name(name)))
			}
		}
		for _, n := range []int64{r.Requests, r.Input, r.Cached, r.Output, r.Reasoning} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		_ = c.w.Write(append(line, strconv.FormatFloat(r.Cost.USD(), 'f', -1, 64))) // Error has it
	}
	c.w.Flush()
	return c.w.Error()
}

// formulas are what a spreadsheet takes for the beginning of a formula: at the beginning
// of a text, and behind what stands between cells in some countries.
var formulas = regexp.MustCompile(`(^|[;,\t\r\n])( *)([=+\-@＝＋－＠])`)

// harmless returns text with an apostrophe before what would be a formula.
func harmless(text string) string { return formulas.ReplaceAllString(text, "$1'$2$3") }

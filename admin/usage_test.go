package admin

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/usage"
)

// spent is a port whose store has cells of some days, by hour.
func spent(t *testing.T, cells map[usage.Hour][]usage.Cell) (http.Handler, *Options) {
	t.Helper()
	o := newWorld(t).options
	o.Usage = func(_ context.Context, from, to usage.Hour) (out []usage.Cell, all bool) {
		for h := from; h < to; h++ {
			out = append(out, cells[h]...)
		}
		return out, true
	}
	return New(o), &o
}

// manyRows are those of three days with so many an hour, and what they sum up to.
func manyRows(perHour int) (cells map[usage.Hour][]usage.Cell, first, end usage.Hour, total usage.Sums) {
	cells = map[usage.Hour][]usage.Cell{}
	end = usage.HourOf(time.Now()).Day()
	first = end - 72
	for h := first; h < end; h++ {
		for i := range perHour {
			c := usage.Cell{
				Hour: h, Of: usage.Of{Key: fmt.Sprint("key", i%37), Route: "chat", Tags: fmt.Sprint("project=", i)},
				Sums: usage.Sums{Requests: 1, Input: int64(100 + i%7), Output: 10, Cost: usage.Money(i % 11)},
			}
			cells[h] = append(cells[h], c)
			total.Add(c.Sums)
		}
	}
	return cells, first, end, total
}

// pagesOf follows next from query on and returns how many pages there were. Each row
// comes once, by time, and every page has the total of all.
func pagesOf(t *testing.T, h http.Handler, query string, want int, total usage.Sums) (pages int) {
	t.Helper()
	seen := map[string]bool{}
	var sum usage.Money
	var last time.Time
	for next := &query; next != nil; pages++ {
		u := decode[api.Usage](t, call(h, "GET", *next, "", ""))
		for _, r := range u.Rows {
			name := r.Time.String() + *r.Key + *r.Tags
			if seen[name] {
				t.Fatalf("%s is told twice", name)
			}
			if r.Time.Before(last) {
				t.Fatalf("%s comes after %s", r.Time, last)
			}
			seen[name], last = true, *r.Time
			sum += usage.Dollars(r.USD)
		}
		if u.Total.Requests != total.Requests || usage.Dollars(u.Total.USD) != total.Cost {
			t.Errorf("page %d: the total is %+v, want that of all pages", pages, u.Total)
		}
		if next = u.Next; u.Cut != (next != nil) {
			t.Errorf("page %d: cut %v, next %v", pages, u.Cut, next)
		}
	}
	if len(seen) != want || sum != total.Cost {
		t.Errorf("%d rows of %d USD in %d pages, want %d of %d", len(seen), sum, pages, want, total.Cost)
	}
	return pages
}

// linesOf reads a CSV to its last page.
func linesOf(t *testing.T, h http.Handler, query string) (lines [][]string, pages int) {
	t.Helper()
	for next := query; next != ""; pages++ {
		w := call(h, "GET", next, "", "")
		page, err := csv.NewReader(w.Body).ReadAll()
		if err != nil || w.Code != http.StatusOK || w.Header().Get("X-Pacer-Replica") != "all" {
			t.Fatal(w.Code, w.Header(), err)
		}
		lines = append(lines, page[1:]...)
		next, _ = strings.CutPrefix(w.Header().Get("Link"), "<")
		next, _ = strings.CutSuffix(next, `>; rel="next"`)
	}
	return lines, pages
}

// More rows than one answer may have are all told: as pages, each row once, and as CSV
// in one piece.
func TestUsageOfMoreRowsThanAnAnswerHas(t *testing.T) {
	for _, c := range []struct {
		perHour          int
		limit            string
		pages, asCSV     int
		moreThanAnAnswer bool
	}{{1400, "", 2, 1, true}, {20, "&limit=999", 2, 2, false}, {20, "&limit=1440", 1, 1, false}, {1, "&limit=1", 72, 72, false}} {
		if racetest.On && c.moreThanAnAnswer {
			continue // many seconds with the race detector: make numbers has it
		}
		cells, first, end, total := manyRows(c.perHour)
		h, _ := spent(t, cells)
		want := 72 * c.perHour
		if c.moreThanAnAnswer != (want > api.MaxUsageRows) {
			t.Fatalf("%d rows; an answer has %d", want, api.MaxUsageRows)
		}
		query := "/api/v1/usage?by=key,tags,hour&from=" + first.Start().Format(time.RFC3339) + "&to=" + end.Start().Format(time.RFC3339)
		if pages := pagesOf(t, h, query+c.limit, want, total); pages != c.pages {
			t.Errorf("%+v: %d pages", c, pages)
		}
		whole, _ := linesOf(t, h, query+"&format=csv")
		if len(whole) != want {
			t.Errorf("%+v: %d lines of CSV, want %d", c, len(whole), want)
		}
		if c.limit == "" {
			continue
		}
		if paged, pages := linesOf(t, h, query+"&format=csv"+c.limit); pages != c.asCSV || !slices.EqualFunc(paged, whole, slices.Equal) {
			t.Errorf("%+v: %d lines in %d pages, other ones than the %d in one piece", c, len(paged), pages, want)
		}
	}
}

// What a gateway counts whose clock is an hour ahead is told by one that is an hour behind.
func TestUsageOfClocksTwoHoursApart(t *testing.T) {
	ahead := usage.HourOf(time.Now().Add(2 * time.Hour))
	h, _ := spent(t, map[usage.Hour][]usage.Cell{ahead: {{Hour: ahead, Sums: usage.Sums{Requests: 7}}}})
	w := call(h, "GET", "/api/v1/usage?to="+(ahead+4).Start().Format(time.RFC3339), "", "")
	if decode[api.Usage](t, w).Total.Requests != 7 {
		t.Errorf("%.300s, want 7 requests", w.Body)
	}
}

// By day rows are those of the day; without a time they are of all of it.
func TestUsageByDayAndWithoutATime(t *testing.T) {
	cells, first, end, total := manyRows(50)
	h, _ := spent(t, cells)
	window := "&from=" + first.Start().Format(time.RFC3339) + "&to=" + end.Start().Format(time.RFC3339)
	for by, want := range map[string]int{"day": 3, "hour": 72, "key,day": 3 * 37, "key": 37, "tags": 50} {
		u := decode[api.Usage](t, call(h, "GET", "/api/v1/usage?by="+by+window, "", ""))
		var sum int64
		for _, r := range u.Rows {
			sum += r.Requests
		}
		if len(u.Rows) != want || sum != total.Requests || u.Total.Requests != total.Requests {
			t.Errorf("by %s: %d rows of %d requests, want %d of %d", by, len(u.Rows), sum, want, total.Requests)
		}
	}
}

// What is too much for one table is refused with what to ask instead.
func TestUsageOfTooManyRowsForOneTable(t *testing.T) {
	if racetest.On {
		t.Skip("many seconds with the race detector: make numbers has it")
	}
	cells, first, end, _ := manyRows(0)
	h, _ := spent(t, cells)
	for at := first; at < end; at++ {
		for i := range maxUntimed/72 + 1 {
			cells[at] = append(cells[at], usage.Cell{Hour: at, Of: usage.Of{Tags: strconv.Itoa(int(at)*10_000 + i)}})
		}
	}
	window := "&from=" + first.Start().Format(time.RFC3339) + "&to=" + end.Start().Format(time.RFC3339)
	for query, want := range map[string]int{"by=tags&format=csv": 400, "by=key": 200} {
		if w := call(h, "GET", "/api/v1/usage?"+query+window, "", ""); w.Code != want {
			t.Errorf("%s of too many rows: %d %.200s", query, w.Code, w.Body)
		}
	}
}

func TestUsageRefusesWhatItCannotPage(t *testing.T) {
	h, _ := spent(t, nil)
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=100001", "limit=x", "limit=1&limit=2", "after=%00", "after=e30&after=e30", "after=W10", "after=bnVsbA&after=bnVsbA", "by=key,", "by=" + strings.Repeat("key,", 9000) + "x",
		"from=2026-01-01&to=2025-01-01", "format=xml",
	} {
		if w := call(h, "GET", "/api/v1/usage?"+query, "", ""); w.Code != http.StatusBadRequest {
			t.Errorf("%.60s: %d", query, w.Code)
		}
	}
	if w := call(h, "GET", "/api/v1/usage?by="+strings.Repeat("key,", 9000)+"key&from=1970-01-01&to=9999-01-01", "", ""); w.Code != http.StatusOK {
		t.Errorf("one name again and again, of all time: %d", w.Code)
	}
}

// Figures of all gateways and of one alone are never summed up: who asks while the store
// is lost midway is told so, and CSV that has begun is broken off.
func TestAStoreThatIsLostWithinAnAnswer(t *testing.T) {
	cells, first, end, _ := manyRows(2)
	_, o := spent(t, cells)
	read := o.Usage
	var lost atomic.Int64 // at so many parts from here the other answer is given
	o.Usage = func(ctx context.Context, from, to usage.Hour) ([]usage.Cell, bool) {
		c, _ := read(ctx, from, to)
		return c, lost.Add(-1) != 0
	}
	h := New(*o)
	query := "/api/v1/usage?by=key,day&from=" + first.Start().Format(time.RFC3339) + "&to=" + end.Start().Format(time.RFC3339)
	for calls, status := range map[int64]int{1: 503, 2: 503, 3: 503, 9: 200} {
		lost.Store(calls)
		if w := call(h, "GET", query, "", ""); w.Code != status {
			t.Errorf("lost at part %d: %d %s", calls, w.Code, w.Body)
		}
	}
	server := httptest.NewServer(h)
	defer server.Close()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // on a used connection it would ask again by itself
	for calls, whole := range map[int64]bool{2: false, 3: false, 9: true} {
		lost.Store(calls)
		resp, err := client.Get(server.URL + query + "&format=csv")
		if err != nil {
			if whole {
				t.Error(err)
			}
			continue // broken off before the header was out
		}
		lines, err := csv.NewReader(resp.Body).ReadAll()
		resp.Body.Close()
		if (err == nil) != whole {
			t.Errorf("lost at part %d: %d lines, %v", calls, len(lines), err)
		}
	}
}

// Names that a spreadsheet would run stay names, wherever its country has cells begin.
func TestCSVRunsNothing(t *testing.T) {
	at := usage.HourOf(time.Now()) - 1
	names := map[string]string{
		"=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "\t'=1",
		"x;=1": "x;'=1", "x; =1": "x;' =1", "a,=1": "a,'=1", " =1": "' =1", "＝1": "'＝1", "env=prod,project=x": "env=prod,project=x", `q"=1`: `q"=1`,
	}
	cells := map[usage.Hour][]usage.Cell{}
	for name := range names {
		cells[at] = append(cells[at], usage.Cell{Hour: at, Of: usage.Of{Tags: name}, Sums: usage.Sums{Requests: 1}})
	}
	h, _ := spent(t, cells)
	rows := must.Get(csv.NewReader(call(h, "GET", "/api/v1/usage?by=tags&format=csv", "", "").Body).ReadAll())(t)
	want := slices.Sorted(maps.Values(names))
	var got []string
	for _, row := range rows[1:] {
		got = append(got, row[0])
		if n, err := strconv.Atoi(row[1]); err != nil || n != 1 {
			t.Errorf("%q", row)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("written\n%q, want\n%q", got, want)
	}
}

package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
)

// thisReplica says that figures are not those of all gateways.
const thisReplica = "this one only"

// replicas says of how many gateways the figures of a window are, and in a word
// whether of all that share a store.
func (p *port) replicas(now time.Time, w history.Window) (word string, n int) {
	if n, all := p.o.Metrics.History().Replicas(now); all && w != history.Start {
		return "all", n
	}
	return thisReplica, 1
}

// queryOf returns the query of r, of which URL.Query leaves out what it cannot read; false =
// the request was answered.
func queryOf(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		badQuery(w, "", "the query cannot be read: "+err.Error())
	}
	return values, err == nil
}

// wholeOf returns a query parameter that is a whole number from 1 to most; false = the
// request was answered.
func wholeOf(w http.ResponseWriter, q url.Values, name string, usual, most int) (int, bool) {
	given := q[name]
	if len(given) == 0 {
		return usual, true
	}
	n, err := strconv.Atoi(given[0])
	if err != nil || len(given) > 1 || n < 1 || n > most {
		badQuery(w, name, fmt.Sprintf("%s: write one whole number from 1 to %d", name, most))
		return 0, false
	}
	return n, true
}

// windowOf returns the window that is asked for; false = the request was answered.
func windowOf(w http.ResponseWriter, r *http.Request, usual history.Window, words []string) (history.Window, bool) {
	word, ok := wordOf(w, r, "window", usual.String(), words)
	window, _ := history.WindowOf(word)
	return window, ok
}

// wordOf returns a query parameter that is one of words; false = the request was
// answered.
func wordOf(w http.ResponseWriter, r *http.Request, name, usual string, words []string) (string, bool) {
	values, ok := queryOf(w, r)
	given := values[name]
	switch {
	case !ok:
		return "", false
	case len(given) == 0:
		return usual, true
	case len(given) == 1 && slices.Contains(words, given[0]):
		return given[0], true
	}
	badQuery(w, name, name+": write one of "+strings.Join(words, ", "))
	return "", false
}

// serveHistory answers GET /api/v1/history.
func (p *port) serveHistory(w http.ResponseWriter, r *http.Request) {
	window, ok := windowOf(w, r, history.Hour, history.Windows()[:history.Start])
	if !ok {
		return
	}
	by, ok := wordOf(w, r, "by", "route", []string{"route", "backend"})
	if !ok {
		return
	}
	name := r.URL.Query().Get("name")
	now := time.Now()
	grid := history.GridOf(now, window)
	word, replicas := p.replicas(now, window)
	answer := api.History{
		By: by, Window: window.String(), StepS: grid.Step.Seconds(), Times: []time.Time{},
		Replica: word, Replicas: replicas,
	}
	for i := range grid.Steps {
		answer.Times = append(answer.Times, grid.From.Add(time.Duration(i)*grid.Step).UTC())
	}
	ring, found := p.o.Metrics.History(), name == ""
	if by == "route" {
		for _, state := range p.o.Router.Routes(now) {
			if n := state.Route.Name; name == "" || n == name {
				answer.Routes, found = append(answer.Routes, routeSeries(n, ring.Line(now, ring.Route(n), grid))), true
			}
		}
	} else {
		for _, l := range p.o.Router.Loads() {
			if name == "" || l.Backend == name {
				answer.Backends, found = append(answer.Backends, backendSeries(l.Backend, ring.Line(now, ring.Backend(l.Backend), grid))), true
			}
		}
	}
	if !found {
		badQuery(w, "name", fmt.Sprintf("name: there is no %s %.200q", by, name))
		return
	}
	send(w, http.StatusOK, answer)
}

func routeSeries(name string, line []*history.Point) api.RouteSeries {
	s := api.RouteSeries{Model: name}
	for _, p := range line {
		for _, f := range []struct {
			into *api.Line
			at   float64
		}{
			{&s.Offered, p.Offered()},
			{&s.Met, p.Result(history.Met)},
			{&s.Missed, p.Result(history.Missed)},
			{&s.Shed, p.Result(history.Shed)},
			{&s.Failed, p.Result(history.Failed)},
			{&s.Attainment, p.Kept},
			{&s.TPSP10, p.TPSP10},
			{&s.TPSP50, p.TPSP50},
			{&s.TTFTP99, p.TTFTP99},
			{&s.Free, p.Gauges[history.GaugeFree]},
			{&s.Waiting, p.Gauges[history.GaugeWaiting]},
		} {
			*f.into = append(*f.into, f.at)
		}
	}
	return s
}

func backendSeries(name string, line []*history.Point) api.BackendSeries {
	s := api.BackendSeries{Backend: name}
	for _, p := range line {
		for _, f := range []struct {
			into *api.Line
			at   float64
		}{
			{&s.Up, p.Gauges[history.GaugeUp]},
			{&s.N, p.Gauges[history.GaugeN]},
			{&s.M, p.Gauges[history.GaugeM]},
			{&s.TokensPerS, p.Tokens},
			{&s.Speed, p.Gauges[history.GaugeSpeed]},
			{&s.Requests, p.Offered()},
			{&s.Failed, p.Result(history.Failed)},
			{&s.TPSP10, p.TPSP10},
			{&s.TPSP50, p.TPSP50},
			{&s.TTFTP99, p.TTFTP99},
		} {
			*f.into = append(*f.into, f.at)
		}
	}
	return s
}

// serveTimeline answers GET /api/v1/timeline.
func (p *port) serveTimeline(w http.ResponseWriter, r *http.Request) {
	limit, ok := wholeOf(w, r.URL.Query(), "limit", api.MaxMarks, api.MaxMarks)
	if !ok {
		return
	}
	marks, _ := p.o.Watch.Marks(0, limit)
	// What other gateways noticed comes some seconds later.
	slices.SortStableFunc(marks, func(a, b history.Mark) int { return b.Time.Compare(a.Time) })
	send(w, http.StatusOK, api.Timeline{Marks: marksOf(marks)})
}

func marksOf(marks []history.Mark) []api.Mark {
	out := make([]api.Mark, len(marks))
	for i, m := range marks {
		out[i] = api.Mark{ID: m.ID, Replica: m.Replica, Time: m.Time.UTC(), Ended: api.Instant(m.Ended), Kind: m.Kind, Of: m.Of.String(), Subject: m.Name, Text: m.Text}
	}
	return out
}

// causeOf is c for JSON, all null for none.
func causeOf(c history.Cause) api.Cause {
	if c.Kind == history.None {
		return api.Cause{}
	}
	text, kind, means, advice := c.Text(), c.Kind.String(), c.Kind.Means(), c.Kind.Advice()
	out := api.Cause{Cause: &text, Kind: &kind, Since: api.Instant(c.Since), Means: &means, Advice: &advice}
	if c.Backend != "" {
		out.Backend = &c.Backend
	}
	return out
}

// causes are those of all routes, or all backends, by name.
func (p *port) causes(of history.Of) map[string]history.Cause {
	out := map[string]history.Cause{}
	for _, s := range p.o.Watch.Causes() {
		if s.Of == of {
			out[s.Name] = s.Cause
		}
	}
	return out
}

func (p *port) verdict() api.Verdict {
	v := p.o.Watch.Verdict()
	out := api.Verdict{State: v.State, Text: v.Text, Since: api.Instant(v.Since), Causes: []api.Standing{}}
	for _, s := range p.o.Watch.Causes() {
		out.Causes = append(out.Causes, api.Standing{Of: s.Of.String(), Name: s.Name, Cause: causeOf(s.Cause)})
	}
	return out
}

// Package grafana makes the dashboards that lie beside it from the list of
// metrics. What a panel says of itself is the metric's own help, and a metric that
// no panel shows gets one under "More", so that none is forgotten.
//
//	go test ./deploy/grafana -update
//
// writes them anew.
package grafana

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/telemetry"
)

// query is one line, or set of lines, of a panel.
type query struct{ expr, legend string }

// panel is what a dashboard shows of one thing.
type panel struct {
	title, unit string
	queries     []query
	wide        bool
}

// section is a row of panels with a heading.
type section struct {
	title  string
	panels []panel
}

// board is one dashboard. by is the label that its variable chooses from.
type board struct {
	uid, title, by, of string // of is a metric that always has the label
	sections           []section
}

var boards = []board{
	{
		uid: "pacer-routes", title: "Pacer: routes", by: "route", of: "pacer_route_info",
		sections: []section{
			{"Is the promise kept?", []panel{
				{"Kept requests", "percentunit", []query{
					{`1 - route:pacer_slo_errors:ratio_rate5m{route=~"$route"}`, "{{route}}"},
					{`min by (route) (pacer_slo_goal{route=~"$route"})`, "{{route}} goal"},
				}, true},
				{"Requests by result", "reqps", []query{{`sum by (route, result) (rate(pacer_slo_total{route=~"$route"}[$__rate_interval]))`, "{{route}} {{result}}"}}, true},
				{"Tokens per second of a stream, p10", "none", []query{
					{`histogram_quantile(0.1, sum by (le, route) (rate(pacer_decode_tps_bucket{route=~"$route"}[$__rate_interval])))`, "{{route}}"},
					{`max by (route) (pacer_slo_floor_tps{route=~"$route"})`, "{{route}} floor"},
				}, true},
				{"Time to the first token, p99", "s", []query{
					{`histogram_quantile(0.99, sum by (le, route) (rate(pacer_first_token_seconds_bucket{route=~"$route"}[$__rate_interval])))`, "{{route}}"},
					{`min by (route) (pacer_slo_max_ttft_seconds{route=~"$route"})`, "{{route}} limit"},
				}, true},
			}},
			{"Is there room?", []panel{
				{"Users: free, and in all", "none", []query{
					{`min by (route) (pacer_free_users{route=~"$route"})`, "{{route}} free"},
					{`min by (route) (pacer_capacity_users{route=~"$route"})`, "{{route}} in all"},
				}, false},
				{"Room in use", "percentunit", []query{{`1 - min by (route) (pacer_free_users{route=~"$route"}) / min by (route) (pacer_capacity_users{route=~"$route"})`, "{{route}}"}}, false},
				{"Shed, by rule", "reqps", []query{{`sum by (route, reason) (rate(pacer_shed_total{route=~"$route"}[$__rate_interval]))`, "{{route}} {{reason}}"}}, false},
				{"Requests in line", "none", []query{{`sum by (route) (pacer_queue_depth{route=~"$route"})`, "{{route}}"}}, false},
				{"Time in line, p90", "s", []query{{`histogram_quantile(0.9, sum by (le, route) (rate(pacer_queue_wait_seconds_bucket{route=~"$route"}[$__rate_interval])))`, "{{route}}"}}, false},
				{"Streams that a backend takes for the route", "none", []query{{`min by (route, backend) (pacer_capacity_streams{route=~"$route"})`, "{{route}} {{backend}}"}}, false},
			}},
			{"What is served?", []panel{
				{"Requests by outcome", "reqps", []query{{`sum by (outcome) (rate(pacer_requests_total{route=~"$route"}[$__rate_interval]))`, "{{outcome}}"}}, false},
				{"Tokens", "none", []query{{`sum by (route, direction) (rate(pacer_tokens_total{route=~"$route"}[$__rate_interval]))`, "{{route}} {{direction}}"}}, false},
				{"Cost per hour", "currencyUSD", []query{{`3600 * sum by (route) (rate(pacer_cost_usd_total{route=~"$route"}[$__rate_interval]))`, "{{route}}"}}, false},
				{"Length of a stream, p50", "s", []query{{`histogram_quantile(0.5, sum by (le, route) (rate(pacer_stream_duration_seconds_bucket{route=~"$route"}[$__rate_interval])))`, "{{route}}"}}, false},
				{"Streams whose backend died, by what became of them", "reqps", []query{{`sum by (backend, result) (rate(pacer_continued_total[$__rate_interval]))`, "{{backend}} {{result}}"}}, false},
				{"Second attempts", "reqps", []query{{`sum by (route, result) (rate(pacer_hedges_total{route=~"$route"}[$__rate_interval]))`, "{{route}} {{result}}"}}, false},
			}},
		},
	},
	{
		uid: "pacer-backends", title: "Pacer: backends", by: "backend", of: "pacer_backend_info",
		sections: []section{
			{"Are they well?", []panel{
				{"In service", "none", []query{{`max by (backend) (pacer_backend_up{backend=~"$backend"})`, "{{backend}}"}}, false},
				{"Breaker: 0 closed, 1 half-open, 2 open", "none", []query{{`max by (backend) (pacer_breaker_state{backend=~"$backend"})`, "{{backend}}"}}, false},
				{"Speed over what was learned", "percentunit", []query{
					{`min by (backend) (pacer_backend_scale{backend=~"$backend"})`, "{{backend}} drift"},
					{`backend:pacer_prediction:ratio_rate10m{backend=~"$backend"}`, "{{backend}} delivered over predicted"},
				}, false},
				{"Streams cut", "reqps", []query{{`sum by (backend) (rate(pacer_requests_total{backend=~"$backend",outcome="cut"}[$__rate_interval]))`, "{{backend}}"}}, false},
				{"Delivered over predicted, p10", "percentunit", []query{{`histogram_quantile(0.1, sum by (le, backend) (rate(pacer_prediction_ratio_bucket{backend=~"$backend"}[$__rate_interval])))`, "{{backend}}"}}, false},
				{"Streams below their floor now", "none", []query{{`sum by (backend) (pacer_below_floor_streams{backend=~"$backend"})`, "{{backend}}"}}, false},
			}},
			{"How loaded are they?", []panel{
				{"Sequences", "none", []query{{`sum by (backend, phase) (pacer_inflight{backend=~"$backend"})`, "{{backend}} {{phase}}"}}, true},
				{"Sequences of others", "none", []query{{`max by (backend, phase) (pacer_foreign_sequences{backend=~"$backend"})`, "{{backend}} {{phase}}"}}, true},
				{"Output tokens", "none", []query{{`sum by (backend) (rate(pacer_tokens_total{backend=~"$backend",direction="output"}[$__rate_interval]))`, "{{backend}}"}}, true},
				{"metrics_url is read", "none", []query{{`min by (backend) (pacer_engine_signal_up{backend=~"$backend"})`, "{{backend}}"}}, true},
			}},
			{"What is learned?", []panel{
				{"Curve: tokens per second of one stream, by n", "none", []query{{`max by (backend, model, n) (pacer_curve_tps{backend=~"$backend"})`, "{{backend}} {{model}} n={{n}}"}}, true},
				{"Its lower bound", "none", []query{{`max by (backend, model, n) (pacer_curve_low_tps{backend=~"$backend"})`, "{{backend}} {{model}} n={{n}}"}}, true},
				{"Bytes per token", "none", []query{{`max by (backend, model) (pacer_bytes_per_token{backend=~"$backend"})`, "{{backend}} {{model}}"}}, true},
			}},
			{"The gateways", []panel{
				{"Store reached", "none", []query{{`pacer_store_up`, "{{instance}}"}}, false},
				{"What the store does not have", "s", []query{{`pacer_store_lag_seconds`, "{{instance}}"}}, false},
				{"Own time of a request, p99", "s", []query{{`histogram_quantile(0.99, sum by (le, instance) (rate(pacer_overhead_seconds_bucket[$__rate_interval])))`, "{{instance}}"}}, false},
				{"Log lines lost", "none", []query{{`increase(pacer_log_dropped_total[$__rate_interval])`, "{{instance}}"}}, false},
				{"Configurations read", "none", []query{{`increase(pacer_config_reloads_total[$__rate_interval])`, "{{instance}} {{result}}"}}, false},
				{"The certificate ends in", "s", []query{{`pacer_certificate_expiry_timestamp_seconds - time()`, "{{instance}}"}}, false},
				{"Versions", "none", []query{{`count by (version, revision) (pacer_build_info)`, "{{version}} {{revision}}"}}, false},
			}},
		},
	},
}

var metricName = regexp.MustCompile(`\bpacer_[a-z0-9_]+`)

// more returns panels for the metrics that none of the boards show: of those with
// the label of b, or, for the last board, of those with none.
func more(list []telemetry.Metric, b board, last bool) (panels []panel) {
	var shown strings.Builder
	for _, other := range boards {
		shown.WriteString(other.of + " ")
		for _, s := range other.sections {
			for _, p := range s.panels {
				for _, q := range p.queries {
					shown.WriteString(q.expr + " ")
				}
			}
		}
	}
	names := metricName.FindAllString(shown.String(), -1)
	for _, m := range list {
		ours := slices.Contains(m.Labels, b.by)
		if !ours {
			ours = last && !slices.ContainsFunc(boards, func(o board) bool { return slices.Contains(m.Labels, o.by) })
		} else if b.by == "backend" && slices.Contains(m.Labels, "route") {
			ours = false // it is on the board of routes
		}
		if slices.Contains(names, m.Name) || slices.Contains(names, m.Name+"_bucket") || !ours {
			continue
		}
		panels = append(panels, panel{title: m.Name, unit: "none", queries: []query{generic(m, b.by)}})
	}
	return panels
}

// generic shows a metric by all its labels.
func generic(m telemetry.Metric, by string) query {
	selector := ""
	if slices.Contains(m.Labels, by) {
		selector = "{" + by + `=~"$` + by + `"}`
	}
	legend := "{{" + strings.Join(m.Labels, "}} {{") + "}}"
	labels := strings.Join(m.Labels, ", ")
	switch m.Kind {
	case telemetry.Counter:
		return query{"sum by (" + labels + ") (rate(" + m.Name + selector + "[$__rate_interval]))", legend}
	case telemetry.Histogram:
		return query{"histogram_quantile(0.9, sum by (le, " + labels + ") (rate(" + m.Name + "_bucket" + selector + "[$__rate_interval])))", legend}
	}
	return query{"max by (" + labels + ") (" + m.Name + selector + ")", legend}
}

// Dashboards returns the dashboards as JSON, by file name.
func Dashboards() map[string][]byte {
	list := telemetry.Catalog()
	out := map[string][]byte{}
	for i, b := range boards {
		sections := b.sections
		if rest := more(list, b, i == len(boards)-1); len(rest) > 0 {
			sections = append(slices.Clip(sections), section{"More", rest})
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(b.json(sections, list)); err != nil {
			panic("grafana: " + err.Error()) // strings and numbers can be written
		}
		out[b.uid+".json"] = text.Bytes()
	}
	return out
}

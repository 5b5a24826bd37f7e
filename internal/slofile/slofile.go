// Package slofile writes the promises of routes as files of service level
// objectives for other tools: OpenSLO, and Sloth.
//
// One objective a route: the share of its requests that were kept. What was shed,
// missed or failed is lost, and what could not be judged is neither, as in
// deploy/prometheus/rules.yaml. A route without a floor and without a time to a first
// token promises nothing, and has none: its slo.attainment is the default of a field.
package slofile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/config"
)

// Formats are the words of Write's format.
var Formats = []string{"openslo", "sloth"}

// service is whose objectives they are.
const service = "pacer"

// Write returns the objectives of cfg's routes in the given format. window is how
// long the budget lasts, as in 28d.
func Write(cfg *config.Config, format, window string) ([]byte, error) {
	all := objectives(cfg)
	if len(all) == 0 {
		return nil, errors.New("no route has a min_tps or a max_ttft: there is no objective to write")
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	var err error
	switch format {
	case "openslo":
		for _, document := range openSLO(all, window) {
			if err == nil {
				err = encoder.Encode(document)
			}
		}
	case "sloth":
		err = encoder.Encode(sloth(all))
	default:
		return nil, fmt.Errorf("slofile: unknown format %q; write one of %s", format, strings.Join(Formats, ", "))
	}
	if err == nil {
		err = encoder.Close()
	}
	return out.Bytes(), err
}

// objective is the promise of one route.
type objective struct {
	name        string // of lower-case letters, digits and dashes; unique
	route       string
	description string
	goal        float64 // share, in (0, 1)
}

func objectives(cfg *config.Config) (all []objective) {
	taken := map[string]bool{}
	for _, r := range cfg.Routes {
		if r.SLO.MinTPS == 0 && r.SLO.MaxTTFT == 0 {
			continue
		}
		for _, route := range r.Models {
			o := objective{route: route, goal: r.SLO.Attainment}
			o.name = unique(slug(route), taken)
			var promises []string
			if r.SLO.MinTPS > 0 {
				promises = append(promises, fmt.Sprintf("at least %g tokens per second", r.SLO.MinTPS))
			}
			if r.SLO.MaxTTFT > 0 {
				promises = append(promises, fmt.Sprintf("a first token within %s", r.SLO.MaxTTFT))
			}
			o.description = fmt.Sprintf("Requests for %s get %s.", route, strings.Join(promises, " and "))
			all = append(all, o)
		}
	}
	return all
}

// slug is a route as the names of both formats may be.
func slug(route string) string {
	if route == "*" {
		return "any-other"
	}
	name := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(route))
	name = strings.Trim(name, "-")
	if len(name) > 50 { // 63 are allowed, with an ending
		name = strings.TrimRight(name[:50], "-")
	}
	if name == "" {
		return "route"
	}
	return name
}

// unique returns name, with a number where it is taken.
func unique(name string, taken map[string]bool) string {
	out := name
	for i := 2; taken[out]; i++ {
		out = fmt.Sprintf("%s-%d", name, i)
	}
	taken[out] = true
	return out
}

// query is the rate, or the count, of the route's requests with these results.
func (o objective) query(function, results, window string) string {
	series := fmt.Sprintf(`pacer_slo_total{route=%q,result%s}`, o.route, results)
	if function == "" {
		return "sum(" + series + ")"
	}
	return fmt.Sprintf("sum(%s(%s[%s]))", function, series, window)
}

// The results, as label matchers.
const (
	kept   = `="met"`
	lost   = `=~"missed|shed|failed"`
	judged = `!="unmeasured"`
)

// The documents of OpenSLO v1, https://openslo.com.
type (
	openDocument struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   openName `yaml:"metadata"`
		Spec       openSpec `yaml:"spec"`
	}
	openName struct {
		Name        string `yaml:"name"`
		DisplayName string `yaml:"displayName,omitempty"`
	}
	openSpec struct {
		Description     string          `yaml:"description"`
		Service         string          `yaml:"service,omitempty"`
		Indicator       *openIndicator  `yaml:"indicator,omitempty"`
		TimeWindow      []openWindow    `yaml:"timeWindow,omitempty"`
		BudgetingMethod string          `yaml:"budgetingMethod,omitempty"`
		Objectives      []openObjective `yaml:"objectives,omitempty"`
	}
	openIndicator struct {
		Metadata openName `yaml:"metadata"`
		Spec     struct {
			Ratio openRatio `yaml:"ratioMetric"`
		} `yaml:"spec"`
	}
	openRatio struct {
		Counter bool       `yaml:"counter"`
		Good    openMetric `yaml:"good"`
		Total   openMetric `yaml:"total"`
	}
	openMetric struct {
		Source openSource `yaml:"metricSource"`
	}
	openSource struct {
		Type string `yaml:"type"`
		Spec struct {
			Query string `yaml:"query"`
		} `yaml:"spec"`
	}
	openWindow struct {
		Duration string `yaml:"duration"`
		Rolling  bool   `yaml:"isRolling"`
	}
	openObjective struct {
		DisplayName string  `yaml:"displayName"`
		Target      float64 `yaml:"target"`
	}
)

func openSLO(all []objective, window string) []openDocument {
	const version = "openslo/v1"
	documents := []openDocument{{
		APIVersion: version, Kind: "Service", Metadata: openName{Name: service, DisplayName: "Pacer"},
		Spec: openSpec{Description: "The gateway that keeps a floor of tokens per second."},
	}}
	for _, o := range all {
		metric := func(results string) (m openMetric) {
			m.Source.Type = "Prometheus"
			m.Source.Spec.Query = o.query("", results, "")
			return m
		}
		indicator := &openIndicator{Metadata: openName{Name: o.name + "-kept"}}
		indicator.Spec.Ratio = openRatio{Counter: true, Good: metric(kept), Total: metric(judged)}
		documents = append(documents, openDocument{
			APIVersion: version, Kind: "SLO", Metadata: openName{Name: o.name, DisplayName: o.route},
			Spec: openSpec{
				Description: o.description, Service: service, Indicator: indicator,
				TimeWindow: []openWindow{{window, true}}, BudgetingMethod: "Occurrences",
				Objectives: []openObjective{{"kept", o.goal}},
			},
		})
	}
	return documents
}

// The file of Sloth, https://sloth.dev.
type (
	slothFile struct {
		Version string     `yaml:"version"`
		Service string     `yaml:"service"`
		SLOs    []slothSLO `yaml:"slos"`
	}
	slothSLO struct {
		Name        string  `yaml:"name"`
		Objective   float64 `yaml:"objective"` // percent
		Description string  `yaml:"description"`
		SLI         struct {
			Events struct {
				Error string `yaml:"error_query"`
				Total string `yaml:"total_query"`
			} `yaml:"events"`
		} `yaml:"sli"`
		Alerting slothAlerting `yaml:"alerting"`
	}
	slothAlerting struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
		Page   slothAlert        `yaml:"page_alert"`
		Ticket slothAlert        `yaml:"ticket_alert"`
	}
	slothAlert struct {
		Labels map[string]string `yaml:"labels"`
	}
)

func sloth(all []objective) slothFile {
	file := slothFile{Version: "prometheus/v1", Service: service}
	for _, o := range all {
		slo := slothSLO{Name: o.name, Objective: math.Round(o.goal*1e8) / 1e6, Description: o.description}
		slo.SLI.Events.Error = o.query("rate", lost, "{{.window}}")
		slo.SLI.Events.Total = o.query("rate", judged, "{{.window}}")
		slo.Alerting = slothAlerting{
			Name: "PacerFloorMissed", Labels: map[string]string{"route": o.route},
			Page:   slothAlert{map[string]string{"severity": "critical"}},
			Ticket: slothAlert{map[string]string{"severity": "warning"}},
		}
		file.SLOs = append(file.SLOs, slo)
	}
	return file
}

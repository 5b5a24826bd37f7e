// Package prometheus tests the rules for Prometheus that lie beside it.
package prometheus

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/promtest"
	"github.com/pacer-dev/pacer/internal/telemetry"
)

// rule is one of rules.yaml or alerts.yaml.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T, file string) (list []rule) {
	t.Helper()
	var groups struct{ Groups []struct{ Rules []rule } }
	must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile(file))(t), &groups))
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) < 10 {
		t.Fatalf("%s: %d rules: this has not read them", file, len(list))
	}
	return list
}

// Prometheus takes the rules, and each alert fires when it is to and is silent
// when it is not.
func TestRules(t *testing.T) {
	tests, err := filepath.Glob("tests/*.yaml")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests of the rules: %v", err)
	}
	if said, ok := promtest.Tool(t, ".", "", "check", "rules", "rules.yaml", "alerts.yaml"); !ok {
		t.Error(said)
	}
	for _, file := range tests {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if said, ok := promtest.Tool(t, ".", "", "test", "rules", file); !ok {
				t.Error(said)
			}
		})
	}
}

// Every alert has a case in which it fires and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	files, _ := filepath.Glob("tests/*.yaml")
	for _, file := range files {
		var tests struct {
			Tests []struct {
				Cases []struct {
					Alert  string `yaml:"alertname"`
					Expect []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile(file))(t), &tests))
		for _, test := range tests.Tests {
			for _, c := range test.Cases {
				if len(c.Expect) > 0 {
					fires[c.Alert] = true
				} else {
					silent[c.Alert] = true
				}
			}
		}
	}
	for _, r := range rules(t, "alerts.yaml") {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: a case in which it fires: %v; one in which it is silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

// Whoever is woken reads what is wrong and where it stands what to do, and that
// place is there.
func TestEveryAlertSaysWhatToDo(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/OPERATIONS.md"))(t)
	short := must.Get(os.ReadFile("../../docs/OPERATE.md"))(t)
	var anchors []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchors = append(anchors, strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-"))
	}
	const page = "https://github.com/pacer-dev/pacer/blob/main/docs/OPERATIONS.md#"
	for _, r := range rules(t, "alerts.yaml") {
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q, want critical or warning", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: annotations %v, want a summary and a description", r.Alert, r.Annotations)
		}
		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], page)
		if !ok || anchor != strings.ToLower(r.Alert) || !slices.Contains(anchors, anchor) {
			t.Errorf("%s: no part of docs/OPERATIONS.md is at its runbook_url %q", r.Alert, r.Annotations["runbook_url"])
		}
		row := regexp.MustCompile(`(?m)^\| \[` + r.Alert + `\]\(OPERATIONS\.md#` + anchor + `\) \| ` + r.Labels["severity"] + ` \| .{20,} \|$`)
		if !row.Match(short) {
			t.Errorf("%s: docs/OPERATE.md has no row that says what to do", r.Alert)
		}
	}
}

// The metrics of the rules are those of the gateway, and what one rule reads of
// another is recorded.
func TestRulesNameWhatIsThere(t *testing.T) {
	known := []string{"process_open_fds", "process_max_fds"}
	for _, m := range telemetry.Catalog() {
		known = append(known, m.Name)
		if m.Kind == telemetry.Histogram {
			known = append(known, m.Name+"_bucket", m.Name+"_sum", m.Name+"_count")
		}
	}
	all := append(rules(t, "rules.yaml"), rules(t, "alerts.yaml")...)
	for _, r := range all {
		known = append(known, r.Record)
	}
	name := regexp.MustCompile(`\b(?:pacer|process|go|route|backend)[_:][a-z0-9_:]+`)
	for _, r := range all {
		for _, metric := range name.FindAllString(r.Expr, -1) {
			if !slices.Contains(known, metric) {
				t.Errorf("%s%s: there is no %s", r.Alert, r.Record, metric)
			}
		}
	}
}

package grafana

import (
	"encoding/json"
	"flag"
	"fmt"
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

var update = flag.Bool("update", false, "write the dashboards anew")

// What lies in dashboards is what the list of metrics makes.
func TestDashboards(t *testing.T) {
	made := Dashboards()
	for name, want := range made {
		file := filepath.Join("dashboards", name)
		if *update {
			must.Do(t, os.WriteFile(file, want, 0o644))
		}
		got := must.Get(os.ReadFile(file))(t)
		if string(got) != string(want) {
			t.Errorf("%s is not what the list of metrics makes now: go test ./deploy/grafana -update", file)
		}
	}
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) != len(made) {
		t.Errorf("dashboards: %v, want %d (%v)", files, len(made), err)
	}
}

// queries returns the expressions of all dashboards, as Prometheus gets them.
func queries(t *testing.T) (all []string) {
	t.Helper()
	rate := strings.NewReplacer("$__rate_interval", "1m", "$route", ".*", "$backend", ".*")
	for name, text := range Dashboards() {
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, p := range d.Panels {
			if p.Type != "row" && p.Description == "" {
				t.Errorf("%s: the panel %q says nothing of itself", name, p.Title)
			}
			for _, q := range p.Targets {
				all = append(all, rate.Replace(q.Expr))
			}
			for _, other := range d.Panels[:i] {
				a, b := p.Position, other.Position
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: the panels %q and %q overlap", name, p.Title, other.Title)
				}
			}
		}
	}
	return all
}

// Each metric of the list is in a dashboard, and no other one is; what is recorded
// is recorded.
func TestDashboardsAndMetricsAgree(t *testing.T) {
	text := must.Get(os.ReadFile("../prometheus/rules.yaml"))(t)
	known := map[string]bool{}
	for _, record := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(string(text), -1) {
		known[record[1]] = true
	}
	all := strings.Join(queries(t), "\n")
	for _, m := range telemetry.Catalog() {
		known[m.Name] = true
		if m.Kind == telemetry.Histogram {
			known[m.Name+"_bucket"] = true
		}
		variable := slices.ContainsFunc(boards, func(b board) bool { return b.of == m.Name })
		if !variable && !regexp.MustCompile(`\b`+m.Name+`(_bucket)?\b`).MatchString(all) {
			t.Errorf("no dashboard shows %s", m.Name)
		}
	}
	for _, name := range regexp.MustCompile(`\b(?:pacer_|route:|backend:)[a-z0-9_:]+`).FindAllString(all, -1) {
		if !known[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

// Prometheus understands every query.
func TestPromtoolReadsTheQueries(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: panels\n    rules:\n")
	for i, q := range queries(t) {
		fmt.Fprintf(&rules, "      - { record: 'panel:%d', expr: %q }\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	if said, ok := promtest.Tool(t, ".", "", "check", "rules", file); !ok {
		t.Error(said)
	}
}

// What Compose mounts is there, and where Grafana looks; its Prometheus is set up as
// docs/OPERATIONS.md says, and takes it.
func TestCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct{ Volumes []string }
	}
	must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile("../../docker-compose.yml"))(t), &compose))
	mounted := map[string]string{} // place in the container → here
	for _, name := range []string{"prometheus", "grafana"} {
		if len(compose.Services[name].Volumes) == 0 {
			t.Fatalf("compose: %s mounts nothing", name)
		}
		for _, v := range compose.Services[name].Volumes {
			parts := strings.Split(v, ":")
			here := filepath.Join("../..", parts[0])
			if _, err := os.Stat(here); err != nil || len(parts) != 3 || parts[2] != "ro" {
				t.Errorf("%s: %s: %v, or it is not read only", name, v, err)
			}
			mounted[parts[1]] = here
		}
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile("provisioning/dashboards/pacer.yaml"))(t), &providers))
	if len(providers.Providers) != 1 || mounted[providers.Providers[0].Options.Path] != "../../deploy/grafana/dashboards" {
		t.Errorf("Grafana looks for dashboards in %+v, mounted are %v", providers, mounted)
	}
	if said, ok := promtest.Tool(t, "../compose", "", "check", "config", "--syntax-only", "prometheus.yaml"); !ok {
		t.Error(said)
	}
	operations := must.Get(os.ReadFile("../../docs/OPERATIONS.md"))(t)
	example := regexp.MustCompile("(?s)```yaml\n(rule_files:.*?)```").FindSubmatch(operations)
	if example == nil {
		t.Fatal("docs/OPERATIONS.md has no example for Prometheus")
	}
	dir := t.TempDir()
	for _, name := range []string{"rules.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("../prometheus", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), example[1], 0o600))
	if said, ok := promtest.Tool(t, dir, "", "check", "config", "prometheus.yaml"); !ok {
		t.Error(said)
	}
}

package slofile

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/promtest"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func example(t *testing.T) *config.Config {
	t.Helper()
	cfg, err := config.Parse("pacer.yaml", []byte(`
backends: [ { name: gpu, url: http://10.0.0.11:8000/v1 } ]
routes:
  - { models: [ gpt-4o, GPT.4o ], targets: [ { backend: gpu, model: m } ], slo: { min_tps: 30, max_ttft: 2s, attainment: 0.995 } }
  - { model: 'org/Model "X"', targets: [ { backend: gpu, model: m } ], slo: { max_ttft: 500ms } }
  - { model: nightly, class: batch, targets: [ { backend: gpu, model: m } ] }
  - { model: "*", targets: [ { backend: gpu } ], slo: { min_tps: 10, attainment: 0.9 } }
`), func(string) (string, bool) { return "", false })
	must.Do(t, err)
	return cfg
}

func TestWrite(t *testing.T) {
	for _, format := range Formats {
		got := must.Get(Write(example(t), format, "28d"))(t)
		file := filepath.Join("testdata", format+".yaml")
		if *update {
			must.Do(t, os.WriteFile(file, got, 0o644))
		}
		want := must.Get(os.ReadFile(file))(t)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", file, diff)
		}
	}
	if _, err := Write(example(t), "iso", "28d"); err == nil {
		t.Error("an unknown format is written")
	}
}

// A route without a floor has no objective, whatever the default of its field says.
func TestWhoPromisesNothingHasNoObjective(t *testing.T) {
	for _, o := range objectives(example(t)) {
		if o.route == "nightly" {
			t.Errorf("nightly has the objective %+v", o)
		}
	}
	cfg := example(t)
	cfg.Routes = cfg.Routes[2:3]
	for _, format := range Formats {
		if text, err := Write(cfg, format, "28d"); err == nil || !strings.Contains(err.Error(), "no route has a min_tps") {
			t.Errorf("%s of nightly alone: %v\n%s", format, err, text)
		}
	}
}

// What was written is read as what was meant.
func TestRoundTrip(t *testing.T) {
	all := objectives(example(t))
	text, err := Write(example(t), "openslo", "28d")
	must.Do(t, err)
	var documents []openDocument
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var d openDocument
		if err := decoder.Decode(&d); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, d)
	}
	if diff := cmp.Diff(openSLO(all, "28d"), documents); diff != "" {
		t.Errorf("openslo (-meant +read):\n%s", diff)
	}

	if text, err = Write(example(t), "sloth", "28d"); err != nil {
		t.Fatal(err)
	}
	var file slothFile
	must.Do(t, yaml.Unmarshal(text, &file))
	if diff := cmp.Diff(sloth(all), file); diff != "" {
		t.Errorf("sloth (-meant +read):\n%s", diff)
	}
	if got := file.SLOs[0].Objective; got != 99.5 {
		t.Errorf("the goal 0.995 is written as %v %%, want 99.5", got)
	}
}

// Prometheus understands every query, and names are as the formats want them.
func TestQueriesAndNames(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: queries\n    rules:\n")
	name, seen := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`), map[string]bool{}
	for i, o := range objectives(example(t)) {
		if !name.MatchString(o.name) || seen[o.name] {
			t.Errorf("route %q is named %q", o.route, o.name)
		}
		seen[o.name] = true
		for j, query := range []string{o.query("", kept, ""), o.query("", judged, ""), o.query("rate", lost, "5m")} {
			fmt.Fprintf(&rules, "      - { record: 'query:%d:%d', expr: %q }\n", i, j, query)
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	if said, ok := promtest.Tool(t, ".", "", "check", "rules", file); !ok {
		t.Error(said)
	}
}

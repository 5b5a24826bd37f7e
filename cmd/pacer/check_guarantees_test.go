package main

import (
	"strings"
	"testing"
)

// What the priors say of guarantees: too many for one route, too many for a backend,
// and nothing where they fit or where nothing is known.
func TestCheckWarnsOfGuarantees(t *testing.T) {
	for name, tt := range map[string]struct{ routes, want string }{
		"fit":       {"{ model: a, targets: [ { backend: x } ], slo: { min_tps: 70, guarantee: 10 } }", ""},
		"too many":  {"{ model: a, targets: [ { backend: x } ], slo: { min_tps: 70, guarantee: 1000 } }", "route a has 1000 places guaranteed, and its targets can keep "},
		"together":  {"{ model: a, targets: [ { backend: x } ], slo: { min_tps: 70, guarantee: 70% } }, { model: b, targets: [ { backend: x } ], slo: { min_tps: 71, guarantee: 30 } }", "on backend x "},
		"not known": {"{ model: a, targets: [ { backend: y } ], slo: { min_tps: 60, guarantee: 1000 } }", ""},
	} {
		cfg := parsed(t, `backends:
  - { name: x, url: "http://x:1/v1", prior: llama-3.1-70b/h200/vllm }
  - { name: y, url: "http://y:1/v1" }
routes: [ `+tt.routes+` ]
`)
		got := strings.Join(guaranteeWarnings(cfg), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

package main

import (
	"io"
	"log/slog"
	"testing"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/profiles"
)

// pacer_capacity_streams is the best that a backend does for a route at its
// floor, whatever the order of its targets; what has no floor has no capacity.
func TestLiveCapacity(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
backends:
  - { name: a, url: http://a.test/v1 }
  - { name: api, url: http://api.test/v1, models: separate }
routes:
  - { model: chat, slo: { min_tps: 30 }, targets: [ { backend: a, model: fast }, { backend: a, model: slow } ] }
  - { model: free, targets: [ { backend: a, model: fast } ] }
  - { model: nightly, class: batch, targets: [ { backend: a, model: fast } ] }
  - { model: both, slo: { min_tps: 30 }, targets: [ { backend: api, model: fast }, { backend: api } ] }
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	p, err := wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{})
	if err != nil {
		t.Fatal(err)
	}
	p.book.Prior(profiles.Target{Backend: "a", Model: "fast"}, []profiles.PriorPoint{{N: 1, TPS: 60}, {N: 40, TPS: 30.01}, {N: 64, TPS: 20}})
	p.book.Prior(profiles.Target{Backend: "a", Model: "slow"}, []profiles.PriorPoint{{N: 1, TPS: 40}, {N: 8, TPS: 30.01}, {N: 16, TPS: 20}})
	p.book.Prior(profiles.Target{Backend: "api", Model: "fast", Separate: true}, []profiles.PriorPoint{{N: 1, TPS: 60}, {N: 40, TPS: 30.01}, {N: 64, TPS: 20}})
	p.book.Prior(profiles.Target{Backend: "api", Model: "both", Separate: true}, []profiles.PriorPoint{{N: 1, TPS: 40}, {N: 8, TPS: 30.01}, {N: 16, TPS: 20}})
	want := map[string]int{"chat": 40, "free": 0, "nightly": 0}
	for _, r := range p.live().Routes {
		if r.Name == "both" {
			if got := r.Capacity["api"]; got != 48 {
				t.Errorf("both: capacity %d, want 40 of one model and 8 of the other", got)
			}
			continue
		}
		if got, ok := r.Capacity["a"]; !ok || got != want[r.Name] {
			t.Errorf("%s: capacity %d (exported: %v), want %d", r.Name, got, ok, want[r.Name])
		}
	}
}

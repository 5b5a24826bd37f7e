package fleet

import (
	"maps"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/profiles"
)

// The margin of a backend is made for the highest attainment and the shortest
// grace that a floor on it promises; batch and routes without a floor promise
// nothing.
func TestPromisesOfABackend(t *testing.T) {
	cfg := parse(t, `
backends: [ { name: a, url: http://a/v1 }, { name: b, url: http://b/v1 }, { name: c, url: http://c/v1 }, { name: d, url: http://d/v1, models: separate } ]
routes:
  - { model: one, slo: { min_tps: 30, attainment: 0.95, grace: 2s }, targets: [ { backend: a, model: m }, { backend: b, model: m } ] }
  - { model: two, slo: { min_tps: 20, attainment: 0.999, grace: 3s }, targets: [ { backend: a, model: m } ] }
  - { model: free, slo: { attainment: 0.9999, grace: 0s }, targets: [ { backend: a, model: m }, { backend: c, model: m } ] }
  - { models: [big, small], slo: { min_tps: 9, attainment: 0.9, grace: 4s }, targets: [ { backend: d } ] }
  - { model: best, slo: { min_tps: 9, attainment: 0.99, grace: 5s }, targets: [ { backend: d, model: big } ] }
  - { model: "*", slo: { min_tps: 9, attainment: 0.8, grace: 6s }, targets: [ { backend: d } ] }
`)
	d := func(model string) profiles.GroupID {
		return profiles.GroupID{Backend: "d", Model: model, Separate: true}
	}
	want := map[profiles.GroupID]groupSLO{
		{Backend: "a"}: {0.999, 2 * time.Second}, {Backend: "b"}: {0.95, 2 * time.Second},
		d("big"): {0.99, 4 * time.Second}, d("small"): {0.9, 4 * time.Second}, d(""): {0.8, 6 * time.Second},
	}
	if got := groupSLOs(cfg); !maps.Equal(got, want) {
		t.Errorf("promises %v, want %v", got, want)
	}
}

// A published curve says what its prompts cost; points of one's own say nothing of it.
func TestAPublishedCurveKnowsWhatPromptsCost(t *testing.T) {
	preset := presets.List()[0]
	cfg := parse(t, `
backends: [ { name: a, url: http://a/v1, prior: `+preset.Name+` }, { name: b, url: http://b/v1, prior: { 1: 50, 8: 40 } } ]
routes: [ { model: m, targets: [ { backend: a, model: m }, { backend: b, model: m } ] } ]
`)
	book := profiles.NewBook(profiles.Options{})
	must.Do(t, Believe(book, cfg))
	for name, want := range map[string]float64{"a": preset.SecondsPerPromptToken, "b": 0} {
		if got := book.Curve(profiles.Target{Backend: name, Model: "m"}).SecondsPerPromptToken(); got != want {
			t.Errorf("a prompt token takes %v s on %s, want %v", got, name, want)
		}
	}
}

package plan

import (
	"cmp"
	"slices"

	"github.com/pacer-dev/pacer/config"
)

// apart returns cfg with a backend for each model of those whose models are
// separate: in a plan a machine is what decodes together. Each has the cap of the
// whole backend, and an equal part of what it costs by the hour.
func apart(cfg *config.Config) *config.Config {
	next := *cfg
	next.Backends, next.Routes = nil, nil
	models := map[string][]string{} // by backend, in the order of the routes
	for _, r := range cfg.Routes {
		if !slices.ContainsFunc(r.Targets, func(t config.Target) bool { _, separate := cfg.Upstream(t, ""); return separate }) {
			next.Routes = append(next.Routes, r)
			continue
		}
		for _, name := range r.Models {
			one := r
			one.Models, one.Targets = []string{name}, nil
			for _, t := range r.Targets {
				if model, separate := cfg.Upstream(t, name); separate {
					if !slices.Contains(models[t.Backend], model) {
						models[t.Backend] = append(models[t.Backend], model)
					}
					t.Backend = partOf(t.Backend, model)
				}
				one.Targets = append(one.Targets, t)
			}
			next.Routes = append(next.Routes, one)
		}
	}
	for _, b := range cfg.Backends {
		if !b.Separate() {
			next.Backends = append(next.Backends, b)
		}
		for _, model := range models[b.Name] {
			one := b
			one.Name, one.Models = partOf(b.Name, model), ""
			one.USDPerHour /= float64(len(models[b.Name]))
			next.Backends = append(next.Backends, one)
		}
	}
	return &next
}

// partOf is what a plan calls one model of a backend: as check does, and like no
// backend that is configured.
func partOf(backend, model string) string { return backend + ":" + cmp.Or(model, "*") }

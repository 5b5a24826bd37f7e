package fleet

import (
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// Topology is the configuration as the router wants it: one route for each
// name that clients may use.
func Topology(cfg *config.Config) router.Topology {
	t := router.Topology{Replicas: cfg.Replicas}
	prices := map[string]config.Price{}
	for _, b := range cfg.Backends {
		prices[b.Name] = b.Price
		t.Backends = append(t.Backends, router.Backend{Name: b.Name, Engine: b.Engine(), MaxConcurrency: b.Cap()})
	}
	for _, r := range cfg.Routes {
		for _, name := range r.Models {
			t.Routes = append(t.Routes, routeOf(cfg, r, name, prices))
		}
	}
	return t
}

func routeOf(cfg *config.Config, r config.Route, name string, prices map[string]config.Price) router.Route {
	out := router.Route{
		Name:       name,
		Class:      classOf(r.Class),
		SLO:        router.SLO{MinTPS: r.SLO.MinTPS, MaxTTFT: r.SLO.MaxTTFT, Grace: r.SLO.Grace, Guarantee: router.Guarantee(r.SLO.Guarantee)},
		Prefer:     router.Prefer(r.Prefer),
		Reserve:    r.Reserve,
		MaxWaiting: cfg.Limits.Queue,
		BatchShare: r.BatchShare,
		NoAffinity: r.Affinity == "off",
	}
	if r.BatchShare == 0 {
		out.BatchShare = -1 // the router takes 0 for its default
	}
	for i, t := range r.Targets {
		model, separate := cfg.Upstream(t, name)
		out.Targets = append(out.Targets, router.RouteTarget{
			Target:      profiles.Target{Backend: t.Backend, Model: model, Separate: separate},
			InputPrice:  prices[t.Backend].Input,
			OutputPrice: prices[t.Backend].Output,
			Weight:      r.Split[r.TargetName(i)],
		})
	}
	for _, s := range r.OnInfeasible {
		out.OnInfeasible = append(out.OnInfeasible, stepOf(s))
	}
	return out
}

func stepOf(s config.Step) router.Step {
	switch {
	case s.Queue > 0:
		return router.Step{Kind: router.Queue, Wait: s.Queue}
	case s.Spill != "":
		return router.Step{Kind: router.Spill, Route: s.Spill}
	case s.BestEffort:
		return router.Step{Kind: router.BestEffort}
	}
	return router.Step{Kind: router.Shed}
}

func classOf(s string) router.Class {
	if s == router.Batch.String() {
		return router.Batch
	}
	return router.Interactive
}

// Targets returns every target that some route names, each once.
func Targets(t router.Topology) []profiles.Target {
	seen := map[profiles.Target]bool{}
	var out []profiles.Target
	for _, r := range t.Routes {
		for _, rt := range r.Targets {
			if !seen[rt.Target] {
				seen[rt.Target] = true
				out = append(out, rt.Target)
			}
		}
	}
	return out
}

// Names are those of the configured backends.
func Names(cfg *config.Config) []string {
	var out []string
	for _, b := range cfg.Backends {
		out = append(out, b.Name)
	}
	return out
}

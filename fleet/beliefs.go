package fleet

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// beliefs are what a configuration says of speed: which targets there are, what
// they are believed to be worth before any evidence, and what is promised on
// them.
type beliefs struct {
	targets []profiles.Target
	priors  map[string]belief // by backend
	slos    map[profiles.GroupID]groupSLO
}

func beliefsOf(cfg *config.Config, t router.Topology) (beliefs, error) {
	priors, err := priorsOf(cfg)
	return beliefs{Targets(t), priors, groupSLOs(cfg)}, err
}

func (b beliefs) tell(book *profiles.Book) {
	book.Retain(b.targets...)
	for id, most := range b.slos {
		book.Attain(id, most.share, most.grace)
	}
	for _, t := range b.targets {
		prior := b.priors[t.Backend]
		book.Prior(t, prior.points, prior.promptCost)
	}
}

// Believe tells book what cfg says of speed.
func Believe(book *profiles.Book, cfg *config.Config) error {
	b, err := beliefsOf(cfg, Topology(cfg))
	if err == nil {
		b.tell(book)
	}
	return err
}

// belief is what is believed of a backend.
type belief struct {
	points     []profiles.PriorPoint
	promptCost float64 // seconds of one prompt token; 0 = nobody says
}

// priorsOf returns what cfg believes of its backends, by their names.
func priorsOf(cfg *config.Config) (map[string]belief, error) {
	priors := map[string]belief{}
	for _, b := range cfg.Backends {
		var of belief
		if b.Prior.Preset != "" {
			preset, ok := presets.Lookup(b.Prior.Preset)
			if !ok {
				return nil, fmt.Errorf("backend %s: prior: no published curve %q; pacer sim --list prints them", b.Name, b.Prior.Preset)
			}
			of.promptCost = preset.SecondsPerPromptToken
			for _, pt := range preset.Points {
				of.points = append(of.points, profiles.PriorPoint{N: pt.N, TPS: pt.TPS})
			}
		}
		for n, tps := range b.Prior.Points {
			of.points = append(of.points, profiles.PriorPoint{N: n, TPS: tps})
		}
		if len(of.points) > 0 {
			priors[b.Name] = of
		}
	}
	return priors, nil
}

// groupSLO is what streams in a group are promised: the share that shall keep
// its floor, and how much longer than it says they may take.
type groupSLO struct {
	share float64
	grace time.Duration
}

// groupSLOs returns, by what is counted together, the highest share and the
// shortest grace of the routes with a floor.
func groupSLOs(cfg *config.Config) map[profiles.GroupID]groupSLO {
	out := map[profiles.GroupID]groupSLO{}
	for _, r := range cfg.Routes {
		if r.SLO.MinTPS <= 0 || classOf(r.Class) == router.Batch {
			continue
		}
		for _, name := range r.Models {
			for _, t := range r.Targets {
				model, separate := cfg.Upstream(t, name)
				id := profiles.Target{Backend: t.Backend, Model: model, Separate: separate}.GroupID()
				most, known := out[id]
				if !known {
					most.grace = r.SLO.Grace
				}
				out[id] = groupSLO{max(most.share, r.SLO.Attainment), min(most.grace, r.SLO.Grace)}
			}
		}
	}
	return out
}

package main

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// guaranteeWarnings are about routes for which fewer places can be kept than are
// guaranteed, and about backends on which more are than one more is let in beside, as
// far as the priors tell: it asks the router, which splits them.
func guaranteeWarnings(cfg *config.Config) (out []string) {
	t := fleet.Topology(cfg)
	book := profiles.NewBook(profiles.Options{})
	if err := fleet.Believe(book, cfg); err != nil {
		return nil // a prior that cannot be read is reported already
	}
	now, r := time.Now(), router.New(router.Options{Rand: func() float64 { return 0 }})
	curves := map[router.Target]*profiles.Curve{}
	for _, target := range fleet.Targets(t) {
		curves[target] = book.Curve(target)
	}
	r.Update(now, router.Configure{Topology: t})
	r.Update(now, router.Curves{ByTarget: curves})

	held := r.Routes(now)
	for i := range t.Routes {
		t.Routes[i].SLO.Guarantee = router.Guarantee{}
	}
	r.Update(now, router.Configure{Topology: t})
	places, room := map[string]int{}, map[string]int{} // by backend; room = least capacity of the routes that hold some there
	for k, free := range r.Routes(now) {
		s, known := held[k], held[k].Guaranteed > 0
		for i, target := range s.Route.Targets {
			known = known && curves[target.Target].Known() && !free.Targets[i].CapacityLowerBound
			most := free.Targets[i].Capacity
			if s.Targets[i].Held == 0 || most == 0 {
				continue
			}
			places[target.Backend] += s.Targets[i].Held
			if least, ok := room[target.Backend]; !ok || most < least {
				room[target.Backend] = most
			}
		}
		if known && s.Held < s.Guaranteed {
			out = append(out, fmt.Sprintf("route %s has %d places guaranteed, and its targets can keep %d by their priors; lower slo.guarantee, or add a target", s.Route.Name, s.Guaranteed, s.Held))
		}
	}
	for _, b := range cfg.Backends {
		if most, ok := room[b.Name]; ok && places[b.Name] > most {
			out = append(out, fmt.Sprintf("on backend %s %d places are guaranteed, and it carries %d by its prior: who comes first has them; lower a guarantee", b.Name, places[b.Name], most))
		}
	}
	return out
}

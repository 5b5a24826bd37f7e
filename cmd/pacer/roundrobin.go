package main

import (
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// roundRobin is a placer that knows nothing of speed: each route's targets in
// turn. It exists for pacer demo --policy round-robin, to compare with.
type roundRobin struct {
	router  *router.Router
	targets map[string][]profiles.Target // by route
	next    atomic.Uint64
}

func newRoundRobin(r *router.Router, t router.Topology) *roundRobin {
	rr := &roundRobin{router: r, targets: map[string][]profiles.Target{}}
	for _, route := range t.Routes {
		for _, rt := range route.Targets {
			rr.targets[route.Name] = append(rr.targets[route.Name], rt.Target)
		}
	}
	return rr
}

// Place takes the next target in turn that is in service.
func (rr *roundRobin) Place(now time.Time, req router.Request) router.Decision {
	targets := rr.targets[req.Route]
	first := rr.next.Add(1)
	var d router.Decision
	for i := range targets {
		target := targets[(first+uint64(i))%uint64(len(targets))]
		if d = rr.router.Assign(now, req, target, "round-robin"); d.Lease != nil {
			return d
		}
	}
	if d.Refusal == nil {
		d.Refusal = &router.Refusal{Reason: router.NoBackend}
	}
	return d
}

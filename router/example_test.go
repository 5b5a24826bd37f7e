package router_test

import (
	"fmt"
	"time"

	"github.com/pacer-dev/pacer/router"
)

func ExampleRouter_Place() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := router.New(router.Options{Rand: func() float64 { return 0 }})
	target := router.RouteTarget{Target: router.Target{Backend: "h200-a", Model: "llama"}}
	r.Update(now, router.Configure{Topology: router.Topology{
		Backends: []router.Backend{{Name: "h200-a"}},
		Routes: []router.Route{{
			Name: "chat", Targets: []router.RouteTarget{target}, SLO: router.SLO{MinTPS: 30},
			OnInfeasible: []router.Step{{Kind: router.Queue, Wait: 2 * time.Second}, {Kind: router.Shed}},
		}},
	}})

	var leases []*router.Lease
	for range 5 { // nothing is known yet: slow start takes four
		d := r.Place(now, router.Request{Route: "chat", Arrived: now, Stream: true})
		if d.Ticket != nil {
			fmt.Println("the fifth waits until", d.Ticket.Deadline().Sub(now))
			break
		}
		leases = append(leases, d.Lease)
	}
	leases[0].FirstToken(now)
	for _, grant := range leases[0].Done(now, 200) {
		fmt.Println("granted:", grant.Decision.Lease.Target().Backend)
	}
	// Output:
	// the fifth waits until 2s
	// granted: h200-a
}

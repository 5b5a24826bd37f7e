package router

import (
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// Change is something that the router is told: one of the types of this file.
type Change interface{ change() }

// Tick says only that time has passed.
type Tick struct{}

// Configure replaces the topology. A backend whose name stays keeps its
// incarnation; a removed one lives on only through its leases.
type Configure struct{ Topology Topology }

// Curves hands in new curves.
type Curves struct{ ByTarget map[Target]*profiles.Curve }

// Health is whether a backend may be used.
type Health uint8

// Probing admits one request at a time: a half-open breaker.
const (
	Up Health = iota
	Probing
	Down     // breaker open or health check failed
	Draining // no new requests
)

// String returns up, probing, down or draining.
func (h Health) String() string { panic("unwritten") }

// BackendHealth says what the breaker or an operator thinks of a backend.
type BackendHealth struct {
	Backend string
	Health  Health
}

// Load is what one replica runs on one backend.
type Load struct {
	Waiting, Decoding int
	PromptTokens      int     // of the waiting
	Floor             float64 // highest floor of its running streams, 0 = none
}

// RemoteLoad replaces what the other replicas together run. Replicas is how
// many are alive, this one included. Lost means that the sharing is out: the
// own count is multiplied by Replicas instead.
type RemoteLoad struct {
	ByBackend map[string]Load
	Replicas  int
	Lost      bool
}

func (Tick) change()          {}
func (Configure) change()     {}
func (Curves) change()        {}
func (BackendHealth) change() {}
func (RemoteLoad) change()    {}

// Update tells the router something and returns the tickets that may go now.
func (r *Router) Update(now time.Time, c Change) []Grant { panic("unwritten") }

// NextWake returns when the router should get a Tick although nothing else
// happens; zero when nobody waits.
func (r *Router) NextWake(now time.Time) time.Time { panic("unwritten") }

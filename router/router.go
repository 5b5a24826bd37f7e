package router

import "time"

// Router places requests and counts what runs where. It is safe for concurrent
// use. It never blocks and does no I/O.
type Router struct{}

// Options configures a Router.
type Options struct {
	// Rand breaks ties and spreads retries: a source of floats in [0, 1).
	// Required. Called under the router's lock.
	Rand func() float64
}

// New returns a router without backends; Update(Configure) gives it some.
func New(o Options) *Router { panic("unwritten") }

// BackendLoad is what the router knows of one backend.
type BackendLoad struct {
	Backend           string
	Health            Health
	Waiting, Decoding int // of this replica
	N, M              int // over all replicas
	PromptTokens      int // of this replica's waiting
	Floor             float64
	Cap               int // slow-start cap in force, 0 = none
}

// Loads returns the load of every configured backend, in their order.
func (r *Router) Loads() []BackendLoad { panic("unwritten") }

// RouteState is what the router knows of one route.
type RouteState struct {
	Route          Route
	Waiting        int  // in line
	Free           int  // users of this route that fit now
	FreeLowerBound bool // Free is limited by what was ever visited, not by speed
}

// Routes returns the state of every configured route, in their order.
func (r *Router) Routes(now time.Time) []RouteState { panic("unwritten") }

// InService reports whether at least one backend may be used.
func (r *Router) InService() bool { panic("unwritten") }

// Package router decides which backend serves a request, and counts what runs
// where.
//
// Place decides and reserves under one lock. It returns a Lease, a Ticket in
// the route's waiting line, or a Refusal that says why and when to come back.
// A target is feasible when its backend is in service, when what its streams get
// at the moment, carried over to the load with the newcomer by the curve's shape,
// meets the newcomer's floor and the highest floor of those already running, when
// every stream can pay for the newcomer's prompt out of its lead, when a reserve
// stays free and nobody interactive is kept out (batch only), and when the
// predicted time to the first token fits.
//
// m counts sequences that hold a lease, waiting or decoding: decisions are
// made on it. n counts those decoding: it is what is measured. Both include
// what the other replicas reported, and what an engine reported beyond all of
// that, if it does.
//
// The router never asks outwards: configuration, curves, health and remote
// load are pushed in with Update. It reads no clock, starts no goroutine, does
// no I/O and writes no log: now and the random source are arguments, so a
// recorded trace replays to the same decisions. Waiting itself is the caller's:
// Update and Done return the Grants of tickets that may go.
//
// Lock order: Router.mu, then the lock inside profiles.Occupancy. Nothing is
// called back under Router.mu but Options.Rand, and Request.Caches, which must not
// call the router: prefix.Index takes its own lock there, then that of one cache.
package router

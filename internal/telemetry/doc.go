// Package telemetry is the one list of metric names and what stands behind
// them: Prometheus collectors on an own registry, and per-route counters with
// quantiles for the API.
//
// What is counted (requests, tokens, times) is told by Observe, once for each
// finished request. What is true at a moment (load, breakers, curves) is read
// through Live at each scrape, so nothing that is gone stays on show.
//
// Label sets are closed: routes, backends and outcomes come from the
// configuration and from this package, never from clients. What is of a route or
// of a backend alone exists with 0 from the start, so that a rate over the first
// event is right; what is of both, from its first use. Series leave with their
// route or their backend.
//
// Units: seconds, tokens, tokens/s of one stream, US dollars.
package telemetry

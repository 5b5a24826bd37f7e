// Package telemetry is the one list of metric names and what stands behind
// them: Prometheus collectors on an own registry, and per-route counters with
// quantiles for the API. Label sets are closed: routes, backends and outcomes
// come from the configuration, never from clients.
package telemetry

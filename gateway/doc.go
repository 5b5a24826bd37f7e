// Package gateway is the data port: the journey of one request from a client
// to a backend and back.
//
// exchange.go reads like the list of its steps: authenticate, read, place,
// forward, relay, settle. Each step stands in its own file. errors.go is the
// only place that knows status codes.
//
// The gateway owns time as it is measured: one clock read when bytes arrive
// from the backend. What it learns it hands on: exposure to profiles, places
// to the router, verdicts to the breaker, one Exchange to telemetry, one line
// to the log.
package gateway

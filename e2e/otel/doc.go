// Package otel has the built program send its traces to the OpenTelemetry
// Collector's own receiver, built from its Go module. It is a module of its own so
// that the collector's weight stays out of the program's.
//
//	make sdk
package otel

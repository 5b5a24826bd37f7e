// Package kubernetes finds the engines of a backend in a cluster: those behind a
// Service, by its EndpointSlices, or those of an InferencePool, by its pods.
//
// A Cluster watches what it is asked for, and answers at once with the engines it
// knows, as fragments of a configuration. What it cannot see any more stays as it
// was: an API server that is away empties no fleet. It knows no router; what
// becomes of the engines is up to the caller.
//
// An engine that is about to end is Draining until it is gone. One that is not
// ready, and not about to end, is left out. What a pod's annotations say under
// pacer.dev/ replaces what the configuration says of the backend.
//
// The client is a few requests over net/http: list, watch with bookmarks, list
// anew after 410 Gone, and wait longer after each failure. Token and authority are
// read from their files again for each request.
package kubernetes

// Package endpoint is the table of the endpoints that backends serve: a row
// each, which says all that differs between them. The gateway takes its paths
// and its journey from it, providers how an answer is read, and config which
// end of a URL was copied too much.
//
// Whoever adds an endpoint adds a row to table.go. One whose answers have a
// form of their own needs a Dialect as well, and a meter in package providers.
//
// Paths are those below /v1. What the gateway answers by itself, as /v1/models,
// is no endpoint.
package endpoint

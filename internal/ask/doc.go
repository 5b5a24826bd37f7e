// Package ask asks for what a gateway knows: a running one at its admin port,
// its store, or the results of a benchmark. It writes the answers for people and
// as CSV.
package ask

// Package peers is what replicas tell each other of their load: the form that it
// is stored in, and what the router is told of the others.
//
// Counts are sequences, as in the router: of each backend, and where its models
// are counted by themselves, of each of them too. What is published is this replica's
// own count and what is handed on is the others': nothing is counted twice.
//
// Nothing here reads a clock or does I/O: router/redisload carries it through
// Redis, and the arena from one simulated gateway to the other.
package peers

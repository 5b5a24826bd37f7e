// Package redisload tells the other replicas what this one runs on each
// backend, and tells the router what they run.
//
// All replicas write into one hash, each its own field, with the time of the
// server's clock; a field that is older than Options.Expiry is dropped by
// whoever sees it. So no clocks are compared, a replica that dies is forgotten
// within a second, and nothing is searched for.
//
// Counts are sequences, as in the router: of each backend, and where its models
// are counted by themselves, of each of them too. What is published is this replica's
// own count and what is handed on is the others': nothing is counted twice.
//
// Without Redis the router is told so, with the number of replicas last seen:
// it then takes the others to be as busy as itself.
package redisload

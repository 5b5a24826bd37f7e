// Package redisload tells the other replicas what this one runs on each
// backend, and tells the router what they run.
//
// All replicas write into one hash, each its own field, with the time of the
// server's clock; a field that is older than Options.Expiry is dropped by
// whoever sees it. So no clocks are compared, a replica that dies is forgotten
// within a second, and nothing is searched for. What is written is peers.Report.
//
// The exchange is the heartbeat of all sharing: what becomes of it goes to the
// Link, which says whether this replica is shared or alone. Alone the router is told
// the number of replicas last seen: it then takes the others to be as busy as itself.
package redisload

// Package redislimit holds keys to their limits over all replicas that share a
// Redis.
//
// No request waits for it. Each replica decides by its own limit.Limiter; five
// times a second a loop adds what was used here to the totals in Redis and
// takes over what all have used. So a limit may be passed by what the replicas
// let through in one such period, and is paid for after it: over any longer
// time a key gets its limit and no more.
//
// Alone (package share) each replica allows its limit divided by the replicas
// last seen; what was used meanwhile is told when it is back, less what time
// has paid for.
//
// What no replica can have written (no number, a time beyond an hour, another
// type) is replaced by what is known here: the name of a Redis key has the
// version of its layout, so it is nobody else's. Redis holds the configured name
// of a key, never the key. A key's counts are
// those of its limits: with other limits it begins anew.
package redislimit

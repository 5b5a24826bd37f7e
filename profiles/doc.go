// Package profiles learns how fast each target serves, and how that speed
// falls as more sequences share the backend.
//
// The path of a number: a Stream books, for each level of concurrency n it
// lived through, the seconds it waited for tokens and the tokens it got. At
// least once a second it hands these exposures to the profile of its target. A
// profile cuts them into windows of 5 seconds and adds them up as Sums; Sums
// are additive, so replicas merge by addition. From Sums a Curve is fitted:
// tokens per second for ONE stream as a function of n, with a lower bound for
// decisions, its support and its age.
//
// Units: speed is tokens/s for one stream unless the name says Aggregate; time
// per output token is in seconds; n counts sequences that are decoding (first
// token seen, last not), over all replicas.
//
// Nothing here reads a clock, starts a goroutine or does I/O: callers pass
// now, so a recorded trace replays to the same curve. The loops and the stores
// live below: profiles/learn, profiles/redisstore.
package profiles

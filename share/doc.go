// Package share says in one line whether this replica is shared or alone, and
// is what all exchanges between replicas have in common.
//
// Replicas tell each other three things through one Redis: what they run
// (router/redisload), what they have learned (profiles/learn), and what their keys
// have used (gateway/limit/redislimit). Each exchange has its own keys and its own
// Lua. One connection carries all three, and its breaker leaves a Redis alone that
// does not answer (internal/redisconn). The exchange of loads is the heartbeat: it
// alone tells who is alive, so the verdict follows from it.
//
// Judge is that rule. It is pure, and the arena plays it. A Link keeps the
// verdict of a running gateway: it logs one line when the replica is alone, and one
// when it is shared again.
//
// Nothing on the path of a request waits for any of it.
package share

package baseline

import (
	"math/rand/v2"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// The words of the policies.
const (
	RoundRobin    router.Prefer = "round_robin"
	Random        router.Prefer = "random"
	LeastRequests router.Prefer = "least_requests"
	P2C           router.Prefer = "p2c"
	EWMA          router.Prefer = "ewma"
	LowestLatency router.Prefer = "lowest_latency"
	CacheFirst    router.Prefer = "cache_first"
	SessionHash   router.Prefer = "session_hash"
)

// Options are what the policies need beside the router's choice.
type Options struct {
	// Random breaks ties. Required, but for RoundRobin alone. It is drawn from
	// under the router's lock.
	Random *rand.Rand

	// Weight is how likely Random takes a target, beside the others; nil = all
	// are alike.
	Weight func(router.Target) float64

	// Now is what time it is, for LowestLatency, which forgets; nil = it never does.
	Now func() time.Time
}

// Policies returns new ones, for one router, by their words.
func Policies(o Options) map[router.Prefer]router.Registered {
	all := map[router.Prefer]router.Registered{}
	for word, p := range map[router.Prefer]router.Policy{
		RoundRobin:    byTurns{},
		Random:        weighted{random: o.Random, weight: o.Weight},
		LeastRequests: fewest{random: o.Random},
		P2C:           fewest{random: o.Random, choices: 2},
		EWMA:          &movingAverage{random: o.Random, tps: map[router.Target]float64{}},
		CacheFirst:    cacheFirst{random: o.Random},
		SessionHash:   bySession{},
		LowestLatency: &recent{random: o.Random, now: o.Now, by: map[router.Target][]latency{}},
	} {
		all[word] = router.Registered{Policy: p, Regardless: true}
	}
	return all
}

// Answer is one whole answer, for the policies that learn.
type Answer struct {
	Target  router.Target
	Ended   time.Time
	Tokens  int           // at least 1
	Took    time.Duration // from when it was sent to its last token
	Decoded float64       // tokens/s after the first chunk
}

// Learner is a policy that wants to hear of whole answers. It is told before the
// lease is given back, and by one goroutine that also places.
type Learner interface{ Learn(a Answer) }

package arena

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// salvos are groups of 30 to 60 who come within half a second, each so long after the
// one before in the mean, with answers of half to one and a half times so many tokens.
func salvos(apart time.Duration, tokens int, length time.Duration) func(seed uint64) iter.Seq[Arrival] {
	return func(seed uint64) iter.Seq[Arrival] {
		random := rand.New(rand.NewPCG(seed, 60))
		var all []Arrival
		for at := time.Duration(0); at < length; at += time.Duration(random.ExpFloat64() * float64(apart)) {
			for range 30 + random.IntN(31) {
				all = append(all, Arrival{At: at, Route: "chat", PromptTokens: 10, OutputTokens: tokens/2 + random.IntN(tokens)})
				at += time.Duration(random.IntN(20)) * time.Millisecond
			}
		}
		return slices.Values(all)
	}
}

// salvoReplicas are with how many gateways salvos are played; each hears of the others
// five times a second, which is three or four times in a salvo.
var salvoReplicas = []int{3, 8}

// salvoPools are salvos from the first second of a cold start on, to one gateway and to
// several: long answers with a second of grace, or short ones with a third of that, which
// are refused at once.
func salvoPools() (list []pool) {
	two := []Backend{backend("a", "kimi-k2.5/b200/vllm"), backend("b", "kimi-k2.5/b200/vllm")}
	long, short := chat("chat", 80, two), chat("chat", 80, two)
	short.Grace, short.OnInfeasible = 300*time.Millisecond, []router.Step{{Kind: router.Shed}}
	const length = 2 * time.Minute
	for _, p := range []pool{
		{name: "Q", what: "salvos of 30 to 60 within half a second on two engines", backends: two, routes: []Route{long}, load: salvos(4*time.Second, 600, length), length: length},
		{name: "Q short", what: "the same, short answers, grace 0.3 s, nobody waits", backends: two, routes: []Route{short}, load: salvos(time.Second, 150, length), length: length},
	} {
		list = append(list, p)
		for _, n := range salvoReplicas {
			more := p
			more.name, more.what, more.replicas = fmt.Sprintf("%s %d", p.name, n), fmt.Sprintf("%s; %d gateways", p.what, n), n
			list = append(list, more)
		}
	}
	return list
}

package baseline

import (
	"math/rand/v2"

	"github.com/pacer-dev/pacer/router"
)

// weighted draws a target, each as likely as its weight has it: what somebody
// would configure who knew what each carries.
type weighted struct {
	random *rand.Rand
	weight func(router.Target) float64
}

func (p weighted) Pick(c router.Choice) int {
	list := make([]int, c.Len())
	for i := range list {
		list[i] = i
	}
	for i := range list {
		var all float64
		for _, t := range list[i:] {
			all += p.of(c.Target(t))
		}
		pick := p.random.Float64() * all
		for j := i; j < len(list); j++ {
			if pick -= p.of(c.Target(list[j])); pick < 0 || j == len(list)-1 {
				list[i], list[j] = list[j], list[i]
				break
			}
		}
	}
	return first(c, list)
}

func (p weighted) of(t router.Target) float64 {
	if p.weight == nil {
		return 1
	}
	return p.weight(t)
}

package baseline

import (
	"math/rand/v2"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// What LiteLLM keeps for latency-based routing: so many latencies of each
// deployment, for so long.
const (
	recentLatencies = 10
	recentLife      = time.Hour
)

// recent takes the target whose last answers took least per token, whole duration
// over tokens. What was never tried goes first.
type recent struct {
	random *rand.Rand
	now    func() time.Time
	by     map[router.Target][]latency
}

type latency struct {
	at      time.Time
	seconds float64 // per token
}

func (m *recent) Pick(c router.Choice) int {
	list := m.random.Perm(c.Len())
	sort(list, func(i int) float64 { return m.mean(c.Target(i)) })
	return first(c, list)
}

func (m *recent) mean(t router.Target) float64 {
	var sum, n float64
	for _, l := range m.by[t] {
		if m.now == nil || m.now().Sub(l.at) <= recentLife {
			sum += l.seconds
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// Learn takes how long an answer took.
func (m *recent) Learn(a Answer) {
	list := append(m.by[a.Target], latency{a.Ended, a.Took.Seconds() / float64(a.Tokens)})
	m.by[a.Target] = list[max(len(list)-recentLatencies, 0):]
}

package arena

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// placer is a policy at work in one gateway.
type placer interface {
	place(req router.Request, now time.Time) router.Decision
	// ended is told of each whole answer.
	ended(v *visit, e *engine)
}

// learns reports whether the policy reads what streams teach: the curves, or,
// of the oracles, the margin.
func (p Policy) learns() bool { return p == Pacer || p == Oracle || p == OracleNoMargin }

func newPlacer(g *gateway, random *rand.Rand) placer {
	order := func(rank func(t profiles.Target) float64) assigner {
		return assigner{gateway: g, random: random, rank: rank}
	}
	inFlight := func(t profiles.Target) float64 {
		return float64(g.inFlight[g.world.byName[t.Backend].index])
	}
	switch g.world.s.Policy {
	case RoundRobin:
		turn := &turns{next: map[string]int{}}
		a := order(nil)
		a.arrange = turn.arrange
		return a
	case Random:
		a := order(nil)
		a.arrange = func(_ string, targets []profiles.Target) { g.draw(random, targets) }
		return a
	case LeastRequests:
		return order(inFlight)
	case P2C:
		a := order(inFlight)
		a.choices = 2
		return a
	case EWMA:
		m := &movingAverage{}
		a := order(m.rank)
		a.learn = m.learn
		return a
	case LowestLatency:
		m := &recent{}
		a := order(func(t profiles.Target) float64 { return m.rank(g.world.now, t) })
		a.learn = m.learn
		return a
	}
	return paced{g.router}
}

// paced is the router's own policy.
type paced struct{ router *router.Router }

func (p paced) place(req router.Request, now time.Time) router.Decision {
	return p.router.Place(now, req)
}
func (paced) ended(*visit, *engine) {}

// assigner sends a request to the first target in service, in an order of its
// own: by rising rank, equals at random, or as arrange says.
type assigner struct {
	gateway *gateway
	random  *rand.Rand

	rank    func(profiles.Target) float64
	choices int // so many drawn at random are ranked; 0 = all
	arrange func(route string, targets []profiles.Target)
	learn   func(*visit)
}

func (a assigner) place(req router.Request, now time.Time) router.Decision {
	tally := a.gateway.world.routes[req.Route]
	targets := make([]profiles.Target, 0, len(tally.route.Targets))
	for _, t := range tally.route.Targets {
		targets = append(targets, t.Target)
	}
	if a.arrange != nil {
		a.arrange(req.Route, targets)
	} else {
		a.random.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
		first := targets
		if a.choices > 0 {
			first = targets[:min(a.choices, len(targets))]
		}
		slices.SortStableFunc(first, func(x, y profiles.Target) int {
			switch rx, ry := a.rank(x), a.rank(y); {
			case rx < ry:
				return -1
			case rx > ry:
				return 1
			}
			return 0
		})
	}
	var d router.Decision
	for _, t := range targets {
		if d = a.gateway.router.Assign(now, req, t, string(a.gateway.world.s.Policy)); d.Lease != nil {
			return d
		}
	}
	return d
}

func (a assigner) ended(v *visit, _ *engine) {
	if a.learn != nil && v.measured() {
		a.learn(v)
	}
}

// turns is whose turn it is, by route.
type turns struct{ next map[string]int }

func (t *turns) arrange(route string, targets []profiles.Target) {
	first := t.next[route] % len(targets)
	t.next[route] = first + 1
	rotated := append(slices.Clone(targets[first:]), targets[:first]...)
	copy(targets, rotated)
}

// draw arranges targets at random, each as likely next as what it carries at
// its floor has it: what somebody would set as weights who knew.
func (g *gateway) draw(random *rand.Rand, targets []profiles.Target) {
	for i := range targets {
		var all float64
		for _, t := range targets[i:] {
			all += g.world.byName[t.Backend].weight()
		}
		pick := random.Float64() * all
		for j := i; j < len(targets); j++ {
			if pick -= g.world.byName[targets[j].Backend].weight(); pick < 0 || j == len(targets)-1 {
				targets[i], targets[j] = targets[j], targets[i]
				break
			}
		}
	}
}

// ewmaShare is what a finished stream counts in the moving average.
const ewmaShare = 0.2

// movingAverage is tokens/s by target, each newer stream counting ewmaShare.
// It knows nothing of load. The zero value is empty; what was never tried
// ranks first.
type movingAverage struct{ tps map[profiles.Target]float64 }

func (m *movingAverage) rank(t profiles.Target) float64 {
	if tps, ok := m.tps[t]; ok {
		return -tps
	}
	return math.Inf(-1)
}

func (m *movingAverage) learn(v *visit) {
	if m.tps == nil {
		m.tps = map[profiles.Target]float64{}
	}
	t := v.lease.Target()
	old, ok := m.tps[t]
	if !ok {
		old = v.tps()
	}
	m.tps[t] = old + ewmaShare*(v.tps()-old)
}

// What LiteLLM keeps for latency-based routing: so many latencies of each
// deployment, for so long.
const (
	recentLatencies = 10
	recentLife      = time.Hour
)

// recent is seconds per token of the last answers, by target, whole duration
// over tokens. What was never tried ranks first.
type recent struct {
	by map[profiles.Target][]latency
}

type latency struct {
	at      time.Duration
	seconds float64
}

func (m *recent) rank(now time.Duration, t profiles.Target) float64 {
	var sum, n float64
	for _, l := range m.by[t] {
		if now-l.at <= recentLife {
			sum += l.seconds
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

func (m *recent) learn(v *visit) {
	if m.by == nil {
		m.by = map[profiles.Target][]latency{}
	}
	t := v.lease.Target()
	list := append(m.by[t], latency{v.last, (v.last - v.sent).Seconds() / float64(v.tokens)})
	m.by[t] = list[max(len(list)-recentLatencies, 0):]
}

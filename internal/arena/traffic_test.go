package arena

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Traffic is drawn as worlds are: when requests come, how long they are, what is known of
// their prompts, and who asks again once he is answered.

var trafficFlag = flag.Int("traffic", 0, "worlds with drawn traffic to print, from -first on; 0 = none")

const (
	trafficLength = 6 * time.Minute
	trafficSeed   = 0x7aff

	longestAnswer = 8000 // tokens
)

// trafficWorld is a world with drawn traffic.
type trafficWorld struct {
	aWorld
	kinds []traffic
}

// traffic is what one kind of clients sends.
type traffic struct {
	route string
	when  when
	sizes sizes
	rate  float64 // requests/s, in the mean
	guess float64 // by how much of itself a prompt is mistaken at most
}

// drawTraffic draws the world of a seed.
func drawTraffic(seed uint64) *trafficWorld {
	rng := rand.New(rand.NewPCG(seed, trafficSeed))
	w := &trafficWorld{aWorld: aWorld{pool: pool{name: fmt.Sprint("traffic ", seed), length: trafficLength, replicas: 1 + rng.IntN(3)}}}
	w.floor = math.Round(10 + 30*rng.Float64())
	first := drawSizes(rng)
	w.drawSoMany(rng, 2+rng.IntN(4), first.list)
	w.routes = []Route{chat("chat", w.floor, w.backends)}
	if rng.IntN(2) == 0 {
		w.routes = append(w.routes, chat("other", math.Round(w.floor*between(rng, 1, 2.5)), w.backends))
	}
	for i := range w.routes {
		if rng.IntN(2) == 0 {
			w.routes[i].SLO.MaxTTFT = time.Duration(between(rng, 2, 10) * float64(time.Second)).Round(time.Millisecond)
		}
		w.say("%s: floor %.0f, first token in %v", w.routes[i].Name, w.routes[i].SLO.MinTPS, w.routes[i].SLO.MaxTTFT)
	}
	if rng.IntN(3) == 0 {
		w.routes = append(w.routes, nightly(w.backends))
	}
	load := between(rng, 0.4, 1.8)
	for i := range w.routes {
		part, more := load/float64(len(w.routes)), 1+rng.IntN(2)
		for k := range more {
			sizes := first
			if i+k > 0 && rng.IntN(2) == 0 {
				sizes = drawSizes(rng)
			}
			w.drawKind(rng, &w.routes[i], sizes, part/float64(more))
		}
	}
	if rng.IntN(2) == 0 {
		w.retries = 3
		w.say("who is refused comes back")
	}
	w.say("load %.2f, %d gateways", load, w.replicas)
	return w
}

// drawKind draws who sends so large a part of what is carried to a route.
func (w *trafficWorld) drawKind(rng *rand.Rand, r *Route, s sizes, part float64) {
	floor := max(r.SLO.MinTPS, w.floor)
	m := meanOf(s.list)
	users := 0.0
	for i := range w.backends {
		users += float64((&engine{conf: w.backends[i], drift: 1, mix: m}).trueUsers(floor))
	}
	k := traffic{route: r.Name, sizes: s, when: drawWhen(rng), rate: min(part*users*floor/m.answer+0.02, mostDrawn)}
	k.when.users = int(math.Ceil(part * users))
	if rng.IntN(2) == 0 {
		k.guess = 0.3
	}
	w.kinds = append(w.kinds, k)
	w.say("%s: %.2f/s, %v, %v, prompts ±%.1f", r.Name, k.rate, k.when, k.sizes, k.guess)
}

// scenario plays w, with those who ask again once they are answered.
func (w *trafficWorld) scenario(policy Policy, seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, trafficSeed+1))
	var all []Arrival
	for i := range w.kinds {
		k := &w.kinds[i]
		for _, at := range k.when.times(rng, k.rate) {
			a := Arrival{Route: k.route}
			if k.when.kind == asked {
				a.kind = i + 1
			}
			k.fill(&a, at, rng)
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b Arrival) int { return int(a.At - b.At) })
	w.load = func(uint64) iter.Seq[Arrival] { return slices.Values(all) }
	s := w.pool.scenario(policy, seed)
	again := rand.New(rand.NewPCG(seed, trafficSeed+2))
	s.follow = func(now time.Duration, ended *Arrival) (Arrival, bool) {
		if ended.kind == 0 {
			return Arrival{}, false
		}
		k, next := &w.kinds[ended.kind-1], *ended
		k.fill(&next, now.Seconds()+k.when.think*again.ExpFloat64(), again)
		return next, true
	}
	return s
}

// fill makes a a request that comes at the second at.
func (k *traffic) fill(a *Arrival, at float64, rng *rand.Rand) {
	a.At = time.Duration(at * float64(time.Second))
	l := k.sizes.draw(rng, at, k.when.group(at))
	a.PromptTokens, a.OutputTokens, a.GuessedTokens = l.prompt, l.answer, 0
	if k.guess > 0 {
		a.GuessedTokens = max(int(float64(l.prompt)*(1-k.guess+2*k.guess*rng.Float64())), 1)
	}
}

// when is the law by which requests come.
type when struct {
	kind   whenKind
	every  float64 // seconds, of cron and sinus; of onOff how long a tenant is on
	off    float64 // seconds, of onOff
	factor float64 // of flash; of sinus its part of the mean
	at     float64 // seconds, of flash and quiet
	long   float64 // seconds, of flash, quiet and one salvo
	alpha  float64 // of gaps

	users int     // of asked
	think float64 // seconds, of asked
}

type whenKind uint8

const (
	onOff whenKind = iota // tenants that are on for a while and off for a while
	cron                  // salvos on the clock
	sinus
	gaps  // with a heavy tail
	flash // a crowd for a while
	quiet // for minutes, then full load at once
	ramp
	asked // each user asks once he is answered, and has thought
	poissonian

	whenKinds
)

func drawWhen(rng *rand.Rand) (x when) {
	x.kind = whenKind(rng.IntN(int(whenKinds)))
	x.think = between(rng, 1, 20)
	switch x.kind {
	case onOff:
		x.every, x.off = between(rng, 3, 90), between(rng, 3, 120)
	case cron:
		x.every, x.long = []float64{30, 60}[rng.IntN(2)], between(rng, 0.2, 2)
	case sinus:
		x.every, x.factor = between(rng, 60, 300), 0.5+0.5*rng.Float64()
	case gaps:
		x.alpha = 1.2 + 0.5*rng.Float64()
	case flash:
		x.factor, x.at, x.long = 3+3*rng.Float64(), 60+220*rng.Float64(), 20+40*rng.Float64()
	case quiet:
		x.at, x.long = 60+60*rng.Float64(), 60+120*rng.Float64()
	}
	return x
}

func (x when) String() string {
	switch x.kind {
	case onOff:
		return fmt.Sprintf("on for %.0f s, off for %.0f s", x.every, x.off)
	case cron:
		return fmt.Sprintf("salvos of %.1f s each %.0f s", x.long, x.every)
	case sinus:
		return fmt.Sprintf("sinus of %.0f s ±%.1f", x.every, x.factor)
	case gaps:
		return fmt.Sprintf("gaps with a tail of %.1f", x.alpha)
	case flash:
		return fmt.Sprintf("×%.1f from %.0f s for %.0f s", x.factor, x.at, x.long)
	case quiet:
		return fmt.Sprintf("nobody from %.0f s for %.0f s", x.at, x.long)
	case ramp:
		return "ramp"
	case asked:
		return fmt.Sprintf("%d users, think %.0f s", x.users, x.think)
	}
	return "Poisson"
}

// mostOfASalvo is how many come at once.
const mostOfASalvo = 80

// times are when requests come, in seconds.
func (x when) times(rng *rand.Rand, rate float64) (list []float64) {
	end := trafficLength.Seconds()
	switch x.kind {
	case onOff:
		list = x.tenants(rng, rate)
	case cron:
		size := min(max(int(rate*x.every), 5), mostOfASalvo)
		for at := 0.0; at < end; at += x.every {
			for range size {
				list = append(list, at+x.long*rng.Float64())
			}
		}
	case gaps:
		least := (x.alpha - 1) / x.alpha / rate
		for at := 0.0; ; {
			if at += min(least*math.Pow(1-rng.Float64(), -1/x.alpha), 120); at >= end {
				break
			}
			list = append(list, at)
		}
	case asked:
		for range x.users {
			list = append(list, x.think*rng.Float64())
		}
	default:
		list = poisson(rng, 0, end, rate, x.shape)
	}
	slices.Sort(list)
	return list
}

// tenants are when requests of some come who are on and off, each on its own.
func (x when) tenants(rng *rand.Rand, rate float64) (list []float64) {
	count, on := 2+rng.IntN(4), x.every/(x.every+x.off)
	for range count {
		active := rng.Float64() < on
		for at := 0.0; at < trafficLength.Seconds(); active = !active {
			long := x.off
			if active {
				long = x.every
			}
			until := min(at+long*rng.ExpFloat64(), trafficLength.Seconds())
			if active {
				list = append(list, poisson(rng, at, until, rate/float64(count)/on, when{}.shape)...)
			}
			at = until
		}
	}
	return list
}

// shape is the rate at a second over that of the mean.
func (x when) shape(at float64) float64 {
	switch inside := at >= x.at && at < x.at+x.long; {
	case x.kind == sinus:
		return 1 + x.factor*math.Sin(2*math.Pi*at/x.every)
	case x.kind == flash && inside:
		return x.factor
	case x.kind == quiet && inside:
		return 0
	case x.kind == ramp:
		return 2 * at / trafficLength.Seconds()
	}
	return 1
}

// poisson thins out what comes at the highest rate of all.
func poisson(rng *rand.Rand, from, until, rate float64, shape func(float64) float64) (list []float64) {
	const highest = 6
	for at := from; ; {
		if at += rng.ExpFloat64() / (rate * highest); at >= until {
			return list
		}
		if rng.Float64()*highest < shape(at) {
			list = append(list, at)
		}
	}
}

// group is of those that come together at about that second.
func (x when) group(at float64) uint64 {
	if x.kind == cron {
		return uint64(at / x.every)
	}
	return uint64(at / 20)
}

// sizes is how long prompts and answers are.
type sizes struct {
	list  []length
	words string

	alike bool // all prompts of a group have one length

	from, until     float64 // seconds: of another mix
	prompt, answers float64 // that it is so many times as long
}

func (s sizes) String() string { return s.words }

func drawSizes(rng *rand.Rand) (s sizes) {
	prompt := Lengths{Mean: math.Round(between(rng, 60, 1500)), Sigma: 0.2 + rng.Float64()}
	answer := Lengths{Mean: math.Round(between(rng, 50, 600)), Sigma: 0.2 + 0.8*rng.Float64()}
	kind := rng.IntN(6)
	essays, tail := between(rng, 0.05, 0.5), 1.3
	for range 2000 {
		l := length{prompt.draw(rng), answer.draw(rng)}
		switch kind {
		case 1:
			least := answer.Mean * (tail - 1) / tail
			l.answer = min(int(least*math.Pow(1-rng.Float64(), -1/tail))+1, longestAnswer)
		case 2:
			l = length{3000, 2}
			if rng.Float64() < essays {
				l = length{100, 1000 + rng.IntN(2000)}
			}
		}
		s.list = append(s.list, l)
	}
	s.words = fmt.Sprintf("prompts %.0f/%.1f, answers %.0f/%.1f", prompt.Mean, prompt.Sigma, answer.Mean, answer.Sigma)
	switch kind {
	case 1:
		s.words = fmt.Sprintf("prompts %.0f/%.1f, answers %.0f with a tail", prompt.Mean, prompt.Sigma, answer.Mean)
	case 2:
		s.words = fmt.Sprintf("2 tokens to 3000 and %.2f essays", essays)
	case 3:
		s.alike = true
		s.words += ", prompts alike"
	case 4:
		s.from, s.until = 60+120*rng.Float64(), 500
		s.prompt, s.answers = 5, 1
		if rng.IntN(2) == 0 {
			s.until = s.from + 120
			s.prompt, s.answers = 1, []float64{0.1, 5}[rng.IntN(2)]
		}
		s.words += fmt.Sprintf(", from %.0f to %.0f s prompts ×%.1f, answers ×%.1f", s.from, s.until, s.prompt, s.answers)
	case 5:
		kind := rng.IntN(2)
		s.list, s.words = azureLengths()[kind], []string{"azure conv", "azure code"}[kind]
	}
	return s
}

func (s *sizes) draw(rng *rand.Rand, at float64, group uint64) length {
	l := s.list[rng.IntN(len(s.list))]
	if s.alike {
		l.prompt = s.list[mixed64(group+1)%uint64(len(s.list))].prompt
	}
	if s.from > 0 && at >= s.from && at < s.until {
		l.prompt, l.answer = int(s.prompt*float64(l.prompt)), int(s.answers*float64(l.answer))
	}
	return length{max(l.prompt, 1), min(max(l.answer, 1), longestAnswer)}
}

// trafficPlay is what became of one world.
type trafficPlay struct {
	*trafficWorld
	pacer, oracle, capped Result
	idle                  watch
}

func playTraffic(t *testing.T, seed uint64) *trafficPlay {
	w := drawTraffic(seed)
	x := &trafficPlay{trafficWorld: w, oracle: *play(t, w.scenario(OracleNoMargin, seed))}
	x.idle, x.pacer = watched(t, w.scenario(Pacer, seed), time.Second)
	return x
}

// goodput is in tokens/s, of the routes with a floor.
func (w *trafficWorld) goodput(r *Result) (sum float64) {
	for i := range r.Routes {
		if w.routes[i].floored() {
			sum += r.Routes[i].Goodput
		}
	}
	return sum
}

// row is what became of it, with each of the policies that were played.
func (x *trafficPlay) row(results ...*Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: half empty beside refusals for %d s %s", x.name, x.idle.longest, x.idle.words)
	for _, r := range results {
		fmt.Fprintf(&b, " | %s: %.0f tokens/s", r.Policy, x.goodput(r))
		for i := range r.Routes {
			c := &r.Routes[i]
			fmt.Fprintf(&b, "; %s: of %d met %d, missed %d, late %d, shed %d, back as told %d, of them placed %d", c.Route, c.Offered, c.Met, c.Missed-c.Late, c.Late, c.Shed, c.Returned, c.ReturnedPlaced)
		}
	}
	return b.String() + " | " + strings.Join(x.words, "; ")
}

// trafficPlayed are those of the plain run, which take a second.
var trafficPlayed = [...]uint64{2, 4}

// Floors and first tokens are kept, and as many are served as with the true curves,
// however requests come.
func TestDrawnTraffic(t *testing.T) {
	skipUnderRace(t)
	var pacer, oracle Counts
	for _, seed := range trafficPlayed {
		x := playTraffic(t, seed)
		t.Log(x.row(&x.pacer, &x.oracle))
		pacer, oracle = pacer.plus(x.promised(&x.pacer)), oracle.plus(x.promised(&x.oracle))
	}
	if pacer.MissedOfServed() > 0.005 || float64(pacer.Met) < 0.97*float64(oracle.Met) {
		t.Errorf("met %d, oracle %d, and %.2f %% of the served missed; want 0.97 of the oracle's, and 0.5 %% at most", pacer.Met, oracle.Met, 100*pacer.MissedOfServed())
	}
}

// TestTrafficTable prints what became of worlds with drawn traffic.
func TestTrafficTable(t *testing.T) {
	if *trafficFlag == 0 {
		t.Skip("go test -v -run TestTrafficTable ./internal/arena -args -traffic 100 -first 40000 prints it")
	}
	var sums [3]Counts
	var ofOracle []float64
	for i := range *trafficFlag {
		seed := uint64(*firstFlag + i)
		if w := drawTraffic(seed); !strings.Contains(strings.Join(w.words, "; "), *worldsOnlyFlag) {
			continue
		}
		x := playTraffic(t, seed)
		x.capped = *play(t, x.scenario(LeastCapped, seed))
		fmt.Fprintln(t.Output(), x.row(&x.pacer, &x.oracle, &x.capped))
		for k, r := range []*Result{&x.pacer, &x.oracle, &x.capped} {
			sums[k] = sums[k].plus(x.promised(r))
		}
		ofOracle = append(ofOracle, x.goodput(&x.pacer)/x.goodput(&x.oracle))
	}
	slices.Sort(ofOracle)
	fmt.Fprintf(t.Output(), "goodput of the oracle's, mean %.3f, worst %.2f; of Pacer, the oracle and caps: %+v\n", mean(ofOracle), ofOracle[:min(3, len(ofOracle))], sums)
}

package arena

import (
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/presets"
)

// Worlds are fleets, loads and disturbances that nobody chose: each is drawn by its
// seed, and no constant of the router was set by them.

var (
	worldsFlag     = flag.Int("worlds", 0, "worlds to draw and to print, from -first on; 0 = none")
	worldsOnlyFlag = flag.String("worlds-only", "", "of them only those whose words contain this")
)

const (
	worldLength = 6 * time.Minute
	worldEvent  = time.Minute     // when something happens
	worldAfter  = 4 * time.Minute // from then on it is over for a minute at least

	worldSeed = 0x5eed
)

// aWorld is a pool that was drawn, and in words what was.
type aWorld struct {
	pool
	floor float64 // the lowest
	words []string
}

func (w *aWorld) say(format string, args ...any) {
	w.words = append(w.words, fmt.Sprintf(format, args...))
}

// drawWorld draws the world of a seed.
func drawWorld(seed uint64) aWorld {
	rng := rand.New(rand.NewPCG(seed, worldSeed))
	w := aWorld{pool: pool{name: fmt.Sprint("world ", seed), length: worldLength, replicas: 1}}
	w.floor = math.Round(10 + 30*rng.Float64())
	lengths := w.drawLengths(rng)
	users := w.drawEngines(rng, lengths)
	w.routes = []Route{chat("chat", w.floor, w.backends)}
	shares := []Share{{"chat", 1}}
	switch rng.IntN(5) {
	case 0:
		higher := math.Round(w.floor * (1.3 + 0.9*rng.Float64()))
		w.routes = append(w.routes, chat("fast", higher, w.backends))
		shares = append(shares, Share{"fast", 0.1 + 0.5*rng.Float64()})
		w.say("floors %.0f and, %.2f as many, %.0f", w.floor, shares[1].Weight, higher)
	case 1:
		w.routes = append(w.routes, nightly(w.backends))
		shares = append(shares, Share{"nightly", 0.2 + rng.Float64()})
		w.say("floor %.0f, batch %.2f", w.floor, shares[1].Weight)
	case 2:
		w.routes[0].SLO.MaxTTFT = time.Duration(3+7*rng.Float64()) * time.Second
		w.say("floor %.0f, first token in %v", w.floor, w.routes[0].SLO.MaxTTFT)
	default:
		w.say("floor %.0f", w.floor)
	}
	answers := 0.0
	for _, l := range lengths {
		answers += float64(l.answer) / float64(len(lengths))
	}
	weights := 0.0
	for _, s := range shares {
		weights += s.Weight
	}
	load := 0.6 + 1.1*rng.Float64()
	g := Generator{Rate: load * users * w.floor / answers, Duration: worldLength, Prompt: Lengths{Kind: Fixed, Mean: 1}, Output: Lengths{Kind: Fixed, Mean: 1}}
	g.Shape = Shape{Kind: []ShapeKind{Steady, Steady, Bursts, Spike}[rng.IntN(4)]}
	w.say("load %.2f, %.1f/s %v", load, g.Rate, g.Shape)
	grown := w.drawEvent(rng, users)
	if rng.IntN(3) == 0 {
		w.retries = 3
		w.say("retries")
	}
	if rng.IntN(4) == 0 {
		w.replicas = 3
		w.say("three gateways")
	}
	w.load = func(seed uint64) iter.Seq[Arrival] { return drawnLoad(g, lengths, shares, grown, seed) }
	return w
}

// drawnLoad is g with lengths drawn of a list, and prompts grown from the event on.
func drawnLoad(g Generator, lengths []length, shares []Share, grown float64, seed uint64) iter.Seq[Arrival] {
	g.Seed = seed
	return func(yield func(Arrival) bool) {
		rng := stream(seed, streamPrompts)
		for a := range Split(g.Arrivals(), shares, seed) {
			l := lengths[rng.IntN(len(lengths))]
			a.PromptTokens, a.OutputTokens = max(l.prompt, 1), max(l.answer, 1)
			if a.At > worldEvent {
				a.PromptTokens = int(grown * float64(a.PromptTokens))
			}
			if !yield(a) {
				return
			}
		}
	}
}

// azureLengths are those of the two recorded traces, whatever came beside them.
var azureLengths = sync.OnceValue(func() (list [2][]length) {
	for i, file := range []string{"azure-conv-2023.csv", "azure-code-2023.csv"} {
		t := &Trace{File: file, Open: func() (io.ReadCloser, error) { return os.Open("../../examples/traces/" + file) }}
		for a := range t.Arrivals() {
			list[i] = append(list[i], length{a.PromptTokens, a.OutputTokens})
		}
		if t.Err() != nil {
			panic(t.Err())
		}
	}
	return list
})

func (w *aWorld) drawLengths(rng *rand.Rand) (list []length) {
	switch kind := rng.IntN(4); kind {
	case 0:
		w.say("azure conv")
		return azureLengths()[0]
	case 1:
		w.say("azure code")
		return azureLengths()[1]
	default:
		prompt := Lengths{Mean: math.Round(60 * math.Exp(3.2*rng.Float64())), Sigma: 0.2 + rng.Float64()}
		answer := Lengths{Mean: math.Round(50 * math.Exp(2.5*rng.Float64())), Sigma: 0.2 + 0.8*rng.Float64()}
		for range 2000 {
			list = append(list, length{prompt.draw(rng), answer.draw(rng)})
		}
		w.say("prompts %.0f/%.1f, answers %.0f/%.1f", prompt.Mean, prompt.Sigma, answer.Mean, answer.Sigma)
		return list
	}
}

// drawEngines draws two or three engines.
func (w *aWorld) drawEngines(rng *rand.Rand, lengths []length) (users float64) {
	return w.drawSoMany(rng, 2+rng.IntN(2), lengths)
}

// drawSoMany draws engines, of other forms at times, which carry 4 to 60 users each at the
// lowest floor.
func (w *aWorld) drawSoMany(rng *rand.Rand, engines int, lengths []length) (users float64) {
	m := mix{lengths: lengths}
	for _, l := range lengths {
		m.prompts += float64(l.prompt) / float64(len(lengths))
		m.answer += float64(l.answer) / float64(len(lengths))
	}
	list, shapes := presets.List(), forms()
	for i := range engines {
		name := string(rune('a' + i))
		n := int(math.Round(4 * math.Exp(math.Log(15)*rng.Float64())))
		preset, form := list[rng.IntN(len(list))], shapes[rng.IntN(len(shapes))]
		b := backend(name, preset.Name)
		if rng.IntN(4) == 0 {
			b = Backend{Name: name, Engine: form.engine, Ranks: form.ranks}
			preset.Name = form.name
			if form.engine.KVTokens > 0 { // room for those who are carried, or nearly
				b.Engine.KVTokens = max(int(1.1*float64(n)*(m.prompts+m.answer/2)), 40000)
			}
		}
		b, carried := fittedTo(b, n, w.floor, m)
		users += float64(carried)
		w.say("%s %s carries %d", name, preset.Name, carried)
		w.backends = append(w.backends, b)
	}
	return users
}

// drawEvent draws what happens, and by how much prompts grow then.
func (w *aWorld) drawEvent(rng *rand.Rand, users float64) (grown float64) {
	d := time.Duration(5*math.Exp(3.178*rng.Float64())) * time.Second // up to 120 s
	hit := w.backends[rng.IntN(len(w.backends)):][:1]
	switch rng.IntN(6) {
	case 0:
		w.say("nothing happens")
	case 1, 2:
		factor := 2 + 2*rng.Float64()
		if rng.IntN(2) == 0 {
			hit = w.backends
		}
		w.faults = slowdown(hit, worldEvent, d, factor)
		w.say("×%.1f for %v on %d from %s", factor, d, len(hit), hit[0].Name)
	case 3:
		w.faults = []Fault{{At: worldEvent, Kind: Kill, Backend: hit[0].Name}, {At: worldEvent + d, Kind: Back, Backend: hit[0].Name}}
		w.say("%s dies for %v", hit[0].Name, d)
	case 4:
		n := max(int(users/4), 1)
		w.faults = []Fault{{At: worldEvent, Kind: Tenant, Backend: hit[0].Name, Users: n}, {At: worldEvent + d, Kind: TenantGone, Backend: hit[0].Name}}
		w.say("%d tenants on %s for %v", n, hit[0].Name, d)
	case 5:
		grown = 1.5 + 2.5*rng.Float64()
		w.say("prompts ×%.1f", grown)
		return grown
	}
	return 1
}

// worldResult is what one policy made of a world.
type worldResult struct {
	Counts
	goodput float64 // tokens/s of the routes with a floor, from worldAfter on
}

func (w *aWorld) play(t *testing.T, policy Policy, seed uint64) worldResult {
	return w.resultOf(play(t, w.scenario(policy, seed)))
}

func (w *aWorld) resultOf(r *Result) (x worldResult) {
	x.Counts = w.promised(r)
	for k := range r.Routes {
		if !w.routes[k].floored() {
			continue
		}
		for minute, tokens := range r.Routes[k].MetTokens {
			if time.Duration(minute)*time.Minute >= worldAfter {
				x.goodput += tokens / (worldLength - worldAfter).Seconds()
			}
		}
	}
	return x
}

// worldPlays are those of one world.
type worldPlays struct {
	aWorld
	pacer, oracle, capped worldResult
}

func playWorld(t *testing.T, seed uint64) worldPlays {
	x := worldPlays{aWorld: drawWorld(seed)}
	x.pacer, x.oracle, x.capped = x.play(t, Pacer, seed), x.play(t, OracleNoMargin, seed), x.play(t, LeastCapped, seed)
	return x
}

func (x *worldPlays) String() string {
	c := func(of func(*worldResult) float64) string {
		return fmt.Sprintf("%.2f %.2f %.2f", of(&x.pacer), of(&x.oracle), of(&x.capped))
	}
	return fmt.Sprintf("%s: Pacer, oracle, caps: goodput %s, met %% %s, missed %% %s | %s", x.name,
		c(func(r *worldResult) float64 { return r.goodput }), c(func(r *worldResult) float64 { return 100 * r.Attainment() }),
		c(func(r *worldResult) float64 { return 100 * r.MissedOfServed() }), strings.Join(x.words, "; "))
}

// What Pacer has to reach in the worlds of the first seeds, against the oracle and
// against perfect caps by hand. Those know one floor, so they are compared where there
// is one. Who streams while an engine becomes slow may miss his floor, with the oracle
// too.
const (
	worldsPlayed = 20

	worldsOfOracle = 0.97 // of its goodput a minute after the event, on average
	worldOfOracle  = 0.80 // and in the worst world
	worldsOfCaps   = 1.10
	worldOfCaps    = 0.85
	worldsMissed   = 0.002 // more than the oracle, of all that are served
)

func TestDrawnWorlds(t *testing.T) {
	skipUnderRace(t)
	var list [worldsPlayed]worldPlays
	t.Run("worlds", func(t *testing.T) {
		for i := range list {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				list[i] = playWorld(t, uint64(i+1))
			})
		}
	})
	var ofOracle, ofCaps []float64
	var pacer, oracle Counts
	for i := range list {
		x := &list[i]
		t.Log(x)
		pacer, oracle = pacer.plus(x.pacer.Counts), oracle.plus(x.oracle.Counts)
		ofOracle = append(ofOracle, x.pacer.goodput/x.oracle.goodput)
		if len(x.floors()) == 1 {
			ofCaps = append(ofCaps, x.pacer.goodput/x.capped.goodput)
		}
	}
	t.Logf("goodput of the oracle's %.3f, at worst %.3f; of caps' %.3f, %.3f; missed %.3f %%, oracle %.3f %%",
		mean(ofOracle), slices.Min(ofOracle), mean(ofCaps), slices.Min(ofCaps), 100*pacer.MissedOfServed(), 100*oracle.MissedOfServed())
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"goodput of the oracle's, mean", mean(ofOracle), worldsOfOracle},
		{"goodput of the oracle's, worst", slices.Min(ofOracle), worldOfOracle},
		{"goodput of perfect caps', mean", mean(ofCaps), worldsOfCaps},
		{"goodput of perfect caps', worst", slices.Min(ofCaps), worldOfCaps},
		{"floors kept beyond the oracle's", oracle.MissedOfServed() - pacer.MissedOfServed(), -worldsMissed},
	} {
		if !(c.got >= c.want) {
			t.Errorf("%s: %.4f, want %.4f", c.what, c.got, c.want)
		}
	}
}

// TestWorldTable prints what became of drawn worlds.
func TestWorldTable(t *testing.T) {
	if *worldsFlag == 0 {
		t.Skip("go test -v -run TestWorldTable ./internal/arena -args -worlds 50 prints it")
	}
	for i := range *worldsFlag {
		seed := uint64(*firstFlag + i)
		if w := drawWorld(seed); !strings.Contains(strings.Join(w.words, "; "), *worldsOnlyFlag) {
			continue
		}
		x := playWorld(t, seed)
		fmt.Fprintln(t.Output(), x.String())
	}
}

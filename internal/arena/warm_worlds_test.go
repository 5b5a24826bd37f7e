package arena

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/presets"
)

// Warm worlds are fleets with prefix caches, and conversations on them, that nobody chose:
// each is drawn by its seed.

var warmWorldsFlag = flag.Int("warm-worlds", 0, "warm worlds to draw and to print, from -first on; 0 = none")

const (
	warmSeed     = 0xcac4e
	sessionsSeed = 0x5e55 // of which worlds are played by sessions too: no other draw moves
)

// warmWorld is one that was drawn, and in words what was.
type warmWorld struct {
	aWorld
	telling  Telling
	sessions bool // it is played with affinity: session as well, where one in three is
}

// between draws from one number to another, each factor as often.
func between(rng *rand.Rand, least, most float64) float64 {
	return least * math.Exp(rng.Float64()*math.Log(most/least))
}

// drawWarmWorld draws the warm world of a seed.
func drawWarmWorld(seed uint64) warmWorld {
	rng := rand.New(rand.NewPCG(seed, warmSeed))
	w := warmWorld{aWorld: aWorld{pool: pool{name: fmt.Sprint("warm world ", seed), length: worldLength, replicas: 1}}}
	w.floor = math.Round(10 + 30*rng.Float64())
	t := w.drawTalks(rng)
	t.Duration = worldLength
	m := mixOf(t)
	users := w.drawWarmEngines(rng, m)
	w.routes = []Route{chat("chat", w.floor, w.backends)}
	w.say("floor %.0f", w.floor)
	if rng.IntN(4) == 0 {
		w.routes[0].SLO.MaxTTFT = time.Duration(3+7*rng.Float64()) * time.Second
		w.say("first token in %v", w.routes[0].SLO.MaxTTFT.Round(time.Second))
	}
	w.telling = []Telling{Honest, Honest, Honest, Silent, Silent, Lying}[rng.IntN(6)]
	w.say("%s", []string{"honest", "silent", "lying"}[w.telling])
	load, oneOff := between(rng, 0.7, 4), 0.0
	if rng.IntN(3) == 0 {
		oneOff = 0.5 * rng.Float64()
	}
	rate := load * users * w.floor / m.answer
	w.say("load %.2f: %.2f/s, %.2f of them one-off", load, rate, oneOff)
	w.sessions = rand.New(rand.NewPCG(seed, sessionsSeed)).IntN(3) == 0
	w.drawWarmEvent(rng)
	if rng.IntN(3) == 0 {
		w.replicas = 2 + rng.IntN(3)
		w.say("%d gateways", w.replicas)
	}
	w.load = func(seed uint64) iter.Seq[Arrival] {
		talks := t
		talks.Seed, talks.Rate = seed, rate*(1-oneOff)/cmp.Or(t.Turns, 1)
		if oneOff == 0 {
			return to("chat", talks.Arrivals())
		}
		single := Talks{Rate: rate * oneOff, Question: Lengths{Mean: m.prompts, Sigma: 0.6}, Answer: t.Answer, Pace: t.Pace, Duration: worldLength, Seed: seed + 1000}
		return merge(to("chat", talks.Arrivals()), to("chat", single.Arrivals()))
	}
	return w
}

// drawTalks draws conversations, of one a second.
func (w *warmWorld) drawTalks(rng *rand.Rand) Talks {
	t := Talks{
		Rate: 1, Turns: math.Round(between(rng, 1, 16)), Pace: 1.3 * w.floor,
		Question: Lengths{Mean: math.Round(between(rng, 40, 1500)), Sigma: 0.2 + 0.8*rng.Float64()},
		Answer:   Lengths{Mean: math.Round(between(rng, 60, 500)), Sigma: 0.2 + 0.6*rng.Float64()},
		Think:    time.Duration(between(rng, 0.5, 40) * float64(time.Second)),
		Limit:    32_000,
	}
	if rng.IntN(4) > 0 {
		t.Systems, t.System = 1+rng.IntN(12), int(between(rng, 200, 16_000))
		t.Zipf = []float64{0, 1.2, 2.3}[rng.IntN(3)]
	}
	w.say("%.0f turns of %.0f and %.0f, %.0f s apart, %d systems of %d by %.1f", t.Turns, t.Question.Mean, t.Answer.Mean, t.Think.Seconds(), t.Systems, t.System, t.Zipf)
	return t
}

// mixOf is what t brings, as if all of each prompt were computed.
func mixOf(t Talks) (m mix) {
	t.Seed = 1
	for a := range t.Arrivals() {
		m.lengths = append(m.lengths, length{a.PromptTokens, a.OutputTokens})
		m.prompts += float64(a.PromptTokens)
		m.answer += float64(a.OutputTokens)
	}
	n := float64(len(m.lengths))
	m.prompts, m.answer = m.prompts/n, m.answer/n
	return m
}

// drawWarmEngines draws two to four engines, which carry 4 to 40 users each at the floor, if
// nothing is cached; of caches that keep hardly anything up to all.
func (w *warmWorld) drawWarmEngines(rng *rand.Rand, m mix) (users float64) {
	list := presets.List()
	for i := range 2 + rng.IntN(3) {
		preset := list[rng.IntN(len(list))]
		b, carried := fittedTo(backend(string(rune('a'+i)), preset.Name), int(between(rng, 4, 40)), w.floor, m)
		users += float64(carried)
		b.Engine.Block = 16
		running := 2 * float64(carried) * (m.prompts + m.answer)
		b.Engine.KVTokens = max(int(running*between(rng, 0.7, 20)), 40_000)
		if rng.IntN(8) == 0 {
			b.Engine.Block = 0
		}
		w.say("%s %s carries %d, KV %dk, blocks of %d", b.Name, preset.Name, carried, b.Engine.KVTokens/1000, b.Engine.Block)
		w.backends = append(w.backends, b)
	}
	return users
}

// drawWarmEvent draws what happens to the caches.
func (w *warmWorld) drawWarmEvent(rng *rand.Rand) {
	hit := &w.backends[rng.IntN(len(w.backends))]
	switch rng.IntN(4) {
	case 0:
		w.faults = []Fault{{At: 2 * time.Minute, Kind: Kill, Backend: hit.Name}, {At: 2*time.Minute + 5*time.Second, Kind: Back, Backend: hit.Name}}
		w.say("%s starts anew", hit.Name)
	case 1:
		hit.Joins = 2 * time.Minute
		w.say("%s joins", hit.Name)
	}
}

// warmPlay is what one policy made of a warm world.
type warmPlay struct {
	Counts
	goodput, hits float64
}

func (w *warmWorld) play(t *testing.T, policy Policy, seed uint64, edit func(*Scenario)) warmPlay {
	r := w.with(t, policy, seed, func(s *Scenario) {
		if s.Telling = w.telling; edit != nil {
			edit(s)
		}
	})
	return warmPlay{r.Routes[0].Counts, r.Routes[0].Goodput, r.hits()}
}

// warmPlays are those of one warm world; sessions is of the zero value where nobody plays it.
type warmPlays struct {
	warmWorld
	auto, off, sessions, hash warmPlay
}

func playWarmWorld(t *testing.T, seed uint64) warmPlays {
	x := warmPlays{warmWorld: drawWarmWorld(seed)}
	x.auto, x.off, x.hash = x.play(t, Pacer, seed, nil), x.play(t, Pacer, seed, (*Scenario).cold), x.play(t, SessionHash, seed, nil)
	if x.warmWorld.sessions {
		x.sessions = x.play(t, Pacer, seed, (*Scenario).bySessions)
	}
	return x
}

func (x *warmPlays) String() string {
	c := func(of func(*warmPlay) float64) string {
		text := fmt.Sprintf("%.2f %.2f %.2f", of(&x.auto), of(&x.off), of(&x.hash))
		if x.warmWorld.sessions {
			text += fmt.Sprintf(" %.2f", of(&x.sessions))
		}
		return text
	}
	return fmt.Sprintf("%s: auto, off, session hash, session: goodput %s, met %% %s, missed %% %s, from a cache %% %s | %s", x.name,
		c(func(r *warmPlay) float64 { return r.goodput }), c(func(r *warmPlay) float64 { return 100 * r.Attainment() }),
		c(func(r *warmPlay) float64 { return 100 * r.MissedOfServed() }), c(func(r *warmPlay) float64 { return 100 * r.hits }), strings.Join(x.words, "; "))
}

// TestWarmWorldTable prints what became of drawn warm worlds.
func TestWarmWorldTable(t *testing.T) {
	if *warmWorldsFlag == 0 {
		t.Skip("go test -v -run TestWarmWorldTable ./internal/arena -args -warm-worlds 50 prints it")
	}
	for i := range *warmWorldsFlag {
		x := playWarmWorld(t, uint64(*firstFlag+i))
		fmt.Fprintln(t.Output(), x.String())
	}
}

const (
	warmWorldsPlayed = 10

	warmWorldMissed = 0.005 // of those who are served, in the worst world
	warmWorldsOfOff = 0.99  // of the goodput without affinity, on average
)

// In warm worlds floors hold, affinity costs nothing, and nobody who goes by sessions alone
// meets more.
func TestDrawnWarmWorlds(t *testing.T) {
	skipUnderRace(t)
	var list [warmWorldsPlayed]warmPlays
	t.Run("worlds", func(t *testing.T) {
		for i := range list {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				list[i] = playWarmWorld(t, uint64(i+1))
			})
		}
	})
	ofOff, met, hash, bySessions, played := 0.0, 0.0, 0.0, 0.0, 0.0
	for i := range list {
		x := &list[i]
		t.Log(x)
		ofOff += x.auto.goodput / x.off.goodput / warmWorldsPlayed
		met, hash = met+x.auto.Attainment()/warmWorldsPlayed, hash+x.hash.Attainment()/warmWorldsPlayed
		missed := max(x.auto.MissedOfServed(), x.off.MissedOfServed())
		if x.warmWorld.sessions {
			bySessions, played = bySessions+x.sessions.goodput/x.off.goodput, played+1
			missed = max(missed, x.sessions.MissedOfServed())
		}
		if missed > warmWorldMissed {
			t.Errorf("%s: %.2f %% of the served missed their floor, want at most %.1f", x.name, 100*missed, 100*warmWorldMissed)
		}
	}
	bySessions /= played
	t.Logf("goodput %.3f of that without affinity, by sessions %.3f of it in %.0f worlds; met %.1f %%, by session hash %.1f %%", ofOff, bySessions, played, 100*met, 100*hash)
	if ofOff < warmWorldsOfOff || met < hash {
		t.Errorf("goodput %.3f of that without affinity, met %.1f %%, by session hash %.1f %%; want %.2f at least, and no less than by session hash", ofOff, 100*met, 100*hash, warmWorldsOfOff)
	}
	if !(bySessions >= warmWorldsOfOff) {
		t.Errorf("by sessions a goodput of %.3f of that without affinity in %.0f worlds, want %.2f at least", bySessions, played, warmWorldsOfOff)
	}
}

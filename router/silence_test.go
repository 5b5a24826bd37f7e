package router

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// While nobody hears of anybody all replicas together run what an engine carries, on
// the average, and never much more: whatever each had when it began, and an hour
// later, and however few places there are for each.
func TestSilentReplicasShareWhatAnEngineCarries(t *testing.T) {
	const carried = 32
	for _, replicas := range []int{2, 4, 20, 100} {
		for _, running := range []int{1, 16, 32} {
			for _, silent := range []time.Duration{0, time.Minute, time.Hour} {
				t.Run(fmt.Sprintf("%d replicas, %d running, after %v", replicas, running, silent), func(t *testing.T) {
					random := rand.New(rand.NewPCG(uint64(replicas), uint64(running)))
					const engines = 400
					all, most := 0, 0
					for range engines {
						total := 0
						for _, own := range parts(random, running, replicas) {
							s := hush(Load{Decoding: running - own}, own, replicas, random.Float64())
							total += fill(s, carried, replicas, silent)
						}
						all, most = all+total, max(most, total)
					}
					mean := float64(all) / engines
					if mean > carried*1.03 || mean < carried*0.93 {
						t.Errorf("%.1f sequences where %d are carried", mean, carried)
					}
					// Each draws its last place: the sum scatters like so many coins.
					if limit := carried + 2.5*math.Sqrt(float64(replicas)); float64(most) > limit {
						t.Errorf("%d sequences on one engine, want %.0f at most", most, limit)
					}
				})
			}
		}
	}
}

// parts spreads running sequences over the replicas.
func parts(random *rand.Rand, running, replicas int) []int {
	own := make([]int, replicas)
	for range running {
		own[random.IntN(replicas)]++
	}
	return own
}

// fill is what a replica runs once it has taken all that it may.
func fill(s *silence, carried, replicas int, silent time.Duration) int {
	for own := 0; ; own++ {
		others, spread := s.others(Load{Decoding: own}, replicas, silent)
		if own+others.Waiting+others.Decoding+spread+1 > carried {
			return own
		}
	}
}

// What ended here may be taken up again at once, and what never ran here only as far
// as there is room for it at each replica.
func TestSilenceKeepsWhatWasTold(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(32, 30, 60))
	mine := b.fill("chat", 2)
	b.Update(b.now, RemoteLoad{Replicas: 20, ByBackend: map[string]Load{"x": {Decoding: 10, Floor: 30}}})
	at := func(want int) {
		t.Helper()
		b.wantM(want, "")
	}
	at(12)
	b.Update(b.now, RemoteLoad{Replicas: 20, Lost: true})
	at(12)
	mine[0].Done(b.now, 10)
	at(1 + 7) // they have less, too: by (1+1)/(2+1)
	b.wantReason("chat", OK)
	b.fill("chat", 1)
	at(12)
	b.fill("chat", 1)
	at(12 + 20) // one more here, one more at each
	b.wantReason("chat", ReasonOwnFloor)
	b.sleep(time.Hour)
	b.Update(b.now, RemoteLoad{Replicas: 20, Lost: true})
	at(3 * 20) // what was told is forgotten
	b.Update(b.now, RemoteLoad{Replicas: 20})
	at(3)
}

// Where the others fell silent n is a guess, so an engine that is known is not held
// against it and streams learn nothing; of one that nobody knows a guess is better than
// nothing. Who never heard of others has only ever guessed.
func TestWhatIsKnownIsNotLearnedByAGuess(t *testing.T) {
	b := newBench(t, []string{"known", "new"})
	b.learn("known", form{a: 0.01, b: 0.001, visited: 30})
	guessed := func(what string, want bool) {
		t.Helper()
		for i, want := range []bool{want, false} {
			g := b.backends[i].groups[0]
			if g.noted.guessed != want {
				t.Errorf("%s, %s: a guess %v, want %v", what, g.backend.name, g.noted.guessed, want)
			}
		}
		m := b.backends[0].groups[0].models[0]
		if _, compared := m.comparable(2); compared == want {
			t.Errorf("%s: what streams bring is compared: %v", what, compared)
		}
	}
	b.Update(b.now, RemoteLoad{Replicas: 2, Lost: true})
	guessed("nobody was ever heard", false)
	b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"known": {Decoding: 3, Floor: 30}}})
	guessed("while they tell", false)
	b.Update(b.now, RemoteLoad{Replicas: 2, Lost: true})
	guessed("they fell silent", true)
	b.Update(b.now, RemoteLoad{Replicas: 2})
	guessed("they tell again", false)
	b.Update(b.now, RemoteLoad{Replicas: 1, Lost: true})
	guessed("there is nobody else", false)
}

package accuracy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// longAnswer is how many tokens the answers of deliveredRow have: prompts of others,
// which stall a stream for some steps, are little beside so many.
const longAnswer = 300

// answering makes every answer so long, and lets requests come as much more seldom
// as those of the conversations are shorter.
func answering(l load, tokens int) load {
	const usual = 211.0
	return func(r *rand.Rand) source {
		next := l(r)
		return func() arrival {
			a := next()
			a.at, a.answer = time.Duration(float64(a.at)*float64(tokens)/usual), tokens
			return a
		}
	}
}

// lifetimes sums up what a stream gets that is there all the time, by a speed by n.
// The difference of two instants is what it says of a stream that lived between them.
type lifetimes struct {
	tps   func(n int) float64
	made  float64 // tokens until since
	since time.Duration
	n     int
	begun map[*request]float64 // made at their first tokens
}

func (l *lifetimes) at(now time.Duration) float64 {
	if l.n == 0 {
		return l.made
	}
	if tps := l.tps(l.n); !math.IsNaN(tps) {
		return l.made + tps*(now-l.since).Seconds()
	}
	return l.made
}

// turn says that n streams decode from now on; r is the first or last of them.
func (l *lifetimes) turn(now time.Duration, n int, r *request, begins bool) {
	l.made = l.at(now)
	l.since, l.n = now, n
	if begins {
		l.begun[r] = l.made
	}
}

// delivered is what streams got over what was said when they were sent, and over what
// the levels of n that they lived at say; each by the curve and by the truth.
type delivered struct{ admitted, lived, admittedTruth, livedTruth []float64 }

func deliver(k *known, seed uint64, to *delivered) {
	truth := k.truth()
	look := promised(time.Second)
	w := newWorld(k.setup, seed, look)
	w.lives = &lifetimes{tps: truth.tps, begun: map[*request]float64{}}
	said, could := map[*request]float64{}, map[*request]float64{}
	learning := true
	look.opened = func(r *request) {
		if !learning && w.inFlight <= maxN {
			said[r], could[r] = look.book.Curve(target).TPS(w.inFlight), truth.mix(w.inFlight)
		}
	}
	look.closed = func(r *request, s profiles.Summary) {
		begun := w.lives.begun[r]
		delete(w.lives.begun, r)
		lived := w.lives.at(w.now) - begun
		if said[r] == 0 || !s.Measured || r.got < longAnswer || math.IsNaN(could[r]) || math.IsNaN(lived) { // where the long run was not
			return
		}
		to.admitted = append(to.admitted, s.TPS/said[r])
		to.admittedTruth = append(to.admittedTruth, s.TPS/could[r])
		to.lived = append(to.lived, s.TPS/s.Predicted)
		to.livedTruth = append(to.livedTruth, float64(r.got-r.firstTokens)/lived)
	}
	w.run(100e3)
	learning = false
	w.run(100e3)
}

// deliveredRow lets 100k tokens be learned, and holds what streams of 300 tokens get in
// the next 100k against what the curve said when they were sent. Beside it stands what
// the engine's own speeds, known beforehand, would have said: who comes and goes
// while a stream runs, and whose prompt falls beside it, is in no curve.
func deliveredRow(name string, s setup) row {
	s.load = answering(s.load, longAnswer)
	k := knownBy(s, truthTokens/4)
	return row{name: "delivered over predicted, " + name, measure: func(t *testing.T) []line {
		var d delivered
		for seed := range uint64(max(seeds()/3, 3)) {
			deliver(k, seed, &d)
		}
		width := func(list []float64) float64 { return quantile(list, 0.9) - quantile(list, 0.1) }
		both := func(list []float64) string {
			return fmt.Sprintf("%.2f–%.2f", quantile(list, 0.1), quantile(list, 0.9))
		}
		return []line{{
			what: "delivered over predicted, answers of 300 tokens, " + name,
			figures: []figure{
				{name: "at admission, p10", got: quantile(d.admitted, 0.1), goal: 0.93, gate: 0.45, least: true},
				{name: "p90", got: quantile(d.admitted, 0.9), goal: 1.07, gate: 1.4},
				{name: "p90 − p10 beyond that by the truth", got: width(d.admitted) - width(d.admittedTruth), gate: 0.1},
				{name: "at the levels lived at, the same", got: width(d.lived) - width(d.livedTruth), gate: 0.06},
			},
			controls: []string{"by the truth at admission " + both(d.admittedTruth), "at the levels lived at " + both(d.lived) + ", by the truth " + both(d.livedTruth)},
			why:      others,
		}}
	}}
}

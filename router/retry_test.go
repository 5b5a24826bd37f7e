package router

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
)

// patientUsers are users who come at random, so many a second.
func patientUsers(perSecond float64, last time.Duration, tokens func(*rand.Rand) int) []*user {
	r := rand.New(rand.NewPCG(7, 8))
	var list []*user
	for at := start; at.Before(start.Add(last)); at = at.Add(seconds(r.ExpFloat64() / perSecond)) {
		list = append(list, &user{route: "chat", prompt: 200, tokens: tokens(r), once: true, patient: true, at: at, key: uint64(len(list) + 1)})
	}
	return list
}

// Of those who are sent away with a time and come back then, most are admitted,
// while 30 % more come than can be served, and all of them come back. Where
// they are not recognised, or there is no line for them to be the first in,
// they find a free place as often as those who come for the first time do.
func TestThoseWhoComeBackWhenToldAreAdmitted(t *testing.T) {
	spread := func(r *rand.Rand) int { return 150 + r.IntN(300) }
	bimodal := func(r *rand.Rand) int {
		if r.Float64() < 0.8 {
			return 60
		}
		return 1260
	}
	for _, c := range racetest.Rows([]struct {
		name       string
		steps      []Step
		tokens     func(*rand.Rand) int
		recognised bool
		want       float64 // share of them
	}{
		{"one length", queue(2 * time.Second), spread, true, 0.8},
		{"short and long", queue(2 * time.Second), bimodal, true, 0.8},
		{"not recognised", queue(2 * time.Second), spread, false, 0.4},
		{"no line", []Step{{Kind: Shed}}, spread, true, 0.4},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: c.steps}), map[string]*engine{"x": flat()})
			w.learn("x", form{a: 0.0193, b: 0.00016, d: 5e-5, answer: 300})
			const capacity = 64 * 33.9 / 300 // users a second
			w.later = patientUsers(1.3*capacity, 3*time.Minute, c.tokens)
			if !c.recognised {
				for _, u := range w.later {
					u.key = 0
				}
			}
			w.until(3 * time.Minute)
			share := float64(w.retried) / float64(w.retries)
			t.Logf("%d admitted; %d came back when told, %d of them were admitted (%.0f %%); kept %d, missed %d", w.admitted, w.retries, w.retried, 100*share, w.kept, w.missed)
			if w.retries < 300 || share < c.want {
				t.Errorf("%d of %d were admitted, want %.0f %%", w.retried, w.retries, 100*c.want)
			}
			if w.missed*100 > w.kept {
				t.Errorf("%d missed their floor, %d kept it", w.missed, w.kept)
			}
		})
	}
}

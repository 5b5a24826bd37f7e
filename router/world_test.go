package router

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/profiles"
)

// flat falls from 51 tokens/s alone to 33.9 at n = 64, where the bound with
// its margin of 10 % just meets a floor of 30, and prefills 20 000 tokens/s.
func flat() *engine { return &engine{a: 0.0193, b: 0.00016, d: 5e-5, budget: 2048} }

// steep falls from 150 tokens/s to 30 at n = 64.
func steep() *engine { return &engine{a: 0.0063, b: 0.000422, d: 5e-5, budget: 2048} }

// learnBy says where curves come from: real is a profiles.Book, form the truth
// as far as it was visited, and with none everything stays unknown.
func (w *world) learnBy(learner string) {
	w.teach = learner == "form"
	if learner == "real" {
		w.book = profiles.NewBook(profiles.Options{})
	}
}

func users(n int, u user) []*user {
	out := make([]*user, n)
	for i := range out {
		one := u
		one.at = u.at.Add(time.Duration(i) * time.Millisecond)
		out[i] = &one
	}
	return out
}

func chatQueue() Route {
	return Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, Reserve: 1, OnInfeasible: queue(2 * time.Second)}
}

// A fresh gateway, 50 users at once on a backend that carries 64 at the floor.
func TestFreshGatewayTakesFiftyUsers(t *testing.T) {
	for _, c := range racetest.Rows([]struct {
		name    string
		engine  *engine
		learner string // real: profiles.Book; form: the truth as far as visited; none
		tokens  int
		prompt  int
	}{
		{"flat curve, real, short answers", flat(), "real", 128, 200},
		{"flat curve, real, long answers", flat(), "real", 400, 200},
		{"steep curve, real, short answers", steep(), "real", 128, 200},
		{"steep curve, real, long answers", steep(), "real", 400, 200},
		{"steep curve, real, long prompts", steep(), "real", 400, 600},
		{"flat curve, short answers", flat(), "form", 128, 200},
		{"flat curve, long answers", flat(), "form", 400, 200},
		{"flat curve, nothing learned", flat(), "none", 400, 200},
		{"steep curve, short answers", steep(), "form", 128, 200},
		{"steep curve, long answers", steep(), "form", 400, 200},
		{"steep curve, nothing learned", steep(), "none", 400, 200},
		{"steep curve, long prompts", steep(), "form", 400, 600},
	}) {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(newBench(t, []string{"x"}, chatQueue()), map[string]*engine{"x": c.engine})
			w.learnBy(c.learner)
			w.users = users(50, user{route: "chat", prompt: c.prompt, tokens: c.tokens, spread: true, at: start})
			w.until(30 * time.Second)
			t.Logf("offered %d, shed %d, most at once %d, kept %d, missed %d, waited %v", w.offered, w.shed, w.peakM, w.kept, w.missed, w.waitedMost)
			most := 0.05
			if c.prompt > 500 { // 30,000 prompt tokens at once: what their prefill costs is not known yet
				most = 0.12
			}
			if share := float64(w.shed) / float64(w.offered); share > most {
				t.Errorf("shed %d of %d (%.1f %%), want at most %.0f %%", w.shed, w.offered, 100*share, 100*most)
			}
			if w.missed*100 > w.kept+w.missed {
				t.Errorf("%d of %d streams missed their floor", w.missed, w.kept+w.missed)
			}
		})
	}
}

// 60 requests within 0.3 s on one backend that carries 38 at the floor: it is
// m and the waiting prompts that count, n is 0 all the while.
func TestBurst(t *testing.T) {
	for _, prompt := range []int{50, 500, 2000} {
		t.Run(fmt.Sprint(prompt), func(t *testing.T) {
			curve := carrying(38, 30, 51)
			curve.d, curve.answer = 5e-5, 300
			w := newWorld(newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}}), map[string]*engine{
				"x": {a: curve.a, b: curve.b, d: curve.d, budget: 2048},
			})
			w.learn("x", curve)
			w.users = users(60, user{route: "chat", prompt: prompt, tokens: 300, once: true})
			for i, u := range w.users {
				u.at = start.Add(time.Duration(i) * 5 * time.Millisecond)
			}
			w.until(time.Minute)
			t.Logf("admitted %d, shed %d, kept %d, missed %d", w.admitted, w.shed, w.kept, w.missed)
			if w.admitted > 38 || w.admitted < 10 || w.missed*10 > w.admitted {
				t.Errorf("%d admitted, %d of them missed their floor", w.admitted, w.missed)
			}
		})
	}
}

// The margin becomes what the streams need: more users are served where they
// keep to the curve, and nowhere do they miss their floor.
func TestTheMarginFollowsTheStreams(t *testing.T) {
	if racetest.On {
		t.Skip("hours of virtual time on one goroutine: make numbers runs it")
	}
	always := func(prompt int) func() []*user {
		return func() []*user {
			return users(150, user{route: "chat", prompt: prompt, tokens: 300, spread: true, at: start})
		}
	}
	for _, c := range []struct {
		name   string
		engine engine
		users  func() []*user
		floor  float64
		grace  time.Duration
		gain   float64 // in tokens of those that kept their floor, at least
	}{
		{"decode only, flat", engine{a: 0.0193, b: 0.00016}, always(1), 30, time.Second, 1.08},
		{"decode only, flat, no grace", engine{a: 0.0193, b: 0.00016}, always(1), 30, 0, 1.05},
		{"decode only, steep", engine{a: 0.0063, b: 0.000422}, always(1), 30, time.Second, 1},
		{"prompts, steep", engine{a: 0.0063, b: 0.000422, d: 3e-5}, always(1000), 40, time.Second, 1},
		{"bursts with prompts", engine{a: 0.0093, b: 0.0003, d: 3e-5}, bursts, 35, time.Second, 0.95},
		{"bursts with prompts, no grace", engine{a: 0.0093, b: 0.0003, d: 3e-5}, bursts, 35, 0, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(margin float64) (w *world, taken float64) {
				e := c.engine
				e.budget, e.noise = 2048, rand.New(rand.NewPCG(3, 4))
				w = newWorld(newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: c.floor}, Reserve: 1, OnInfeasible: queue(2 * time.Second)}), map[string]*engine{"x": &e})
				w.book = profiles.NewBook(profiles.Options{Margin: margin})
				w.book.Attain(GroupID{Backend: "x"}, 0.99, c.grace)
				w.grace = c.grace
				w.users = c.users()
				w.until(3 * time.Minute)
				w.kept, w.missed, w.tokens = 0, 0, 0
				w.until(9 * time.Minute)
				taken = w.book.Curve(Target{Backend: "x", Model: "m"}).Margin()
				t.Logf("margin %.1f %%: kept %d, missed %d, %.0f tokens/s of those that kept it, most at once %d", 100*taken, w.kept, w.missed, w.tokens/360, w.peakM)
				return w, taken
			}
			fixed, _ := run(0.1)
			adapted, margin := run(0)
			if adapted.missed*100 > adapted.kept+adapted.missed {
				t.Errorf("%d of %d streams missed their floor", adapted.missed, adapted.kept+adapted.missed)
			}
			if got := adapted.tokens / fixed.tokens; got < c.gain {
				t.Errorf("a margin of %.1f %% serves %.2f times the tokens that 10 %% does, want %.2f", 100*margin, got, c.gain)
			}
		})
	}
}

// bursts are more requests than an engine serves, in bursts, over nine
// minutes: a user each, with a prompt of 1,000 tokens (median).
func bursts() []*user {
	r := rand.New(rand.NewPCG(5, 6))
	var list []*user
	rate, turn := 1.0, start
	for at := start; at.Before(start.Add(9 * time.Minute)); at = at.Add(seconds(r.ExpFloat64() / (4.8 * rate))) {
		if !at.Before(turn) {
			rate = 0.35
			if r.Float64() < 0.25 {
				rate = 3
			}
			turn = at.Add(seconds(5 + 10*r.ExpFloat64()))
		}
		list = append(list, &user{route: "chat", prompt: min(int(1000*math.Exp(r.NormFloat64())), 8000) + 1, tokens: 200, spread: true, once: true, at: at})
	}
	return list
}

// 500 batch streams want to run when the first user comes.
func TestBatchFloodThenAUser(t *testing.T) {
	for _, learner := range racetest.Rows([]string{"real", "form", "none"}) {
		t.Run(learner, func(t *testing.T) {
			night := Route{Name: "nightly", Class: Batch, Reserve: 1, OnInfeasible: queue(time.Minute)}
			w := newWorld(newBench(t, []string{"x"}, chatQueue(), night), map[string]*engine{"x": flat()})
			w.learnBy(learner)
			w.users = users(500, user{route: "nightly", prompt: 200, tokens: 400, at: start})
			w.until(60 * time.Second)
			batch := w.peakM
			w.users = append(w.users, users(5, user{route: "chat", prompt: 200, tokens: 400, at: w.now})...)
			w.until(90 * time.Second)
			t.Logf("batch at once %d, kept %d, missed %d, waited %v", batch, w.kept, w.missed, w.waitedMost)
			if w.waitedMost["chat"] > 2*time.Second {
				t.Errorf("a user waited %v", w.waitedMost["chat"])
			}
			if batch < 30 {
				t.Errorf("only %d batch streams at once on a backend that carries 64", batch)
			}
			if w.kept == 0 || w.missed > 0 {
				t.Errorf("users: %d kept their floor, %d missed it", w.kept, w.missed)
			}
		})
	}
}

// Streams with a floor keep it although twice as many without one want the
// same two backends.
func TestStrictStreamsKeepTheirFloor(t *testing.T) {
	free := Route{Name: "free", OnInfeasible: queue(5 * time.Second)}
	w := newWorld(newBench(t, []string{"x", "y"}, chatQueue(), free), map[string]*engine{"x": flat(), "y": steep()})
	w.learnBy("real")
	w.users = append(users(30, user{route: "chat", prompt: 200, tokens: 300, spread: true, at: start}),
		users(120, user{route: "free", prompt: 200, tokens: 300, spread: true, at: start.Add(5 * time.Second)})...)
	w.until(60 * time.Second)
	t.Logf("offered %d, shed %d, kept %d, missed %d, waited %v", w.offered, w.shed, w.kept, w.missed, w.waitedMost)
	if w.kept < 150 || w.missed*100 > w.kept+w.missed {
		t.Errorf("%d streams kept their floor, %d missed it", w.kept, w.missed)
	}
}

package router

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// A level of 10 s: what streams get now, times what the curve says of the way
// from the n that runs to the n that is asked for.
func TestLevelFromNow(t *testing.T) {
	// 1/(a + b·n): 60 tokens/s alone, 33.3 at n = 20, where the bound is 30.
	curve := carrying(20, 30, 60)
	for _, c := range []struct {
		name   string
		factor float64 // of the speed that the curve says
		want   int     // streams in the end
	}{
		{"as known", 1, 20},
		{"a third slower", 1 / 1.5, 5},  // 1.5·(a + b·n) = 0.9/30 at 5.7
		{"half as fast again", 1.5, 41}, // (a + b·n)/1.5 at 41.3
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"})
			b.learn("x", curve)
			leases := b.fill("chat", 3)
			b.run(leases, c.factor*curve.TPS(3), 5*time.Second)
			for range 60 {
				b.run(leases, c.factor*curve.TPS(len(leases)), time.Second)
				leases = append(leases, b.fill("chat", 1)...)
			}
			if got := len(leases); math.Abs(float64(got-c.want)) > 1 {
				t.Errorf("%d streams, want %d", got, c.want)
			}
		})
	}
}

// What was seen in a hiccup keeps nobody out after it: the curve may go on
// saying what it learned there.
func TestAHiccupIsForgotten(t *testing.T) {
	truth := carrying(20, 30, 60)
	b := newBench(t, []string{"x"})
	b.learn("x", truth)
	leases := b.fill("chat", 10)
	b.run(leases, truth.TPS(10), 5*time.Second)
	b.run(leases, truth.TPS(10)/3, 10*time.Second)
	b.learn("x", form{a: 3 * truth.a, b: 3 * truth.b})
	b.wantReason("chat", ReasonOwnFloor)
	b.run(leases, truth.TPS(10), 30*time.Second)
	if got := len(b.fill("chat", 100)); got < 9 {
		t.Errorf("%d more beside 10 streams at %.1f tokens/s, want 10", got, truth.TPS(10))
	}
}

// Beyond what was visited the level says nothing of those who decode. Where prompts take
// the engine's time few do at once, and who waits for his prefill is not counted; where
// they take none, all may.
func TestWhoPrefillsIsNotBeyondTheLevel(t *testing.T) {
	for _, c := range []struct {
		name   string
		prompt int
		want   int
	}{
		// 100 ms a prompt, and 28 tokens take 240 ms: 2 + 3 decode at once.
		{"long prompts", 1000, 30},
		{"hardly a prompt", 40, 8}, // as many as were visited
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Minute}})
			curve := form{a: 1.0 / 120, b: 1e-5, visited: 8, d: 1e-6, answer: 28}
			b.learn("x", curve)
			leases := b.fill("chat", 2, prompt(c.prompt))
			b.sleep(time.Duration(2*c.prompt) * 100 * time.Microsecond)
			b.run(leases, curve.TPS(2), 5*time.Second)
			if got := 2 + len(b.fill("chat", 28, prompt(c.prompt))); got != c.want {
				t.Errorf("%d on the target, want %d", got, c.want)
			}
		})
	}
}

// The level fades with time: ten seconds later a third of it is left.
func TestLevelFades(t *testing.T) {
	var l Level
	l.see(400, 10, 4) // 40 tokens/s beside 4: 100 steps
	l.Time = 10
	if !l.known() || l.tps() != 40 || l.n() != 4 {
		t.Fatalf("known %v, %v tokens/s at n = %v; want 40 at 4", l.known(), l.tps(), l.n())
	}
	l.fade(10 * time.Second)
	if math.Abs(l.Tokens-400/math.E) > 1e-9 || l.tps() != 40 {
		t.Errorf("%v tokens at %v tokens/s after 10 s, want %v at 40", l.Tokens, l.tps(), 400/math.E)
	}
	if !l.known() {
		t.Error("not known any more after 10 s")
	}
	if l.fade(10 * time.Second); l.known() {
		t.Error("still known after 20 s")
	}
}

// unshown is a curve with a margin that no stream has shown to be needed.
type unshown struct{ form }

func (unshown) Shown() float64 { return 0 }

// An idle engine is judged by what is expected of it. Kept empty by the margin it
// would show nothing, and stay empty.
func TestAnIdleEngineTakesOne(t *testing.T) {
	truth := form{a: 1.0 / 33, b: 1.0 / 1000} // 32 tokens/s alone, a bound of 28.8
	b := newBench(t, []string{"x"})
	b.learn("x", truth)
	b.wantReason("chat", ReasonOwnFloor)
	b.learn("x", unshown{truth})
	b.wantReason("chat", OK)
	b.fill("chat", 1)
	b.wantReason("chat", ReasonOwnFloor)
	slower := newBench(t, []string{"x"})
	slower.learn("x", unshown{form{a: 1.0 / 30, b: 1.0 / 1000}}) // 29.1 alone
	slower.wantReason("chat", ReasonOwnFloor)
}

// The level is of all streams: what those of other replicas got counts with the own.
func TestTheLevelIsOfAllReplicas(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", form{a: 1.0 / 60, b: 1.0 / 2000}) // 46 tokens/s at n = 10
	m := b.backends[0].groups[0].models[0]
	b.tick()
	far := Load{Decoding: 10, Level: Level{Tokens: 2000, Seconds: 100, AtN: 1000, Steps: 200, Time: 10}} // 20 at n = 10
	b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": far}})
	b.wantReason("chat", OK) // not looked at yet
	b.sleep(scanEvery)
	b.tick()
	if !m.lately.all.known() || math.Abs(m.lately.all.tps()-20) > 1e-9 || m.lately.own.known() {
		t.Errorf("level %+v, own %+v; want one of 20 tokens/s that is all of others", m.lately.all, m.lately.own)
	}
	b.wantReason("chat", ReasonOwnFloor)
	b.Update(b.now, RemoteLoad{Replicas: 2, Lost: true})
	b.sleep(scanEvery)
	b.tick()
	if m.lately.all.known() {
		t.Error("alone, and the level of others is known")
	}
	b.wantReason("chat", OK)
}

// Two targets share an engine. By as much as the streams of one are slower than it was
// known, those of the other will be, of which nobody has seen any; here, and at a
// replica that hears of them.
func TestAnEngineHasOneLevel(t *testing.T) {
	routes := []Route{
		{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "m"}}}},
		{Name: "large", SLO: SLO{MinTPS: 15}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "large"}}}},
	}
	curve := carrying(20, 30, 60)
	twice := form{a: 2 * curve.a, b: 2 * curve.b} // carries 20 with 15
	fresh := func() *bench {
		b := newBench(t, []string{"x"}, routes...)
		b.learn("x", curve)
		b.learnTarget(Target{Backend: "x", Model: "large"}, twice)
		return b
	}
	for _, c := range []struct {
		name   string
		factor float64 // of the speed that the curve says
		want   int     // streams in all
	}{
		{"as known", 1, 20},
		{"a third slower", 1 / 1.5, 5},
		{"half as fast again", 1.5, 41},
	} {
		b := fresh()
		leases := b.fill("chat", 3)
		b.run(leases, c.factor*curve.TPS(3), 10*time.Second)
		far := fresh()
		far.sleep(10 * time.Second)
		far.Update(far.now, RemoteLoad{Replicas: 2, ByBackend: b.Own(b.now)})
		far.sleep(scanEvery)
		far.tick()
		for where, b := range map[string]*bench{"here": b, "at another replica": far} {
			m := b.backends[0].groups[0].models[1]
			if got, want := m.lately.all.tps(), c.factor*twice.TPS(3); !(math.Abs(got-want) <= 0.05*want) {
				t.Errorf("%s, %s: the level says %.1f tokens/s, want %.1f", c.name, where, got, want)
			}
		}
		if got := 3 + len(b.fill("large", 50)); math.Abs(float64(got-c.want)) > 1 {
			t.Errorf("%s: %d streams, want %d", c.name, got, c.want)
		}
	}
}

// Replicas may name the models of an engine in another order, or not have all of them: one
// has read its new configuration, and another has not yet.
func TestALevelIsOfTheSameModelsEverywhere(t *testing.T) {
	small := Route{Name: "small", SLO: SLO{MinTPS: 30}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "m"}}}}
	large := Route{Name: "large", SLO: SLO{MinTPS: 6}, Targets: []RouteTarget{{Target: Target{Backend: "x", Model: "large"}}}}
	curve := carrying(20, 30, 60)
	slow := form{a: 5 * curve.a, b: 5 * curve.b} // carries 20 with 6
	serving := func(routes ...Route) *bench {
		b := newBench(t, []string{"x"}, routes...)
		for _, rt := range routes {
			if rt.Name == "small" {
				b.learn("x", curve)
			} else {
				b.learnTarget(Target{Backend: "x", Model: "large"}, slow)
			}
		}
		return b
	}
	here := serving(small, large)
	here.run(here.fill("large", 3), slow.TPS(3), 10*time.Second)
	for name, there := range map[string]*bench{
		"as here": serving(small, large), "the other way round": serving(large, small), "one of them": serving(large),
	} {
		there.sleep(10 * time.Second)
		there.Update(there.now, RemoteLoad{Replicas: 2, ByBackend: here.Own(here.now)})
		there.sleep(scanEvery)
		there.tick()
		for _, m := range there.backends[0].groups[0].models {
			if got, want := m.lately.all.tps(), m.curve.TPS(3); !(math.Abs(got-want) <= 0.05*want) {
				t.Errorf("%s: the level of %s says %.1f tokens/s, want %.1f", name, m.name, got, want)
			}
		}
		if got := 3 + len(there.fill("large", 60)); got > 20 {
			t.Errorf("%s: %d streams, and 20 fit", name, got)
		}
	}
}

// quieter is a form that was learned beside prompts: alone a stream gets quiet.
type quieter struct {
	form
	quiet float64
}

func (q quieter) AtRho(int, float64) profiles.Point {
	return profiles.Point{N: 1, TPS: q.quiet, Low: 0.9 * q.quiet}
}

// What a stream that is alone is expected to get is never below its bound, whatever
// prompts the curve was learned with.
func TestAloneIsNotBelowItsBound(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	curve := quieter{carrying(20, 30, 60), 80}
	b.learn("x", curve)
	c := b.seen(Request{Route: "chat"})[0]
	if !(c.Low > curve.TPS(1)) || c.TPS < c.Low {
		t.Errorf("expected to get %.1f tokens/s and at least %.1f, by a curve that says %.1f with prompts", c.TPS, c.Low, curve.TPS(1))
	}
}

// While an engine stands still nobody hears of it, and when its streams go on that
// is over: the level says what they get now, and not that they got nothing.
func TestAStallIsOver(t *testing.T) {
	truth := carrying(20, 30, 60)
	b := newBench(t, []string{"x"})
	b.learn("x", truth)
	leases := b.fill("chat", 10)
	b.run(leases, truth.TPS(10), 15*time.Second)
	b.run(leases, 0, 8*time.Second)
	b.run(leases, truth.TPS(10), 5*time.Second)
	got := b.seen(Request{Route: "chat", Stream: true})[0]
	if want := truth.TPS(11); math.Abs(got.TPS/want-1) > 0.05 || got.Reason != OK {
		t.Errorf("five seconds after a stall of 8 s %v, at %.1f tokens/s; want a place at %.1f", got.Reason, got.TPS, want)
	}
	// What goes on for longer than a stream is waited for is no stall but the speed.
	b.run(leases, truth.TPS(10)/2, 15*time.Second)
	if got := b.seen(Request{Route: "chat", Stream: true})[0]; got.Reason != ReasonOwnFloor {
		t.Errorf("streams at half the speed for 15 s: %v, want %v", got.Reason, ReasonOwnFloor)
	}
}

// Streams that end with fewer tokens than were counted lower the level, until that is
// forgotten; more than were counted do not raise it.
func TestTheLevelTrustsWhatAnswersHad(t *testing.T) {
	var s told
	s.see(progress{tokens: 40}, 20)
	s.see(progress{tokens: 400, rough: true}, 201)
	if got := s.share(); got != 1 {
		t.Errorf("short answers and rough counts: %.3f, want 1", got)
	}
	s.see(progress{tokens: 1000}, 801)
	if got := s.share(); math.Abs(got-0.9) > 1e-9 { // (800 + 1000)/(1000 + 1000)
		t.Errorf("800 tokens of 1,000: %.3f, want 0.9", got)
	}
	s.fade(levelMemory)
	want := (800/math.E + 1000) / (1000/math.E + 1000)
	if got := s.share(); math.Abs(got-want) > 1e-9 {
		t.Errorf("ten seconds later: %.4f, want %.4f", got, want)
	}
	s.see(progress{tokens: 1000}, 2001)
	if got := s.share(); got != 1 {
		t.Errorf("more than were counted: %.3f, want 1", got)
	}
}

// Streams that are well above the floor let one more in beside them, if they are as fast as
// they are counted: where answers end with fewer tokens they are not.
func TestOneMoreTrustsWhatAnswersHad(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(20, 30, 60))
	leases := b.fill("chat", 10)
	b.learn("x", form{a: 1.0 / 80, b: 1.0 / 700, margin: 0.3}) // whose bound refuses an eleventh
	b.run(leases, 36, 15*time.Second)
	if c := b.seen(Request{Route: "chat", Stream: true})[0]; c.Reason != OK || c.Basis != ByOneMore {
		t.Fatalf("streams at 36 tokens/s beside a floor of 30: %v by %v, want one more", c.Reason, c.Basis)
	}
	g := b.model(Target{Backend: "x", Model: "m"}).group
	g.told = told{counted: 10_000, had: 8_000} // 36·9/11 = 29.5 tokens/s
	g.look(b.now)
	if c := b.seen(Request{Route: "chat", Stream: true})[0]; c.Reason != ReasonOwnFloor {
		t.Errorf("answers that had a fifth fewer tokens than were counted: %v by %v, want %v", c.Reason, c.Basis, ReasonOwnFloor)
	}
}

// shifted is a curve of an engine that has become slower by scale, at all n but 1: what
// one stream gets was learned when it was mended.
type shifted struct {
	form
	scale float64
}

func (s shifted) Scale() float64 { return s.scale }

func (s shifted) TPS(n int) float64 {
	if n == 1 {
		return s.form.TPS(1)
	}
	return s.form.TPS(n) * s.scale
}

// What streams get is held against the curve from before the engine became slower, as
// long as it is: of one level the new one may know what was learned since.
func TestStreamsAreComparedWithTheCurveFromBefore(t *testing.T) {
	b := newBench(t, []string{"x"})
	m := b.backends[0].groups[0].models[0]
	full := form{a: 0.01, b: 0.001, visited: 30}
	speed := func(n float64) float64 {
		usual, ok := m.comparable(n)
		if !ok {
			t.Fatalf("n = %v is compared with nothing", n)
		}
		return full.TPS(int(n)) / usual.tps
	}
	for _, step := range []struct {
		what  string
		curve curve
		want  float64 // of what was learned, at n = 1 and n = 12, of streams that get all of it
	}{
		{"sound", full, 1},
		{"slower", shifted{full, 0.4}, 1},
		{"slower still", shifted{full, 0.3}, 1},
		{"as before", shifted{full, 0.95}, 0.95},
		{"and learned anew", full, 1},
	} {
		b.learn("x", step.curve)
		for _, n := range []float64{1, 12} {
			want := step.want
			if n > 1 {
				want = 1
			}
			if got := speed(n); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: at n = %v streams get %.3f of what was learned, want %.3f", step.what, n, got, want)
			}
		}
	}
}

// One level tells no slope. An engine that gives a single stream little more than the
// floor was never asked for two at once while few came; the shape that is guessed says
// that two get too little.
func TestAGuessedSlopeKeepsNobodyOut(t *testing.T) {
	for _, c := range []struct {
		name    string
		visited int
		each    float64 // tokens/s of those that run then
		want    int
	}{
		{"two are as fast", 1, 31.5, 2},
		{"two were seen, and were too slow", 2, 32, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"})
			b.learn("x", unshown{form{a: 1.0/32 - 0.01, b: 0.01, visited: c.visited}}) // 32 tokens/s alone, 24 of two
			leases := b.fill("chat", 1)
			b.run(leases, 32, 5*time.Second)
			leases = append(leases, b.fill("chat", 3)...)
			if len(leases) != c.want {
				t.Fatalf("%d run, want %d", len(leases), c.want)
			}
			b.run(leases, c.each, 5*time.Second)
			b.wantReason("chat", ReasonOwnFloor) // no third one before two are in the curve
		})
	}
}

// The same where no level says how fast those are who stream: until three answers have
// ended nobody knows how many tokens a chunk is. An engine for fifteen had one user for minutes.
func TestAGuessedSlopeKeepsNobodyOutWhileTokensAreRough(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", unshown{form{a: 1.0/32 - 0.01, b: 0.01, visited: 1}}) // 32 tokens/s alone, 24 of two
	first := b.fill("chat", 1)[0]
	first.FirstToken(b.now)
	for i := range 100 {
		b.sleep(50 * time.Millisecond)
		first.Progress(b.now, profiles.Count{Tokens: 1.6 * float64(i+1), Rough: true})
		b.tick()
	}
	b.wantFill("chat", 1, "beside one whose tokens are rough")
	b.wantReason("chat", ReasonOwnFloor) // no third one before two are in the curve
}

// primed is a curve with a configured prior.
type primed struct{ unshown }

func (p primed) PriorTPS(n int) float64 { return p.TPS(n) }

// What a configured prior says of two is no guess.
func TestAPriorsSlopeIsBelieved(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", primed{unshown{form{a: 1.0/32 - 0.01, b: 0.01, visited: 1}}})
	leases := b.fill("chat", 1)
	b.run(leases, 32, 5*time.Second)
	b.wantReason("chat", ReasonOwnFloor)
}

// Where the curve from before the engine became slower does not reach, that of now tells.
func TestStreamsBeyondTheCurveFromBeforeAreCompared(t *testing.T) {
	b := newBench(t, []string{"x"})
	m := b.backends[0].groups[0].models[0]
	b.learn("x", form{a: 0.01, b: 0.001, visited: 8})
	b.learn("x", slowed{form{a: 0.01, b: 0.001, visited: 40}, 0.5})
	if _, ok := m.comparable(20); !ok {
		t.Error("20 streams are compared with nothing")
	}
}

// Who streams beside a prompt that is far longer than usual is slow for that alone: it says
// nothing of the engine. A usual prompt does not explain it, nor does one that waits for long.
func TestALongPromptMakesNoEngineSlower(t *testing.T) {
	full := form{a: 0.01, b: 0.001, visited: 30}
	for _, c := range []struct {
		what   string
		prompt int
		waits  time.Duration
		slower bool
	}{
		{"a long prompt", 8000, 1500 * time.Millisecond, false},
		{"a usual prompt", 150, 1500 * time.Millisecond, true},
		{"a long prompt that is not served", 8000, time.Minute, true},
	} {
		b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 5}})
		b.learn("x", full)
		leases := b.fill("chat", 5, prompt(100))
		b.run(leases, full.TPS(5), 5*time.Second)
		before := b.Loads()[0]
		d := b.place("chat", prompt(c.prompt), wish(0))
		b.run(leases, 20, c.waits)
		d.Lease.FirstToken(b.now)
		b.run(leases, full.TPS(5), time.Second)
		after := b.Loads()[0]
		ratio := (after.Seen - before.Seen) / (after.Expected - before.Expected)
		if slower := ratio < 0.75; slower != c.slower || math.IsNaN(ratio) {
			t.Errorf("beside %s they get %.2f of what was learned", c.what, ratio)
		}
	}
}

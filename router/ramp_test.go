package router

import (
	"math"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

func TestSlowStartGrows(t *testing.T) {
	b := newBench(t, []string{"x"})
	leases := b.fill("chat", 100)
	if len(leases) != slowStartCap {
		t.Fatalf("%d streams on an unknown backend, want %d", len(leases), slowStartCap)
	}
	b.wantReason("chat", ReasonSlowStart)
	// 18 steps at 60 tokens/s are not enough (the first look only starts the count).
	// The floor is beaten by 60/33, and one level tells no slope: 4·60/33 = 7.3.
	b.run(leases, 60, 400*time.Millisecond)
	b.wantCap(4, "after 18 steps")
	b.run(leases, 60, 200*time.Millisecond)
	b.wantCap(7, "after 20 steps at 60 tokens/s")
	leases = append(leases, b.fill("chat", 100)...)
	if len(leases) != 7 {
		t.Fatalf("%d streams, want 7", len(leases))
	}
	// From 16.7 ms at n = 4 to 20 ms at n = 7 the line reaches 1/33 at n = 16.3.
	b.run(leases, 50, time.Second)
	b.wantCap(16, "after n = 4 at 60 and n = 7 at 50 tokens/s")
}

// following has x, which nobody knows, prefill a prompt of 16,000 tokens that those in line
// need. They have waited for as long as they may.
func following(t *testing.T) (b *bench, brings *Lease, behind func() *Ticket) {
	b = newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}, OnInfeasible: queue(2 * time.Second)})
	brings = b.place("chat", prompt(16_000)).Lease
	behind = func() *Ticket {
		return b.stand("chat", prompt(16_100), func(r *Request) {
			r.Warm = []Warmth{{Target: Target{Backend: "x", Model: "m"}, Soon: 16_000}}
		})
	}
	return b, brings, behind
}

// Many come while a shared prompt is prefilled for the first time. Who can wait no longer
// goes behind it though slow start lets in nobody else, up to eight.
func TestMoreGoBehindASharedPromptInSlowStart(t *testing.T) {
	b, _, behind := following(t)
	b.fill("chat", 3)
	var tickets []*Ticket
	for range 5 {
		tickets = append(tickets, behind())
	}
	other := b.stand("chat", prompt(100))
	b.sleep(2 * time.Second)
	b.wantRefusal(other.Expire(b.now), ShedTimeout)
	for i, ticket := range tickets {
		if d := ticket.Expire(b.now); (d.Lease != nil) != (i < 4) {
			t.Errorf("the %d. behind the prompt: %+v, want four let in", i+1, d)
		}
	}
}

// What is prefilled once for many counts once: slow start grows as if nobody brought it.
func TestASharedPromptIsNotWhatEachBrings(t *testing.T) {
	b, brings, behind := following(t)
	var tickets []*Ticket
	for range slowStartCap - 1 {
		tickets = append(tickets, behind())
	}
	b.sleep(2 * time.Second)
	leases := []*Lease{brings}
	for _, ticket := range tickets {
		leases = append(leases, ticket.Expire(b.now).Lease)
	}
	b.sleep(4400 * time.Millisecond) // 0.4 ms a token
	b.run(leases, 60, 600*time.Millisecond)
	b.wantCap(7, "after 20 steps at 60 tokens/s, as where no prompt is long")
}

// Steps that are padded to eight sequences show no slope from 4 to 6: no more than
// three times as many are let in on that.
func TestSlowStartOnAFlatPiece(t *testing.T) {
	b := newBench(t, []string{"x"})
	leases := b.fill("chat", 100)
	b.run(leases, 40, time.Second)
	leases = append(leases, b.fill("chat", 100)...)
	if len(leases) != 6 {
		t.Fatalf("%d streams beside which one level was seen, want 6", len(leases))
	}
	b.run(leases, 40, time.Second)
	b.wantCap(18, "after n = 4 and n = 6 at 40 tokens/s")
}

// Streams that are four times as fast as the floor may be four times as many.
func TestSlowStartGrowsByWhatStreamsGet(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.run(b.fill("chat", 100), 132, time.Second)
	b.wantCap(16, "after a second at n = 4 and 4 · 1.1 times the floor")
}

func TestSlowStartNeedsHalfTheCap(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.run(b.fill("chat", 1), 60, 5*time.Second)
	b.wantCap(4, "after one stream alone")
}

// Below half the cap nothing is learned about the cap.
func TestSlowStartStaysWhileHalfTheCapIsIdle(t *testing.T) {
	b := newBench(t, []string{"x"})
	leases := b.fill("chat", 100)
	b.run(leases, 132, time.Second)
	leases = append(leases, b.fill("chat", 3)...)
	b.run(leases, 132, 5*time.Second)
	b.wantCap(16, "after seven streams under a cap of 16")
}

func TestReach(t *testing.T) {
	at := func(n, tps float64) evidence {
		return evidence{tokens: 100 * tps, seconds: 100, steps: 30, levels: 30 * n}
	}
	for _, c := range []struct {
		name          string
		level, before evidence
		need, want    float64
		load          float64
	}{
		{"too slow", at(4, 29), evidence{}, 30, 0, 0},
		{"just kept", at(4, 31), evidence{}, 30, 4, 0},
		{"beaten", at(4, 40), evidence{}, 30, 6, 0},
		{"four times as fast", at(4, 150), evidence{}, 30, 16, 0},
		{"nothing to keep", at(4, 1), evidence{}, 0, 16, 0},
		// 20 ms at 4, 25 ms at 8: 1.25 ms each, to 30.303 ms.
		{"two levels", at(8, 40), at(4, 50), 30, 8 + (1000.0/33-25)/1.25, 0},
		{"flat", at(8, 50), at(4, 50), 30, 24, 0},
		{"levels too close to tell a slope", at(5, 40), at(4, 50), 30, 7, 0},
		{"close levels that share a speed", at(12, 57), at(9, 62), 30, 12 * 57 / 33.0, 0},
		{"close levels, and prompts take the rest", at(12, 57), at(9, 62), 30, 14, 2e-3},
		// 8 and 4 once more; each stream's prompts add 0.25 ms to a token.
		{"two levels and prompts", at(8, 40), at(4, 50), 30, 8 + (1000.0/33-25-2)/1.5, 0.25e-3},
		{"one level and prompts", at(4, 60), evidence{}, 30, 4 * (1000.0 / 33) / (1000.0/60 + 1), 0.25e-3},
		{"one level, and prompts take the rest", at(4, 35), evidence{}, 30, 6, 0.75e-3},
	} {
		if got := c.level.reach(c.before, c.need, c.load); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: reaches %v streams, want %v", c.name, got, c.want)
		}
	}
}

// Until tokens per chunk is known, a stream of 15 chunks/s may have 60 tokens/s:
// that is no reason to send anybody away, nor to let anybody in beside those who are
// there. When it becomes known, the tokens so far are counted anew, and that is no
// burst of speed.
func TestSlowStartWithRoughCounts(t *testing.T) {
	b := newBench(t, []string{"x"})
	var leases []*Lease
	rough, chunks := true, 0.0
	decode := func(d time.Duration, perSecond, perChunk float64) {
		for end := b.now.Add(d); b.now.Before(end); {
			b.sleep(50 * time.Millisecond)
			chunks += perSecond / 20
			for _, l := range leases {
				l.Progress(b.now, profiles.Count{Tokens: chunks * perChunk, Rough: rough})
			}
			b.tick()
		}
	}
	begin := func() {
		chunks = 0
		leases = b.fill("chat", 100)
		for _, l := range leases {
			l.FirstToken(b.now)
		}
	}
	end := func() {
		for _, l := range leases {
			l.Done(b.now, 0)
		}
	}
	begin()
	decode(time.Second, 66, 1)
	end()
	b.wantCap(8, "after a second at 66 chunks/s or more")
	begin()
	there := len(leases)
	if there < 7 {
		t.Fatalf("%d streams below a cap of 8", there)
	}
	decode(10*time.Second, 15, 1)
	b.wantCap(there, "after 10 s at 15 chunks/s")
	rough = false
	decode(200*time.Millisecond, 5, 4) // four tokens a chunk: 600 more at once, at 20 tokens/s
	b.wantCap(there, "when the count became sure")
	decode(5*time.Second, 5, 4)
	end()
	if got := b.load(0).Cap; got != there {
		t.Errorf("cap %d at 20 tokens/s for sure, with %d streams", got, there)
	}
}

// The first streams of a fresh target, none of which has finished, show a slope
// in chunks as well as in tokens. This engine keeps 30 tokens/s up to n = 26;
// doubling for as long as the floor is beaten would let 32 in, whom nothing
// would send away again.
func TestSlowStartSeesTheSlopeInRoughCounts(t *testing.T) {
	b := newBench(t, []string{"x"})
	tps := func(n int) float64 { return 1 / (0.017 + 0.00062*float64(n)) }
	var leases []*Lease
	chunks := map[*Lease]float64{}
	for range 200 {
		for _, l := range b.fill("chat", 100) {
			l.FirstToken(b.now)
			leases = append(leases, l)
		}
		b.sleep(50 * time.Millisecond)
		for _, l := range leases {
			chunks[l] += tps(len(leases)) / 20
			l.Progress(b.now, profiles.Count{Tokens: chunks[l], Rough: true})
		}
		b.tick()
	}
	if len(leases) < 18 || len(leases) > 26 {
		t.Errorf("%d streams on an unknown backend that carries 26, want 18 to 26", len(leases))
	}
}

func TestSlowStartStopsAtTheFloor(t *testing.T) {
	b := newBench(t, []string{"x"})
	leases := b.fill("chat", 100)
	b.run(leases, 31, 3*time.Second)
	b.wantCap(4, "with streams at 31 tokens/s")
	b.wantReason("chat", ReasonSlowStart)
	b.run(leases, 20, 10*time.Second)
	b.wantReason("chat", ReasonSlowStart, wish(10))
	for _, l := range leases {
		l.Done(b.now, 1)
	}
	b.wantReason("chat", OK)
}

// Batch streams have no floor: they are measured against the one promised.
func TestSlowStartByBatch(t *testing.T) {
	b := newBench(t, []string{"x"}, nightly(1)...)
	leases := b.fill("nightly", 500)
	b.run(leases, 28, time.Second)
	b.wantFill("nightly", 0, "more at 28 tokens/s")
	b.run(leases, 60, 2*time.Second)
	if got := len(b.fill("nightly", 500)); got == 0 {
		t.Error("nothing more at 60 tokens/s")
	}
	b.wantReason("chat", OK)
}

// Nobody asks for a floor here, so nothing is slow about the start.
func TestSlowStartIsForFloors(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	if got := len(b.fill("chat", 300)); got != 300 {
		t.Errorf("%d streams without a floor, want 300", got)
	}
	b = newBench(t, []string{"x"})
	if b.fill("chat", 1); len(b.fill("chat", 100, wish(0))) != 3 {
		t.Error("streams without a floor flood an unknown backend on which one with a floor runs")
	}
}

// An idle unknown backend takes any request: or one of five sequences would
// never be served.
func TestSlowStartTakesOneWideRequest(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.wantFill("chat", 1, "requests of 9 sequences", sequences(9))
}

// Answers that come whole are all that some backends give.
func TestRampByWholeAnswers(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	b.health("x", Down)
	b.health("x", Up)
	leases := b.fill("chat", 100, whole)
	if len(leases) != slowStartCap {
		t.Fatalf("%d on a recovered backend, want %d", len(leases), slowStartCap)
	}
	for _, l := range leases {
		b.sleep(10 * time.Millisecond)
		l.Done(b.now, 200)
	}
	if got := len(b.fill("chat", 100, whole)); got <= slowStartCap {
		t.Errorf("%d after four whole answers of 200 tokens, want more than %d", got, slowStartCap)
	}
}

func TestRecoveredBackendsRampUp(t *testing.T) {
	for _, c := range []struct {
		name string
		path []Health
	}{
		{"down", []Health{Down, Up}},
		{"half open", []Health{Down, Probing, Up}},
		{"drained while down", []Health{Down, Draining, Up}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"})
			curve := carrying(38, 30, 60)
			curve.visited = 38
			b.learn("x", curve)
			for _, h := range c.path {
				b.health("x", h)
			}
			// Whatever the curve says, and whether or not there is a floor.
			leases := b.fill("chat", 100)
			if len(leases) != slowStartCap || b.load(0).Cap != slowStartCap {
				t.Fatalf("%d streams at cap %d", len(leases), b.load(0).Cap)
			}
			b.wantReason("chat", ReasonSlowStart, wish(0))
			for range 5 {
				b.run(leases, curve.TPS(len(leases)), time.Second)
				leases = append(leases, b.fill("chat", 100)...)
			}
			if n := len(leases); n < 38 || n > 40 || b.load(0).Cap != 0 { // one more twice, by what the streams get
				t.Errorf("%d streams at cap %d after 5 s, want 38 to 40 and no cap", n, b.load(0).Cap)
			}
		})
	}
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(38, 30, 60))
	b.health("x", Draining)
	b.health("x", Up)
	b.wantFill("chat", 38, "streams after a drain, which is no outage")
}

// Who survived a blip of the breaker shows that the backend carries so many.
func TestRampAfterABlip(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", carrying(38, 30, 60))
	leases := b.fill("chat", 20)
	b.health("x", Down)
	b.health("x", Up)
	b.wantReason("chat", ReasonSlowStart)
	leases[0].Done(b.now, 1)
	b.wantReason("chat", OK)
}

// A curve that knows little must not refuse more than not knowing it would:
// the bound is 0 beyond twice the visited n, and 15 % lower on the way.
func TestGrowthBeyondTheVisited(t *testing.T) {
	truth := carrying(38, 30, 60)
	b := newBench(t, []string{"x"})
	leases := b.fill("chat", 100)
	for i := range 12 {
		b.run(leases, truth.TPS(len(leases)), time.Second)
		learned := truth
		learned.visited, learned.steps = len(leases), float64(60*(i+1))
		b.learn("x", learned)
		leases = append(leases, b.fill("chat", 100)...)
	}
	if got := len(leases); got < 38 || got > 39 { // one more, by what the streams get
		t.Errorf("%d streams after 12 s of growth, want the 38 that the whole curve allows", got)
	}
}

// What was visited and found too slow is not grown beyond.
func TestNoGrowthWhereSpeedIsTheLimit(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.run(b.fill("chat", 4), 132, time.Second) // cap 16
	slow := carrying(3, 30, 40)
	slow.visited = 4
	b.learn("x", slow)
	b.wantReason("chat", ReasonOwnFloor)
	slow = carrying(5, 30, 40) // its fit says that the 6th is one too many
	slow.visited = 4
	b.learn("x", slow)
	b.wantFill("chat", 1, "more")
}

// Between what was visited and the cap the fit says how far it goes.
func TestGrowthByTheFit(t *testing.T) {
	b := newBench(t, []string{"x"})
	leases := b.fill("chat", 4)
	b.run(leases, 132, time.Second) // cap 16
	b.learn("x", form{b: 1.0 / 240, visited: 4, steps: 100})
	if got := len(leases) + len(b.fill("chat", 100)); got != 7 { // 0.9·240/7 ≥ 30
		t.Errorf("%d streams, want 7", got)
	}
}

// Below the lowest n that was seen the fit continues the bound: with fewer
// streams nobody gets slower.
func TestBelowTheLowestSeen(t *testing.T) {
	b := newBench(t, []string{"x"})
	b.learn("x", lowless{carrying(20, 30, 36)}) // 27.5 at n = 1 with 15 % off
	b.wantReason("chat", OK)
	b.wantReason("chat", ReasonOwnFloor, wish(33))
	b.wantRefusal(b.place("chat", wish(33)), ShedFloor) // nobody knows what a single stream gets
	b.wantRefusal(b.place("chat", wish(200)), ShedUnattainable)
}

// lowless is a curve that saw n = 10 to 20 only.
type lowless struct{ form }

func (l lowless) Support() (lo, hi int) { return 10, 20 }

func (l lowless) Low(n int, extraP float64) float64 {
	low := l.form.Low(n, 0)
	switch {
	case n < 10:
		low *= 0.85
	case n > 10:
		low *= 0.9
	}
	return low / (1 + low*(l.d*extraP))
}

// Targets of one backend share its room.
func TestFreeOfTwoTargetsOnOneBackend(t *testing.T) {
	two := []RouteTarget{{Target: Target{Backend: "x", Model: "m"}}, {Target: Target{Backend: "x", Model: "big"}}}
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, Targets: two})
	b.learn("x", carrying(10, 30, 60))
	big := carrying(12, 30, 60)
	big.visited = 3
	b.mu.Lock()
	b.Router.learn(two[1].Target, big)
	b.mu.Unlock()
	if s := b.Routes(b.now)[0]; s.Free != 10 || s.FreeLowerBound {
		t.Errorf("free %d, lower bound %v; want 10 by the speed of the first", s.Free, s.FreeLowerBound)
	}
}

func TestFree(t *testing.T) {
	b := newBench(t, []string{"x", "y"})
	c := carrying(38, 30, 60)
	b.learn("x", c)
	b.learn("y", carrying(10, 30, 60))
	b.fill("chat", 3, exclude("y"))
	if s := b.Routes(b.now)[0]; s.Free != 45 || s.FreeLowerBound || s.Route.Name != "chat" {
		t.Errorf("free %d, lower bound %v; want 35 + 10 by speed", s.Free, s.FreeLowerBound)
	}
	c.visited = 10
	b.learn("x", c)
	// 0.85·0.9·TPS(n) ≥ 30 up to n = 20 at most: twice what was visited.
	s := b.Routes(b.now)[0]
	n := 10
	for ; n < 20 && c.Low(n+1, 0) >= 30; n++ {
	}
	if s.Free != n-3+10 || !s.FreeLowerBound {
		t.Errorf("free %d, lower bound %v; want %d, limited by evidence", s.Free, s.FreeLowerBound, n-3+10)
	}
	b.health("y", Down)
	if s := b.Routes(b.now)[0]; s.Free != n-3 {
		t.Errorf("free %d with y down, want %d", s.Free, n-3)
	}
}

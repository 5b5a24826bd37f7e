package arena

import (
	"math"
	"testing"
	"time"
)

// A gateway that dies cuts its own streams and no others; the rest take its clients, and
// the engines have room again.
func TestAGatewayDiesWithItsStreams(t *testing.T) {
	p := pool{
		backends: mixed(), routes: []Route{chat("chat", 30, mixed())}, load: steady(10), replicas: 3, length: 2 * time.Minute,
		faults: []Fault{
			{Kind: Die, Gateway: 2},
			{At: 30 * time.Second, Kind: Start, Gateway: 2},
			{At: time.Minute, Kind: Die, Gateway: 1},
			{At: 90 * time.Second, Kind: Start, Gateway: 1},
		},
	}
	r := play(t, p.scenario(Pacer, 1)).route("chat")
	// 10 a second that stay for some seconds each: a third of 50 to 100.
	if r.Failed < 10 || r.Failed > 50 {
		t.Errorf("%d streams were cut, want those of one gateway of three", r.Failed)
	}
	if r.Met+r.Failed+r.Unmeasured != r.Offered {
		t.Errorf("of %d offered %d were met: all but those who were cut have room", r.Offered, r.Met)
	}
}

// A gateway that is cut off alone goes on with what it knows, and floors hold.
func TestAGatewayIsCutOffAlone(t *testing.T) {
	p := pool{
		backends: mixed(), routes: []Route{chat("chat", 30, mixed())}, load: steady(24), replicas: 3, length: 2 * time.Minute,
		faults: []Fault{{At: 30 * time.Second, Kind: CutOff, Gateway: 1}, {At: 90 * time.Second, Kind: Mended, Gateway: 1}},
	}
	r := play(t, p.scenario(Pacer, 1)).route("chat")
	if missed := r.MissedOfServed(); !(missed <= mostMissed) || r.Met == 0 {
		t.Errorf("%.2f %% of %d missed their floor, want %.0f %% at most", 100*missed, r.Met+r.Missed, 100*mostMissed)
	}
}

// Who hangs up is no load any more, and is judged by what came.
func TestClientsHangUp(t *testing.T) {
	length := func(hangsUp int) *RouteResult {
		load := edited(steady(10), func(a *Arrival) { a.OutputTokens, a.HangsUp = 400, hangsUp })
		p := pool{backends: mixed(), routes: []Route{chat("chat", 30, mixed())}, load: load, length: time.Minute}
		return play(t, p.scenario(Pacer, 1)).route("chat")
	}
	whole, part := length(0), length(100)
	if part.Met != part.Offered || part.Offered != whole.Offered {
		t.Errorf("%d of %d were met", part.Met, part.Offered)
	}
	if got := part.Goodput / whole.Goodput; !(got > 0.24 && got < 0.27) {
		t.Errorf("%.2f of the tokens, want a quarter", got)
	}
}

// A route that comes by a reload is served from then on.
func TestARouteJoins(t *testing.T) {
	late := chat("late", 30, mixed())
	late.Joins = 30 * time.Second
	load := edited(steady(10), func(a *Arrival) {
		if a.At > 20*time.Second {
			a.Route = "late"
		}
	})
	p := pool{backends: mixed(), routes: []Route{chat("chat", 30, mixed()), late}, load: load, length: time.Minute}
	r := play(t, p.scenario(Pacer, 1)).route("late")
	if r.FirstPlaced < 9*time.Second || r.FirstPlaced > 11*time.Second || r.Met < 250 {
		t.Errorf("the first is placed %v after the first who asks, and %d were met; want 10 s, and some 300", r.FirstPlaced, r.Met)
	}
}

// Of a lopsided load the first gateway has its share.
func TestALopsidedLoad(t *testing.T) {
	w := &world{s: Scenario{Replicas: 3, Lopsided: 0.9}, random: stream(1, 1)}
	for i := range 3 {
		w.gateways = append(w.gateways, &gateway{world: w, index: i})
	}
	var came [3]int
	for range 1000 {
		came[w.anyGateway().index]++
	}
	if came[0] < 870 || came[0] > 930 || came[1] < 20 || came[2] < 20 {
		t.Errorf("%v of 1000 came to each, want 900, 50 and 50", came)
	}
	w.gateways[0].dead = true
	for range 100 {
		if w.anyGateway().dead {
			t.Fatal("a request came to a gateway that is dead")
		}
	}
}

// What gateways learned of engines outlives an outage of Redis, in which each of them
// can only guess what the others run there.
func TestCurvesOutliveASilence(t *testing.T) {
	skipUnderRace(t)
	var off, curves float64
	for _, replicas := range []int{2, 4} {
		p := pool{
			backends: alike(), routes: []Route{chat("chat", 30, alike())}, load: chatting(1.05*4*perEngine, 5*time.Minute), replicas: replicas, length: 5 * time.Minute,
			faults: []Fault{{At: 2 * time.Minute, Kind: RedisLost}, {At: 280 * time.Second, Kind: RedisBack}},
		}
		for seed := range uint64(3) {
			r := play(t, p.scenario(Pacer, seed+1))
			for _, b := range r.Backends {
				by := math.Log(float64(b.Users) / float64(b.TrueUsers))
				off, curves = off+by*by, curves+1
			}
			if sum := p.promised(r); !(sum.MissedOfServed() <= mostMissed) {
				t.Errorf("%d replicas, seed %d: %.2f %% missed of served", replicas, seed+1, 100*sum.MissedOfServed())
			}
		}
	}
	if off = math.Sqrt(off / curves); !(off <= 0.25) {
		t.Errorf("learned curves say that engines carry %.0f %% more or fewer users than they do, want 25 %% at most", 100*off)
	}
	t.Logf("off by %.0f %%", 100*off)
}

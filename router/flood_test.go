package router

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A tenant that floods a full route, and whose requests are all refused, does not
// have those of another refused at once, nor sent away for long: of both
// together every other place is the other's.
func TestAFloodOfRefusedDoesNotShutOthersOut(t *testing.T) {
	b, leases := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}, OnInfeasible: queue(2 * time.Second)})
	for range 40 {
		l := b.force(Request{Route: "chat", Stream: true}, leases[0].Target()).Lease
		l.Done(b.now, 30)
	}
	b.sleep(2 * forecastStale)
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 3000 {
		if d := b.place("chat", tenant("flood"), func(r *Request) { r.Key = random.Uint64() }); d.Refusal != nil {
			refused++
		}
	}
	if refused < 2900 {
		t.Fatalf("only %d of the flood were refused", refused)
	}
	told := b.place("chat", tenant("b"), noQueue).Refusal.RetryAfter
	if told > 5*time.Second {
		t.Errorf("the first one of another tenant comes back in %v", told)
	}
	b.sleep(48 * time.Second) // now they are expected
	if d := b.place("chat", tenant("b")); d.Ticket == nil {
		t.Errorf("the first one of another tenant may not wait: %+v", d.Refusal)
	}
	b.wantRefusal(b.place("chat", tenant("flood")), ShedFloor)
}

// A clock that is set back an hour leaves nobody waiting for those who were told
// to come back by the old time.
func TestAClockThatIsSetBack(t *testing.T) {
	b, _ := full(t, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	refuse := func(k int) (last time.Duration) {
		for range k {
			last = b.place("chat").Refusal.RetryAfter
		}
		return last
	}
	first := refuse(1)
	refuse(200)
	b.sleep(-time.Hour)
	if got := refuse(1); got > 2*first {
		t.Errorf("told to come back in %v by the new clock, want about %v", got, first)
	}
	refuse(200)
	b.sleep(time.Minute + promiseLate*time.Second)
	if got := refuse(1); got > 2*first {
		t.Errorf("told to come back in %v when all those are past, want about %v", got, first)
	}
}

// A client that never heeds its time fills no book for good: one of its tenant that
// would is told a time, and when it comes, shows how few do.
func TestAHammererDoesNotShutItsTenantOut(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}})
	b.learn("x", carrying(30, 30, 60))
	leases := b.fill("chat", 30)
	for range 40 { // three places a second
		b.force(Request{Route: "chat", Stream: true}, leases[0].Target()).Lease.Done(b.now, 300)
	}
	key := uint64(1 << 32)
	hammer := func(d time.Duration) {
		for end := b.now.Add(d); b.now.Before(end); b.sleep(100 * time.Millisecond) {
			key++
			b.place("chat", tenant("a"), func(r *Request) { r.Key = key })
		}
	}
	faithful := func(key uint64) Decision { return b.place("chat", tenant("a"), func(r *Request) { r.Key = key }) }
	hammer(2 * time.Minute)
	var f *Refusal
	for i := range 20 {
		if f = faithful(uint64(i + 1)).Refusal; f.NoPlace {
			t.Fatalf("number %d is told %v, and that no place comes free: it can never show that it comes", i+1, f.RetryAfter)
		}
	}
	hammer(f.RetryAfter)
	faithful(20)
	if share, _ := b.routes[0].promises.shares("a"); share > 0.1 {
		t.Errorf("%.2f of the tenant's promises are expected to be kept, and one of hundreds was", share)
	}
	if f := faithful(21).Refusal; f.NoPlace || f.RetryAfter > 20*time.Second {
		t.Errorf("told %v, no place %v, behind %d promises that nobody heeds; want some seconds", f.RetryAfter, f.NoPlace, b.routes[0].promises.open)
	}
}

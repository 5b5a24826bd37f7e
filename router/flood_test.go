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
		l := b.Assign(b.now, Request{Route: "chat", Stream: true}, leases[0].Target(), "x").Lease
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

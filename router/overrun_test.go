package router

import (
	"testing"
	"time"
)

// overrun is the curve of a backend that was never alone and always had more
// prompts than it could take: its fit gives a single stream 27 tokens/s.
type overrun struct {
	form
	few float64 // what up to 3 streams were seen to get; 0 = nobody looked
}

func (overrun) TPS(n int) float64 { return 27 / (1 + 0.01*float64(n)) }

func (o overrun) Low(n int, _ float64) float64 { return 0.85 * o.TPS(n) }

func (overrun) Support() (lo, hi int) { return 3, 46 }

func (o overrun) Seen(n int) float64 {
	if n <= 3 {
		return o.few
	}
	return 20
}

// A fit that was drawn while a backend was overrun does not give it up: batch
// does not rush in as if no floor could be kept there, which would overrun it
// for good.
func TestAnOverrunBackendIsNotGivenUp(t *testing.T) {
	night := Route{Name: "nightly", Class: Batch, Reserve: 1, OnInfeasible: queue(time.Minute)}
	chat := Route{Name: "chat", SLO: SLO{MinTPS: 30}, Reserve: 1}
	b := newBench(t, []string{"x"}, chat, night)
	b.learn("x", overrun{})
	b.wantRefusal(b.place("chat"), ShedFloor)
	b.wantFill("nightly", slowStartCap-1, "batch requests on a backend whose single stream nobody has seen")
	b.learn("x", overrun{few: 32}) // less than a tenth over the floor
	b.wantRefusal(b.place("chat"), ShedFloor)

	b = newBench(t, []string{"x"}, chat, night)
	b.learn("x", overrun{few: 80})
	b.wantFill("chat", 3, "streams")
	b.wantReason("nightly", ReasonProtects)
}

// A backend that was seen with a single stream, and too slow, leaves no room for the
// floor: batch has it, up to twice as many as were seen there, and a quarter of a single
// stream's speed.
func TestAFloorOutOfReachLeavesBatchTheEngine(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30}, Reserve: 1},
		Route{Name: "nightly", Class: Batch, Reserve: 1, OnInfeasible: queue(time.Minute)})
	slow := carrying(5, 20, 25)
	slow.visited = 8
	b.learn("x", slow)
	b.wantRefusal(b.place("chat"), ShedUnattainable)
	b.wantFill("nightly", 15, "batch requests")
}

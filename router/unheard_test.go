package router

import (
	"testing"
	"time"
)

// Sixty who come at once come to three replicas that hear of each other five times a
// second. Together they fill the engine, and no more; and one of three that has all to do
// fills it, too, within a second.
func TestWhoComeAtOnceAreCountedAtAllReplicas(t *testing.T) {
	const carries = 32
	for _, c := range []struct {
		name        string
		busy        int // replicas that have anything to do
		least, most int // on the engine in the end
	}{{"all alike", 3, carries - 2, carries + 2}, {"one alone", 1, carries - 2, carries}} {
		t.Run(c.name, func(t *testing.T) {
			shed := chatQueue()
			shed.OnInfeasible = []Step{{Kind: Shed}}
			var replicas [3]*bench
			for i := range replicas {
				replicas[i] = newBench(t, []string{"x"}, shed)
				replicas[i].learn("x", carrying(carries, 30, 60))
			}
			has := [3]int{}
			tell := func() {
				for i, b := range replicas {
					others := 0
					for j, n := range has {
						if j != i {
							others += n
						}
					}
					b.now = b.now.Add(200 * time.Millisecond)
					b.Update(b.now, RemoteLoad{Replicas: 3, ByBackend: map[string]Load{"x": {Decoding: others, Floor: 30}}})
				}
			}
			for range 5 * 60 { // a minute in which one alone has two streams
				tell()
				for i, b := range replicas[:c.busy] {
					if has[i] < 2 {
						b.fill("chat", 1)
						has[i]++
					}
				}
			}
			at := [2]int{}
			for beat := range 6 {
				for i, b := range replicas[:c.busy] {
					for range 20 {
						if d := b.place("chat"); d.Lease != nil {
							d.Lease.FirstToken(b.now)
							has[i]++
						}
					}
				}
				if beat == 0 {
					at[0] = has[0] + has[1] + has[2]
				}
				tell()
			}
			at[1] = has[0] + has[1] + has[2]
			if at[0] > c.most || at[1] < c.least || at[1] > c.most {
				t.Errorf("%d at once and %d in the end, want at most %d, and from %d on", at[0], at[1], c.most, c.least)
			}
		})
	}
}

// A decision shows for how many it left room beside those that are known, and its speed
// and bound are beside all of them.
func TestADecisionShowsWhoIsThoughtToCome(t *testing.T) {
	b := newBench(t, []string{"x"})
	truth := form{a: 1.0 / 80, b: 1.0 / 4000}
	b.learn("x", truth)
	for range 2 {
		b.now = b.now.Add(200 * time.Millisecond)
		b.Update(b.now, RemoteLoad{Replicas: 3, ByBackend: map[string]Load{"x": {Decoding: 2, Floor: 30}}})
	}
	b.fill("chat", 4) // each of the two others is taken to have had as many
	c := b.seen(Request{Route: "chat", Stream: true})[0]
	if c.M != 6 || c.Unheard != 8 {
		t.Fatalf("m = %d and %d unheard, want 6 and 8", c.M, c.Unheard)
	}
	if want := truth.TPS(c.M + c.Unheard + 1); c.TPS != want || c.Low > c.TPS {
		t.Errorf("%.2f tokens/s and a bound of %.2f, want %.2f beside %d", c.TPS, c.Low, want, c.M+c.Unheard)
	}
}

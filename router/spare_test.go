package router

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

func spare(r *Request) { r.Spare = true }
func without(name string) func(*Request) {
	return func(r *Request) { r.Exclude = append(r.Exclude, name) }
}

// A second place beside the first is to be had only where nobody loses by it.
func TestASparePlace(t *testing.T) {
	any := []Step{{Kind: Queue, Wait: time.Second}, {Kind: Spill, Route: "small"}, {Kind: BestEffort}}
	routes := []Route{
		{Name: "chat", SLO: SLO{MinTPS: 30, MaxTTFT: time.Second}, Targets: targets("x", "y"), OnInfeasible: any, MaxWaiting: 10},
		{Name: "small", Targets: targets("z")},
	}
	for _, c := range []struct {
		name    string
		prepare func(*bench)
		edit    func(*Request)
		want    bool
	}{
		{"room", func(*bench) {}, nil, true},
		{"too slow", func(b *bench) { b.learn("y", carrying(2, 10, 20)) }, nil, false},
		{"down", func(b *bench) { b.health("y", Down) }, nil, false},
		{"being tried out", func(b *bench) { b.health("y", Probing) }, nil, false},
		{"too late for its first token", func(*bench) {}, func(r *Request) { r.Arrived = start.Add(-2 * time.Second) }, false},
		{"somebody waits in line", func(b *bench) {
			b.health("y", Down)
			b.fill("chat", 3)
			b.stand("chat")
			b.mu.Lock()
			b.byName["y"].health = Up // nobody has told the line yet
			b.mu.Unlock()
		}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x", "y", "z"}, routes...)
			b.learn("x", carrying(3, 30, 40))
			b.learn("y", carrying(3, 30, 40))
			c.prepare(b)
			edits := []func(*Request){spare, without("x")}
			if c.edit != nil {
				edits = append(edits, c.edit)
			}
			before, records, debt := b.Loads(), len(b.Decisions(1000)), b.routeOf["chat"].promises.open
			d := b.place("chat", edits...)
			if d.Ticket != nil || d.Spilled != "" || d.Policy == "best_effort" {
				t.Fatalf("got %+v, want a place of the route's own or none", d)
			}
			if got := d.Lease != nil; got != c.want {
				t.Errorf("placed: %v, want %v", got, c.want)
			}
			if d.Lease != nil {
				d.Lease.Done(b.now, 0)
			} else if d.Refusal == nil || len(b.Decisions(1000)) != records || b.routeOf["chat"].promises.open != debt {
				t.Errorf("got %+v, want a refusal that is neither told nor owed for: nobody was turned away", d)
			}
			for i, l := range b.Loads() {
				if l.M != before[i].M {
					t.Errorf("%s: m = %d, want %d as before", l.Backend, l.M, before[i].M)
				}
			}
		})
	}
}

// What a first token was expected to take is known from the lease, once its
// target has shown some.
func TestTheTTFTOfALease(t *testing.T) {
	b := newBench(t, []string{"x"})
	c := carrying(20, 30, 60)
	c.d = 1e-4 // a guess at the prefill is no prediction of the first token
	b.learn("x", c)
	prompt := func(r *Request) { r.PromptTokens = 1000 }
	if got := b.place("chat", prompt).Lease.TTFT(); got != 0 {
		t.Errorf("%v before a first token was seen, want 0", got)
	}
	c.first = profiles.TTFT{Base: 0.1, PerToken: 1e-4, Uncached: 1}
	b.learn("x", c)
	// 0.1 s, its own 1,000 tokens and the 1,000 of the one that waits before it.
	if got, want := b.place("chat", prompt).Lease.TTFT(), 300*time.Millisecond; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

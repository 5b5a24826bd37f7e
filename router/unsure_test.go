package router

import (
	"math"
	"testing"
	"time"
)

// A first token says what a prompt token costs only where the prompt was computed. One
// that comes after 50 ms, of 16,000 tokens of which nobody is sure that they are cached,
// does not make prompts cheap: the next one of 16,000 is not let in beside who has a lead
// of a second.
func TestACachedPromptDoesNotMakePromptsCheap(t *testing.T) {
	maybe := func(r *Request) { r.Warm = []Warmth{{Target: Target{Backend: "x", Model: "m"}, Likely: 15_900}} }
	asks := func(r *Request) { r.Caches = &caches{} }
	for _, c := range []struct {
		name     string
		replicas int
		edit     func(*Request)
		want     float64 // µs a token
	}{
		{"computed for sure", 1, asks, 3.27}, // (50 ms·16,000 + 0.4 ms·300²)/(16,000² + 300²), the start included
		{"likely to be cached", 1, maybe, 400},
		{"of another replica, perhaps", 2, asks, 300}, // as one of the start's weight at half of it
		{"of a client that no cache serves", 2, nil, 3.27},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
			b.Update(b.now, RemoteLoad{Replicas: c.replicas})
			edit := []func(*Request){prompt(16_000)}
			if c.edit != nil {
				edit = append(edit, c.edit)
			}
			l := b.place("chat", edit...).Lease
			b.sleep(50 * time.Millisecond)
			l.FirstToken(b.now)
			if got := 1e6 * l.group.price.first; math.Abs(got-c.want) > 0.01*c.want {
				t.Errorf("a prompt token is taken for %.2f µs, want %.2f", got, c.want)
			}
			want := ReasonProtects
			if c.want < 100 {
				want = OK
			}
			b.wantReason("chat", want, prompt(16_000))
		})
	}
}

// Nor does one whose first token comes with that of a prompt that was computed.
func TestACachedPromptBehindAnotherDoesNotMakePromptsCheap(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat"})
	first := b.place("chat", prompt(16_000)).Lease
	b.sleep(3 * time.Second)
	behind := b.place("chat", prompt(16_000), func(r *Request) {
		r.Warm = []Warmth{{Target: Target{Backend: "x", Model: "m"}, Likely: 15_900}}
	}).Lease
	b.sleep(time.Second)
	first.FirstToken(b.now)
	b.sleep(50 * time.Millisecond)
	behind.FirstToken(b.now)
	if got := 1e6 * first.group.price.first; math.Abs(got-250) > 1 {
		t.Errorf("a prompt token is taken for %.0f µs, want 250", got)
	}
}

// An engine that prefills faster than was thought shows it by many first tokens, whoever
// may have sent what they begin with.
func TestManyFirstTokensThatComeSoonAreBelieved(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
	b.Update(b.now, RemoteLoad{Replicas: 2})
	var g *group
	before := math.Inf(1)
	for range 40 {
		l := b.place("chat", prompt(2000), func(r *Request) { r.Caches = &caches{} }).Lease
		b.sleep(40 * time.Millisecond) // 20 µs a token
		l.FirstToken(b.now)
		g = l.group
		if g.price.first > before {
			t.Fatalf("it went up from %.0f to %.0f µs", 1e6*before, 1e6*g.price.first)
		}
		before = g.price.first
		l.Done(b.now, 10)
	}
	if got := 1e6 * g.price.first; got > 80 || got < 20 {
		t.Errorf("after 40 first tokens at 20 µs a token it is taken for %.0f µs, want 20 to 80", got)
	}
}

// Short prompts that are prefilled together have their first tokens in one step. That says
// nothing of a cache, and prompts do not get cheap by it.
func TestPromptsPrefilledTogetherAreNotCheap(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
		b.learn("x", carrying(64, 30, 60))
		b.Update(b.now, RemoteLoad{Replicas: replicas})
		var g *group
		for range 300 { // a minute: four at once, of 60 tokens that take 0.4 ms each
			var leases []*Lease
			for range 4 {
				leases = append(leases, b.place("chat", prompt(60), func(r *Request) { r.Caches = &caches{} }).Lease)
			}
			b.sleep(96 * time.Millisecond)
			for _, l := range leases {
				l.FirstToken(b.now)
			}
			b.sleep(104 * time.Millisecond)
			for _, l := range leases {
				g = l.group
				l.Done(b.now, 10)
			}
		}
		if cost := g.price.first; cost < 250e-6 || cost > 550e-6 {
			t.Errorf("%d replicas: a prompt token is taken for %.0f µs, want about 400", replicas, 1e6*cost)
		}
	}
}

// What other replicas saw of a prompt's cost counts as one's own: who sends only what is
// cached would take prompts for free, and let one of four seconds in beside who has a lead of
// one. It stays for some minutes when they say nothing any more, and then ends.
func TestWhatAPromptCostsIsOfAllReplicas(t *testing.T) {
	b := newBench(t, []string{"x"}, Route{Name: "chat", SLO: SLO{MinTPS: 30, Grace: time.Second}})
	tell := func(l Load) { b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: map[string]Load{"x": l}}) }
	const seen = 16_000 * 16_000
	tell(Load{Decoding: 1, Prefills: Prefills{Time: 250e-6 * seen, Weight: seen}})
	g := b.backends[0].groups[0]
	for range 20 { // each of 200 tokens, in no time
		l := b.place("chat", prompt(200)).Lease
		l.FirstToken(b.now)
		l.Done(b.now, 100)
		b.sleep(time.Second)
	}
	if got := 1e6 * g.price.first; math.Abs(got-250) > 5 {
		t.Errorf("a prompt token is taken for %.0f µs, want the 250 that another replica saw", got)
	}
	tell(Load{})
	if got := 1e6 * g.price.first; math.Abs(got-250) > 5 {
		t.Errorf("a prompt token is taken for %.0f µs once nothing is told, want 250", got)
	}
	b.sleep(toldPriceLife - 25*time.Second)
	tell(Load{})
	if got := 1e6 * g.price.first; math.Abs(got-250) > 5 {
		t.Errorf("a prompt token is taken for %.0f µs after some minutes, want 250", got)
	}
	b.sleep(10 * time.Second)
	b.Update(b.now, RemoteLoad{Replicas: 1})
	if got := 1e6 * g.price.first; got > 240 {
		t.Errorf("a prompt token is taken for %.0f µs when all who said so are gone, want what this replica saw", got)
	}
	b.place("chat", prompt(200))
	own := b.Own(b.now)["x"].Prefills
	if own.Weight <= 0 || own.Weight > seen/100 {
		t.Errorf("this replica tells %+v, want what it saw itself", own)
	}
}

package router

import (
	"testing"
	"time"

	"github.com/pacer-dev/pacer/profiles"
)

// bidders are two replicas in front of x, where a prompt token takes 200 µs, at a floor of
// 30 with a grace of a second.
func bidders(t *testing.T, steps ...Step) (list [2]*bench) {
	rt := chatQueue()
	rt.SLO.Grace = time.Second
	if steps != nil {
		rt.OnInfeasible = steps
	}
	for i := range list {
		b := newBench(t, []string{"x"}, rt)
		curve := carrying(20, 30, 60)
		curve.d, curve.answer = 200e-6, 1e6
		b.learn("x", curve)
		list[i] = b
	}
	list[0].tell(list[1])
	list[1].tell(list[0])
	return list
}

// tell has b tell what it runs, and hear what the other one does, as one step.
func (b *bench) tell(other *bench) []Grant {
	b.Own(b.now)
	return b.Update(b.now, RemoteLoad{Replicas: 2, ByBackend: other.told()})
}

// told is what b runs, as of its last telling.
func (b *bench) told() map[string]Load {
	kept := b.peers.tellings
	defer func() { b.peers.tellings = kept }()
	return b.Own(b.now)
}

// Two replicas have a prompt each that takes two seconds, and see an idle engine. One of
// them goes there, and the other one waits until its stream can bear it.
func TestTwoDearPromptsDoNotMeetOnAnIdleEngine(t *testing.T) {
	list := bidders(t)
	a, b := list[0], list[1]
	const dear = 10_000
	first, second := a.place("chat", prompt(dear)), b.place("chat", prompt(dear))
	if first.Ticket == nil || second.Ticket == nil {
		t.Fatalf("placed before the other one has heard of it: %+v, %+v", first, second)
	}
	if told := a.told()["x"]; told.Waiting != 1 || told.PromptTokens != dear || told.Floor != 30 || told.Decoding != 0 {
		t.Fatalf("it tells %+v, want one that waits with its prompt and its floor", told)
	}
	grants := a.tell(bidders(t)[1]) // b has not told yet
	if len(grants) != 1 || grants[0].Decision.Lease == nil {
		t.Fatalf("told that it bids, and has no place: %+v", grants)
	}
	if grants := b.tell(a); len(grants) != 0 {
		t.Fatalf("goes behind the other one: %+v", grants)
	}
	if told := b.told()["x"]; told.Waiting != 0 || told.PromptTokens != 0 {
		t.Errorf("it tells %+v of a place that it does not bid for any more", told)
	}

	l := grants[0].Decision.Lease
	a.sleep(2 * time.Second)
	b.sleep(2 * time.Second)
	l.FirstToken(a.now)
	a.sleep(time.Second)
	b.sleep(time.Second)
	l.Progress(a.now, profiles.Count{Tokens: 120}) // a lead of 4 s
	if grants := b.tell(a); len(grants) != 0 {
		t.Fatalf("goes before it has bid again: %+v", grants)
	}
	if grants := b.tell(a); len(grants) != 1 || grants[0].Decision.Lease == nil {
		t.Fatalf("there is room for it, and it gets no place: %+v", grants)
	}
}

// A bid is for what another replica may suffer from, and for as long as it may hear of it.
func TestWhoNeedNotBidGoesAtOnce(t *testing.T) {
	const dear = 10_000
	for _, c := range []struct {
		name   string
		steps  []Step
		change func(*bench)
		opt    func(*Request)
		waits  bool
	}{
		{"dear", nil, nil, prompt(dear), true},
		{"within the grace", nil, nil, prompt(3_100), false}, // 3,100·200 µs·1.2·1.3 = 0.97 s
		{"beyond it", nil, nil, prompt(3_300), true},
		{"alone", nil, func(b *bench) { b.Update(b.now, RemoteLoad{Replicas: 1}) }, prompt(dear), false},
		{"nobody tells", nil, func(b *bench) { b.Update(b.now, RemoteLoad{Replicas: 2, Lost: true}) }, prompt(dear), false},
		{"may not wait", nil, nil, func(r *Request) { r.PromptTokens, r.NoQueue = dear, true }, false},
		{"a second place", nil, nil, func(r *Request) { r.PromptTokens, r.Spare = dear, true }, false},
		{"no line", []Step{{Kind: Shed}}, nil, prompt(dear), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bidders(t, c.steps...)[0]
			if c.change != nil {
				c.change(b)
			}
			req := Request{Route: "chat", Stream: true, Arrived: b.now}
			c.opt(&req)
			if seen, _ := b.Preview(b.now, req); seen.Outcome != OutcomePlaced {
				t.Errorf("shown as %v, want a place", seen.Outcome)
			}
			before := b.News()
			d := b.place("chat", c.opt)
			if waits := d.Ticket != nil; waits != c.waits || !waits && d.Lease == nil {
				t.Fatalf("got %+v, want to wait: %v", d, c.waits)
			}
			if news := b.News() > before; c.waits && !news {
				t.Error("it bids, and the others hear of it late")
			}
		})
	}
}

// A bid ends with its request: it goes, and nothing of it is told or counted any more.
func TestABidEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(b, other *bench, t *Ticket) *Lease
	}{
		{"its client is gone", func(b, _ *bench, t *Ticket) *Lease { t.Cancel(b.now); return nil }},
		{"nobody was heard of", func(b, _ *bench, t *Ticket) *Lease {
			b.now = t.Deadline()
			return t.Expire(b.now).Lease
		}},
		{"redis is lost", func(b, _ *bench, t *Ticket) *Lease {
			return b.Update(b.now, RemoteLoad{Replicas: 2, Lost: true})[0].Decision.Lease
		}},
		{"it was told", func(b, other *bench, _ *Ticket) *Lease { return b.tell(other)[0].Decision.Lease }},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := bidders(t)
			b := list[0]
			l := c.end(b, list[1], b.place("chat", prompt(10_000)).Ticket)
			if c.name != "its client is gone" && l == nil {
				t.Fatal("it has no place in the end")
			}
			if l != nil {
				l.Done(b.now, 0)
			}
			m := b.model(Target{Backend: "x", Model: "m"})
			if own := &m.group.own; own.bids != 0 || own.bidPrompt != 0 || len(m.floors.bidding) != 0 {
				t.Errorf("%d sequences with %d tokens and floors %v still bid", own.bids, own.bidPrompt, m.floors.bidding)
			}
			if told := b.told()["x"]; told.Waiting != 0 || told.PromptTokens != 0 {
				t.Errorf("it tells %+v", told)
			}
		})
	}
}

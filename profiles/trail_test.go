package profiles

import (
	"math"
	"testing"
	"time"
)

// prefillFirst is an engine that stops all streams for the whole of a prompt, as
// llama.cpp does: its step takes step(n), and each prompt token each beside it.
// users wait for each other's prompts and begin again at once.
type prefillFirst struct {
	step  func(n int) time.Duration
	each  time.Duration
	users int
	ends  int // answers that end at once, whose prompts then are one batch
}

// run relays answers of 20 to 60 tokens to prompts of 50 to 250 for so long.
func (e prefillFirst) run(b *Book, length time.Duration) {
	type user struct {
		s    *Stream
		left int
	}
	occ, now := NewOccupancy(start), start
	b.Fold(start)
	var users []*user
	begin := func(count int, prompts ...int) {
		sent := now
		for _, p := range prompts {
			now = now.Add(time.Duration(p) * e.each)
		}
		now = now.Add(e.step(max(len(users), 1)))
		for _, u := range users { // one token for each, in the step that held the prompts
			u.s.Read(now, 1)
			u.left--
		}
		for i := range count {
			s := b.Open(target, Open{Sent: sent, Occupancy: occ, PromptTokens: prompts[i]})
			occ.Set(now.Add(time.Duration(i+1)*50*time.Microsecond), len(users)+1)
			s.Read(now.Add(time.Duration(i+1)*50*time.Microsecond), 1)
			users = append(users, &user{s, 20 + (7*prompts[i])%41})
		}
	}
	turn, folded := 0, start
	for now.Sub(start) < length {
		prompts := make([]int, 0, e.ends)
		for len(prompts) < min(e.ends, e.users-len(users)) {
			turn++
			prompts = append(prompts, 50+(turn*83)%201)
		}
		if len(prompts) == e.ends {
			begin(len(prompts), prompts...)
			continue
		}
		now = now.Add(e.step(len(users)))
		var rest []*user
		for i, u := range users {
			at := now.Add(time.Duration(i) * 20 * time.Microsecond)
			u.s.Read(at, 1)
			if u.left--; u.left > 0 {
				rest = append(rest, u)
				continue
			}
			occ.Set(at, occ.n()-1)
			u.s.Close(at, true)
		}
		users = rest
		if now.Sub(folded) >= time.Second {
			folded = now
			b.Fold(now)
		}
	}
	b.Fold(now.Add(2 * windowLength))
}

func (o *Occupancy) n() int {
	_, n := o.Load()
	return n
}

// The price of a prompt token is found whatever the shape of the curve, where no
// form of the fit would do, and though n = 7 is never without a prompt and n = 8
// hardly ever beside one.
func TestPriceOfAPromptToken(t *testing.T) {
	for name, step := range map[string]func(n int) time.Duration{
		"less and less": func(n int) time.Duration { return time.Duration(24-20/n) * ms },
		"a cliff":       func(n int) time.Duration { return time.Duration(10+15*(n/5)) * ms },
	} {
		for _, ends := range []int{1, 3} {
			for _, each := range []time.Duration{30 * time.Microsecond, 700 * time.Microsecond} {
				b := NewBook(Options{})
				calibrate(b)
				prefillFirst{step: step, each: each, users: 8, ends: ends}.run(b, 3*time.Minute)
				p := b.profile(target)
				d, info := p.known.price(b.Curve(target).fit)
				if want := each.Seconds(); !(math.Abs(d-want) < 0.05*want+6e-6) || !(info > 0) {
					t.Errorf("%s, %d at once: a prompt token is said to take %.1f µs (weight %.3g), want %.1f", name, ends, 1e6*d, info, 1e6*want)
				}
			}
		}
	}
}

// calibrate teaches that a chunk is a token.
func calibrate(b *Book) {
	p := b.profile(target)
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	for range 4 {
		p.calibrate(50, 50)
	}
}

// Beside sequences that another replica relays nothing is taken for quiet: nobody
// here knows of their prompts.
func TestOthersDisturb(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	for _, others := range []int{0, 1} {
		b.occ.Set(start, 1+others)
		now := start
		s := b.open(Open{PromptTokens: 100})
		for range 500 {
			now = now.Add(20 * ms)
			s.Read(now, 1)
		}
		s.Close(now, true)
		b.book.Fold(now.Add(time.Minute))
		quiet := b.book.profile(target).known.bins[others].Tq
		if (quiet > 5) != (others == 0) {
			t.Errorf("beside %d others %.1f s of 10 are quiet", others, quiet)
		}
	}
}

// A trail is bounded, and a clock that is set back does not fill it for good.
func TestATrailIsBounded(t *testing.T) {
	p := &profile{group: &group{}}
	g := p.group
	s := &Stream{profile: p, unit: unit{each: 1}, held: held{slots: make([]slot, 0, notedSlots), noted: &noted{of: p}}}
	for i := range 2 * maxSlots {
		at := time.Hour + time.Duration(i)*time.Microsecond
		s.note(at, at+time.Microsecond, 1, 1, time.Microsecond, 1)
		s.tell(g, true, 1)
		g.trail.prefilled(span{from: at, to: at, tokens: 1}, 0)
	}
	if len(g.trail.slots) != maxSlots || cap(s.held.slots) != notedSlots {
		t.Errorf("%d slots wait, %d at the stream; want %d and %d", len(g.trail.slots), cap(s.held.slots), maxSlots, notedSlots)
	}
	g.trail.judge(time.Minute, true)
	if len(g.trail.slots) != 0 {
		t.Errorf("%d slots of an hour that is not yet wait", len(g.trail.slots))
	}
}

// Where more prefills end within seconds than are remembered, nobody knows which of
// them lay beside a slot: it is not quiet.
func TestForgottenPrefillsAreNotQuiet(t *testing.T) {
	p := &profile{group: &group{}}
	g := p.group
	const at, end = time.Minute, time.Minute + spanReach + time.Second
	g.trail.slots = []slot{{by: &noted{of: p, each: 1}, from: at, to: at + 100*ms, n: 1, seconds: 0.1, k: 5}}
	for first := at; first < end; first += 20 * ms {
		g.trail.prefilled(span{from: first - 15*ms, to: first, tokens: 500}, 0)
	}
	if g.trail.prefills <= maxSpans {
		t.Fatalf("%d prefills, want more than are remembered", g.trail.prefills)
	}
	g.trail.judge(end, true)
	if quiet := p.fold.bins[0].Tq; quiet > 0 {
		t.Errorf("%.0f ms beside %d prefills are taken for quiet", 1e3*quiet, g.trail.prefills)
	}
}

// beside8s relays a stream of 20 ms a step for 20 s, beside whose steps from 8 to 16
// s on, which take 60 ms, a prompt of 40,000 tokens is prefilled. tell says what
// the book hears of that request.
func beside8s(t *testing.T, tell func(b *bench, sent time.Duration) *Stream) (quiet, d float64) {
	b := newBench(t).calibrated(1, 1)
	b.occ.Set(start, 1)
	s, folded := b.open(Open{PromptTokens: 10}), time.Duration(0)
	var long *Stream
	for at := time.Duration(0); at < 40*time.Second; {
		step := 20 * ms
		if at >= 8*time.Second && at < 16*time.Second {
			step = 60 * ms
		}
		at += step
		if long == nil && at >= 8*time.Second && at < 9*time.Second {
			long = tell(b, 8*time.Second)
		}
		if long != nil && at >= 16*time.Second {
			if long.shown.arrivals == 0 {
				long.Read(start.Add(at), 1)
				long.Close(start.Add(at), true)
			}
		}
		s.Read(start.Add(at), 1)
		if at-folded >= time.Second {
			folded = at
			b.book.Fold(start.Add(at))
		}
	}
	s.Close(start.Add(40*time.Second), true)
	b.book.Fold(start.Add(3 * time.Minute))
	known := &b.book.profile(target).known
	d, _ = known.price(b.book.Curve(target).fit)
	return known.bins[0].Tq / known.bins[0].Kq, d
}

// Of a prefill of eight seconds nothing passes for quiet time, whether the stream is
// opened when the request is sent or when its first bytes come.
func TestALongPrefillIsNotQuiet(t *testing.T) {
	opened := func(b *bench, sent time.Duration) *Stream {
		return b.open(Open{Sent: start.Add(sent), PromptTokens: 40_000})
	}
	marked := func(b *bench, sent time.Duration) *Stream {
		w := b.book.Send(target, start.Add(sent), 40_000)
		return b.open(Open{Sent: start.Add(sent), PromptTokens: 40_000, Waiting: w})
	}
	for name, tell := range map[string]func(*bench, time.Duration) *Stream{"opened": opened, "marked": marked} {
		quiet, d := beside8s(t, tell)
		if math.Abs(quiet/0.020-1) > 0.002 {
			t.Errorf("%s: a quiet step takes %.2f ms, want 20", name, 1e3*quiet)
		}
		if truth := 8 * (1 - 20.0/60) / 40_000; math.Abs(d/truth-1) > 0.05 {
			t.Errorf("%s: a prompt token takes %.1f µs, want %.1f", name, 1e6*d, 1e6*truth)
		}
	}
}

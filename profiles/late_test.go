package profiles

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// comings are sequences that begin and end at random, as the changes of their number.
func comings(r *rand.Rand, until time.Duration) (list []Move) {
	n := 0
	for at := time.Duration(0); ; {
		at += time.Duration(1+r.IntN(150)) * ms
		if at >= until {
			return list
		}
		by := 1
		if n > 0 && r.IntN(2) == 0 {
			by = -1
		}
		n += by
		list = append(list, Move{At: start.Add(at), By: by})
	}
}

// running is how many of them there are at now.
func running(list []Move, now time.Time) (n int) {
	for _, m := range list {
		if !m.At.After(now) {
			n += m.By
		}
	}
	return n
}

// telling is what two replicas tell a third: each writes in its own time, and is read later.
type telling struct {
	random *rand.Rand
	own    []Move // of the third
	far    [2][]Move
	wrote  [2]time.Time // when each wrote last
	others int          // as read last
	next   int          // of own
}

// pass lets o see what the third sees at now. It reports whether it has read what the
// others wrote.
func (l *telling) pass(o *Occupancy, now time.Time) bool {
	for ; l.next < len(l.own) && !l.own[l.next].At.After(now); l.next++ {
		at := l.own[l.next].At
		o.SetShared(at, running(l.own, at)+l.others, l.others)
	}
	for i := range l.wrote {
		if l.random.IntN(20) == 0 {
			l.wrote[i] = now
		}
	}
	if l.random.IntN(20) > 0 {
		return false
	}
	l.others = 0
	var moves []Move
	for i, list := range l.far {
		l.others += running(list, l.wrote[i])
		for _, m := range list {
			if !m.At.After(l.wrote[i]) {
				moves = append(moves, m)
			}
		}
	}
	l.random.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
	o.SetShared(now, running(l.own, now)+l.others, l.others)
	o.Told(slices.MinFunc(l.wrote[:], time.Time.Compare), l.others, moves, nil)
	return true
}

// What others told of an engine is in the record as if it had been known at once.
func TestTheRecordIsAsIfOthersHadBeenHeardAtOnce(t *testing.T) {
	const end = 20 * time.Second
	checked := 0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := telling{random: r, own: comings(r, end), far: [2][]Move{comings(r, end), comings(r, end)}, wrote: [2]time.Time{start, start}}
		was, o := NewOccupancy(start), NewOccupancy(start)
		all := slices.Concat(l.own, l.far[0], l.far[1])
		slices.SortStableFunc(all, func(a, b Move) int { return a.At.Compare(b.At) })
		for _, m := range all {
			was.Set(m.At, running(all, m.At))
		}
		from := time.Duration(-1) // nothing is set right of what was before the first telling
		for now := start; now.Before(start.Add(end)); now = now.Add(10 * ms) {
			if l.pass(o, now) && from < 0 {
				from, _ = o.known()
			}
		}
		for until, _ := o.known(); from+10*ms <= until; from += 10 * ms {
			got, want := area(o, from), area(was, from)
			if checked++; got != want {
				t.Fatalf("seed %d, 10 ms from %v: n is %v, want %v", seed, from, got, want)
			}
		}
	}
	if checked < 50*1000 {
		t.Errorf("%d pieces were checked", checked)
	}
}

// area is the sequences of 10 ms, as n times as long.
func area(o *Occupancy, from time.Duration) (sum time.Duration) {
	for _, p := range pieces(o, from, from+10*ms) {
		sum += time.Duration(p.N) * p.D
	}
	return sum
}

// The same streams, once beside others who are heard late and once beside such as are
// known at once: what is learned by n is the same. Half of the streams have ended before
// the others tell.
func TestWhatIsHeardLateIsBookedWhereItWas(t *testing.T) {
	late, known := newBench(t).calibrated(1000, 1000), newBench(t).calibrated(1000, 1000)
	late.occ.Told(start, 0, nil, nil)
	var streams [2]*Stream
	others := 0                   // as they are
	told, moves := 0, []Move(nil) // as they told last
	for i := range 2000 {         // a token each 20 ms
		now := start.Add(time.Second + time.Duration(i)*20*ms)
		own := 0
		if i%40 < 30 {
			own = 1
		}
		if i%7 == 0 {
			by := [...]int{1, 2, -1, -2}[i/7%4]
			others += by
			moves = append(moves, Move{At: now, By: by})
		}
		known.occ.SetShared(now, own+others, 0)
		late.occ.SetShared(now, own+told, told)
		if i%10 == 9 { // read 20 ms after it was written
			last := now.Add(-20 * ms)
			told = running(moves, last)
			var heard []Move
			for _, m := range moves[max(0, len(moves)-10):] {
				if !m.At.After(last) {
					heard = append(heard, m)
				}
			}
			late.occ.SetShared(now, own+told, told)
			late.occ.Told(last, told, heard, nil)
		}
		for j, b := range []*bench{late, known} {
			switch {
			case i%40 == 0:
				streams[j] = b.open(Open{Sent: now})
				streams[j].Read(now, 1)
			case i%40 < 29:
				streams[j].Read(now, 1)
			case i%40 == 29:
				streams[j].Read(now, 1)
				streams[j].Close(now, true)
			}
			if i%50 == 0 {
				b.book.Fold(now)
			}
		}
	}
	end := start.Add(time.Minute)
	late.book.Fold(end)
	known.book.Fold(end)
	got, want := late.bins(), known.bins()
	levels := 0
	for i := range want {
		if want[i].S > 1 {
			levels++
		}
		within(t, "stream-seconds", got[i].S, want[i].S, 1e-9)
		within(t, "tokens", got[i].Y, want[i].Y, 1e-9)
	}
	if levels < 3 {
		t.Errorf("%d levels were visited", levels)
	}
}

// Nobody is waited for longer than a second, and nobody who tells no longer.
func TestWhoTellsNoLongerIsNotWaitedFor(t *testing.T) {
	b := newBench(t).calibrated(1000, 1000)
	b.occ.SetShared(start, 3, 2)
	b.occ.Told(start, 2, nil, nil)
	s := b.open(Open{})
	booked := func(at time.Duration) float64 {
		s.Read(start.Add(at), 1)
		s.flush()
		var all float64
		for i := range s.held.lives.list {
			all += s.held.lives.list[i].life.S + s.held.lives.list[i].pending.S
		}
		return all
	}
	for at := time.Duration(0); at < 900*ms; at += 100 * ms {
		if got := booked(at); got != 0 {
			t.Fatalf("%v s are booked at %v before the others have told", got, at)
		}
	}
	for at := 900 * ms; at <= 5*time.Second; at += 100 * ms {
		if got, least := booked(at), (at - longestLate - 100*ms).Seconds(); got < least {
			t.Fatalf("%v s are booked at %v, want %v", got, at, least)
		}
	}
	b.occ.Untold()
	if got := booked(5100 * ms); !near(got, 5.1) {
		t.Errorf("%v s are booked, want all 5.1", got)
	}
}

// A group keeps what ended streams have left, up to a bound, and books it in time.
func TestWhatEndedStreamsLeaveIsBounded(t *testing.T) {
	b := newBench(t).calibrated(1000, 1000)
	b.occ.SetShared(start, 3, 2)
	b.occ.Told(start, 2, nil, nil)
	for range maxRemains + 10 {
		s := b.open(Open{})
		for at := time.Duration(0); at <= 200*ms; at += 20 * ms {
			s.Read(start.Add(at), 1)
		}
		s.Close(start.Add(200*ms), true)
	}
	if g := b.book.profile(target).group; len(g.remains) != maxRemains {
		t.Errorf("%d have left something, want %d", len(g.remains), maxRemains)
	}
	within(t, "stream-seconds", b.bins()[BinOf(3)].S, 0.2*(maxRemains+10), 1e-9)
	if g := b.book.profile(target).group; len(g.remains) > 0 {
		t.Errorf("%d are kept for an hour", len(g.remains))
	}
}

// Of a stream of this replica and one of another that decode together, each books half of
// all prompts, whoever relayed them; its own alone where the other does not tell.
func TestPromptsOfOthersAreShared(t *testing.T) {
	for _, test := range []struct {
		name  string
		tells bool
		every int // tokens
		want  float64
	}{{"told", true, 10, (3000 + 500) / 2.0}, {"told too seldom", true, 50, 500}, {"not told", false, 10, 500}} {
		b := newBench(t).calibrated(1000, 1000)
		if test.tells {
			b.occ.Told(start, 0, nil, nil)
		}
		b.occ.SetShared(start.Add(ms), 2, 1)
		one := b.open(Open{Sent: start})
		one.Read(start.Add(ms), 1)
		for i := 1; i <= 500; i++ { // ten seconds
			now := start.Add(ms + time.Duration(i)*20*ms)
			if i == 350 { // in the second window: all of it was told
				s := b.open(Open{Sent: now.Add(-20 * ms), PromptTokens: 500})
				s.Read(now, 1) // and is gone: no evidence
				s.Close(now, true)
			}
			if test.tells && i%test.every == 0 {
				told := []Move{{At: start.Add(ms), By: 1}}
				b.occ.Told(now, 1, told, []Prompt{{At: start.Add(8 * time.Second), Tokens: 3000}}) // again and again
			}
			one.Read(now, 1)
			if i%50 == 0 {
				b.book.Fold(now)
			}
		}
		if test.tells {
			for at := 10 * time.Second; at <= 12*time.Second; at += time.Duration(test.every) * 20 * ms {
				b.occ.Told(start.Add(at+ms), 1, nil, nil)
			}
		}
		bin := b.bins()[BinOf(2)]
		within(t, test.name+": prompt tokens", bin.P, test.want, 0.02)
		within(t, test.name+": the same times n", bin.PN, 2*test.want, 0.02)
	}
}

// What is remembered of prompts is bounded, and told as one where they come together.
func TestPromptsAreBounded(t *testing.T) {
	o := NewOccupancy(start)
	o.Told(start, 0, nil, nil)
	for i := range 5000 {
		o.prefilled(time.Duration(i)*5*ms, 10)
	}
	if got := len(o.prefills.all); got != maxPrompts {
		t.Errorf("%d prompts are remembered, want %d", got, maxPrompts)
	}
	sum, list := 0.0, o.Prompts(start.Add(25*time.Second-600*ms))
	for _, q := range list {
		sum += q.Tokens
	}
	within(t, "tokens told of 0.6 s", sum, 1200, 0.05)
	if len(list) > toldPrompts {
		t.Errorf("in %d, want %d at most", len(list), toldPrompts)
	}
}

// Where a first arrival holds many tokens, streams decode before anybody sees them, the
// others' too: what they tell is of the time when they saw them, and nothing waits for it.
func TestNobodyWaitsWhereStreamsAreSeenLate(t *testing.T) {
	b := collecting(t)
	b.occ.Told(start, 0, nil, nil)
	s := b.open(Open{Sent: start, PromptTokens: 100})
	b.occ.SetShared(start.Add(2*time.Second), 1, 0)
	chunk(s, 2*time.Second)
	b.occ.Told(start.Add(3*time.Second), 2, nil, nil)
	if _, all := b.occ.known(); !all {
		t.Error("the record waits for what others tell late")
	}
	b.occ.Told(start.Add(2*time.Second+unseenReach), 2, nil, nil)
	if _, all := b.occ.known(); all {
		t.Error("a minute later it does not")
	}
}

// What no gateway can have told makes no record of what cannot be.
func TestMovesThatCannotBeAreBounded(t *testing.T) {
	o := NewOccupancy(start)
	o.SetShared(start.Add(ms), 5, 2)
	o.Told(start.Add(2*ms), 2, nil, nil)
	for _, by := range []int{1 << 40, -1 << 40} {
		o.Told(start.Add(time.Second), 1<<50, []Move{{At: start.Add(500 * ms), By: by}}, []Prompt{{At: start.Add(600 * ms), Tokens: 1e30}})
		o.walk(0, 2*time.Second, func(n, _ int, _ time.Duration) {
			if n < 0 || n > maxOccupancy {
				t.Errorf("n is %d", n)
			}
		})
	}
	if all, _, _ := o.beside(0, 2*time.Second); !(all.P[BinOf(maxOccupancy)] <= maxPrompt) {
		t.Errorf("%v tokens were prefilled", all.P)
	}
}

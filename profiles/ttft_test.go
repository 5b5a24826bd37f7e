package profiles

import (
	"cmp"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTTFTPredicts(t *testing.T) {
	// 50 ms, 25,000 tokens/s of which 3 in 4 have to be computed, 8 slots of
	// which 2 come free each second.
	p := TTFT{Base: 0.05, PerToken: 40e-6, Uncached: 0.75, Slots: 8, Turnover: 2}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"a prompt of 1,000", p.Prefill(1000), 0.03},
		{"a prompt of less than nothing", p.Prefill(-1), 0},
		{"queue with a slot free", p.Queue(7), 0},
		{"queue of the first that finds none", p.Queue(8), 0.5},
		{"queue of the third", p.Queue(10), 1.5},
		{"bound with a slot free", p.QueueBound(7), 0},
		{"bound of the first: ln 100 times the mean", p.QueueBound(8), 0.5 * 4.6},
		{"bound of the 100th", p.QueueBound(107), 0.5 * 124.7}, // of a gamma distribution
		{"nothing ahead", p.Predict(Ahead{Known: true}, 1000), 0.08},
		{"2,000 tokens ahead", p.Predict(Ahead{Known: true, PromptTokens: 2000, Sequences: 3}, 1000), 0.14},
		{"a queue of two ahead, prefilled meanwhile", p.Predict(Ahead{Known: true, PromptTokens: 2000, Sequences: 10}, 1000), 1.58},
		{"no slots", TTFT{Base: 1}.Queue(1000), 0},
		{"slots of unknown speed", TTFT{Base: 1, Slots: 8}.QueueBound(1000), 0},
		{"nothing known", TTFT{}.Predict(Ahead{PromptTokens: 1000, Sequences: 99}, 1000), 0},
	} {
		if math.Abs(c.got-c.want) > 0.005*(1+c.want)*c.want+1e-12 {
			t.Errorf("%s: %.4f s, want %.4f s", c.what, c.got, c.want)
		}
	}
}

// first is one stream for tests that say by hand when its first token came.
type first struct {
	ahead    Ahead
	prompt   int // as estimated and as counted
	cached   int
	took     time.Duration
	n        int // when it came, with the stream; 0 = 1
	sentN    int // when it was sent; 0 = as n
	change   func(*Stream)
	whole    bool // the answer came at once
	openWith func(*Open)
}

// firsts opens, reads and closes the streams one after the other, a second
// apart, and returns what was learned.
func (b *bench) firsts(list ...first) TTFT {
	for i, f := range list {
		sent := start.Add(time.Duration(i) * time.Second)
		f.ahead.Known = true
		b.occ.Set(sent, max(cmp.Or(f.sentN, f.n), 1))
		o := Open{Sent: sent, Ahead: f.ahead, PromptTokens: f.prompt}
		if f.openWith != nil {
			f.openWith(&o)
		}
		s := b.open(o)
		if f.change != nil {
			f.change(s)
		}
		from := sent.Sub(start) + f.took
		b.occ.Set(start.Add(from), max(f.n, 1))
		if f.whole {
			s.Read(start.Add(from), 20)
		} else {
			steady(s, from, 10*ms, 20)
		}
		s.Usage(Usage{PromptTokens: f.prompt, CachedTokens: f.cached, CompletionTokens: 20, ReasoningTokens: s.told.usage.ReasoningTokens})
		s.Close(start.Add(from+time.Second), true)
		b.book.Fold(start.Add(from + time.Second))
	}
	return b.book.Curve(target).TTFT()
}

// prompts are first tokens after 30 ms and 50 µs a token, own and ahead.
func prompts(count int) (list []first) {
	for i := range count {
		f := first{prompt: 100 + 300*(i%7), ahead: Ahead{PromptTokens: 400 * (i % 5)}}
		f.took = 30*ms + time.Duration(f.prompt+f.ahead.PromptTokens)*50*time.Microsecond
		list = append(list, f)
	}
	return list
}

func TestTTFTIsLearned(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	if got := b.firsts(prompts(minFirsts - 1)...); got.Known() {
		t.Errorf("known after %d first tokens: %+v", minFirsts-1, got)
	}
	got := newBench(t).calibrated(1, 1).firsts(prompts(100)...)
	within(t, "base", got.Base, 0.03, 0.05)
	within(t, "seconds per token", got.PerToken, 50e-6, 0.03)
	if got.Uncached != 1 || got.Slots != 0 {
		t.Errorf("got %+v, want no cache and no slots", got)
	}
}

// TestCachedPromptsCostNoPrefill: half of each prompt is in a cache, so a token
// that is computed takes twice what one of the prompt takes.
func TestCachedPromptsCostNoPrefill(t *testing.T) {
	list := prompts(400)
	for i := range list {
		list[i].cached = list[i].prompt / 2
	}
	got := newBench(t).calibrated(1, 1).firsts(list...)
	within(t, "base", got.Base, 0.03, 0.1)
	within(t, "seconds per computed token", got.PerToken, 100e-6, 0.05)
	within(t, "share computed", got.Uncached, 0.5, 1e-9)
	within(t, "a prompt of 1,000", got.Prefill(1000), 0.05, 0.05)
}

// TestAlikePromptsHoldTheRate: where all prompts are alike, the data cannot tell
// the base from the prompt, and the usual cost of a token does.
func TestAlikePromptsHoldTheRate(t *testing.T) {
	var list []first
	for range 50 {
		list = append(list, first{prompt: 1000, took: 100 * ms})
	}
	got := newBench(t).calibrated(1, 1).firsts(list...)
	within(t, "a prompt of 1,000", got.Base+got.Prefill(1000), 0.1, 0.01)
	if got.PerToken < 20e-6 || got.PerToken > 100e-6 {
		t.Errorf("%.0f µs a token, want about %.0f", got.PerToken*1e6, usualPrefill*1e6)
	}
}

// TestOneStalledFirstTokenIsNoRule: neither a stall nor a dozen move the
// prediction; an engine that has become slower does.
func TestOneStalledFirstTokenIsNoRule(t *testing.T) {
	stalled := prompts(100)
	for i := 10; i < 100; i += 8 {
		stalled[i].took = 20 * time.Second
		stalled[i].ahead.Sequences = 0 // not a queue
	}
	got := newBench(t).calibrated(1, 1).firsts(stalled...)
	within(t, "base after a dozen stalls", got.Base, 0.03, 0.25)
	within(t, "seconds per token after a dozen stalls", got.PerToken, 50e-6, 0.25)

	slower := prompts(600)
	for i := 60; i < len(slower); i++ {
		slower[i].took *= 2
		slower[i].ahead.Sequences = 0
	}
	got = newBench(t).calibrated(1, 1).firsts(slower...)
	within(t, "a prompt of 1,000 on an engine that is slower by 2", got.Base+got.Prefill(1000), 0.16, 0.15)
}

// queued are first tokens after two seconds, at the given n, with m before.
func queued(m int, ns ...int) (list []first) {
	for _, n := range ns {
		list = append(list, first{prompt: 500, took: 2 * time.Second, n: n, ahead: Ahead{Sequences: m}})
	}
	return list
}

// inLine are the first tokens of those who wait for one of 24 slots, each with a
// prompt of 1,000 and all prompts of the line ahead: these take a third of the
// wait.
func inLine(count int) (list []first) {
	for q := 3; q < count+3; q++ {
		list = append(list, first{
			prompt: 1000, ahead: Ahead{PromptTokens: 1000 * q, Sequences: 24 + q}, n: 24, took: 80*ms + time.Duration(q)*150*ms,
		})
	}
	return list
}

func repeat(list []first, times int) (out []first) {
	for range times {
		out = append(out, list...)
	}
	return out
}

func TestKneeIsLearned(t *testing.T) {
	for _, c := range []struct {
		name string
		list []first
		want int
	}{
		{"a hundred others are no longer reported", repeat([]first{{prompt: 500, took: 140 * ms, n: 3, sentN: 100, ahead: Ahead{Sequences: 103}}}, 20), 0},
		{"always at 8", repeat(queued(9, 8), 20), 8},
		{"at 8 and, while others prefill, below", repeat(queued(9, 8, 8, 8, 7, 7, 6), 5), 8},
		{"at 24 and below", repeat(queued(30, 24, 23, 24, 22, 24, 23), 5), 24},
		{"only the next in line", repeat(queued(8, 8), 200), 8},
		{"while prefill takes a part of the wait", repeat(inLine(minLate-1), 3), 24},
		{"too few", queued(9, 8, 8, 8, 8, 8, 8), 0},
		{"at any n: a cache is full", repeat(queued(40, 5, 12, 20, 28, 36), 10), 0},
		{"a slot was free: nobody was there before", repeat(queued(3, 8), 20), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t).calibrated(1, 1)
			got := b.firsts(append(prompts(40), c.list...)...)
			if got.Slots != c.want {
				t.Errorf("%d slots, want %d", got.Slots, c.want)
			}
			if c.want > 0 {
				within(t, "base beside a queue", got.Base, 0.03, 0.1)
			}
		})
	}
}

// TestQueueIsNoPrefill: who waits for a slot has prompts ahead, which take a
// part of that time. Before the knee is known, that must not pass for a slow
// prefill, or the knee would never be known.
func TestQueueIsNoPrefill(t *testing.T) {
	got := newBench(t).calibrated(1, 1).firsts(append(prompts(40), inLine(minLate-1)...)...)
	within(t, "seconds per token", got.PerToken, 50e-6, 0.1)
	if got.Slots != 0 {
		t.Errorf("%d slots from %d late first tokens", got.Slots, minLate-1)
	}
}

// TestTurnover: 8 slots, each taken 1 s by an answer of 20 tokens at 20/s, after
// a prefill.
func TestTurnover(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	got := b.firsts(append(prompts(40), repeat(queued(9, 8), 20)...)...)
	c := b.book.Curve(target)
	prompt := b.book.profile(target).known.firsts
	want := 8 / (got.Base + got.PerToken*prompt.X/prompt.N + c.MeanOutput()/c.TPS(8))
	within(t, "sequences/s", got.Turnover, want, 1e-3)
	within(t, "answers", c.MeanOutput(), 20, 1e-3)
	within(t, "wait of the second in line", got.Queue(9), 2/want, 1e-3)
}

// TestKneeIsRefuted: streams that begin beyond it. A few more may be counted
// because an end is not known yet.
func TestKneeIsRefuted(t *testing.T) {
	learned := append(prompts(40), repeat(queued(9, 8), 40)...)
	quick := func(n int) first { return first{prompt: 500, took: 55 * ms, n: n, ahead: Ahead{Sequences: n - 1}} }
	for _, c := range []struct {
		n, times, want int
	}{{9, 30, 8}, {10, 1, 8}, {12, 3, 0}} {
		list := append(learned[:len(learned):len(learned)], repeat([]first{quick(c.n)}, c.times)...)
		b := newBench(t).calibrated(1, 1)
		b.book.profile(target).halfLife = defaultHalfLife
		if got := b.firsts(list...); got.Slots != c.want {
			t.Errorf("%d streams began at n = %d: %d slots, want %d", c.times, c.n, got.Slots, c.want)
		}
	}
}

// TestAStrayLateFirstTokenIsNoKnee: what waited for something else at quite
// another n, or at one that somebody made up, leaves the knee about where it is;
// an engine that came back with other slots moves it.
func TestAStrayLateFirstTokenIsNoKnee(t *testing.T) {
	stray := func(n int) []first { return queued(n+max(3, n/5), n) }
	for _, c := range []struct {
		name string
		list []first
		want int
	}{
		{"one at 2", stray(2), 24},
		{"two at 1", repeat(stray(1), 2), 24},
		{"one at 200", stray(200), 24},
		{"one at a million, and the next", append(stray(1_000_000), repeat(queued(25, 24), 10)...), 24},
		{"8 slots from now on", repeat(queued(9, 8), 400), 8},
		{"at any n: a cache is full", repeat(queued(40, 5, 12, 20, 28, 36), 10), 0},
	} {
		b := newBench(t).calibrated(1, 1)
		b.book.profile(target).halfLife = defaultHalfLife
		list := append(prompts(40), repeat(queued(25, 24), 40)...)
		if got := b.firsts(append(list, c.list...)...).Slots; got != c.want && (c.want == 0 || got < c.want || got > c.want+2) {
			t.Errorf("%s: %d slots, want %d, or up to 2 more", c.name, got, c.want)
		}
	}
}

// TestKneeOutlivesItsAvoidance: who keeps clear of a knee sees no late first
// tokens, and must not forget why.
func TestKneeOutlivesItsAvoidance(t *testing.T) {
	b := newBench(t).calibrated(1, 1)
	b.book.profile(target).halfLife = defaultHalfLife
	b.firsts(append(prompts(40), repeat(queued(9, 8), 40)...)...)
	p := b.book.profile(target)
	occupied := func(hours int) int {
		for range hours * 60 {
			p.fold.totals.T = 60
			p.fold.firsts.add(500, 500, 0.055, 0.055)
			b.book.Fold(start.Add(time.Hour))
		}
		return b.book.Curve(target).TTFT().Slots
	}
	if got := occupied(2); got != 8 {
		t.Errorf("%d slots after two busy hours without a queue, want 8", got)
	}
	if got := occupied(22); got != 0 {
		t.Errorf("%d slots after a busy day without a queue: nobody would ever look beyond them", got)
	}
}

// TestNoEvidenceForTTFT: what says nothing about how long a first token takes.
func TestNoEvidenceForTTFT(t *testing.T) {
	for name, f := range map[string]first{
		"nobody counted what was ahead":             {openWith: func(o *Open) { o.Ahead = Ahead{} }},
		"several sequences":                         {openWith: func(o *Open) { o.Sequences = 2 }},
		"the client blocked before the first token": {change: func(s *Stream) { s.Blocked() }},
		"hidden reasoning came before":              {change: func(s *Stream) { s.told.usage.ReasoningTokens = 10 }},
		"the whole answer at once":                  {whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			f.prompt, f.took = 500, 3*time.Second
			b := newBench(t).calibrated(1, 1)
			b.firsts(repeat([]first{f}, 20)...)
			if got := b.book.profile(target).known.firsts.N; got != 0 {
				t.Errorf("%v first tokens were learned, want none", got)
			}
		})
	}
	b := newBench(t).calibrated(1, 1)
	b.firsts(repeat([]first{{prompt: 500, took: 100 * ms}}, 20)...)
	if got := b.book.profile(target).known.firsts.N; math.Abs(got-20) > 1e-3 {
		t.Errorf("control: %v first tokens were learned, want 20", got)
	}
}

// anyFirsts draws what a store may hold about first tokens.
func anyFirsts(t *rapid.T) map[string]float64 {
	fields := map[string]float64{}
	value := rapid.Float64Range(0, 1e6)
	if rapid.Bool().Draw(t, "hostile") {
		value = rapid.Float64()
	}
	for _, names := range [][]string{storedFirsts, storedKnee} {
		for _, name := range names {
			fields[name] = value.Draw(t, name)
		}
	}
	return fields
}

func TestFirstsAreStoredAndMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := anyFirsts(t)
		a, b := SumsFrom(drawn, start), SumsFrom(anyFirsts(t), start)
		fields := map[string]float64{}
		for _, g := range a.Groups() {
			for _, f := range g.Fields {
				fields[f.Name] = f.Value
			}
		}
		for name, want := range drawn {
			if math.Abs(want) <= maxSum && fields[name] != want {
				t.Fatalf("%s is stored as %v, want %v", name, fields[name], want)
			}
		}
		if got := SumsFrom(fields, start); got != a {
			t.Fatalf("stored and read back: %+v, want %+v", got, a)
		}
		var one, two Sums
		one.Add(Delta{Sums: a}, 0)
		one.Add(Delta{Sums: b}, 0)
		two.Add(Delta{Sums: b}, 0)
		two.Add(Delta{Sums: a}, 0)
		if one != two {
			t.Fatalf("in the other order: %+v, want %+v", two, one)
		}
	})
}

func TestTTFTIsAlwaysANumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := anyFirsts(t)
		s := anySums(t)
		f := SumsFrom(fields, start)
		s.firsts, s.knee = f.firsts, f.knee
		c := newCurve(&s, anyPrior(t), 0.1)
		p := newTTFT(&s, c)
		m := rapid.Int().Draw(t, "m")
		tokens := rapid.Int().Draw(t, "tokens")
		for what, x := range map[string]float64{
			"base": p.Base, "per token": p.PerToken, "uncached": p.Uncached, "turnover": p.Turnover,
			"queue": p.Queue(m), "bound": p.QueueBound(m), "prefill": p.Prefill(tokens),
			"prediction": p.Predict(Ahead{Known: true, PromptTokens: tokens, Sequences: m}, tokens),
		} {
			if !(x >= 0) || math.IsInf(x, 0) {
				t.Fatalf("%s is %v: %+v", what, x, p)
			}
		}
		if p.QueueBound(m) < p.Queue(m) {
			t.Fatalf("a bound of %v s on a wait of %v s", p.QueueBound(m), p.Queue(m))
		}
	})
}

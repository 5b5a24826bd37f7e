package prefix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/router"
)

var (
	start  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	target = router.Target{Backend: "a", Model: "m"}
)

// chainOf is the chain of messages.
func chainOf(messages ...string) *Chain {
	c := new(Chain)
	c.Begin("m")
	for _, m := range messages {
		c.Add([]byte(m))
	}
	return c
}

// text is so many bytes of one kind.
func text(kind, bytes int) string {
	r := rand.New(rand.NewPCG(uint64(kind), 1))
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

func TestAPromptThatGoesOnHasAllBlocks(t *testing.T) {
	system, question := text(1, 1000), text(2, 300)
	first, second := chainOf(system, question), chainOf(system, question, text(3, 700), text(4, 90))
	for i, b := range first.blocks {
		if second.blocks[i] != b {
			t.Errorf("block %d of the first turn is not in the second", i)
		}
	}
	other := chainOf(system, text(5, 300))
	same := 0
	for same < len(other.blocks) && other.blocks[same] == first.blocks[same] {
		same++
	}
	if want := 4; same != want { // 1000 bytes are four blocks
		t.Errorf("%d blocks shared with another question, want the %d of the system prompt", same, want)
	}
	salted := new(Chain)
	salted.Begin("m", "tenant")
	salted.Add([]byte(system))
	if salted.blocks[0] == first.blocks[0] {
		t.Error("a prompt of another salt has a block in common")
	}
	if moved := chainOf(system + question); moved.blocks[4] == first.blocks[4] {
		t.Error("a message that ends elsewhere has the same block")
	}
}

// What another request has just sent is shared, and what nobody sent for a while is not.
func TestWhatWasSentJustNowIsShared(t *testing.T) {
	x := New()
	x.Configure(0, []router.Target{target})
	send := func(at time.Duration, messages ...string) {
		v := x.Send(start.Add(at), target, chainOf(messages...), 1500)
		v.First(time.Second, 0)
	}
	system, own := text(1, 4096), text(2, 1024)
	send(0, system, own)
	send(5*time.Second, system, text(3, 1024))
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{5 * time.Second, 1000}, {6900 * time.Millisecond, 1000}, {7100 * time.Millisecond, 0}} {
		w := x.Look(start.Add(c.at), chainOf(system, own, text(4, 1024)), 1500, []router.Target{target}, nil)
		if len(w) != 1 || w[0].Shared != c.want {
			t.Errorf("after %v: %+v, want %d tokens shared", c.at, w, c.want)
		}
	}
}

// TestEachByteCounts: a hash that overlooks a byte would call two prompts one.
func TestEachByteCounts(t *testing.T) {
	for n := range 70 {
		a := []byte(text(7, n))
		before := hash(1, a)
		for i := range a {
			a[i] ^= 1
			if hash(1, a) == before {
				t.Errorf("byte %d of %d makes no difference", i, n)
			}
			a[i] ^= 1
		}
		if hash(1, append(a, 0)) == before {
			t.Errorf("%d bytes and a zero are the same", n)
		}
	}
}

// engine is a cache as it really is: the least recently used is forgotten, and the
// answer stays with its prompt. Its unit is the token of four bytes.
type engine struct {
	room  int // tokens; 0 = nothing is kept
	used  map[string]int
	clock int
}

// take serves a conversation's prompt of so many tokens, by the parts that it has:
// each is a name with a length, and all before it belong to it.
func (e *engine) take(parts []part) (cached int) {
	e.clock++
	name, found := "", true
	for _, p := range parts {
		name += "/" + p.name
		if _, ok := e.used[name]; ok && found && e.room > 0 {
			cached += p.tokens
		} else {
			found = false
		}
		e.used[name] = e.clock<<32 | p.tokens
	}
	for {
		sum, oldest, at := 0, "", math.MaxInt
		for name, u := range e.used {
			sum += u & math.MaxUint32
			if u>>32 < at || u>>32 == at && len(name) > len(oldest) {
				oldest, at = name, u>>32
			}
		}
		if sum <= e.room || oldest == "" {
			return cached
		}
		delete(e.used, oldest)
	}
}

type part struct {
	name   string
	tokens int
}

// talk is conversations that share three system prompts, on one target.
type talk struct {
	index  *Index
	engine engine
	tells  func(prompt, cached int) int // what usage says is cached
	slow   bool                         // what is cached saves no time
	now    time.Time

	predicted, reported, prompts float64
	likely, sure                 float64
}

func (k *talk) play(seed uint64, turns int) {
	r := rand.New(rand.NewPCG(seed, 2))
	k.predicted, k.reported, k.prompts, k.likely, k.sure = 0, 0, 0, 0, 0
	if k.engine.used == nil {
		k.engine.used = map[string]int{}
	}
	var open [][]part
	var c Chain
	for turn := range turns {
		if len(open) < 20 || r.IntN(8) == 0 {
			s := r.IntN(3)
			open = append(open, []part{{fmt.Sprint("system", s), 500}})
		}
		i := r.IntN(len(open))
		open[i] = append(open[i], part{fmt.Sprint("question", seed, turn), 50 + r.IntN(200)})
		c.Begin("m")
		tokens := 0
		for _, p := range open[i] {
			b := []byte(text(len(p.name), 0))
			b = append(b, p.name...)
			for len(b) < 4*p.tokens {
				b = append(b, p.name...)
			}
			c.Add(b[:4*p.tokens])
			tokens += p.tokens
		}
		k.now = k.now.Add(time.Duration(r.ExpFloat64() * float64(300*time.Millisecond)))
		warm := k.index.Look(k.now, &c, tokens, []router.Target{target}, nil)
		v := k.index.Send(k.now, target, &c, tokens)
		for _, w := range warm {
			k.likely += float64(w.Likely)
			k.sure += float64(w.Sure)
		}
		cached := k.engine.take(open[i])
		answer := 30 + r.IntN(100)
		open[i] = append(open[i], part{fmt.Sprint("answer", seed, turn), answer})
		k.engine.take(open[i])
		told := cached
		if k.tells != nil {
			told = k.tells(tokens, cached)
		}
		computed := float64(tokens - cached)
		if k.slow {
			computed = float64(tokens)
		}
		ttft := (0.03 + 1e-4*computed) * (1 + 0.1*r.NormFloat64())
		v.Settle(Outcome{PromptTokens: tokens, CachedTokens: told, AnswerTokens: answer, TTFT: time.Duration(ttft * float64(time.Second))})
		k.predicted += v.Predicted()
		k.reported += float64(cached)
		k.prompts += float64(tokens)
		if len(open[i]) > 16 {
			open = append(open[:i], open[i+1:]...)
		}
	}
}

func newTalk(room int) *talk {
	x := New()
	x.Configure(0, []router.Target{target})
	return &talk{index: x, engine: engine{room: room}, now: start}
}

func TestPredictionsAreRight(t *testing.T) {
	for _, c := range []struct {
		name string
		room int
		off  float64 // predicted over reported, at most; of prompts where next to nothing is there
	}{
		{"all of it", 1 << 30, 0.03},
		{"half of it", 15_000, 0.06},
		{"a fifth of it", 6000, 0.06},
		{"one in a hundred, of which nothing is told", 300, 0.12},
	} {
		t.Run(c.name, func(t *testing.T) {
			worst := 0.0
			for seed := range uint64(racetest.Some(5)) {
				k := newTalk(c.room)
				k.play(seed, 400)
				k.play(seed+100, 800)
				off := math.Abs(k.predicted-k.reported) / k.prompts
				worst = max(worst, off)
				t.Logf("predicted %.1f %%, there were %.1f %%, sure of %.1f %%", 100*k.predicted/k.prompts, 100*k.reported/k.prompts, 100*k.sure/k.prompts)
				if k.sure > 1.1*k.reported+0.02*k.prompts {
					t.Errorf("sure of %.0f tokens, there were %.0f", k.sure, k.reported)
				}
			}
			if worst > c.off {
				t.Errorf("predictions are off by %.1f %% of the prompts, want at most %.0f %%", 100*worst, 100*c.off)
			}
		})
	}
}

// What is said to be cached and saves no time is worth nothing, and what is not
// told is seen by the time it saves.
func TestWhatSavesNoTimeFades(t *testing.T) {
	all := func(prompt, _ int) int { return prompt }
	none := func(int, int) int { return 0 }
	for _, c := range []struct {
		name       string
		room       int
		tells      func(int, int) int
		slow       bool
		least, top float64 // share of the prompts of which the index is sure, afterwards
		hopes      float64 // and that it thinks likely, at most
	}{
		{"an honest engine", 1 << 30, nil, false, 0.6, 1, 1},
		{"one that lies and has no cache", 0, all, true, 0, 0.05, 0.1},
		{"one that tells nothing and has no cache", 0, none, true, 0, 0.05, 0.1},
		{"one that tells nothing", 1 << 30, none, false, 0.5, 1, 1},
	} {
		for seed := range uint64(5) {
			k := newTalk(c.room)
			k.tells, k.slow = c.tells, c.slow
			k.play(seed, 200)
			k.play(seed+100, 400)
			if sure := k.sure / k.prompts; !(sure >= c.least && sure <= c.top) {
				t.Errorf("%s, seed %d: sure of %.1f %% of the prompts, want %.0f to %.0f %%", c.name, seed, 100*sure, 100*c.least, 100*c.top)
			}
			if likely := k.likely / k.prompts; likely > c.hopes {
				t.Errorf("%s, seed %d: %.1f %% of the prompts are called likely, want at most %.0f %%", c.name, seed, 100*likely, 100*c.hopes)
			}
		}
	}
}

func TestARestartIsSeen(t *testing.T) {
	k := newTalk(1 << 30)
	k.play(1, 400)
	k.engine.used = nil // it was started anew, and nobody says so
	k.play(2, 300)
	if got := k.index.Counts(target); math.Abs(got.Predicted-got.Reported) > 0.05*got.Prompt {
		t.Errorf("of %.0f tokens %.0f were predicted and %.0f there", got.Prompt, got.Predicted, got.Reported)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	x := New()
	other := router.Target{Backend: "b", Model: "m"}
	x.Configure(100*nodeBytes, []router.Target{target, other})
	for i := range 1000 {
		v := x.Send(start, target, chainOf(text(i, 5000)), 1250)
		if i > 500 { // nobody hears of the others' first tokens
			v.First(time.Second, 0)
		}
	}
	h := x.cache(target)
	if len(h.computing) > mostComputing {
		t.Errorf("%d prompts are being prefilled, want at most %d", len(h.computing), mostComputing)
	}
	if len(h.nodes) > 50 || len(h.list) > 72 {
		t.Errorf("%d blocks and room for %d, want at most 50, half of 100", len(h.nodes), len(h.list))
	}
	// The newest prompt is whole, and of it the beginning.
	if warm := x.Look(start, chainOf(text(999, 5000)), 1250, []router.Target{target, other}, nil); len(warm) != 1 || warm[0].Likely < 1200 {
		t.Errorf("the newest prompt is %v, want all of it", warm)
	}
	x.Configure(0, []router.Target{other})
	if x.cache(target) != nil {
		t.Error("a target that is gone is remembered")
	}
}

// Budget: 200 µs for a prompt of 100,000 tokens, its blocks hashed and looked up on
// 16 targets; no allocation for each block.
func BenchmarkLook(b *testing.B) {
	parts := make([][]byte, 100)
	for i := range parts {
		parts[i] = []byte(text(i, 4000))
	}
	x := New()
	var targets []router.Target
	for i := range 16 {
		targets = append(targets, router.Target{Backend: fmt.Sprint(i), Model: "m"})
	}
	x.Configure(0, targets)
	var c Chain
	begin := func() {
		c.Begin("m")
		for _, p := range parts {
			c.Add(p)
		}
	}
	begin()
	for _, t := range targets {
		v := x.Send(start, t, &c, 100_000)
		v.First(time.Second, 0)
	}
	var warm []router.Warmth
	b.ReportAllocs()
	for b.Loop() {
		begin()
		warm = x.Look(start.Add(time.Second), &c, 100_000, targets, warm[:0])
	}
	if len(warm) != 16 {
		b.Fatalf("%d targets are warm, want 16", len(warm))
	}
}

// Budget: 200 µs for a prompt of 100,000 tokens.
func BenchmarkSend(b *testing.B) {
	x := New()
	x.Configure(0, []router.Target{target})
	c := chainOf(text(1, 400_000))
	b.ReportAllocs()
	for b.Loop() {
		x.Send(start, target, c, 100_000)
	}
}

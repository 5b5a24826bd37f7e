package sim

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// textOf are the hashes of so many blocks of a text: other than those of any other
// text, from its first block on.
func textOf(text uint64, blocks int) []uint64 {
	list := make([]uint64, blocks)
	for i := range list {
		list[i] = text<<32 | uint64(i)
	}
	return list
}

// cachedEngine steps of 10 ms and 1 ms a prompt token, with blocks of 16.
func cachedEngine(t *testing.T, tokens int) *Engine {
	t.Helper()
	e := must.Get(NewEngine(EngineOptions{Model: Model{A: 0.010, D: 0.001}, Noise: -1, KVTokens: tokens, Block: 16}))(t)
	return e
}

// run plays the engine until nothing is left.
func runOut(e *Engine) {
	now := time.Unix(0, 0)
	for {
		e.Step(now)
		due, busy := e.Next()
		if !busy {
			return
		}
		now = due
	}
}

// What nobody uses is kept up to CacheTokens, and no more.
func TestACacheIsAsSmallAsItIsTold(t *testing.T) {
	e := must.Get(NewEngine(EngineOptions{Model: Model{A: 0.010, D: 0.001}, Noise: -1, KVTokens: 10_000, Block: 16, CacheTokens: 64}))(t)
	text := textOf(1, 40)
	_, _ = e.SubmitText(200, 60, text, nil)
	runOut(e)
	if held := e.Truth().Cache.Held; held != 64 {
		t.Errorf("%d tokens are kept, want 64", held)
	}
	next, _ := e.SubmitText(200, 60, text, nil)
	runOut(e)
	if got := next.Cached(); got != 64 {
		t.Errorf("%d tokens of the same prompt are cached, want its first 64", got)
	}
}

func TestASecondTurnFindsTheFirst(t *testing.T) {
	e := cachedEngine(t, 10_000)
	text := textOf(1, 40)
	first, _ := e.SubmitText(100, 60, text, nil)
	runOut(e)
	if first.Cached() != 0 {
		t.Errorf("the first turn found %d tokens, want none", first.Cached())
	}
	// 159 tokens were computed: the last one of the answer was never read.
	second, _ := e.SubmitText(300, 10, text, nil)
	runOut(e)
	if got, want := second.Cached(), 144; got != want {
		t.Errorf("the second turn found %d tokens, want %d: nine whole blocks", got, want)
	}
	again, _ := e.SubmitText(160, 10, text, nil)
	runOut(e)
	if got, want := again.Cached(), 144; got != want {
		t.Errorf("a prompt that is there whole found %d tokens, want %d: its last token is computed", got, want)
	}
	c := e.Truth().Cache
	if c.Prompt != 560 || c.Cached != 288 {
		t.Errorf("truth: %d of %d tokens, want 288 of 560", c.Cached, c.Prompt)
	}
}

func TestTheLeastRecentlyUsedIsForgotten(t *testing.T) {
	e := cachedEngine(t, 480)
	for text := range uint64(4) {
		s, _ := e.SubmitText(150, 10, textOf(text, 10), nil)
		runOut(e)
		if s.Cached() != 0 {
			t.Fatalf("text %d found %d tokens of others", text, s.Cached())
		}
	}
	// Three texts of 144 tokens fit; of the first of them the end went first.
	if c := e.Truth().Cache; c.Held > 480 || c.Evicted == 0 {
		t.Errorf("%d tokens held, %d evicted, want at most 480 and some", c.Held, c.Evicted)
	}
	newest, _ := e.SubmitText(150, 10, textOf(3, 10), nil)
	runOut(e)
	oldest, _ := e.SubmitText(150, 10, textOf(0, 10), nil)
	runOut(e)
	if newest.Cached() != 144 || oldest.Cached() > 48 {
		t.Errorf("the newest found %d, the oldest %d, want 144 and at most 48", newest.Cached(), oldest.Cached())
	}
}

// Whatever comes and goes, the cache and those who run never take more than there
// is, and at the end all of the room is the cache's.
func TestTheCacheLeavesRoomForThoseWhoRun(t *testing.T) {
	e := cachedEngine(t, 2000)
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(0, 0)
	var live []*Sequence
	for range 3000 {
		if r.IntN(3) == 0 {
			prompt, answer := 1+r.IntN(400), 1+r.IntN(60)
			s := must.Get(e.SubmitText(prompt, answer, textOf(uint64(r.IntN(8)), (prompt+answer)/16), nil))(t)
			live = append(live, s)
		}
		if len(live) > 0 && r.IntN(10) == 0 {
			e.Cancel(live[r.IntN(len(live))])
		}
		e.Step(now)
		if due, busy := e.Next(); busy {
			now = due
		}
		if used := e.kvInUse + e.cache.held(); used > 2000 || e.kvInUse < 0 {
			t.Fatalf("%d tokens taken of 2000, %d of them by those who run", used, e.kvInUse)
		}
	}
	runOut(e)
	idle := 0
	for b := e.cache.idle.first; b != nil; b = b.after {
		idle++
	}
	if e.kvInUse != 0 || idle != len(e.cache.blocks) {
		t.Errorf("at the end %d tokens are taken, and %d of %d blocks are in use", e.kvInUse, len(e.cache.blocks)-idle, len(e.cache.blocks))
	}
}

// told is what the usage of a whole answer says of its prompt.
type told struct {
	Choices []struct {
		Message struct {
			Content string `json:"content"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Details *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

func TestCachedTokensOnTheWire(t *testing.T) {
	question := strings.Repeat("Why is the sky blue, and why not green? ", 20)
	for _, c := range []struct {
		behave []string
		second func(prompt int) int // cached tokens of the second turn; negative = nothing is told
	}{
		{nil, func(prompt int) int { return (prompt - 10) / 16 * 16 }}, // all but the new question, in whole blocks
		{[]string{"no-cached-tokens"}, func(int) int { return -1 }},
		{[]string{"wrong-cached-tokens"}, func(prompt int) int { return prompt }},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := serve(t, Options{Model: Model{A: 0.025}, KVTokens: 100_000, Block: 16, Behaviours: c.behave})
			ask := func(messages string) (answer told) {
				_, body := r.call("POST", chat, `{"max_tokens":40,"messages":[`+messages+`]}`)
				if err := json.Unmarshal([]byte(body), &answer); err != nil {
					t.Fatalf("%v: %s", err, body)
				}
				return answer
			}
			turn := `{"role":"user","content":"` + question + `"}`
			first := ask(turn)
			second := ask(turn + `,{"role":"assistant","content":"` + first.Choices[0].Message.Content + `"},{"role":"user","content":"And at night? Why not?"}`)
			got, want := -1, c.second(second.Usage.Prompt)
			if second.Usage.Details != nil {
				got = second.Usage.Details.Cached
			}
			if got > want || got < want-16 && want > 0 || want < 0 && got != want {
				t.Errorf("%v: the second turn tells %d cached tokens of %d, want %d or a block less", c.behave, got, second.Usage.Prompt, want)
			}
			r.set(`{"forget":true}`)
			if got := ask(turn).Usage.Details; c.behave == nil && got.Cached != 0 {
				t.Errorf("%d cached tokens after the cache was emptied", got.Cached)
			}
		})
	}
}

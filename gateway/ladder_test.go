package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/tokens"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

var answerID = regexp.MustCompile(`(chatcmpl|cmpl)-[0-9a-f]{32}`)

// What reaches the client is byte for byte what the engine would have sent to
// it, whatever Pacer asked for beside it.
func TestTheClientSeesWhatItAskedFor(t *testing.T) {
	const (
		chatBody = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":5,"stream":true%s}`
		textBody = `{"model":"chat","prompt":"hello","max_tokens":5,"stream":true%s}`
	)
	for _, behaviour := range []string{"unbounded-queue", "repeated-usage", "no-usage", "role-and-first-token-in-one-write", "usage-null"} {
		usage := "continuous"
		if behaviour == "usage-null" { // asked for the count in every chunk, it has no nulls
			usage = "inject"
		}
		for path, body := range map[string]string{chat: chatBody, "/v1/completions": textBody} {
			for _, options := range []string{
				``, `,"stream_options":{"include_usage":true}`, `,"stream_options":{"include_usage":false,"continuous_usage_stats":false}`,
				`,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`,
			} {
				bubble(t, behaviour+path+options, func(t *testing.T) {
					conf := settings("a", "b")
					conf.Backends[0].Usage, conf.Backends[1].Usage = usage, "never"
					conf.Routes = append(conf.Routes, conf.Routes[0])
					conf.Routes[0].Targets = conf.Routes[0].Targets[:1]
					conf.Routes[1].Targets = conf.Routes[1].Targets[1:]
					conf.Routes[1].Models = []string{"plain"}
					h := open(t, conf, map[string]http.Handler{
						"a": engine(t, func(o *sim.Options) { o.Behaviours = []string{behaviour} }),
						"b": engine(t, func(o *sim.Options) { o.Behaviours = []string{behaviour} }),
					})
					body := fmt.Sprintf(body, options)
					got := h.post(path, body)
					want := h.post(path, regexp.MustCompile(`"chat"`).ReplaceAllString(body, `"plain"`))
					if got.err != nil || want.err != nil || answerID.ReplaceAllString(got.body, "$1") != answerID.ReplaceAllString(want.body, "$1") {
						t.Errorf("the client got (%v)\n%s\nwant (%v)\n%s", got.err, got.body, want.err, want.body)
					}
				})
			}
		}
	}
}

// counting streams n chunks of each tokens, one each gap, with the count so
// far, and ends well.
func counting(n, each int, gap time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		count := func(tokens int) string {
			return fmt.Sprintf(`,"usage":{"prompt_tokens":7,"total_tokens":%d,"completion_tokens":%d}}`, 7+tokens, tokens) + "\n\n"
		}
		with := func(event string, tokens int) string { return event[:len(event)-len("}\n\n")] + count(tokens) }
		say(w, with(roleOnly, 0))
		for i := range n {
			if !pause(r, gap) {
				return
			}
			say(w, with(delta, each*(i+1)))
		}
		say(w, with(lastDelta, each*n+1)+usageEvent(7, each*n+1)+doneEvent)
	}
}

// The first stream ever, of several tokens a chunk, which its client leaves: an
// engine that counts tells it exactly, and the curve is known from it.
func TestAnAbortedStreamIsCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "continuous"
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: counting(10_000, 4, 50*time.Millisecond)}})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second+10*time.Millisecond)
		defer cancel()
		if r := h.do(h.request("POST", chat, streamBody).WithContext(ctx)); r.err == nil {
			t.Fatal("the stream ended before its client left")
		}
		line := h.last()
		if line.Source != "continuous" || line.Tokens != 1600 || math.Abs(line.TPS-80) > 0.1 || line.Outcome != outcomeGone {
			t.Errorf("log line %+v, want 1600 tokens by continuous usage at 80 tokens/s, client_gone", line)
		}
		h.idle()
		<-time.After(5 * time.Second)
		curve := h.book.Curve(router.Target{Backend: "a", Model: "big"})
		if got := curve.TPS(1); math.Abs(got-80) > 1 {
			t.Errorf("the curve says %.2f tokens/s, want 80", got)
		}
	})
}

// An engine that does not know the option serves as one that is asked for the
// usage at the end alone.
func TestContinuousUsageThatIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "continuous"
		h := open(t, conf, map[string]http.Handler{"a": asker()})
		r := h.post(chat, streamBody)
		if r.err != nil || r.body != answered+doneEvent {
			t.Errorf("the client got (%v)\n%s", r.err, r.body)
		}
		if line := h.last(); line.Source != "usage" || line.Tokens != 2 {
			t.Errorf("%v tokens by %s, want 2 by usage", line.Tokens, line.Source)
		}
	})
}

// Of several sequences each is counted alone while they run; only the usage at
// the end is of all.
func TestContinuousUsageOfSeveralSequences(t *testing.T) {
	const body = `{"model":"chat","messages":[{"role":"user","content":"hello"}],"n":3,"max_tokens":100,"stream":true}`
	for name, c := range map[string]struct {
		leaves time.Duration
		tokens float64
		source string
	}{
		"to the end": {time.Hour, 300, "usage"},
		"aborted":    {time.Second, 0, "estimate"},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Usage = "continuous"
			h := open(t, conf, map[string]http.Handler{"a": engine(t)})
			ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
			defer cancel()
			h.do(h.request("POST", chat, body).WithContext(ctx))
			line := h.last()
			if line.Source != c.source || c.tokens > 0 && line.Tokens != c.tokens || line.Tokens < 100 {
				t.Errorf("%v tokens by %s, want %v by %s", line.Tokens, line.Source, c.tokens, c.source)
			}
			if line.TPS != 0 {
				t.Errorf("measured at %v tokens/s, want unmeasured", line.TPS)
			}
		})
	}
}

// reciting streams what the model says, one event each gap, and never a usage.
func reciting(gap time.Duration, events ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		say(w, roleOnly)
		for _, e := range events {
			if !pause(r, gap) {
				return
			}
			say(w, e)
		}
		say(w, lastDelta+doneEvent)
	}
}

// saying is an event with text in it, under the name that a delta gives it.
func saying(field, text string) string {
	b, _ := json.Marshal(text)
	return fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{%q:%s}}]}`, field, b) + "\n\n"
}

// The first answer whose backend tells no usage is counted by its text, for the log,
// the metrics and the limits; it teaches nothing and keeps or misses no floor.
func TestAnAnswerWithoutUsageIsCountedByItsText(t *testing.T) {
	const prompt, answer = "Write about the fox.", "The quick brown fox jumps over the lazy dog, and then it rests a while. 敏捷的棕色狐狸跳过懒狗。"
	var stream []string
	for i, word := range strings.SplitAfter(answer, " ") {
		stream = append(stream, saying([]string{"content", "reasoning_content", "refusal"}[i%3], word))
	}
	document, _ := json.Marshal(answer)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		stream bool
		leaves time.Duration
		want   float64
	}{
		"stream":   {reciting(50*time.Millisecond, stream...), true, time.Hour, tokens.Count(answer)},
		"aborted":  {reciting(50*time.Millisecond, stream...), true, 310 * time.Millisecond, tokens.Count("The quick brown fox jumps over ")},
		"document": {states(200, `{"choices":[{"message":{"role":"assistant","content":`+string(document)+`}}]}`), false, time.Hour, tokens.Count(answer)},
		"one chunk that is more than is kept": {
			reciting(50*time.Millisecond, saying("content", strings.Repeat("word ", 20_000))), true, time.Hour, 20_000,
		},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Backends[0].Usage = "never"
			conf.Routes[0].SLO.MinTPS = 1
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: c.answer}})
			synctest.Wait() // till somebody counts
			ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
			defer cancel()
			body := fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":%q}],"stream":%v}`, prompt, c.stream)
			h.do(h.request("POST", chat, body).WithContext(ctx))
			line := h.last()
			if line.Source != "estimate" || math.Abs(line.Tokens/c.want-1) > 0.01 {
				t.Errorf("%v tokens by %s, want %v by estimate", line.Tokens, line.Source, c.want)
			}
			if line.TPS != 0 {
				t.Errorf("%v tokens/s, want unmeasured", line.TPS)
			}
			has(t, h.scrape(),
				fmt.Sprintf(`direction="output",route="chat",source="estimate"} %g`, line.Tokens),
				fmt.Sprintf(`direction="input",route="chat",source="estimate"} %g`, tokens.Count(prompt+"\n")),
				`pacer_slo_total{result="unmeasured",route="chat"} 1`,
			)
			h.idle()
			<-time.After(10 * time.Second)
			if points := h.book.Curve(router.Target{Backend: "a", Model: "big"}).Points(); len(points) > 0 {
				t.Errorf("the curve has %d points, want none: estimates teach nothing", len(points))
			}
		})
	}
}

// Of a target whose streams bring no usage, one after the other, text tells the tokens: of a
// chunk, for the curve and for what is kept. A usage that comes after all ends that.
func TestAnEngineThatNeverTellsUsageIsCountedByItsText(t *testing.T) {
	const words, gap = "The quick brown fox jumps over the lazy dog. ", 100 * time.Millisecond
	var stream []string
	for range 100 {
		stream = append(stream, saying("content", words))
	}
	each := tokens.Count(strings.Repeat(words, 100)) / 100 // a chunk
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Routes[0].SLO.MinTPS = 0.9 * each / gap.Seconds()
		mute := &script{answer: reciting(gap, stream...)}
		h := open(t, conf, map[string]http.Handler{"a": mute})
		synctest.Wait() // till somebody counts
		target := router.Target{Backend: "a", Model: "big"}
		for range silentAfter {
			h.post(chat, streamBody)
			synctest.Wait()
			if line := h.last(); line.TPS != 0 {
				t.Fatalf("%v tokens/s, before it is sure that no usage comes", line.TPS)
			}
		}
		for range 10 {
			h.post(chat, streamBody)
			synctest.Wait()
			line := h.last()
			if want := each / gap.Seconds(); math.Abs(line.TPS/want-1) > 0.02 || line.Source != "estimate" {
				t.Errorf("%v tokens/s by %s, want %v by estimate", line.TPS, line.Source, want)
			}
			if want := 100 * each; math.Abs(line.Tokens/want-1) > 0.02 {
				t.Errorf("%v tokens, want %v", line.Tokens, want)
			}
		}
		if !h.gateway.TextFacts(target).Silent {
			t.Error("the target does not count as one that tells no usage")
		}
		has(t, h.scrape(), `pacer_slo_total{result="met",route="chat"} 10`)
		<-time.After(10 * time.Second)
		if p := h.book.Curve(target).Points(); len(p) == 0 || math.Abs(p[0].TPS/(each/gap.Seconds())-1) > 0.05 {
			t.Errorf("the curve is %+v, want %v tokens/s of one user", p, each/gap.Seconds())
		}
		mute.answer = reciting(gap, append(stream, `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1000,"total_tokens":1009}}`+"\n\n")...)
		h.post(chat, streamBody)
		synctest.Wait()
		if line := h.last(); line.Source != "usage" || h.gateway.TextFacts(target).Silent {
			t.Errorf("once a usage comes tokens are by %s, silent %v", line.Source, h.gateway.TextFacts(target).Silent)
		}
	})
}

// A stream that ends with an error, or holds what is none of its dialect, says nothing of
// whether others bring a usage.
func TestErrorsWithinAnswersMakeNoTargetSilent(t *testing.T) {
	for name, last := range map[string]string{
		"an error": `data: {"error":{"message":"no","code":500}}` + "\n\n",
		"garbage":  "data: {nothing\n\n",
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: reciting(time.Millisecond, saying("content", "hello"), last)}})
			for range 2 * silentAfter {
				h.post(chat, streamBody)
				synctest.Wait()
			}
			if h.gateway.TextFacts(router.Target{Backend: "a", Model: "big"}).Silent {
				t.Error("the target counts as one that tells no usage")
			}
		})
	}
}

// A row of spaces is one token, whatever its bytes: who has an engine that tells no usage
// write them makes it no faster for others.
func TestTextThatIsNoMeasureOfTokensMakesNoCurve(t *testing.T) {
	for _, spaces := range []int{12, 64} {
		synctest.Test(t, func(t *testing.T) {
			recite := func(text string) func(http.ResponseWriter, *http.Request) {
				var events []string
				for range 100 {
					events = append(events, saying("content", text))
				}
				return reciting(100*time.Millisecond, events...)
			}
			mute := &script{answer: recite("fox ")}
			h := open(t, settings("a"), map[string]http.Handler{"a": mute})
			synctest.Wait()
			for range silentAfter + 10 {
				h.post(chat, streamBody)
				synctest.Wait()
			}
			mute.answer = recite(strings.Repeat(" ", spaces))
			for range 16 {
				h.post(chat, streamBody)
				synctest.Wait()
			}
			<-time.After(10 * time.Second)
			if p := h.book.Curve(router.Target{Backend: "a", Model: "big"}).Points(); len(p) == 0 || p[0].TPS > 1.6*10 {
				t.Errorf("%d spaces in a chunk: the curve is %+v, want little more than the engine's 10 tokens/s", spaces, p)
			}
		})
	}
}

// Nobody who has his answer waits for its tokens to be counted.
func TestNobodyWaitsForTheTokenizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "never"
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: reciting(time.Millisecond, saying("content", "hello world"))}})
		synctest.Wait()
		busy := make(chan struct{})
		if !h.gateway.uncounted.do(func() { <-busy }) {
			t.Fatal("nobody counts")
		}
		for range maxJobs + 3 {
			if r := h.post(chat, streamBody); r.err != nil {
				t.Fatal(r.err)
			}
		}
		synctest.Wait()
		// Those that found no place in line went by their bytes.
		if got := len(h.log.requests()); got != 3 {
			t.Errorf("%d requests are in the log while the tokenizer is busy, want 3", got)
		}
		h.idle()
		close(busy)
		synctest.Wait()
		if got := len(h.log.requests()); got != maxJobs+3 {
			t.Errorf("%d requests are in the log, want %d", got, maxJobs+3)
		}
		if line := h.last(); line.Source != "estimate" || line.Tokens != 2 {
			t.Errorf("%v tokens by %s, want 2 by estimate", line.Tokens, line.Source)
		}
	})
}

// What a key was charged for an answer stays charged until the answer was
// counted, and then it has paid for what was counted; its place is free at once.
func TestAKeyIsSettledWithWhatWasCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, most = 6000, 3000
		conf := settings("a")
		conf.Backends[0].Usage = "never"
		k := key("mobile", "sk-right")
		k.Limits = config.KeyLimits{TokensPerMinute: limit, Concurrency: 1}
		conf.Keys = []config.Key{k}
		// Two bytes a token: by its bytes it is taken for 500.
		answer := reciting(time.Millisecond, saying("content", strings.Repeat(" a", 1000)))
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: answer}})
		synctest.Wait()
		busy := make(chan struct{})
		h.gateway.uncounted.do(func() { <-busy })
		body := fmt.Sprintf(`{"model":"chat","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, most)
		if r := h.post(chat, body, "Authorization", "Bearer sk-right"); r.err != nil {
			t.Fatal(r.err)
		}
		synctest.Wait()
		limits := h.gateway.setup.Load().tenants[0].limits
		left := func() int { return limits.State(time.Now()).Tokens.Remaining }
		if got := left(); got > limit-most {
			t.Errorf("%d of %d tokens are left while nobody has counted, want those of the estimate gone: %d at most", got, limit, limit-most)
		}
		permit, err := limits.Enter(time.Now())
		if err != nil {
			t.Errorf("the place of a request that has its answer is not free: %v", err)
		}
		permit.Settle(time.Now(), 0)
		close(busy)
		synctest.Wait()
		if got := left(); got < limit-1100 || got > limit-950 {
			t.Errorf("%d of %d tokens are left after 1000 were counted", got, limit)
		}
	})
}

// What waits to be counted when the gateway ends is in the log all the same.
func TestNothingIsLostWhenTheGatewayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "never"
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: reciting(time.Millisecond, saying("content", "hello world"))}})
		synctest.Wait()
		busy := make(chan struct{})
		h.gateway.uncounted.do(func() { <-busy })
		h.post(chat, streamBody)
		go func() { <-time.After(time.Second); close(busy) }()
		h.stop()
		if got := len(h.log.requests()); got != 1 {
			t.Errorf("%d requests are in the log, want 1", got)
		}
		if h.gateway.uncounted.do(func() {}) {
			t.Error("something is taken that nobody will do")
		}
	})
}

// Once some answer of the target told its usage, its own bytes per token say
// more of its tokenizer than another tokenizer does.
func TestTheTargetsOwnRatioIsBetterThanATokenizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []string{
			lastDelta + usageEvent(7, 5) + doneEvent, // 20 bytes in 5 tokens
			lastDelta + doneEvent,
		}
		engine := &script{}
		engine.answer = func(w http.ResponseWriter, _ *http.Request) {
			eventStream(w)
			say(w, delta+delta+delta+delta+answers[engine.calls()-1])
		}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		for range 2 {
			h.post(chat, streamBody)
		}
		if line := h.last(); line.Source != "estimate" || line.Tokens != 5 {
			t.Errorf("%v tokens by %s, want 5 by estimate", line.Tokens, line.Source)
		}
	})
}

// Where no usage ever tells, the tokenizer teaches how large a route's prompts
// are for their bytes.
func TestPromptsAreSizedByTheTokenizerWhereNoUsageComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "never"
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: reciting(time.Millisecond, delta)}})
		prompt, _ := json.Marshal(strings.Repeat("1 2 3 4 5 6 7 8 9 ", 400)) // two bytes a token
		body := `{"model":"chat","messages":[{"role":"user","content":` + string(prompt) + `}],"stream":true}`
		h.post(chat, body)
		if line := h.last(); line.Source != "estimate" {
			t.Fatalf("tokens by %s, want estimate", line.Source)
		}
		scale := h.gateway.setup.Load().route("chat").prompt
		if got, counted := scale.apply("", 1000), scale.keys[""].counted; got < 1200 || counted < 6000 {
			t.Errorf("an estimate of 1000 is worth %d after %v tokens counted, want more: these prompts have twice the tokens that their bytes say", got, counted)
		}
	})
}

// The text that is kept is of the budget for bodies; without room the answer
// goes by its bytes.
func TestNoRoomForTheText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := settings("a")
		conf.Backends[0].Usage = "never"
		conf.Limits.Buffered = 2000
		h := open(t, conf, map[string]http.Handler{"a": &script{answer: reciting(time.Millisecond, saying("content", "hello world. "))}})
		if r := h.post(chat, streamBody); r.err != nil || r.status != 200 {
			t.Fatalf("got %d %v", r.status, r.err)
		}
		if line := h.last(); line.Source != "estimate" || line.Tokens != 3 { // 13 bytes
			t.Errorf("%v tokens by %s, want 3 by estimate", line.Tokens, line.Source)
		}
	})
}

// Where it is known how many tokens a chunk holds, no text is kept.
func TestNoTextIsKeptWithoutNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *house
		var held []int64
		h = open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			say(w, roleOnly)
			for range 20 {
				pause(r, 20*time.Millisecond)
				say(w, delta)
			}
			held = append(held, h.gateway.buffered.used.Load())
			say(w, lastDelta+usageEvent(7, 20)+doneEvent)
		}}})
		for range 4 {
			h.post(chat, streamBody)
			<-time.After(2 * time.Second)
		}
		if held[0] < tokens.MaxText || held[3] >= tokens.MaxText {
			t.Errorf("held %v bytes, want %d more for the first streams than for the fourth", held, tokens.MaxText)
		}
	})
}

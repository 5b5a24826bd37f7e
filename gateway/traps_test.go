package gateway

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// beat is one write of an engine, after a pause.
type beat struct {
	after time.Duration
	text  string
}

// beats are n times the same.
func beats(n int, after time.Duration, text string) []beat {
	var list []beat
	for range n {
		list = append(list, beat{after, text})
	}
	return list
}

func (b beat) then(more ...[]beat) []beat {
	list := []beat{b}
	for _, m := range more {
		list = append(list, m...)
	}
	return list
}

// TestTrapsOfCounting plays what engines do that has misled others who count
// tokens, each by its name, through the whole house: 40 ms a chunk, the first
// after one second.
func TestTrapsOfCounting(t *testing.T) {
	const gap = 40 * time.Millisecond
	first := beat{time.Second, delta}
	end := func(completion int) []beat {
		return []beat{{0, lastDelta + usageEvent(7, completion) + doneEvent}}
	}
	usageWith := func(event, usage string) string {
		return strings.TrimSuffix(event, "}\n\n") + `,"usage":` + usage + "}\n\n"
	}
	tool := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}` + "\n\n"
	halves := []beat{{time.Second - gap/2, delta[:60]}, {gap / 2, delta[60:]}}
	for range 50 {
		halves = append(halves, beat{gap / 2, delta[:60]}, beat{gap / 2, delta[60:]})
	}
	for name, c := range map[string]struct {
		play   []beat
		source string
		tokens float64
		tps    float64 // 0 = unmeasured
		ttft   time.Duration
		hidden float64 // tokens that are paid for beside those that were seen
	}{
		"a whole answer at once":          {beat{time.Second, strings.Repeat(delta, 50)}.then(end(50)), "usage", 50, 0, time.Second, 0},
		"fewer than five arrivals":        {first.then(beats(3, gap, delta), end(4)), "usage", 4, 0, time.Second, 0},
		"a chunk is not a token":          {first.then(beats(50, gap, delta), end(151)), "usage", 151, 75, time.Second, 0},
		"several events in one read":      {first.then(beats(25, 2*gap, delta+delta), end(51)), "usage", 51, 25, time.Second, 0},
		"an event over several reads":     {append(halves, end(51)...), "usage", 51, 25, time.Second, 0}, // it arrives with its blank line
		"an empty role chunk is no token": {beat{0, roleOnly}.then([]beat{first}, beats(50, gap, delta), end(51)), "usage", 51, 25, time.Second, 0},
		"keep-alive comments are no token": {
			beat{0, ": ping\n\n"}.then([]beat{{500 * time.Millisecond, ": ping\n\n"}, {500 * time.Millisecond, delta}}, beats(50, gap, ": ping\n\n"+delta), end(51)),
			"usage", 51, 25, time.Second, 0,
		},
		"usage of zero":           {first.then(beats(50, gap, delta), end(0)), "estimate", 51, 0, time.Second, 0},
		"usage that is negative":  {first.then(beats(50, gap, delta), end(-51)), "estimate", 51, 0, time.Second, 0},
		"usage of null":           {first.then(beats(50, gap, usageWith(delta, "null")), end(51)), "usage", 51, 25, time.Second, 0},
		"more than sixteen times": {first.then(beats(50, gap, delta), end(51*17)), "usage", 51, 0, time.Second, 51 * 16},
		"usage that comes late":   {first.then(beats(50, gap, delta), []beat{{3 * time.Second, lastDelta}, {3 * time.Second, usageEvent(7, 51) + doneEvent}}), "usage", 51, 25, time.Second, 0},
		"usage that never comes":  {first.then(beats(50, gap, delta), []beat{{0, lastDelta + doneEvent}}), "estimate", 51, 0, time.Second, 0},
		"usage on the last chunk": {first.then(beats(50, gap, delta), []beat{{0, usageWith(lastDelta, `{"prompt_tokens":7,"completion_tokens":51}`) + doneEvent}}), "usage", 51, 25, time.Second, 0},
		"usage that is repeated":  {first.then(beats(50, gap, delta), []beat{{0, lastDelta + usageEvent(7, 51) + usageEvent(7, 51) + doneEvent}}), "usage", 51, 25, time.Second, 0},
		"usage of zero in every chunk, and one at the end": {
			beat{time.Second, usageWith(delta, `{"prompt_tokens":7,"completion_tokens":0}`)}.then(beats(50, gap, usageWith(delta, `{"prompt_tokens":7,"completion_tokens":0}`)), end(51)),
			"usage", 51, 25, time.Second, 0,
		},
		"hidden reasoning": {
			first.then(beats(50, gap, delta), []beat{{0, lastDelta + `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":551,"completion_tokens_details":{"reasoning_tokens":500}}}` + "\n\n" + doneEvent}}),
			"usage", 51, 25, time.Second, 500,
		},
		"reasoning that is shown": {
			beat{time.Second, saying("reasoning", "hm")}.then(beats(25, gap, saying("reasoning", "hm")), beats(25, gap, delta), []beat{{0, lastDelta + `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":51,"completion_tokens_details":{"reasoning_tokens":26}}}` + "\n\n" + doneEvent}}),
			"usage", 51, 25, time.Second, 0,
		},
		"tool calls are content":    {beat{time.Second, tool}.then(beats(50, gap, tool), end(51)), "usage", 51, 25, time.Second, 0},
		"a refusal is content":      {beat{time.Second, saying("refusal", "no ")}.then(beats(50, gap, saying("refusal", "no ")), end(51)), "usage", 51, 25, time.Second, 0},
		"our own events come later": {first.then(beats(50, gap, delta), []beat{{4 * time.Second, lastDelta}, {0, usageEvent(7, 51)}, {4 * time.Second, doneEvent}}), "usage", 51, 25, time.Second, 0},
	} {
		for _, body := range []string{streamBody, strings.TrimSuffix(streamBody, "}") + `,"stream_options":{"include_usage":true}}`} {
			bubble(t, fmt.Sprintf("%s, asked %v", name, body != streamBody), func(t *testing.T) {
				h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
					eventStream(w)
					w.WriteHeader(200)
					for _, b := range c.play {
						if !pause(r, b.after) {
							return
						}
						say(w, b.text)
					}
				}}})
				if r := h.post(chat, body); r.err != nil {
					t.Fatal(r.err)
				}
				line := h.last()
				if shown := line.Tokens - line.Hidden; line.Source != c.source || math.Abs(shown/c.tokens-1) > 0.03 || math.Abs(line.Hidden-c.hidden) > 0.03*c.tokens {
					t.Errorf("%v tokens and %v hidden by %s, want %v and %v by %s", shown, line.Hidden, line.Source, c.tokens, c.hidden, c.source)
				}
				if math.Abs(line.TPS-c.tps) > 0.03*c.tps {
					t.Errorf("%v tokens/s, want %v", line.TPS, c.tps)
				}
				if ttft := time.Duration(line.TTFTms * float64(time.Millisecond)); ttft != c.ttft {
					t.Errorf("first token after %v, want %v", ttft, c.ttft)
				}
				h.idle()
				<-time.After(10 * time.Second)
				learned := len(h.book.Curve(router.Target{Backend: "a", Model: "big"}).Points()) > 0
				if learned != (c.tps > 0) {
					t.Errorf("the curve learned: %v, want %v", learned, c.tps > 0)
				}
			})
		}
	}
}

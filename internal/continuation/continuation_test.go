package continuation

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/upstream"
	"github.com/pacer-dev/pacer/providers"
)

func read(t *testing.T, d endpoint.Dialect, body string) (Request, error) {
	t.Helper()
	r, err := openai.Peek([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return Read(d, &r)
}

func TestWhatCanBeContinued(t *testing.T) {
	for more, why := range map[string]string{
		``:                              "",
		`"temperature":0.7,"top_k":40,`: "",
		`"n":1,"seed":null,"tools":[],"logprobs":false,"presence_penalty":0,`: "",
		`"response_format":{ "type": "text" },`:                               "",
		`"stop":["a","b"],"max_tokens":5,"min_tokens":2,`:                     "",
		`"tools":[{"type":"function"}],`:                                      `it has "tools"`,
		`"seed":0,`:                                                           `it has "seed"`,
		`"n":2,`:                                                              `it has "n"`,
		`"frequency_penalty":0.1,`:                                            `it has "frequency_penalty"`,
		`"response_format":{"type":"json_object"},`:                           `it has "response_format"`,
		`"structured_outputs":{"regex":"a"},`:                                 `it has "structured_outputs"`,
		`"include_reasoning":false,`:                                          `it has "include_reasoning"`,
		`"max_tokens":"5",`:                                                   "its max_tokens is no plain number",
		`"add_generation_prompt":null,`:                                       "it says itself how its messages are gone on with",
	} {
		_, err := read(t, endpoint.Chat, `{`+more+`"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
		if got := fmt.Sprint(err); err == nil && why != "" || err != nil && got != why {
			t.Errorf("%s: %v, want %q", more, err, why)
		}
	}
	for body, d := range map[string]endpoint.Dialect{
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`: endpoint.Chat,
		`{"messages":[]}`:                     endpoint.Chat,
		`{"messages":"a"}`:                    endpoint.Chat,
		`{"model":"m"}`:                       endpoint.Chat,
		`{"prompt":"a"}`:                      endpoint.Completions,
		`{"prompt":["a"],"max_tokens":5}`:     endpoint.Completions,
		`{"prompt":[1,2],"max_tokens":5}`:     endpoint.Completions,
		`{"messages":[],"max_tokens":5}`:      endpoint.Messages,
		`{"input":"a","max_output_tokens":5}`: endpoint.Responses,
	} {
		if _, err := read(t, d, body); err == nil {
			t.Errorf("%s can be continued, want not", body)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		d          endpoint.Dialect
		way        upstream.Continue
		body, want string
	}{
		{
			endpoint.Chat, upstream.ContinueTold, `{"max_tokens": 10, "min_tokens":2,"messages": [ {"role":"user","content":"[]"} ] }`,
			`{"continue_final_message":true,"add_generation_prompt":false,"max_tokens": 7, "min_tokens":0,"messages": [ {"role":"user","content":"[]"} ,{"role":"assistant","content":"a \"b\"\n"}] }`,
		},
		{
			endpoint.Chat, upstream.ContinueBehind, `{"messages":[{"role":"user","content":"]"}],"max_completion_tokens":3,"max_tokens":2}`,
			`{"messages":[{"role":"user","content":"]"},{"role":"assistant","content":"a \"b\"\n"}],"max_completion_tokens":1,"max_tokens":1}`,
		},
		{endpoint.Completions, upstream.ContinueTold, `{"prompt":"x \"y","max_tokens":9}`, `{"prompt":"x \"ya \"b\"\n","max_tokens":6}`},
	} {
		q := must.Get(read(t, c.d, c.body))(t)
		got, _ := io.ReadAll(openai.NewReader([]byte(c.body), q.Edits(c.way, "a \"b\"\n", 3, nil)))
		if string(got) != c.want {
			t.Errorf("%s becomes\n%s, want\n%s", c.body, got, c.want)
		}
	}
}

// through is what a client gets of a stream that comes in pieces, by a meter.
func through(m providers.Meter, pieces ...string) string {
	var out strings.Builder
	for _, p := range pieces {
		pass, _ := m.Read([]byte(p))
		out.Write(pass)
	}
	pass, _ := m.End()
	out.Write(pass)
	return out.String()
}

func newMeter(t must.TB) providers.Meter {
	b := must.Get(providers.New(providers.Options{Name: "a", BaseURL: "http://a/v1", Kind: "vllm"}))(t)
	return b.NewMeter("/chat/completions", true, 0)
}

const (
	firstHalf = `data: {"id":"one","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" +
		": ping\n\n" +
		`data: {"id":"one","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a \u00e9"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"one","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" b \n"},"finish_reason":null}]}` + "\n\n"
	secondHalf = `data: {"id":"two","created":2,"model":"n","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"two","created":2,"model":"n","choices":[{"index":0,"delta":{"content":" "},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"two","created":2,"model":"n","choices":[{"index":0,"delta":{"role":"assistant","content":"\nc"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"two","created":2,"model":"n","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"two","created":2,"model":"n","choices":[],"usage":{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}` + "\n\n" +
		"data: [DONE]\n\n"
	rest = `data: {"id":"one","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"c"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"one","created":1,"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"one","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"total_tokens":12,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":5}}}` + "\n\n" +
		": x-pacer-continued: 1\n\ndata: [DONE]\n\n"
)

// However two streams are cut into reads, and wherever in an event the first one
// ends, the client gets one stream.
func TestTwoStreamsAreOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := func(text string) (list []string) {
			for text != "" {
				n := rapid.IntRange(1, min(len(text), 200)).Draw(rt, "piece")
				list, text = append(list, text[:n]), text[n:]
			}
			return list
		}
		q := must.Get(read(t, endpoint.Chat, `{"messages":[{"role":"user","content":"hi"}]}`))(rt)
		thread := Begin(q)
		half := secondHalf[:rapid.IntRange(0, 60).Draw(rt, "half an event")]
		got := through(thread.Meter(newMeter(rt), ""), pieces(firstHalf+half)...)
		if got != firstHalf {
			rt.Fatalf("of the first one goes on\n%q, want\n%q", got, firstHalf)
		}
		if why := thread.Unfit(); why != "" {
			rt.Fatal(why)
		}
		thread.GoOn(4, 5)
		if got := through(thread.Meter(newMeter(rt), "1"), pieces(secondHalf)...); got != rest {
			rt.Fatalf("of the second one goes on\n%s, want\n%s", got, rest)
		}
		edits := thread.Edits(upstream.ContinueTold, nil)
		if len(edits) != 2 {
			rt.Fatalf("edits %v", edits)
		}
	})
}

// What shows that the answer is more than its text ends it with its engine.
func TestWhatAStreamMayShow(t *testing.T) {
	for _, delta := range []string{
		`"reasoning_content":"hm"`, `"tool_calls":[{"index":0}]`, `"refusal":"no"`, `"audio":{"data":"x"}`,
	} {
		q, _ := read(t, endpoint.Chat, `{"messages":[{"role":"user","content":"hi"}]}`)
		thread := Begin(q)
		stream := firstHalf + `data: {"id":"one","choices":[{"index":0,"delta":{` + delta + `}}]}` + "\n\n"
		if got := through(thread.Meter(newMeter(t), ""), stream); got != stream || thread.Unfit() == "" {
			t.Errorf("%s: %q goes on, unfit %q; want all of it, and a reason", delta, got, thread.Unfit())
		}
	}
	for depth, unfit := range map[int]bool{1000 - 1: false, 1000: true} { // and the event around it
		q, _ := read(t, endpoint.Chat, `{"messages":[{"role":"user","content":"hi"}]}`)
		thread := Begin(q)
		stream := firstHalf + `data: {"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}\n\n"
		if got := through(thread.Meter(newMeter(t), ""), stream); got != stream || thread.Unfit() != "" != unfit {
			t.Errorf("an event of %d levels: unfit %q, and %d of %d bytes go on", depth+1, thread.Unfit(), len(got), len(stream))
		}
	}
	q, _ := read(t, endpoint.Chat, `{"messages":[{"role":"user","content":"hi"}],"stop":["\nEND"]}`)
	thread := Begin(q)
	if through(thread.Meter(newMeter(t), ""), firstHalf); thread.Unfit() == "" {
		t.Error("a stream whose text ends in the beginning of a stop can be continued, want not")
	}
	q, _ = read(t, endpoint.Chat, `{"messages":[{"role":"user","content":"hi"}]}`)
	thread = Begin(q)
	long := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 60<<10) + `"}}]}` + "\n\n"
	m := thread.Meter(newMeter(t), "")
	for range 5 {
		if pass, _ := m.Read([]byte(long)); string(pass) != long {
			t.Fatal("a large event does not go on as it is")
		}
	}
	if thread.Unfit() == "" || thread.Text() > MaxText || m.Held() > 2*MaxText {
		t.Errorf("%d bytes of text are kept, %d held, unfit %q", thread.Text(), m.Held(), thread.Unfit())
	}
}

// An event without an end is not held, whichever engine it comes from.
func TestAnEventWithoutAnEnd(t *testing.T) {
	for times := range 2 {
		q, _ := read(t, endpoint.Chat, `{"messages":[{"role":"user","content":"hi"}]}`)
		thread := Begin(q)
		if times > 0 {
			through(thread.Meter(newMeter(t), ""), firstHalf)
			thread.GoOn(4, 5)
		}
		m := thread.Meter(newMeter(t), "1")
		piece, passed := []byte("data: "+strings.Repeat("x", 32<<10)), 0
		for range 256 {
			pass, _ := m.Read(piece)
			passed += len(pass)
		}
		if held := m.Held(); held > 2<<20 || passed < 128*len(piece) || thread.Unfit() == "" {
			t.Errorf("after %d engines: %d bytes are held, %d went on, unfit %q", times, held, passed, thread.Unfit())
		}
	}
}

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The bubble's clock starts at the same second always; only the id differs.
var anyID = regexp.MustCompile(`(chatcmpl|cmpl)-[0-9a-f]{32}`)

func plain(s stream) []string {
	var list []string
	for _, e := range s.events {
		list = append(list, anyID.ReplaceAllString(e.data, "$1-ID"))
	}
	return list
}

func TestWireOfAChatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Names: []string{`m`, `org/m"2`}})
		s := r.stream(t.Context(), chat, `{`+strings.Replace(hello, `"m"`, `"org/m\"2"`, 1)+`,"stream":true,"max_completion_tokens":2,"max_tokens":9,"stream_options":{"include_usage":true}}`)
		head := `{"id":"chatcmpl-ID","object":"chat.completion.chunk","created":946684800,"model":"org/m\"2","choices":[`
		want := []string{
			head + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
			head + `{"index":0,"delta":{"content":" the"},"logprobs":null,"finish_reason":null}]}`,
			head + `{"index":0,"delta":{"content":" model"},"logprobs":null,"finish_reason":null}]}`,
			head + `{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
			head + `],"usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2}}`,
			`[DONE]`,
		}
		if d := cmp.Diff(want, plain(s)); d != "" {
			t.Errorf("events differ (-want +got):\n%s", d)
		}
		if got := s.header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
			t.Errorf("content type %q", got)
		}
		if s.events[0].at != s.events[1].at || s.events[2].at == s.events[1].at || s.events[5].at != s.events[2].at {
			t.Errorf("the role comes with the first token, and the end with the last: %+v", s.events)
		}
	})
}

func TestWireOfACompletionStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		s := r.stream(t.Context(), completions, `{"prompt":["one",[1,2,3,4,5]],"stream":true,"max_tokens":1,"n":1}`)
		head := `{"id":"cmpl-ID","object":"text_completion","created":946684800,"model":"m","choices":[`
		want := []string{
			head + `{"index":0,"text":" the","logprobs":null,"finish_reason":null,"stop_reason":null}]}`,
			head + `{"index":0,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
			head + `{"index":1,"text":" one","logprobs":null,"finish_reason":null,"stop_reason":null}]}`,
			head + `{"index":1,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null}]}`,
			`[DONE]`,
		}
		if d := cmp.Diff(want, plain(s)); d != "" {
			t.Errorf("events differ (-want +got):\n%s", d)
		}
	})
}

// As vLLM tells it: of each choice alone, the role chunk included, and only
// with include_usage.
func TestContinuousUsage(t *testing.T) {
	const asked = `,"stream":true,"max_tokens":3,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`
	for _, c := range []struct {
		name, path, body string
		behaviour        string
		want             []string // behind the choices of each event
	}{
		{
			"chat", chat, `{` + hello + asked + `}`, "unbounded-queue",
			[]string{of(2, 0), of(2, 1), of(2, 2), of(2, 3), of(2, 3), of(2, 3)},
		},
		{
			"two choices", chat, `{` + hello + `,"n":2` + asked + `}`, "unbounded-queue",
			[]string{
				of(2, 0), of(2, 1), of(2, 0), of(2, 1), of(2, 2), of(2, 2),
				of(2, 3), of(2, 3), of(2, 3), of(2, 3), of(2, 6),
			},
		},
		{
			"two prompts", completions, `{"prompt":["one",[1,2,3,4,5]]` + asked + `}`, "unbounded-queue",
			[]string{
				more(1, 1), more(5, 1), more(1, 2), more(5, 2), more(1, 3), more(1, 3), more(5, 3), more(5, 3), of(6, 6),
			},
		},
		{
			"repeated", chat, `{` + hello + asked + `}`, "repeated-usage",
			[]string{of(2, 0), of(2, 1), of(2, 1), of(2, 3), of(2, 3), of(2, 3), of(2, 3)},
		},
		{
			"on the last chunk", chat, `{` + hello + `,"stream":true,"max_tokens":3,"stream_options":{"include_usage":true}}`, "usage-on-finish",
			[]string{"}", "}", "}", "}", of(2, 3)},
		},
		{
			"nulls", chat, `{` + hello + `,"stream":true,"max_tokens":2,"stream_options":{"include_usage":true}}`, "usage-null",
			[]string{`,"usage":null}`, `,"usage":null}`, `,"usage":null}`, `,"usage":null}`, of(2, 2)},
		},
		{"no nulls unasked", chat, `{` + hello + `,"stream":true,"max_tokens":1}`, "usage-null", []string{"}", "}", "}"}},
		{"never", chat, `{` + hello + asked + `}`, "no-usage", []string{"}", "}", "}", "}", "}"}},
		{
			"without include_usage", chat, `{` + hello + `,"stream":true,"max_tokens":1,"stream_options":{"continuous_usage_stats":true}}`, "unbounded-queue",
			[]string{"}", "}", "}"},
		},
		{
			"of one of two", chat, `{` + hello + `,"n":2,"stream":true,"max_tokens":1,"stream_options":{"include_usage":true}}`, "n2-usage-wrong",
			[]string{"}", "}", "}", "}", "}", "}", of(2, 1)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{c.behaviour}})
				var got []string
				for _, e := range r.stream(t.Context(), c.path, c.body).events {
					if i := strings.LastIndexByte(e.data, ']'); e.data != "[DONE]" {
						got = append(got, e.data[i+1:])
					}
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("usages differ (-want +got):\n%s", d)
				}
			})
		})
	}
}

// of is the usage at the end of a chunk of chat, more that of a completion.
func of(prompt, completion int) string {
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}`, prompt, prompt+completion, completion)
}

func more(prompt, completion int) string {
	return strings.TrimSuffix(of(prompt, completion), "}}") + `,"prompt_tokens_details":null}}`
}

func TestUsageOnlyWhereAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		for _, options := range []string{``, `,"stream_options":{}`, `,"stream_options":null`, `,"stream_options":{"include_usage":false}`} {
			s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":1`+options+`}`)
			for _, e := range s.events {
				if strings.Contains(e.data, "usage") {
					t.Errorf("with %q the stream has %s", options, e.data)
				}
			}
			if !s.done() {
				t.Errorf("with %q the stream ended with %v", options, s.err)
			}
		}
	})
}

func TestWireOfWholeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		for _, c := range []struct{ path, body, want string }{
			{chat, `{` + hello + `,"max_tokens":3}`, `{"id":"chatcmpl-ID","object":"chat.completion","created":946684800,"model":"m","choices":[` +
				`{"index":0,"message":{"role":"assistant","content":" the model reads"},"logprobs":null,"finish_reason":"length","stop_reason":null}` +
				`],"usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3}}`},
			{completions, `{"model":"m","prompt":"hello you","max_tokens":1,"n":2}`, `{"id":"cmpl-ID","object":"text_completion","created":946684800,"model":"m","choices":[` +
				`{"index":0,"text":" the","logprobs":null,"finish_reason":"length","stop_reason":null},` +
				`{"index":1,"text":" one","logprobs":null,"finish_reason":"length","stop_reason":null}` +
				`],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}}`},
		} {
			status, got := r.call("POST", c.path, c.body)
			if d := cmp.Diff(c.want, anyID.ReplaceAllString(got, "$1-ID")); status != http.StatusOK || d != "" {
				t.Errorf("%s answers %d, differs (-want +got):\n%s", c.path, status, d)
			}
		}
	})
}

func TestPromptTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		for body, want := range map[string]int{
			`"messages":[{"role":"user","content":"12345678"}]`:                                                           2,
			`"messages":[{"role":"user","content":"123456789"}]`:                                                          3,
			`"messages":[{"content":"12"},{"content":null},{"role":"user","content":"345"}]`:                              2, // 5 bytes in all
			`"messages":[{"content":[{"type":"text","text":"1234"},{"type":"image_url","image_url":{"url":"data:"}}]}]`:   1,
			`"messages":[{"content":"\u00e9\u00e9\u00e9"}]`:                                                               2, // 6 bytes of UTF-8
			`"messages":[{"role":"assistant","tool_calls":[]}]`:                                                           0,
			`"messages":[{"role":"user","content":"hi"}],"temperature":0.1,"seed":12345678901234567890,"tools":[{"a":1}]`: 1,
		} {
			_, answer := r.call("POST", chat, `{"max_tokens":1,`+body+`}`)
			var c chunk
			if err := json.Unmarshal([]byte(answer), &c); err != nil || c.Usage == nil || c.Usage.Prompt != want {
				t.Errorf("%s: want %d prompt tokens, got %s", body, want, answer)
			}
		}
	})
}

// TestExactlySoManyTokens checks every way to say how many.
func TestExactlySoManyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.001}})
		for asked, want := range map[string]int{
			``: 128, `,"max_tokens":null`: 128, `,"max_tokens":7`: 7, `,"max_completion_tokens":9`: 9,
			`,"max_tokens":7,"max_completion_tokens":9`: 9, `,"max_tokens":1`: 1,
		} {
			s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true`+asked+`}`)
			if got := len(s.tokens(t)); got != want || !s.done() {
				t.Errorf("%q gives %d tokens, done %t, want %d", asked, got, s.done(), want)
			}
			_, answer := r.call("POST", chat, `{`+hello+asked+`}`)
			if c := decode(t, answer); c.Usage == nil || c.Usage.Completion != want {
				t.Errorf("%q gives %s, want %d tokens", asked, answer, want)
			}
		}
	})
}

func TestEveryChoiceIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"n":3,"max_tokens":5,"stream_options":{"include_usage":true}}`)
		roles, tokens, finished := map[int]int{}, map[int]int{}, map[int]int{}
		for _, e := range s.events[:len(s.events)-1] {
			c := decode(t, e.data)
			if c.Usage != nil {
				if c.Usage.Prompt != 2 || c.Usage.Completion != 15 || c.Usage.Total != 17 {
					t.Errorf("usage %+v, want 2 + 15", c.Usage)
				}
				continue
			}
			switch one := c.Choices[0]; {
			case one.Delta.Role != nil:
				roles[one.Index]++
			case one.FinishReason != nil:
				finished[one.Index]++
			default:
				tokens[one.Index]++
			}
		}
		each := func(n int) map[int]int { return map[int]int{0: n, 1: n, 2: n} }
		if d := cmp.Diff([]map[int]int{each(1), each(5), each(1)}, []map[int]int{roles, tokens, finished}); d != "" || !s.done() {
			t.Errorf("roles, tokens, ends of each choice differ (-want +got):\n%s", d)
		}
	})
}

func TestRefusedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, KVTokens: 5000})
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"POST", chat, `{"model":"other","messages":[{"role":"user","content":"x"}]}`, 404, "{\"error\":{\"message\":\"The model `other` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"},
			{"POST", completions, `{"model":"other","prompt":"x"}`, 404, "NotFoundError"},
			{"POST", chat, `{"model":`, 400, `"type":"BadRequestError","param":null,"code":400}}`},
			{"POST", chat, ``, 400, "BadRequestError"},
			{"POST", chat, `[]`, 400, "BadRequestError"},
			{"POST", chat, `{` + hello + `} {}`, 400, "BadRequestError"},
			{"POST", chat, `{"model":"m"}`, 400, "messages must hold"},
			{"POST", chat, `{"model":"m","messages":[]}`, 400, "messages must hold"},
			{"POST", chat, `{"messages":[{"content":7}]}`, 400, "content must be"},
			{"POST", chat, `{"messages":[{"content":[7]}]}`, 400, "part of content"},
			{"POST", chat, `{` + hello + `,"stream":"yes"}`, 400, "BadRequestError"},
			{"POST", chat, `{` + hello + `,"max_tokens":0}`, 400, "at least 1, got 0"},
			{"POST", chat, `{` + hello + `,"n":0}`, 400, "got n=0"},
			{"POST", chat, `{` + hello + `,"n":129}`, 400, "got n=129"},
			{"POST", chat, `{` + hello + `,"n":9223372036854775807}`, 400, "got n="},
			{"POST", chat, `{` + hello + `,"max_tokens":9223372036854775807}`, 400, "maximum context length"},
			{"POST", chat, `{` + hello + `,"max_tokens":131071}`, 400, "maximum context length"},
			{"POST", chat, `{` + hello + `,"max_tokens":5000}`, 400, "KV cache"},
			{"POST", chat, `{` + hello + `,"stream_options":{"include_usage":true}}`, 400, "stream=True"},
			{"POST", completions, `{"model":"m"}`, 400, "prompt must be given"},
			{"POST", completions, `{"prompt":[]}`, 400, "prompt must be given"},
			{"POST", completions, `{"prompt":7}`, 400, "prompt must be a string"},
			{"POST", completions, `{"prompt":["a",7]}`, 400, "prompt must be a string"},
			{"POST", completions, `{"prompt":[["a"]]}`, 400, "prompt must be a string"},
			{"POST", completions, `{"prompt":["a","b","c"],"n":60}`, 400, "got n=60 for 3 prompts"},
			{"GET", chat, ``, 405, `{"detail":"Method Not Allowed"}`},
			{"POST", "/v1/models", `{}`, 405, `{"detail":"Method Not Allowed"}`},
			{"GET", "/v1/nothing", ``, 404, `{"detail":"Not Found"}`},
			{"POST", "/sim/set", `{"drift":"fast","nope":1}`, 400, `sim: fault drift: \"fast\" is no factor from 0.001 to 1000; sim: no fault \"nope\"; there are cut, drift, forget, garbage, hidden, metrics, refuse, slow-start, stall, status`},
			{"POST", "/sim/set", `[`, 400, "no JSON object"},
		} {
			status, got := r.call(c.method, c.path, c.body)
			if status != c.status || !strings.Contains(got, c.want) {
				t.Errorf("%s %s %s: %d %s, want %d %s", c.method, c.path, c.body, status, got, c.status, c.want)
			}
		}
		if got := r.server.Truth(); got.Running+got.Waiting+len(got.Points) != 0 {
			t.Errorf("refused requests left %+v", got)
		}
		status, got := r.call("POST", chat, `{"x":"`+strings.Repeat("y", maxBodyBytes)+`"}`)
		if status != http.StatusRequestEntityTooLarge {
			t.Errorf("a body over the limit: %d %s, want 413", status, got)
		}
		<-time.After(time.Second) // virtual: net/http lets such a client read on for half of it
	})
}

func TestTheOtherEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Names: []string{"m", "org/m"}, MaxNumSeqs: 1})
		var models struct {
			Object string
			Data   []struct {
				ID, Object string
			}
		}
		r.get("/v1/models", &models)
		if models.Object != "list" || len(models.Data) != 2 || models.Data[0].ID != "m" || models.Data[1].ID != "org/m" || models.Data[1].Object != "model" {
			t.Errorf("models are %+v, want m and org/m", models)
		}
		if status, body := r.call("GET", "/health", ""); status != http.StatusOK || body != "" {
			t.Errorf("health is %d %q, want an empty 200", status, body)
		}
		first := r.raw(`{` + hello + `}`)
		defer first.Close()
		synctest.Wait()
		second := r.raw(`{` + hello + `}`)
		defer second.Close()
		synctest.Wait()
		_, metrics := r.call("GET", "/metrics", "")
		for name, n := range map[string]int{"running": 1, "waiting": 1} {
			want := fmt.Sprintf("# TYPE vllm:num_requests_%s gauge\nvllm:num_requests_%s{engine=\"0\",model_name=\"m\"} %d.0\n", name, name, n)
			if !strings.Contains(metrics, want) {
				t.Errorf("metrics lack %q:\n%s", want, metrics)
			}
		}
		var truth Truth
		r.get("/sim/truth", &truth)
		want := Truth{Model: "m", Points: []TruthPoint{}, Running: 1, Waiting: 1}
		if d := cmp.Diff(want, truth); d != "" {
			t.Errorf("truth differs (-want +got):\n%s", d)
		}
		if status, body := r.call("POST", "/sim/reset", ""); status != http.StatusOK || !strings.HasPrefix(body, `{"model":"m","points":[],`) {
			t.Errorf("reset answers %d %s", status, body)
		}
	})
}

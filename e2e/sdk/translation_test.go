package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// fake is a server with one API, made from what its maker publishes. It takes
// nothing that the maker's own types do not hold, and answers by the last words of
// its client.
type fake struct {
	mu       sync.Mutex
	requests []string
	wrong    []string // what no such server would take
	gone     int      // clients that left
	check    func(body []byte) error
	answer   func(w http.ResponseWriter, r *http.Request, body gjson.Result, scene string)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.requests = append(f.requests, string(body))
	if err := f.check(body); err != nil {
		f.wrong = append(f.wrong, fmt.Sprintf("%v: %s", err, body))
	}
	f.mu.Unlock()
	last := ""
	gjson.GetBytes(body, "messages").ForEach(func(_, m gjson.Result) bool {
		if c := m.Get("content"); m.Get("role").Str == "user" && c.Type == gjson.String {
			last = c.Str
		} else if m.Get("role").Str == "user" {
			for _, p := range c.Array() {
				if p.Get("type").Str == "text" {
					last = p.Get("text").Str
				}
			}
		}
		return true
	})
	f.answer(w, r, gjson.ParseBytes(body), last)
	if r.Context().Err() != nil {
		f.mu.Lock()
		f.gone++
		f.mu.Unlock()
	}
}

// last is the last request, and what was wrong with any since the last call.
func (f *fake) last() (request gjson.Result, wrong []string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrong, n = f.wrong, len(f.requests)
	if n > 0 {
		request = gjson.Parse(f.requests[n-1])
	}
	f.wrong, f.requests = nil, nil
	return request, wrong, n
}

// holds reports whether a vendor's type holds all of body: what it does not know is
// gone when it is written again.
func holds[T any](body []byte, beside ...string) error {
	var typed T
	if err := json.Unmarshal(body, &typed); err != nil {
		return err
	}
	again, err := json.Marshal(typed)
	if err != nil {
		return err
	}
	var want, got map[string]any
	_ = json.Unmarshal(body, &want)
	_ = json.Unmarshal(again, &got)
	for _, name := range beside {
		delete(want, name)
		delete(got, name)
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("the type holds only %s", again)
	}
	return nil
}

// event writes one event and flushes it.
func event(w http.ResponseWriter, name, data string) {
	if name != "" {
		_, _ = io.WriteString(w, "event: "+name+"\n")
	}
	_, _ = io.WriteString(w, "data: "+data+"\n\n")
	_ = http.NewResponseController(w).Flush()
}

func quoteJSON(s string) string { b, _ := json.Marshal(s); return string(b) }

// claudeRules are those of Anthropic's API that its types do not tell.
func claudeRules(body []byte) error {
	if err := holds[anthropic.MessageNewParams](body, "stream", "tool_choice"); err != nil {
		return err
	}
	v := gjson.ParseBytes(body)
	budget, most := v.Get("thinking.budget_tokens").Int(), v.Get("max_tokens").Int()
	if most < 1 || v.Get("thinking").Exists() && (budget < 1024 || budget >= most) {
		return errors.New("max_tokens and the budget do not fit")
	}
	if t := v.Get("temperature"); t.Num > 1 || v.Get("thinking").Exists() && t.Exists() && t.Num != 1 {
		return errors.New("temperature")
	}
	called, role := map[string]bool{}, "assistant"
	for _, m := range v.Get("messages").Array() {
		if m.Get("role").Str == role {
			return errors.New("a role follows itself")
		}
		role = m.Get("role").Str
		results := map[string]bool{}
		for i, b := range m.Get("content").Array() {
			switch b.Get("type").Str {
			case "text":
				if b.Get("text").Str == "" {
					return errors.New("an empty text")
				}
			case "tool_result":
				if !called[b.Get("tool_use_id").Str] || len(results) != i {
					return errors.New("a result of no call, or behind something else")
				}
				results[b.Get("tool_use_id").Str] = true
			}
		}
		if len(results) != len(called) {
			return errors.New("a call without a result")
		}
		called = map[string]bool{}
		for _, b := range m.Get("content").Array() {
			if b.Get("type").Str == "tool_use" {
				called[b.Get("id").Str] = true
			}
		}
	}
	return nil
}

// blocks of an answer, by the scene: their kind, and text or name and input.
func scene(name string) (blocks [][3]string, stop string) {
	text := [3]string{"text", "Hello \"wörld\" 😀\n", ""}
	switch name {
	case "call":
		return [][3]string{text, {"tool", "weather", `{"city": "Paris", "n": 1.50}`}}, "tool_use"
	case "calls":
		return [][3]string{{"tool", "weather", `{"city":"Paris"}`}, {"tool", "time", `{}`}}, "tool_use"
	case "think":
		return [][3]string{{"thinking", "let me see", "c2lnbmF0dXJl"}, text}, "end_turn"
	case "long":
		return [][3]string{text}, "max_tokens"
	case "stop":
		return [][3]string{text}, "stop_sequence"
	case "refuse":
		return [][3]string{text}, "refusal"
	case "json":
		return [][3]string{{"text", `{"a":1}`, ""}}, "end_turn"
	}
	return [][3]string{text}, "end_turn"
}

// fails answers the scenes that are errors.
func fails(w http.ResponseWriter, name, shape string) bool {
	rest, ok := strings.CutPrefix(name, "status ")
	if !ok {
		return false
	}
	var status int
	_, _ = fmt.Sscan(rest, &status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, shape, status)
	return true
}

func claude(w http.ResponseWriter, r *http.Request, body gjson.Result, name string) {
	if fails(w, name, `{"type":"error","error":{"type":"some_error","message":"because of %d"}}`) {
		return
	}
	w.Header().Set("Anthropic-Ratelimit-Requests-Limit", "50")
	blocks, stop := scene(name)
	usage := `{"input_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"output_tokens":%d}`
	sequence := "null"
	if stop == "stop_sequence" {
		sequence = `"END"`
	}
	if !body.Get("stream").Bool() {
		var all []string
		for i, b := range blocks {
			switch b[0] {
			case "text":
				all = append(all, `{"type":"text","text":`+quoteJSON(b[1])+`}`)
			case "thinking":
				all = append(all, `{"type":"thinking","thinking":`+quoteJSON(b[1])+`,"signature":`+quoteJSON(b[2])+`}`)
			case "tool":
				all = append(all, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":%s}`, i, b[1], b[2]))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[%s],"stop_reason":%q,"stop_sequence":%s,"usage":`+usage+`}`, strings.Join(all, ","), stop, sequence, 9)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":`+usage+`}}`, 1))
	if name == "overload" {
		event(w, "error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		return
	}
	for i, b := range blocks {
		start, kind, key := `{"type":"text","text":""}`, "text_delta", "text"
		text := b[1]
		switch b[0] {
		case "thinking":
			start, kind, key = `{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking"
		case "tool":
			start = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}`, i, b[1])
			kind, key, text = "input_json_delta", "partial_json", b[2]
		}
		event(w, "content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, start))
		event(w, "ping", `{"type":"ping"}`)
		for _, piece := range strings.SplitAfter(text, " ") {
			event(w, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, key, quoteJSON(piece)))
		}
		if name == "hang" {
			<-r.Context().Done()
			return
		}
		if b[0] == "thinking" {
			event(w, "content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%q}}`, i, b[2]))
		}
		event(w, "content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	event(w, "message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":%s},"usage":{"output_tokens":9}}`, stop, sequence))
	event(w, "message_stop", `{"type":"message_stop"}`)
}

// engineRules are those of OpenAI's chat that its types do not tell.
func engineRules(body []byte) error {
	if !gjson.GetBytes(body, "messages").Exists() {
		return nil // another endpoint, which it lacks
	}
	if err := holds[openai.ChatCompletionNewParams](body, "stream", "top_k", "messages", "tool_choice"); err != nil {
		return err
	}
	open := map[string]bool{}
	for _, m := range gjson.GetBytes(body, "messages").Array() {
		switch m.Get("role").Str {
		case "tool":
			if id := m.Get("tool_call_id").Str; !open[id] {
				return errors.New("a result of no call")
			} else {
				delete(open, id)
			}
			if m.Get("content").Type != gjson.String {
				return errors.New("a result that is no text")
			}
		case "assistant":
			for _, c := range m.Get("tool_calls").Array() {
				open[c.Get("id").Str] = true
			}
		default:
			if len(open) > 0 {
				return errors.New("a call without a result")
			}
		}
	}
	return nil
}

func engine(w http.ResponseWriter, r *http.Request, body gjson.Result, name string) {
	if r.URL.Path != "/v1/chat/completions" {
		http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
		return
	}
	if fails(w, name, `{"error":{"message":"because of %d","type":"some_error","param":null,"code":null}}`) {
		return
	}
	blocks, stop := scene(name)
	reason := map[string]string{"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}[stop]
	if reason == "" {
		reason = "stop"
	}
	const usage = `{"prompt_tokens":25,"completion_tokens":9,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":5}}`
	extra := ""
	if stop == "stop_sequence" {
		extra = `,"stop_reason":"END"`
	}
	if !body.Get("stream").Bool() {
		content, calls, thought := "null", []string{}, ""
		for i, b := range blocks {
			switch b[0] {
			case "text":
				content = quoteJSON(b[1])
			case "thinking":
				thought = `,"reasoning_content":` + quoteJSON(b[1])
			case "tool":
				calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, b[1], quoteJSON(b[2])))
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s%s,"tool_calls":[%s]},"finish_reason":%q%s}],"usage":%s}`,
			content, thought, strings.Join(calls, ","), reason, extra, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta, finish string) {
		event(w, "", fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}`, delta, finish))
	}
	chunk(`"role":"assistant","content":""`, "null")
	if name == "overload" {
		event(w, "", `{"error":{"message":"Overloaded","type":"server_error"}}`)
		return
	}
	call := 0
	for i, b := range blocks {
		switch b[0] {
		case "tool":
			chunk(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":""}}]`, call, i, b[1]), "null")
			for _, piece := range strings.SplitAfter(b[2], " ") {
				chunk(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, call, quoteJSON(piece)), "null")
			}
			call++
		default:
			key := map[string]string{"text": "content", "thinking": "reasoning_content"}[b[0]]
			for _, piece := range strings.SplitAfter(b[1], " ") {
				chunk(fmt.Sprintf("%q:%s", key, quoteJSON(piece)), "null")
			}
		}
		if name == "hang" {
			<-r.Context().Done()
			return
		}
	}
	chunk("", fmt.Sprintf("%q%s", reason, extra))
	if body.Get("stream_options.include_usage").Bool() {
		event(w, "", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":`+usage+`}`)
	}
	event(w, "", "[DONE]")
}

// translator is a gateway before both fakes.
type translator struct {
	url            string
	claude, engine *fake
}

func newTranslator(t *testing.T) translator {
	t.Helper()
	w := translator{claude: &fake{check: claudeRules, answer: claude}, engine: &fake{check: engineRules, answer: engine}}
	a, e := httptest.NewServer(w.claude), httptest.NewServer(w.engine)
	t.Cleanup(a.Close)
	t.Cleanup(e.Close)
	gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: claude, url: %s/v1, kind: anthropic, api_key: k }
  - { name: lenient, url: %s/v1, kind: anthropic, api_key: l, models: separate, drop_params: true }
  - { name: engine, url: %s/v1, kind: vllm, health_url: off }
routes:
  - { model: claude, targets: [ { backend: claude, model: claude-sonnet-4-5 } ] }
  - { model: lenient, targets: [ { backend: lenient, model: claude-sonnet-4-5 } ] }
  - { model: engine, targets: [ { backend: engine, model: llama } ] }
`, a.URL, strings.Replace(a.URL, "127.0.0.1", "localhost", 1), e.URL))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", gateway.Log())
		}
	})
	w.url = gateway.Ready["data"]
	return w
}

// pairs are paths and what stands there.
type pairs map[string]string

func (p pairs) check(t *testing.T, what string, v gjson.Result) {
	t.Helper()
	for path, want := range p {
		if got := v.Get(path); got.String() != want {
			t.Errorf("%s: %s is %q, want %q in %s", what, path, got.String(), want, v.Raw)
		}
	}
}

const (
	chatTools = `"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},{"type":"function","function":{"name":"time"}}]`
	hello     = "Hello \"wörld\" 😀\n"
)

// chatCases are requests of OpenAI's SDK: what goes up to Claude, and what comes
// down. Each is made twice: as a document and as a stream.
var chatCases = []struct {
	name, body string
	up, down   pairs
}{
	{"text", `"messages":[{"role":"user","content":"hi"}]`, pairs{"messages.0.content.0.text": "hi", "model": "claude-sonnet-4-5"}, pairs{"choices.0.message.content": hello, "choices.0.finish_reason": "stop"}},
	{"usage", `"messages":[{"role":"user","content":"hi"}]`, nil, pairs{"usage.prompt_tokens": "25", "usage.completion_tokens": "9", "usage.total_tokens": "34", "usage.prompt_tokens_details.cached_tokens": "5"}},
	{"system", `"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]`, pairs{"system.0.text": "s", "messages.#": "1"}, nil},
	{"developer", `"messages":[{"role":"developer","content":"d"},{"role":"user","content":"hi"}]`, pairs{"system.0.text": "d"}, nil},
	{"limit", `"max_tokens":77,"messages":[{"role":"user","content":"long"}]`, pairs{"max_tokens": "77"}, pairs{"choices.0.finish_reason": "length"}},
	{"newer limit", `"max_completion_tokens":78,"messages":[{"role":"user","content":"hi"}]`, pairs{"max_tokens": "78"}, nil},
	{"no limit", `"messages":[{"role":"user","content":"hi"}]`, pairs{"max_tokens": "32000"}, nil},
	{"sampling", `"temperature":0.3,"top_p":0.9,"messages":[{"role":"user","content":"hi"}]`, pairs{"temperature": "0.3", "top_p": "0.9"}, nil},
	{"stop", `"stop":"END","messages":[{"role":"user","content":"stop"}]`, pairs{"stop_sequences.0": "END"}, pairs{"choices.0.finish_reason": "stop"}},
	{"stops", `"stop":["A","B"],"messages":[{"role":"user","content":"hi"}]`, pairs{"stop_sequences.1": "B"}, nil},
	{"refusal", `"messages":[{"role":"user","content":"refuse"}]`, nil, pairs{"choices.0.finish_reason": "content_filter"}},
	{"user", `"user":"u1","messages":[{"role":"user","content":"hi"}]`, pairs{"metadata.user_id": "u1"}, nil},
	{"image", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aVZCT1I="}},{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content.0.source.media_type": "image/png", "messages.0.content.0.source.data": "aVZCT1I="}, nil},
	{"image by address", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}},{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content.0.source.url": "https://example.com/a.png"}, nil},
	{"file", `"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content.0.type": "document", "messages.0.content.0.source.data": "JVBERg=="}, nil},
	{"a call", chatTools + `,"messages":[{"role":"user","content":"call"}]`, pairs{"tools.0.input_schema.properties.city.type": "string", "tools.#": "2"}, pairs{"choices.0.message.tool_calls.0.function.arguments": `{"city": "Paris", "n": 1.50}`, "choices.0.message.tool_calls.0.id": "toolu_1", "choices.0.message.content": hello, "choices.0.finish_reason": "tool_calls"}},
	{"parallel calls", chatTools + `,"messages":[{"role":"user","content":"calls"}]`, nil, pairs{"choices.0.message.tool_calls.#": "2", "choices.0.message.tool_calls.0.function.name": "weather", "choices.0.message.tool_calls.1.function.name": "time", "choices.0.message.tool_calls.1.function.arguments": "{}"}},
	{"serial calls", chatTools + `,"parallel_tool_calls":false,"messages":[{"role":"user","content":"call"}]`, pairs{"tool_choice.disable_parallel_tool_use": "true", "tool_choice.type": "auto"}, nil},
	{"a named tool", chatTools + `,"tool_choice":{"type":"function","function":{"name":"time"}},"messages":[{"role":"user","content":"call"}]`, pairs{"tool_choice.type": "tool", "tool_choice.name": "time"}, nil},
	{"any tool", chatTools + `,"tool_choice":"required","messages":[{"role":"user","content":"call"}]`, pairs{"tool_choice.type": "any"}, nil},
	{"no tool", chatTools + `,"tool_choice":"none","messages":[{"role":"user","content":"hi"}]`, pairs{"tool_choice.type": "none"}, nil},
	{"results", chatTools + `,"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a.1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},{"id":"b","type":"function","function":{"name":"time","arguments":""}}]},{"role":"tool","tool_call_id":"a.1","content":"sunny"},{"role":"tool","tool_call_id":"b","content":"noon"},{"role":"user","content":"hi"}]`, pairs{"messages.#": "3", "messages.1.content.0.input.city": "Paris", "messages.2.content.1.tool_use_id": "b", "messages.2.content.0.content.0.text": "sunny", "messages.2.content.2.text": "hi"}, nil},
	{"schema", `"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}}},"messages":[{"role":"user","content":"json"}]`, pairs{"output_config.format.schema.properties.a.type": "integer"}, pairs{"choices.0.message.content": `{"a":1}`}},
	{"thinking", `"reasoning_effort":"low","messages":[{"role":"user","content":"think"}]`, pairs{"thinking.budget_tokens": "1024"}, pairs{"choices.0.message.content": hello}},
	{"no thinking", `"reasoning_effort":"none","messages":[{"role":"user","content":"hi"}]`, pairs{"thinking": ""}, nil},
	{"names", `"messages":[{"role":"user","content":"hi"}]`, nil, pairs{"model": "claude", "id": "msg_1"}},
}

func TestChatOnClaude(t *testing.T) {
	w := newTranslator(t)
	client := openai.NewClient(option.WithBaseURL(w.url+"/v1"), option.WithAPIKey("x"), option.WithMaxRetries(0))
	for _, c := range chatCases {
		var p openai.ChatCompletionNewParams
		if err := json.Unmarshal([]byte(`{"model":"claude",`+c.body+`}`), &p); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var more []option.RequestOption // the type drops the name of a tool that it reads
		if choice := gjson.Get("{"+c.body+"}", "tool_choice"); choice.IsObject() {
			more = append(more, option.WithJSONSet("tool_choice", choice.Value()))
		}
		t.Run(c.name, func(t *testing.T) {
			got := must.Get(client.Chat.Completions.New(t.Context(), p, more...))(t)
			request, wrong, _ := w.claude.last()
			if len(wrong) > 0 {
				t.Error(wrong)
			}
			c.up.check(t, "up", request)
			c.down.check(t, "down", gjson.Parse(got.RawJSON()))
		})
		t.Run(c.name+", streamed", func(t *testing.T) {
			p.StreamOptions.IncludeUsage = openai.Bool(true)
			stream := client.Chat.Completions.NewStreaming(t.Context(), p, more...)
			var sum openai.ChatCompletionAccumulator
			for stream.Next() {
				if !sum.AddChunk(stream.Current()) {
					t.Errorf("a chunk that does not follow: %s", stream.Current().RawJSON())
				}
			}
			must.Do(t, stream.Err())
			request, wrong, _ := w.claude.last()
			if len(wrong) > 0 {
				t.Error(wrong)
			}
			c.up.check(t, "up", request)
			whole, _ := json.Marshal(sum.ChatCompletion)
			c.down.check(t, "down", gjson.ParseBytes(whole))
		})
	}
	t.Run("errors", func(t *testing.T) {
		for _, status := range []int{400, 429, 529} {
			_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "claude", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(fmt.Sprintf("status %d", status))}})
			want := map[int]int{400: 400, 429: 429, 529: 502}[status]
			var api *openai.Error
			if !errors.As(err, &api) || api.StatusCode != want && !(status == 529 && api.StatusCode >= 500) || !strings.Contains(api.Message, fmt.Sprint("because of ", status)) {
				t.Errorf("status %d: %v", status, err)
			}
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "claude", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("overload")}})
		for stream.Next() {
		}
		if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "Overloaded") {
			t.Errorf("an error within a stream: %v", err)
		}
		w.claude.last()
	})
	t.Run("what cannot be carried", func(t *testing.T) {
		p := openai.ChatCompletionNewParams{Model: "claude", Seed: openai.Int(1), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
		_, err := client.Chat.Completions.New(t.Context(), p)
		var api *openai.Error
		if _, _, n := w.claude.last(); !errors.As(err, &api) || api.StatusCode != 400 || api.Param != "seed" || n != 0 {
			t.Errorf("got %v after %d requests, want 400 about seed", err, n)
		}
		p.Model = "lenient"
		var resp *http.Response
		if _, err := client.Chat.Completions.New(t.Context(), p, option.WithResponseInto(&resp)); err != nil || resp.Header.Get("X-Pacer-Dropped") != "seed" || resp.Header.Get("X-Ratelimit-Limit-Requests") != "50" {
			t.Errorf("got %v and the header %v", err, resp.Header)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "claude", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hang")}})
		stream.Next()
		_ = stream.Close()
		w.claude.left(t)
	})
}

// left waits until a client has left.
func (f *fake) left(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		f.mu.Lock()
		gone := f.gone
		f.mu.Unlock()
		if gone > 0 {
			return
		}
	}
	t.Error("the backend's request was not cancelled")
}

const messagesTools = `"tools":[{"name":"weather","description":"d","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}},{"name":"time","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]`

// messagesCases are requests of Anthropic's SDK to an engine that has chat alone.
var messagesCases = []struct {
	name, body string
	up, down   pairs
}{
	{"text", `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content": "hi", "model": "llama", "max_tokens": "9000"}, pairs{"content.0.text": hello, "stop_reason": "end_turn"}},
	{"usage", `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, nil, pairs{"usage.input_tokens": "20", "usage.cache_read_input_tokens": "5", "usage.output_tokens": "9"}},
	{"system", `"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, pairs{"messages.0.role": "system", "messages.0.content": "a\n\nb"}, nil},
	{"sampling", `"temperature":0.3,"top_p":0.9,"top_k":5,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, pairs{"temperature": "0.3", "top_p": "0.9", "top_k": "5"}, nil},
	{"length", `"messages":[{"role":"user","content":[{"type":"text","text":"long"}]}]`, nil, pairs{"stop_reason": "max_tokens"}},
	{"refusal", `"messages":[{"role":"user","content":[{"type":"text","text":"refuse"}]}]`, nil, pairs{"stop_reason": "refusal"}},
	{"stop", `"stop_sequences":["END"],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, pairs{"stop.0": "END"}, nil},
	{"user", `"metadata":{"user_id":"u1"},"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, pairs{"user": "u1"}, nil},
	{"image", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aVZCT1I="}},{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content.0.image_url.url": "data:image/png;base64,aVZCT1I="}, nil},
	{"image by address", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content.0.image_url.url": "https://example.com/a.png"}, nil},
	{"file", `"messages":[{"role":"user","content":[{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},{"type":"text","text":"hi"}]}]`, pairs{"messages.0.content.0.file.file_data": "data:application/pdf;base64,JVBERg=="}, nil},
	{"a call", messagesTools + `,"messages":[{"role":"user","content":[{"type":"text","text":"call"}]}]`, pairs{"tools.0.function.parameters.properties.city.type": "string", "tools.#": "2"}, pairs{"content.0.text": hello, "content.1.input.city": "Paris", "content.1.name": "weather", "content.1.id": "call_1", "stop_reason": "tool_use"}},
	{"parallel calls", messagesTools + `,"messages":[{"role":"user","content":[{"type":"text","text":"calls"}]}]`, nil, pairs{"content.#": "2", "content.0.name": "weather", "content.1.name": "time", "content.1.input": "{}"}},
	{"serial calls", messagesTools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"messages":[{"role":"user","content":[{"type":"text","text":"call"}]}]`, pairs{"parallel_tool_calls": "false", "tool_choice": "auto"}, nil},
	{"a named tool", messagesTools + `,"tool_choice":{"type":"tool","name":"time"},"messages":[{"role":"user","content":[{"type":"text","text":"call"}]}]`, pairs{"tool_choice.function.name": "time"}, nil},
	{"any tool", messagesTools + `,"tool_choice":{"type":"any"},"messages":[{"role":"user","content":[{"type":"text","text":"call"}]}]`, pairs{"tool_choice": "required"}, nil},
	{"results", messagesTools + `,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so"},{"type":"tool_use","id":"a","name":"weather","input":{"city":"Paris"}},{"type":"tool_use","id":"b","name":"time","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"sunny"}]},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"no"}]},{"type":"text","text":"hi"}]}]`, pairs{"messages.#": "5", "messages.1.tool_calls.0.function.arguments": `{"city":"Paris"}`, "messages.1.reasoning_content": "hm", "messages.2.content": "sunny", "messages.3.content": "Error: no", "messages.4.content": "hi"}, nil},
	{"thinking", `"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":[{"type":"text","text":"think"}]}]`, pairs{"reasoning_effort": "low"}, pairs{"content.0.type": "thinking", "content.0.thinking": "let me see", "content.1.text": hello}},
	{"schema", `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"messages":[{"role":"user","content":[{"type":"text","text":"json"}]}]`, pairs{"response_format.json_schema.schema.type": "object"}, pairs{"content.0.text": `{"a":1}`}},
	{"names", `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`, nil, pairs{"model": "engine", "id": "chatcmpl-1", "role": "assistant", "type": "message"}},
}

func TestMessagesOnAnEngine(t *testing.T) {
	w := newTranslator(t)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(w.url), anthropicoption.WithAPIKey("x"), anthropicoption.WithMaxRetries(0))
	for _, c := range messagesCases {
		var p anthropic.MessageNewParams
		if err := json.Unmarshal([]byte(`{"model":"engine","max_tokens":9000,`+c.body+`}`), &p); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var more []anthropicoption.RequestOption
		if choice := gjson.Get("{"+c.body+"}", "tool_choice"); choice.IsObject() {
			more = append(more, anthropicoption.WithJSONSet("tool_choice", choice.Value()))
		}
		check := func(t *testing.T, answer string) {
			request, wrong, _ := w.engine.last()
			if len(wrong) > 0 {
				t.Error(wrong)
			}
			c.up.check(t, "up", request)
			c.down.check(t, "down", gjson.Parse(answer))
		}
		t.Run(c.name, func(t *testing.T) {
			got := must.Get(client.Messages.New(t.Context(), p, more...))(t)
			check(t, got.RawJSON())
		})
		t.Run(c.name+", streamed", func(t *testing.T) {
			stream := client.Messages.NewStreaming(t.Context(), p, more...)
			var sum anthropic.Message
			for stream.Next() {
				if err := sum.Accumulate(stream.Current()); err != nil {
					t.Errorf("an event that does not follow: %v", err)
				}
			}
			must.Do(t, stream.Err())
			whole, _ := json.Marshal(sum)
			check(t, string(whole))
		})
	}
	message := func(text string) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{Model: "engine", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}}
	}
	t.Run("errors", func(t *testing.T) {
		for _, status := range []int{400, 429} {
			_, err := client.Messages.New(t.Context(), message(fmt.Sprintf("status %d", status)))
			var api *anthropic.Error
			if !errors.As(err, &api) || api.StatusCode != status || !strings.Contains(api.RawJSON(), `"type":"error"`) || !strings.Contains(api.RawJSON(), fmt.Sprint("because of ", status)) {
				t.Errorf("status %d: %v", status, err)
			}
		}
		stream := client.Messages.NewStreaming(t.Context(), message("overload"))
		for stream.Next() {
		}
		if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "Overloaded") {
			t.Errorf("an error within a stream: %v", err)
		}
		w.engine.last()
	})
	t.Run("count_tokens", func(t *testing.T) {
		got, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "engine", Messages: message(strings.Repeat("one two three four ", 100)).Messages})
		if err != nil || got.InputTokens < 300 || got.InputTokens > 600 {
			t.Errorf("counted %+v (%v), want about 400", got, err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		stream := client.Messages.NewStreaming(t.Context(), message("hang"))
		stream.Next()
		_ = stream.Close()
		w.engine.left(t)
	})
}

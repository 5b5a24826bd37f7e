package gateway

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/usage"
)

// counted is what one request came to: in the limits of its key, in what is paid for, and
// in the log.
type counted struct {
	limit         int
	input, output int64
	cost          bool
	source        string
}

func (h *house) counted() counted {
	h.t.Helper()
	h.idle()
	var c counted
	for _, cell := range h.gateway.usage.Cells(0, math.MaxInt64) {
		c.input += cell.Input
		c.output += cell.Output
		c.cost = c.cost || cell.Cost > 0
	}
	tenant := h.gateway.setup.Load().tenants[0]
	// What flows back in a millisecond is one token.
	c.limit = 60_000 - tenant.limits.State(time.Now()).Tokens.Remaining
	c.source = h.last().Source
	return c
}

// priced is a gateway whose one key is limited by its tokens, before engines with a price.
func priced(t *testing.T, kind string, engine http.Handler) *house {
	t.Helper()
	conf := settings("a")
	conf.Backends[0].Kind, conf.Backends[0].Price = kind, config.Price{Input: 1, Output: 10}
	k := key("mobile", "sk-right")
	k.Limits = config.KeyLimits{TokensPerMinute: 60_000}
	conf.Keys = []config.Key{k}
	h := open(t, conf, map[string]http.Handler{"a": engine})
	h.gateway.usage = usage.New(false)
	return h
}

// hangUp sends a request whose client reads for so long, and then hangs up.
func (h *house) hangUp(path, body string, after time.Duration) {
	h.t.Helper()
	conn := h.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: sk-right\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	<-time.After(after)
	_ = conn.Close()
	synctest.Wait()
}

// teachChunks has finished streams tell that a chunk is a token of four bytes.
func (h *house) teachChunks() {
	target := router.Target{Backend: "a", Model: "big"}
	for range 4 {
		s := h.book.Open(target, profiles.Open{Sent: time.Now()})
		for range 20 {
			<-time.After(20 * time.Millisecond)
			s.Text(4)
			s.Read(time.Now(), 1)
		}
		s.Usage(profiles.Usage{PromptTokens: 10, CompletionTokens: 20})
		s.Close(time.Now(), true)
	}
	if !h.book.Calibrated(target) {
		h.t.Fatal("four streams tell not how many tokens a chunk holds")
	}
}

// A client that hangs up before the usage comes pays for the text that it got, in every
// dialect and whatever the text is, and not for a token.
func TestAnAnswerWithoutUsageIsPaidByItsText(t *testing.T) {
	text := strings.Repeat("four", 1000)
	prompt := `"messages":[{"role":"user","content":"` + strings.Repeat("four", 200) + `"}]`
	event := func(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }
	for name, c := range map[string]struct{ kind, path, body, events string }{
		"text":        {"openai", chat, `{"model":"chat","stream":true,` + prompt + `}`, `data: {"choices":[{"delta":{"content":"` + text + `"}}]}` + "\n\n"},
		"reasoning":   {"vllm", chat, `{"model":"chat","stream":true,` + prompt + `}`, `data: {"choices":[{"delta":{"reasoning_content":"` + text + `"}}]}` + "\n\n"},
		"arguments":   {"openai", chat, `{"model":"chat","stream":true,` + prompt + `}`, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"` + text + `"}}]}}]}` + "\n\n"},
		"two chunks":  {"openai", chat, `{"model":"chat","stream":true,` + prompt + `}`, delta + `data: {"choices":[{"delta":{"content":"` + text + `"}}]}` + "\n\n"},
		"completions": {"openai", "/v1/completions", `{"model":"chat","stream":true,"prompt":"` + strings.Repeat("four", 200) + `"}`, `data: {"choices":[{"text":"` + text + `"}]}` + "\n\n"},
		"messages": {
			"anthropic", "/v1/messages", `{"model":"chat","stream":true,"max_tokens":9000,` + prompt + `}`,
			event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":200,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+text+`"}}`),
		},
		"thinking": {
			"anthropic", "/v1/messages", `{"model":"chat","stream":true,"max_tokens":9000,` + prompt + `}`,
			event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":200,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"`+text+`"}}`),
		},
		"input of a tool": {
			"anthropic", "/v1/messages", `{"model":"chat","stream":true,"max_tokens":9000,` + prompt + `}`,
			event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":200,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+text+`"}}`),
		},
		"messages, translated": {
			"anthropic", chat, `{"model":"chat","stream":true,"max_tokens":9000,` + prompt + `}`,
			event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":200,"output_tokens":1}}}`) +
				event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
				event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+text+`"}}`),
		},
		"responses": {
			"openai", "/v1/responses", `{"model":"chat","stream":true,"input":"` + strings.Repeat("four", 200) + `"}`,
			event("response.created", `{"type":"response.created","response":{"id":"r","usage":null}}`) +
				event("response.output_text.delta", `{"type":"response.output_text.delta","delta":"`+text+`"}`),
		},
		"arguments of a response": {
			"openai", "/v1/responses", `{"model":"chat","stream":true,"input":"` + strings.Repeat("four", 200) + `"}`,
			event("response.created", `{"type":"response.created","response":{"id":"r","usage":null}}`) +
				event("response.function_call_arguments.delta", `{"type":"response.function_call_arguments.delta","delta":"`+text+`"}`),
		},
		"gemini": {
			"gemini", "/v1beta/models/chat:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat("four", 200) + `"}]}]}`,
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]},"index":0}]}` + "\n\n",
		},
		"gemini, translated": {
			"gemini", chat, `{"model":"chat","stream":true,` + prompt + `}`,
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]},"index":0}]}` + "\n\n",
		},
	} {
		for _, taught := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s, chunks are known: %v", name, taught), func(t *testing.T) {
				h := priced(t, c.kind, &script{answer: func(w http.ResponseWriter, r *http.Request) {
					eventStream(w)
					say(w, c.events)
					pause(r, time.Hour)
				}})
				if taught {
					h.teachChunks()
				}
				h.hangUp(c.path, c.body, 100*time.Millisecond)
				got := h.counted()
				if got.output < 900 || got.output > 1100 || got.source != "estimate" || !got.cost {
					t.Errorf("%+v, want some 1,000 tokens of answer that cost something, as an estimate", got)
				}
				if got.input < 150 || got.input > 400 || int64(got.limit) < got.input+got.output-150 {
					t.Errorf("%+v, want some 200 tokens of prompt, and the same for the limit", got)
				}
			})
		}
	}
}

// What the backend counts with each chunk is paid for as it is, however long the text of a
// token: one of dashes has 64 bytes.
func TestWhatWasCountedWithEachChunkIsPaidAsItIs(t *testing.T) {
	bubble(t, "dashes", func(t *testing.T) {
		h := priced(t, "vllm", &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			for i := range 20 {
				say(w, fmt.Sprintf(`data: {"choices":[{"delta":{"content":"%s"}}],"usage":{"prompt_tokens":10,"completion_tokens":%d}}`+"\n\n", strings.Repeat("-", 64), i+1))
				<-time.After(10 * time.Millisecond)
			}
			pause(r, time.Hour)
		}})
		h.teachChunks()
		h.hangUp(chat, `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hi"}]}`, time.Second)
		if got := h.counted(); got.output != 20 || got.source != "continuous" {
			t.Errorf("%+v, want 20 tokens of answer by the count of each chunk", got)
		}
	})
}

// A prompt that a backend was at when its client hung up is paid for, and one that it
// failed at is free. What decodes nothing is paid for without a usage, too.
func TestAPromptWithoutUsageIsPaidFor(t *testing.T) {
	prompt := strings.Repeat("four", 200)
	messages := `{"model":"chat","messages":[{"role":"user","content":"` + prompt + `"}]}`
	hangs := func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) }
	says := func(status int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, c := range map[string]struct {
		path, body string
		engine     func(http.ResponseWriter, *http.Request)
		after      time.Duration // when the client hangs up
		input      bool
		output     int64
	}{
		"before the first token":     {chat, `{"stream":true,` + messages[1:], hangs, time.Second, true, 0},
		"before a document":          {chat, messages, hangs, time.Second, true, 0},
		"before an embedding":        {"/v1/embeddings", `{"model":"chat","input":"` + prompt + `"}`, hangs, time.Second, true, 0},
		"an embedding without usage": {"/v1/embeddings", `{"model":"chat","input":"` + prompt + `"}`, says(200, `{"object":"list","data":[{"embedding":[1]}]}`), time.Minute, true, 0},
		"a ranking without usage":    {"/v1/rerank", `{"model":"chat","query":"q","documents":["` + prompt + `"]}`, says(200, `{"results":[]}`), time.Minute, true, 0},
		"a document without usage":   {chat, messages, says(200, `{"choices":[{"message":{"content":"`+strings.Repeat("four", 1000)+`"}}]}`), time.Minute, true, 1000},
		"what the backend fails at":  {chat, messages, says(500, `{"error":{"message":"no"}}`), time.Minute, false, 0},
		"what it refuses":            {chat, messages, says(400, `{"error":{"message":"no"}}`), time.Minute, false, 0},
		"what is full":               {chat, messages, says(429, `{"error":{"message":"no"}}`), time.Minute, false, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			h := priced(t, "openai", &script{answer: c.engine})
			h.teachChunks()
			h.hangUp(c.path, c.body, c.after)
			got := h.counted()
			if paid := got.input >= 150 && got.input <= 300; paid != c.input || !paid && got.input != 0 || got.cost != c.input {
				t.Errorf("%+v, want some 200 tokens of prompt to be paid for: %v", got, c.input)
			}
			if got.output < c.output*9/10 || got.output > c.output*11/10 {
				t.Errorf("%+v, want %d tokens of answer", got, c.output)
			}
		})
	}
}

package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/tokens"
)

const messagesPath, countPath = "/v1/messages", "/v1/messages/count_tokens"

// claude is a stream of Anthropic's with a thought, text and a call of a tool.
var claude = strings.ReplaceAll(`event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"w\u00f6rd\n"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12}}

event: message_stop
data: {"type":"message_stop"}

`, "\r", "")

// foreign is a configuration whose backends are of these kinds.
func foreign(kinds map[string]string, names ...string) *config.Config {
	c := settings(names...)
	for i := range c.Backends {
		if k := kinds[c.Backends[i].Name]; k != "" {
			c.Backends[i].Kind = k
		}
	}
	return c
}

func TestAChatIsServedByMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: slowly(claude)}
		h := open(t, foreign(map[string]string{"a": "anthropic"}, "a"), map[string]http.Handler{"a": engine})
		r := h.post(chat, `{"model":"chat","messages":[{"role":"system","content":"short"},{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":50}`)
		if r.status != 200 || r.err != nil {
			t.Fatalf("got %d %q (%v)", r.status, r.body, r.err)
		}
		if engine.paths[0] != "/v1/messages" {
			t.Errorf("asked at %s", engine.paths[0])
		}
		want := `{"model":"big","stream":true,"max_tokens":50,"system":[{"type":"text","text":"short"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
		if engine.bodies[0] != want {
			t.Errorf("sent %s, want %s", engine.bodies[0], want)
		}
		has(t, r.body,
			`"id":"msg_1"`, `"model":"chat"`, `"delta":{"content":"word "}`, `"delta":{"content":"w\u00f6rd\n"}`, `"finish_reason":"stop"`,
			`"usage":{"prompt_tokens":10,"completion_tokens":12,"total_tokens":22,"prompt_tokens_details":{"cached_tokens":3}`, "data: [DONE]\n\n",
		)
		if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 12 || line.Source != "usage" || line.TTFTms == 0 {
			t.Errorf("log line %+v", line)
		}
		h.idle()

		// Without its last event it is no answer.
		cut, _, _ := strings.Cut(claude, "event: message_delta")
		engine.answer = slowly(cut)
		r = h.post(chat, streamBody)
		if !isCut(r.err) || !strings.Contains(r.body, `data: {"error":{"message":"The backend broke off the answer."`) || strings.Contains(r.body, "[DONE]") {
			t.Errorf("got %q (%v), want an error event and a cut", r.body, r.err)
		}
		if line := h.last(); line.Outcome != outcomeCut {
			t.Errorf("log line %+v, want cut", line)
		}
	})
}

// However a client writes that it wants a stream, the backend of another dialect is
// asked for one: else it would be blamed for the document that it was asked for.
func TestAStreamIsAskedForInAnyWords(t *testing.T) {
	for value, streams := range map[string]bool{`"yes"`: true, `"on"`: true, `" True "`: true, `1`: true, `"no"`: false, `0`: false, `null`: false} {
		bubble(t, value, func(t *testing.T) {
			engine := &script{answer: slowly(claude)}
			if !streams {
				engine.answer = states(200, `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"word"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":1}}`)
			}
			h := open(t, foreign(map[string]string{"a": "anthropic"}, "a"), map[string]http.Handler{"a": engine})
			r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}],"max_tokens":50,"stream":`+value+`,"stream_options":{"include_usage":`+value+`}}`)
			if r.status != 200 || r.err != nil || strings.Contains(r.body, "data: [DONE]") != streams || !strings.Contains(r.body, `"usage":{`) {
				t.Errorf("got %d %q (%v), want a stream: %v", r.status, r.body, r.err, streams)
			}
			if asked := strings.Contains(engine.bodies[0], `"stream":true`); asked != streams {
				t.Errorf("sent %s, want a stream: %v", engine.bodies[0], streams)
			}
			if line := h.last(); line.Outcome != outcomeOK {
				t.Errorf("outcome %q, want ok", line.Outcome)
			}
		})
	}
}

// Where the gateway has no room for an answer, its backend is not to blame: no
// other one is asked instead, and it stays in service.
func TestNoRoomForADocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, `{"id":"msg_2","type":"message","role":"assistant","content":[{"type":"text","text":"`)
			for range 100 {
				say(w, strings.Repeat("x", 10_000))
			}
			say(w, `"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":6}}`)
		}}
		other := &script{answer: big.answer}
		c := foreign(map[string]string{"a": "anthropic", "b": "anthropic"}, "a", "b")
		c.Limits.Body, c.Limits.Buffered = 100_000, 400_000
		h := open(t, c, map[string]http.Handler{"a": big, "b": other})
		for range 10 {
			if r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`); r.status != 503 || !strings.Contains(r.body, "overloaded") {
				t.Fatalf("got %d %.200s", r.status, r.body)
			}
		}
		if n := len(big.bodies) + len(other.bodies); n != 10 {
			t.Errorf("10 requests were sent %d times", n)
		}
	})
}

func TestADocumentIsTranslatedAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Anthropic-Ratelimit-Requests-Remaining", "49")
			w.Header().Set("Request-Id", "req_1")
			say(w, `{"id":"msg_2","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hel`)
			say(w, `lo"},{"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":6}}`)
		}}
		h := open(t, foreign(map[string]string{"a": "anthropic"}, "a"), map[string]http.Handler{"a": engine})
		r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}]}`)
		var got struct {
			Choices []struct {
				Message struct {
					Content   string
					ToolCalls []struct {
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				FinishReason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Choices) != 1 {
			t.Fatalf("got %d %q (%v)", r.status, r.body, err)
		}
		c := got.Choices[0]
		if c.Message.Content != "hello" || c.FinishReason != "tool_calls" || len(c.Message.ToolCalls) != 1 || c.Message.ToolCalls[0].Function.Arguments != `{"a":1}` {
			t.Errorf("got %+v", c)
		}
		if r.header.Get("X-Ratelimit-Remaining-Requests") != "49" || r.header.Get("Request-Id") != "" {
			t.Errorf("headers %v", r.header)
		}
		if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 6 {
			t.Errorf("log line %+v", line)
		}
	})
}

func TestMessagesAreServedByChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != chat {
				http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
				return
			}
			talk(3, 10*time.Millisecond)(w, r)
		}}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		body := `{"model":"chat","max_tokens":99,"messages":[{"role":"user","content":"hi"}],"stream":true,"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}]}`
		for i, paths := range [][]string{{"/v1/messages", chat}, {chat}} {
			engine.paths = nil
			r := h.post(messagesPath+"?beta=true", body, "anthropic-beta", "x-2025", "anthropic-version", "2023-06-01")
			if r.status != 200 || r.err != nil {
				t.Fatalf("got %d %q (%v)", r.status, r.body, r.err)
			}
			has(t, r.body,
				"event: message_start\n", `"text_delta","text":"word "}`, `"stop_reason":"max_tokens"`, `"input_tokens":7,`, `"output_tokens":3}`, "event: message_stop\n",
			)
			if len(engine.paths) != len(paths) || engine.paths[len(paths)-1] != chat {
				t.Errorf("request %d went to %q, want %q", i+1, engine.paths, paths)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 3 || line.Source != "usage" {
				t.Errorf("log line %+v", line)
			}
		}
		want := `{"stream_options":{"include_usage":true},"model":"big","stream":true,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"}],"max_tokens":99}`
		if got := engine.bodies[len(engine.bodies)-1]; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		if head := engine.heads[len(engine.heads)-1]; head.Get("Anthropic-Beta") != "" {
			t.Error("a header of Anthropic's went to a chat")
		}
	})
}

// An engine that has Messages itself gets them as they are.
func TestMessagesGoThroughWhereTheyAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: slowly(claude)}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		body := `{"model":"chat","max_tokens":99,"messages":[{"role":"user","content":"hi"}],"stream":true,"odd":1}`
		for range 2 {
			if r := h.post(messagesPath, body); r.status != 200 || r.body != claude {
				t.Errorf("got %d %q", r.status, r.body)
			}
		}
		if engine.calls() != 2 || !strings.Contains(engine.bodies[1], `"odd":1`) {
			t.Errorf("sent %q", engine.bodies)
		}
	})
}

func TestTokensAreCountedForMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		body := `{"model":"chat","messages":[{"role":"user","content":"` + strings.Repeat("seven words are in this one sentence. ", 50) + `"}]}`
		for range 2 {
			r := h.post(countPath, body)
			var got struct {
				InputTokens int `json:"input_tokens"`
			}
			if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 || got.InputTokens < 300 || got.InputTokens > 600 {
				t.Errorf("got %d %s (%v), want about 400", r.status, r.body, err)
			}
		}
		if engine.calls() != 1 {
			t.Errorf("the engine was asked %d times, want once", engine.calls())
		}
	})
}

// What the target cannot be told is refused by its name before anything goes up,
// or left out and named.
func TestWhatCannotBeCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: slowly(claude)}
		c := foreign(map[string]string{"a": "anthropic"}, "a")
		h := open(t, c, map[string]http.Handler{"a": engine})
		body := `{"model":"chat","messages":[{"role":"user","content":"hi"}],"stream":true,"seed":1,"logit_bias":{"5":1}}`
		r := h.post(chat, body)
		if r.status != 400 || !strings.Contains(r.body, `"param":"`) || engine.calls() != 0 {
			t.Errorf("got %d %s after %d calls", r.status, r.body, engine.calls())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: slowly(claude)}
		c := foreign(map[string]string{"a": "anthropic"}, "a")
		c.Backends[0].DropParams = true
		h := open(t, c, map[string]http.Handler{"a": engine})
		r := h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"hi"}],"stream":true,"seed":1,"logit_bias":{"5":1}}`)
		if r.status != 200 || r.header.Get("X-Pacer-Dropped") != "logit_bias, seed" {
			t.Errorf("got %d, dropped %q", r.status, r.header.Get("X-Pacer-Dropped"))
		}
		r = h.post("/v1/responses", `{"model":"chat","input":"hi","stream":true,"temperature":0.2,"top_logprobs":2,"metadata":{"job":"7"}}`)
		if said := `"metadata":{"job":"7"}`; r.status != 200 || strings.Count(r.body, said) != 3 || !strings.Contains(r.body, `"temperature":0.2`) || strings.Contains(r.body, "top_logprobs") {
			t.Errorf("got %d, want %s and the temperature in three events, and nothing that was left out: %s", r.status, said, r.body)
		}
	})
}

// A chat moves on from an engine to Claude, and back, before the first byte.
func TestAChatMovesOnToAnotherDialect(t *testing.T) {
	for name, failing := range map[string]string{"from chat": "a", "from messages": "b"} {
		bubble(t, name, func(t *testing.T) {
			engines := map[string]http.Handler{"a": &script{answer: talk(12, time.Millisecond)}, "b": &script{answer: slowly(claude)}}
			engines[failing].(*script).answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }
			c := foreign(map[string]string{"b": "anthropic"}, "a", "b")
			if failing == "b" {
				ts := c.Routes[0].Targets
				ts[0], ts[1] = ts[1], ts[0]
			}
			h := open(t, c, engines)
			r := h.post(chat, streamBody)
			if r.status != 200 || r.err != nil || !strings.Contains(r.body, `"content":"word "`) || !strings.HasSuffix(r.body, doneEvent) {
				t.Errorf("got %d %q (%v)", r.status, r.body, r.err)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Attempts != 2 || line.Tokens != 12 {
				t.Errorf("log line %+v", line)
			}
		})
	}
}

// An error of the target comes in the client's shape.
func TestErrorsAreTranslated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: states(400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too large"}}`)}
		h := open(t, foreign(map[string]string{"a": "anthropic"}, "a"), map[string]http.Handler{"a": engine})
		r := h.post(chat, streamBody)
		if r.status != 400 || !strings.HasPrefix(r.body, `{"error":{"message":"The backend answered 400: max_tokens: too large`) {
			t.Errorf("got %d %s", r.status, r.body)
		}
		h.idle()

		engine.answer = states(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		r = h.post(chat, streamBody)
		if r.err != nil || r.status < 500 || !strings.HasPrefix(r.body, `{"error":{"message":"The backend answered 529: Overloaded`) {
			t.Errorf("got %d %s (%v)", r.status, r.body, r.err)
		}
		if r.header.Get("Retry-After") == "" {
			t.Errorf("529 without a time to come back, which an untranslated one has: %v", r.header)
		}
	})
}

// A client that leaves ends the stream at the backend.
func TestATranslatedStreamIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			head, _, _ := strings.Cut(claude, "event: message_delta")
			say(w, head)
			pause(r, time.Hour)
		}}
		h := open(t, foreign(map[string]string{"a": "anthropic"}, "a"), map[string]http.Handler{"a": engine})
		resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
		must.Get(io.ReadFull(resp.Body, make([]byte, 100)))(t)
		_ = resp.Body.Close()
		h.idle()
		if engine.left() != 1 {
			t.Error("the backend's request was not cancelled")
		}
		if line := h.last(); line.Outcome != outcomeGone {
			t.Errorf("log line %+v", line)
		}
	})
}

// A backend whose model stands in its path is asked there, and its own framing is
// read.
func TestAChatIsServedByGeminiAndBedrock(t *testing.T) {
	bedrock := must.Get(os.ReadFile("testdata/converse.stream"))(t)
	for kind, c := range map[string]struct {
		url, path, stream, contentType string
	}{
		"gemini": {
			"http://a/v1beta", "/v1beta/models/big:streamGenerateContent?alt=sse",
			`data: {"candidates":[{"content":{"parts":[{"text":"word "}],"role":"model"}}]}` + "\n\n" +
				`data: {"candidates":[{"content":{"parts":[{"text":"word"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2}}` + "\n\n",
			"text/event-stream",
		},
		"bedrock": {"http://a", "/model/big/converse-stream", string(bedrock), "application/vnd.amazon.eventstream"},
	} {
		bubble(t, kind, func(t *testing.T) {
			engine := &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				half := len(c.stream) / 2
				say(w, c.stream[:half])
				<-time.After(50 * time.Millisecond)
				say(w, c.stream[half:])
			}}
			conf := foreign(map[string]string{"a": kind}, "a")
			conf.Backends[0].URL = c.url
			h := open(t, conf, map[string]http.Handler{"a": engine})
			r := h.post(chat, streamBody)
			if r.status != 200 || r.err != nil || !strings.Contains(r.body, `"content":"word "`) || !strings.HasSuffix(r.body, `"finish_reason":"stop"}]}`+"\n\n"+doneEvent) {
				t.Errorf("got %d %q (%v)", r.status, r.body, r.err)
			}
			if engine.paths[0] != c.path || strings.Contains(engine.bodies[0], `"model"`) || strings.Contains(engine.bodies[0], `"stream"`) {
				t.Errorf("asked %s at %s, want %s", engine.bodies[0], engine.paths[0], c.path)
			}
			if r.header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("the type is %s", r.header.Get("Content-Type"))
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 2 || line.Source != "usage" {
				t.Errorf("log line %+v", line)
			}
		})
	}
}

// Responses go to a backend that lacks them, and keep nothing.
func TestResponsesAreServedByChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != chat {
				http.NotFound(w, r)
				return
			}
			talk(3, 10*time.Millisecond)(w, r)
		}}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		r := h.post("/v1/responses", `{"model":"chat","instructions":"short","input":"hi","stream":true}`)
		if r.status != 200 || !strings.HasPrefix(r.body, "event: response.created\n") || !strings.Contains(r.body, "event: response.incomplete\n") || !strings.Contains(r.body, `"input_tokens":7,`) {
			t.Errorf("got %d %s (%v)", r.status, r.body, r.err)
		}
		if r := h.do(h.request("GET", "/v1/responses/resp_1", "")); r.status != 404 {
			t.Errorf("a translated answer is kept: %d", r.status)
		}
	})
}

// What a body becomes while it is translated is far more than itself where its values are
// small. So they count against the room for bodies, and there may be only so many.
func TestWhatIsTranslatedNeedsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: slowly(claude)}
		c := foreign(map[string]string{"a": "anthropic"}, "a")
		c.Limits.Body, c.Limits.Buffered = 16<<20, 32<<20
		h := open(t, c, map[string]http.Handler{"a": engine})
		body := func(parts int) string {
			return `{"model":"chat","stream":true,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, parts) + `{"type":"text","text":"a"}]}]}`
		}
		for parts, want := range map[int]int{1000: 200, mostValues / 4: 503, mostValues: 400} {
			r := h.post(chat, body(parts))
			if r.status != want || want == 400 && !strings.Contains(r.body, "too many to translate") {
				t.Errorf("%d parts: got %d %.200s, want %d", parts, r.status, r.body, want)
			}
		}
		if engine.calls() != 1 {
			t.Errorf("sent %d times, want once", engine.calls())
		}
		h.idle()
	})
}

// What a request was read as for backends of another dialect is given up with its body:
// else whoever streams would hold the room of those who come.
func TestWhatWasTranslatedIsGivenUpWithTheBody(t *testing.T) {
	for name, kinds := range map[string]map[string]string{
		"for the backend that is asked": {"a": "anthropic", "b": "anthropic"},
		"for another one":               {"b": "anthropic"},
	} {
		bubble(t, name, func(t *testing.T) {
			answer := talk(10, 10*time.Millisecond)
			if kinds["a"] != "" {
				answer = slowly(claude)
			}
			engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
				pause(r, time.Second)
				answer(w, r)
			}}
			c := foreign(kinds, "a", "b")
			c.Routes[0].Prefer = "order"
			h := open(t, c, map[string]http.Handler{"a": engine, "b": &script{answer: states(500, "")}})
			const parts = 5000
			const room = 3 * parts * perValue
			body := `{"model":"chat","stream":true,"max_tokens":50,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, parts) + `{"type":"text","text":"a"}]}]}`
			done := make(chan reply, 1)
			go func() { done <- h.post(chat, body) }()
			<-time.After(500 * time.Millisecond)
			if held := h.gateway.buffered.used.Load(); held < onHeap*room {
				t.Errorf("%d bytes are held while any backend may be asked, want %d", held, onHeap*room)
			}
			<-time.After(515 * time.Millisecond) // its first bytes are there
			if held := h.gateway.buffered.used.Load(); held > onHeap*int64(len(body)+4*tokens.MaxText) {
				t.Errorf("%d bytes are held by a stream whose body has %d", held, len(body))
			}
			if r := <-done; r.status != 200 || r.err != nil {
				t.Errorf("got %d %.200s (%v)", r.status, r.body, r.err)
			}
			h.idle()
		})
	}
}

// The ends of answers that are told again as a whole are within the budget over all
// requests: who finds no room for its own is broken off, and the others are whole.
func TestTheEndsOfTranslatedAnswersAreCounted(t *testing.T) {
	const clients, pieces, piece, buffered = 12, 32, 32 << 10, 48 << 20 // a MiB each, and 4 MiB at its end; what lies on the heap counts twice
	event := func(typ, more string) string {
		return "event: " + typ + "\ndata: {\"type\":\"" + typ + "\"" + more + "}\n\n"
	}
	synctest.Test(t, func(t *testing.T) {
		c := foreign(map[string]string{"a": "anthropic"}, "a")
		c.Limits.Body, c.Limits.Buffered = 1<<20, buffered
		h := open(t, c, map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			say(w, event("message_start", `,"message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`))
			say(w, event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`))
			for range pieces {
				say(w, event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+strings.Repeat("x", piece)+`"}`))
			}
			if pause(r, time.Second) {
				say(w, event("content_block_stop", `,"index":0`)+event("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}`)+event("message_stop", ""))
			}
		}}})
		got := make(chan reply, clients)
		for range clients {
			go func() { got <- h.post("/v1/responses", `{"model":"chat","stream":true,"input":"x"}`) }()
		}
		<-time.After(500 * time.Millisecond)
		held := h.gateway.buffered.used.Load()
		whole := 0
		for range clients {
			r := <-got
			switch complete := strings.Contains(r.body, "event: response.completed"); {
			case complete && r.err == nil:
				whole++
			case complete || !isCut(r.err):
				t.Errorf("an answer that is not whole looks so: read to %v", r.err)
			}
		}
		const each = onHeap * 5 * pieces * piece // with its end
		if most := buffered / each; whole == 0 || whole > most || held < int64(whole)*each*9/10 {
			t.Errorf("%d answers were whole with %d bytes held before their ends, want no more than %d, and those counted", whole, held, most)
		}
		h.idle()
	})
}

// A document that is translated counts with what will come of it while it is read, and no
// more once its backend has broken it off.
func TestADocumentToTranslateIsCountedWhileItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		body := `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":9}}`
		answer := func(ends bool) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if ends {
					pause(r, time.Second)
				}
				say(w, body[:size])
				pause(r, time.Second)
				if !ends {
					cutOff(w)
					return
				}
				say(w, body[size:])
			}
		}
		c := foreign(map[string]string{"a": "anthropic", "b": "anthropic"}, "a", "b")
		c.Routes[0].Prefer = "order"
		h := open(t, c, map[string]http.Handler{"a": &script{answer: answer(false)}, "b": &script{answer: answer(true)}})
		done := make(chan reply, 1)
		go func() { done <- h.post(chat, `{"model":"chat","messages":[{"role":"user","content":"x"}]}`) }()
		<-time.After(500 * time.Millisecond)
		if held := h.gateway.buffered.used.Load(); held < onHeap*2*(size-2*relayBuffer) {
			t.Errorf("%d bytes are held of a document of %d", held, size)
		}
		<-time.After(time.Second)
		if held := h.gateway.buffered.used.Load(); held > size/4 {
			t.Errorf("%d bytes are held of a document that broke off", held)
		}
		if r := <-done; r.status != 200 || r.err != nil || len(r.body) < size || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("got %d with %d bytes of %q (%v)", r.status, len(r.body), r.header.Get("X-Pacer-Backend"), r.err)
		}
		h.idle()
	})
}

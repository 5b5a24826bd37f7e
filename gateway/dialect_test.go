package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Streams of the endpoints that are not chat, each up to its last event.
var (
	responsesStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress"}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":1,"delta":"word "}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":2,"delta":"word "}

event: response.completed
data: {"type":"response.completed","sequence_number":3,"response":{"id":"resp_1","status":"completed","usage":{"input_tokens":7,"output_tokens":2,"total_tokens":9}}}

`
	messagesStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":7,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`
	transcriptStream = `data: {"type":"transcript.text.delta","delta":"word "}

data: {"type":"transcript.text.delta","delta":"word "}

data: {"type":"transcript.text.done","text":"word word "}

`
)

// slowly sends a stream event by event.
func slowly(stream string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		for event := range strings.SplitAfterSeq(stream, "\n\n") {
			if event == "" || !pause(r, 10*time.Millisecond) {
				return
			}
			say(w, event)
		}
	}
}

func TestEveryDialectStreams(t *testing.T) {
	for _, c := range []struct {
		path, stream, last string
		measured           bool
	}{
		{"/v1/responses", responsesStream, "event: response.completed", true},
		{"/v1/messages", messagesStream, "event: message_stop", true},
		{"/v1/audio/transcriptions", transcriptStream, `data: {"type":"transcript.text.done"`, false},
	} {
		bubble(t, c.path, func(t *testing.T) {
			engine := &script{answer: slowly(c.stream)}
			h := open(t, settings("a"), map[string]http.Handler{"a": engine})
			body, kind := `{"model":"chat","stream":true}`, "application/json"
			if !c.measured {
				body, kind = transcription(t, 100, "model", "chat", "stream", "true")
			}
			r := h.post(c.path, body, "Content-Type", kind)
			if r.status != 200 || r.err != nil || r.body != c.stream {
				t.Errorf("got %d %q (%v), want the stream as it was", r.status, r.body, r.err)
			}
			if strings.Contains(engine.bodies[0], "stream_options") {
				t.Error("usage was asked for where nobody knows the question")
			}
			line := h.last()
			if line.Outcome != outcomeOK || (line.TTFTms > 0) != c.measured || c.measured && (line.Tokens != 2 || line.Source != "usage") {
				t.Errorf("log line %+v", line)
			}
			h.idle()

			// The same without its last event is no answer.
			cut, _, _ := strings.Cut(c.stream, c.last)
			engine.answer = slowly(cut)
			r = h.post(c.path, body, "Content-Type", kind)
			event, ok := strings.CutPrefix(r.body, cut)
			if !ok || !isCut(r.err) || !strings.HasPrefix(event, "event: error\ndata: {\"type\":\"error\",") {
				t.Errorf("got %q (%v), want the stream, an error event and a cut", r.body, r.err)
			}
			if line := h.last(); line.Outcome != outcomeCut {
				t.Errorf("log line %+v, want cut", line)
			}
		})
	}
}

// Documents of the other generating endpoints are counted by their usage.
func TestDocumentsOfEveryDialectAreCounted(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/responses": `{"id":"resp_1","object":"response","output":[],"usage":{"input_tokens":7,"output_tokens":2,"total_tokens":9}}`,
		"/v1/messages":  `{"id":"msg_1","type":"message","content":[{"type":"text","text":"word word "}],"usage":{"input_tokens":7,"output_tokens":2}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: states(200, body)}})
			if r := h.post(path, `{"model":"chat"}`); r.status != 200 || r.body != body {
				t.Errorf("%s: got %d %q", path, r.status, r.body)
			}
			if line := h.last(); line.Outcome != outcomeOK || line.Tokens != 2 || line.Source != "usage" {
				t.Errorf("%s: log line %+v, want 2 tokens by usage", path, line)
			}
		})
	}
}

// A backend that speaks Messages alone gets nothing that cannot be translated: another target does,
// or the client is told.
func TestABackendGetsOnlyWhatItSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Backends[0].Kind = "anthropic"
		lone := c.Routes[0]
		lone.Models, lone.Targets = []string{"claude"}, lone.Targets[:1]
		c.Routes = append(c.Routes, lone)
		a, b := &script{answer: slowly(messagesStream)}, asker()
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		if r := h.post("/v1/completions", streamBody); r.status != 200 || r.header.Get("X-Pacer-Backend") != "b" {
			t.Errorf("got %d from %q, want the backend that speaks completions", r.status, r.header.Get("X-Pacer-Backend"))
		}
		r := h.post("/v1/completions", `{"model":"claude","stream":true}`)
		if code := r.code(t); r.status != 400 || code != "unsupported_endpoint" {
			t.Errorf("got %d %s, want 400 unsupported_endpoint", r.status, code)
		}
		if a.calls() != 0 {
			t.Error("it was sent what it does not speak")
		}
		if r := h.post("/v1/messages", `{"model":"claude","stream":true}`); r.status != 200 || r.body != messagesStream {
			t.Errorf("got %d %q, want its own stream", r.status, r.body)
		}
	})
}

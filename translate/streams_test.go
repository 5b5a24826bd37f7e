package translate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// sseOf joins events: each is a name, "" for none, and its data.
func sseOf(events ...[2]string) string {
	var b strings.Builder
	for _, e := range events {
		if e[0] != "" {
			b.WriteString("event: " + e[0] + "\n")
		}
		b.WriteString("data: " + e[1] + "\n\n")
	}
	return b.String()
}

// awsOf makes an AWS event stream of the same.
func awsOf(events ...[2]string) string {
	var all []byte
	for _, e := range events {
		header := func(name, value string) []byte {
			h := append([]byte{byte(len(name))}, name...)
			h = append(h, 7)
			h = binary.BigEndian.AppendUint16(h, uint16(len(value)))
			return append(h, value...)
		}
		kind, typ := "event", ":event-type"
		if strings.HasSuffix(e[0], "Exception") {
			kind, typ = "exception", ":exception-type"
		}
		h := append(append(header(typ, e[0]), header(":content-type", "application/json")...), header(":message-type", kind)...)
		var m []byte
		m = binary.BigEndian.AppendUint32(m, uint32(16+len(h)+len(e[1])))
		m = binary.BigEndian.AppendUint32(m, uint32(len(h)))
		m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
		m = append(append(m, h...), e[1]...)
		all = append(all, binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))...)
	}
	return string(all)
}

// streams are one answer in each target's dialect: a thought with its signature, a
// text with an escape and another script, two calls of tools, and usage with cached
// and reasoning tokens, as far as the dialect has them.
var streams = map[Name]string{
	Chat: sseOf(
		[2]string{"", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"let me "},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"reasoning_content":"see"},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"Look\n\"up\" "},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"日本 \ud83d"},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":"\ude00"},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Paris\"}"}}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"time","arguments":"{}"}}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`},
		[2]string{"", `{"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":40,"total_tokens":140,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":11}}}`},
		[2]string{"", `[DONE]`},
	),
	Messages: sseOf(
		[2]string{"message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":30,"cache_creation_input_tokens":10,"cache_read_input_tokens":60,"output_tokens":2}}}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`},
		[2]string{"ping", `{"type":"ping"}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let me "}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see"}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b3BhcXVl"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":1}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Look\n\"up\" "}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"日本 😀"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":2}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_a","name":"weather","input":{}}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Pa"}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"ris\"}"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":3}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_b","name":"time","input":{}}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":4}`},
		[2]string{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":40}}`},
		[2]string{"message_stop", `{"type":"message_stop"}`},
	),
	Gemini: sseOf(
		[2]string{"", `{"candidates":[{"content":{"parts":[{"text":"let me see","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"gemini-2.5-pro","responseId":"r1"}`},
		[2]string{"", `{"candidates":[{"content":{"parts":[{"text":"Look\n\"up\" "}],"role":"model"},"index":0}],"modelVersion":"gemini-2.5-pro","responseId":"r1"}`},
		[2]string{"", `{"candidates":[{"content":{"parts":[{"text":"日本 😀"}],"role":"model"},"index":0}]}`},
		[2]string{"", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":{"city":"Paris"}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"time","args":{}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":29,"thoughtsTokenCount":11,"cachedContentTokenCount":60,"totalTokenCount":140},"responseId":"r1"}`},
	),
	Cohere: sseOf(
		[2]string{"message-start", `{"id":"29f14a5a","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}`},
		[2]string{"content-start", `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}`},
		[2]string{"content-delta", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"let me see"}}}}`},
		[2]string{"content-end", `{"type":"content-end","index":0}`},
		[2]string{"tool-plan-delta", `{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"Look\n\"up\" "}}}`},
		[2]string{"tool-plan-delta", `{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"日本 😀"}}}`},
		[2]string{"tool-call-start", `{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"weather_a","type":"function","function":{"name":"weather","arguments":""}}}}}`},
		[2]string{"tool-call-delta", `{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\n    \"city\": \""}}}}}`},
		[2]string{"tool-call-delta", `{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"Paris\"}"}}}}}`},
		[2]string{"tool-call-end", `{"type":"tool-call-end","index":0}`},
		[2]string{"tool-call-start", `{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"time_b","type":"function","function":{"name":"time","arguments":""}}}}}`},
		[2]string{"tool-call-end", `{"type":"tool-call-end","index":1}`},
		[2]string{"citation-start", `{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":4,"text":"Look","sources":[],"type":"TEXT_CONTENT"}}}}`},
		[2]string{"citation-end", `{"type":"citation-end","index":0}`},
		[2]string{"message-end", `{"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"billed_units":{"input_tokens":30,"output_tokens":40},"tokens":{"input_tokens":100,"output_tokens":40.0},"cached_tokens":60}}}`},
	),
	Converse: awsOf(
		[2]string{"messageStart", `{"role":"assistant"}`},
		[2]string{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"let me see"}}}`},
		[2]string{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}`},
		[2]string{"contentBlockStop", `{"contentBlockIndex":0}`},
		[2]string{"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"Look\n\"up\" "}}`},
		[2]string{"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"text":"日本 😀"}}`},
		[2]string{"contentBlockStop", `{"contentBlockIndex":1}`},
		[2]string{"contentBlockStart", `{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"tooluse_a","name":"weather"}}}`},
		[2]string{"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"city\":\"Paris\"}"}}}`},
		[2]string{"contentBlockStop", `{"contentBlockIndex":2}`},
		[2]string{"contentBlockStart", `{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"tooluse_b","name":"time"}}}`},
		[2]string{"contentBlockStop", `{"contentBlockIndex":3}`},
		[2]string{"messageStop", `{"stopReason":"tool_use"}`},
		[2]string{"metadata", `{"usage":{"inputTokens":40,"outputTokens":40,"totalTokens":140,"cacheReadInputTokens":60},"metrics":{"latencyMs":900}}`},
	),
}

var clients = []Name{Chat, Messages, Responses, Gemini, Cohere}

var reply = Reply{ID: "r9", Model: "m", Created: 1700000000, WantUsage: true, Prompt: 90}

// sum adds looks up.
type sum struct {
	Chunks, Bytes          int
	Usage                  Usage
	Done, Error, Bad, Thgt bool
}

func (s *sum) add(l Look) {
	s.Chunks += l.Chunks
	s.Bytes += l.Bytes
	if l.Usage != nil {
		s.Usage = *l.Usage
	}
	s.Done, s.Error, s.Bad, s.Thgt = s.Done || l.Done, s.Error || l.Error, s.Bad || l.Bad, s.Thgt || l.Reasoning
}

// through feeds a stream in pieces that end at cuts.
func through(from, to Name, stream string, cuts ...int) (string, sum) {
	return throughFor(reply, from, to, stream, cuts...)
}

func throughFor(r Reply, from, to Name, stream string, cuts ...int) (string, sum) {
	s := NewStream(from, to, r)
	var out strings.Builder
	var all sum
	at := 0
	for _, cut := range append(cuts, len(stream)) {
		if cut < at || cut > len(stream) {
			continue
		}
		o, look := s.Feed([]byte(stream[at:cut]))
		out.Write(o)
		all.add(look)
		at = cut
	}
	o, look := s.End()
	out.Write(o)
	all.add(look)
	return out.String(), all
}

// The same answer in every target's dialect, as every client gets it.
func TestStreams(t *testing.T) {
	for from, stream := range streams {
		for _, to := range clients {
			if from == to {
				continue
			}
			got, seen := through(from, to, stream)
			golden.Want(t, fmt.Sprintf("%s-%s.txt", from, to), got)
			if !seen.Done || seen.Bad || seen.Error || !seen.Thgt || seen.Usage.Prompt != 100 || seen.Usage.Completion != 40 || seen.Usage.Cached != 60 {
				t.Errorf("%s to %s: saw %+v", from, to, seen)
			}
			for line := range strings.Lines(got) {
				data, ok := strings.CutPrefix(line, "data: ")
				if ok && data != "[DONE]\n" && !gjson.Valid(data) {
					t.Errorf("%s to %s: %s is no JSON", from, to, data)
				}
			}
		}
	}
}

// However the bytes are cut, the same comes of them: at every place, and at each
// seventh beside the race detector.
func TestCutsChangeNothing(t *testing.T) {
	every := 1
	if racetest.On {
		every = 7
	}
	for from, stream := range streams {
		for _, to := range clients {
			want, seen := through(from, to, stream)
			for cut := 0; cut < len(stream); cut += every {
				got, s := through(from, to, stream, cut)
				if got != want || s != seen {
					t.Fatalf("%s to %s cut at %d: %+v, want %+v\n%s", from, to, cut, s, seen, got)
				}
			}
			all := make([]int, len(stream))
			for i := range all {
				all[i] = i
			}
			if got, s := through(from, to, stream, all...); got != want || s != seen {
				t.Errorf("%s to %s byte by byte: %+v, want %+v", from, to, s, seen)
			}
		}
	}
}

// Who asked Google's API for an array gets one, whoever answers; and where the answer
// goes on as it is, each item of it is what came.
func TestArrays(t *testing.T) {
	for from, stream := range streams {
		for _, plain := range []bool{false, true} {
			if plain && from != Gemini {
				continue
			}
			r := reply
			r.Array, r.Plain = true, plain
			want, seen := throughFor(r, from, Gemini, stream)
			if !gjson.Valid(want) || !seen.Done || seen.Usage.Completion != 40 || len(gjson.Parse(want).Array()) < 4 {
				t.Errorf("%s: %s, saw %+v", from, want, seen)
			}
			for cut := range len(stream) {
				if got, s := throughFor(r, from, Gemini, stream, cut); got != want || s != seen {
					t.Fatalf("%s cut at %d: %+v, want %+v\n%s", from, cut, s, seen, got)
				}
			}
			s := NewStream(from, Gemini, r)
			out, _ := s.Feed([]byte(stream[:len(stream)/2]))
			begun := string(out)
			if broken := begun + string(s.Break("gone")); !gjson.Valid(broken) || !strings.Contains(broken, "gone") {
				t.Errorf("%s breaks off with %s", from, broken)
			}
			if from != Gemini {
				continue
			}
			s = NewStream(from, Gemini, r)
			out, look := s.Feed([]byte(stream[:strings.Index(stream, "data: ")] + "data: {\"half\":\n\n" + stream))
			begun = string(out)
			if end, _ := s.End(); !look.Bad || !gjson.Valid(begun+string(end)) {
				t.Errorf("with an event that is no JSON: saw %+v in %s%s", look, begun, end)
			}
		}
	}
	r := reply
	r.Plain = true
	if got, seen := throughFor(r, Gemini, Gemini, streams[Gemini], 7, 300); got != streams[Gemini] || !seen.Done || seen.Usage.Prompt != 100 {
		t.Errorf("what is passed on is %s, saw %+v", got, seen)
	}
}

// Of what is passed on as it is no part of an event goes out: where the target breaks off
// within one, the client's SDK would take it for an event.
func TestNoPartOfAnEventIsPassedOn(t *testing.T) {
	r := reply
	r.Plain = true
	for name, stream := range map[Name]string{Gemini: streams[Gemini], Cohere: streams[Cohere]} {
		stream += `data: {"more":[1,2]}` + "\n\n" // behind the last event that is known
		for cut := range len(stream) {
			s := NewStream(name, name, r)
			out, _ := s.Feed([]byte(stream[:cut]))
			got := string(out)
			end, look := s.End()
			got += string(end)
			lines := strings.Split(strings.ReplaceAll(got, "\r", ""), "\n")
			for _, line := range lines {
				if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" && !gjson.Valid(data) {
					t.Fatalf("%s cut at %d ends with %q", name, cut, line)
				}
			}
			if !strings.HasPrefix(stream, got) || look.Bad {
				t.Fatalf("%s cut at %d: %q, saw %+v", name, cut, got, look)
			}
		}
	}
}

// A stream that ends early is not done, and its client is told.
func TestAStreamThatBreaksOff(t *testing.T) {
	for from, stream := range streams {
		for _, to := range clients {
			s := NewStream(from, to, reply)
			_, look := s.Feed([]byte(stream[:len(stream)*2/3]))
			_, end := s.End()
			if look.Done || end.Done {
				t.Errorf("%s to %s: two thirds of a stream are done", from, to)
			}
			if event := string(s.Break("gone")); !strings.Contains(event, "gone") || !strings.HasSuffix(strings.ReplaceAll(event, "\r", ""), "\n\n") {
				t.Errorf("%s to %s: the event of a break is %q", from, to, event)
			}
		}
	}
}

// A model of Mistral's that thinks says its text in parts.
func TestMistralsParts(t *testing.T) {
	const parts = `[{"type":"thinking","thinking":[{"type":"text","text":"hm "},{"type":"text","text":"so"}],"closed":true},{"type":"text","text":"yes"}]`
	out, look, err := Document(Chat, Messages, reply, []byte(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":`+parts+`},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`))
	if content := gjson.GetBytes(out, "content"); err != nil || !look.Reasoning || content.Get("0.thinking").Str != "hm so" || content.Get("1.text").Str != "yes" {
		t.Errorf("a document is %s (%v), saw %+v", out, err, look)
	}
	got, seen := through(Chat, Messages, sseOf(
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm "}]}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"so"}]}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`},
		[2]string{"", "[DONE]"},
	))
	if !seen.Done || !seen.Thgt || !strings.Contains(got, `{"type":"thinking_delta","thinking":"hm "}`) || !strings.Contains(got, `{"type":"thinking_delta","thinking":"so"}`) || !strings.Contains(got, `{"type":"text_delta","text":"yes"}`) {
		t.Errorf("a stream is %s, saw %+v", got, seen)
	}
}

func TestErrorsWithinAStream(t *testing.T) {
	for from, stream := range map[Name]string{
		Chat:     sseOf([2]string{"", `{"error":{"message":"out of memory","type":"server_error"}}`}),
		Messages: sseOf([2]string{"error", `{"type":"error","error":{"type":"overloaded_error","message":"out of memory"}}`}),
		Gemini:   sseOf([2]string{"", `{"error":{"code":503,"message":"out of memory","status":"UNAVAILABLE"}}`}),
		Converse: awsOf([2]string{"throttlingException", `{"message":"out of memory"}`}),
		Cohere:   sseOf([2]string{"message-end", `{"type":"message-end","delta":{"finish_reason":"ERROR","error":"out of memory"}}`}),
	} {
		for _, to := range clients {
			if got, seen := through(from, to, stream); !seen.Error || seen.Bad || !strings.Contains(got, "out of memory") {
				t.Errorf("%s to %s: %+v %s", from, to, seen, got)
			}
		}
	}
}

// Behind an error nothing follows that looks like a whole answer, whatever the backend
// still writes: engines end such a stream with [DONE].
func TestNothingFollowsAnError(t *testing.T) {
	stream := sseOf(
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`},
		[2]string{"", `{"error":{"message":"out of memory","type":"server_error"}}`},
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"more"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`},
		[2]string{"", "[DONE]"},
	)
	for _, to := range clients {
		got, seen := through(Chat, to, stream)
		if _, behind, _ := strings.Cut(got, "out of memory"); !seen.Error || !seen.Done || strings.Contains(behind, "data:") || strings.Contains(behind, "more") {
			t.Errorf("%s: %+v, and behind the error %s", to, seen, behind)
		}
		s := NewStream(Chat, to, reply)
		s.Feed([]byte(stream[:strings.Index(stream, "more")]))
		if event := s.Break("gone"); len(event) > 0 {
			t.Errorf("%s: a second error %s", to, event)
		}
	}
}

// Whatever comes, nothing panics, nothing grows without bound, and cuts change
// nothing.
func FuzzStream(f *testing.F) {
	for from, stream := range streams {
		f.Add(uint8(from), uint8(Messages), stream, 7)
		f.Add(uint8(from), uint8(Chat), stream[:len(stream)/2], 3)
		f.Add(uint8(from), uint8(Responses), stream, 100)
		f.Add(uint8(from), uint8(3), stream, 50)
	}
	f.Fuzz(func(t *testing.T, from, to uint8, stream string, cut int) {
		source, client := []Name{Chat, Messages, Gemini, Converse, Cohere}[from%5], clients[int(to)%len(clients)]
		r := reply
		r.WholeCalls, r.Array = to&64 != 0, to&128 != 0
		want, seen := throughFor(r, source, client, stream)
		if cut < 0 || cut > len(stream) {
			cut = len(stream) / 2
		}
		for line := range strings.Lines(want) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]\n" && !gjson.Valid(data) {
				t.Errorf("%s to %s: %q is no JSON", source, client, data)
			}
		}
		if got, s := throughFor(r, source, client, stream, cut); got != want || s != seen {
			t.Fatalf("cut at %d: %q %+v, want %q %+v", cut, got, s, want, seen)
		}
		if len(want) > 40*len(stream)+4096 {
			t.Errorf("%d bytes became %d", len(stream), len(want))
		}
	})
}

// Whatever a document holds, what comes of it is JSON, and no larger than it may be.
func FuzzDocument(f *testing.F) {
	f.Add(uint8(0), uint8(1), `{"id":"c","choices":[{"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	f.Add(uint8(1), uint8(0), `{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"x","name":"f","input":{"a":[1.50]}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`)
	f.Add(uint8(2), uint8(2), `{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`)
	f.Add(uint8(3), uint8(3), `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"a","signature":"s"}}},{"toolUse":{"toolUseId":"x","name":"f","input":{}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1}}`)
	f.Add(uint8(4), uint8(4), `{"id":"c","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"p","content":[{"type":"thinking","thinking":"t"}],"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"usage":{"tokens":{"input_tokens":1.0}}}`)
	f.Fuzz(func(t *testing.T, from, to uint8, text string) {
		source, client := []Name{Chat, Messages, Gemini, Converse, Cohere}[from%5], clients[int(to)%len(clients)]
		out, _, err := Document(source, client, reply, []byte(text))
		if err == nil && !gjson.ValidBytes(out) {
			t.Errorf("%s to %s: %q is no JSON", source, client, out)
		}
		if len(out) > 40*len(text)+4096 {
			t.Errorf("%d bytes became %d", len(text), len(out))
		}
	})
}

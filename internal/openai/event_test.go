package openai

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseEvent(t *testing.T) {
	typed := func(s string) []byte { return []byte(s) }
	for _, tt := range []struct {
		name, data string
		want       Event
	}{
		{"Responses text", `{"type":"response.output_text.delta","sequence_number":7,"item_id":"m","output_index":0,"content_index":0,"delta":"héy","logprobs":[],"obfuscation":"xyzxyz"}`, Event{Content: true, Bytes: 4, Sequence: 7}},
		{"type last", `{"content_index":0,"delta":"a","sequence_number":9,"type":"response.output_text.delta"}`, Event{Content: true, Bytes: 1, Sequence: 9}},
		{"empty delta", `{"type":"response.output_text.delta","delta":""}`, Event{Sequence: -1}},
		{"reasoning", `{"type":"response.reasoning_text.delta","delta":"hm"}`, Event{Content: true, Bytes: 2, Reasoning: true, Sequence: -1}},
		{"reasoning summary", `{"type":"response.reasoning_summary_text.delta","delta":"hm"}`, Event{Content: true, Bytes: 2, Reasoning: true, Sequence: -1}},
		{"refusal", `{"type":"response.refusal.delta","delta":"no"}`, Event{Content: true, Bytes: 2, Sequence: -1}},
		{"arguments", `{"type":"response.function_call_arguments.delta","delta":"{\"a\":"}`, Event{Content: true, Bytes: 5, Sequence: -1}},
		{"custom tool", `{"type":"response.custom_tool_call_input.delta","delta":"ls"}`, Event{Content: true, Bytes: 2, Sequence: -1}},
		{"a type of next year", `{"type":"response.haiku.delta","delta":"ls"}`, Event{Content: true, Bytes: 2, Sequence: -1}},
		{"a tool's own output", `{"type":"response.shell_call_output_content.delta","delta":{"stdout":"x","text":"y"}}`, Event{Sequence: -1}},
		{"Responses audio", `{"type":"response.audio.delta","delta":"QUJD"}`, Event{Content: true, Sequence: -1}},
		{"tool begins", `{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"c","name":"get_weather"}}`, Event{Content: true, Bytes: 11, Sequence: -1}},
		{"message begins", `{"type":"response.output_item.added","item":{"id":"m","type":"message","status":"in_progress","content":[],"role":"assistant"}}`, Event{Sequence: -1}},
		{"what is done was counted", `{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"all of it"}]}}`, Event{Sequence: -1}},
		{"text done", `{"type":"response.output_text.done","text":"all of it"}`, Event{Sequence: -1}},
		{"part done", `{"type":"response.content_part.done","part":{"type":"output_text","text":"all"}}`, Event{Sequence: -1}},
		{"created", `{"type":"response.created","response":{"id":"r","error":null,"output":[],"usage":null},"sequence_number":0}`, Event{}},
		{"completed", `{"type":"response.completed","response":{"id":"r","output":[{"content":[{"text":"all"}]}],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":30},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":48}}}`, Event{HasUsage: true, Usage: Usage{37, 30, 11, 4, 0, 0}, Sequence: -1}},
		{"failed", `{"type":"response.failed","response":{"error":{"code":"server_error"},"usage":null}}`, Event{Error: true, Sequence: -1}},
		{"Responses error", `{"type":"error","code":"x","message":"m","param":null,"sequence_number":1}`, Event{Error: true, Sequence: 1}},

		{"message_start", `{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":25,"output_tokens":1}}}`, Event{Sequence: -1}},
		{"text block", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, Event{Sequence: -1}},
		{"tool block", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, Event{Content: true, Bytes: 1, Sequence: -1}},
		{"tool block with its input", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":1}}}`, Event{Content: true, Bytes: 1 + 7, Sequence: -1}},
		{"text_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`, Event{Content: true, Bytes: 2, Sequence: -1}},
		{"thinking_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, Event{Content: true, Bytes: 2, Reasoning: true, Sequence: -1}},
		{"input_json_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}`, Event{Content: true, Bytes: 3, Sequence: -1}},
		{"signature_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB"}}`, Event{Sequence: -1}},
		{"citations_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}`, Event{Sequence: -1}},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`, Event{HasUsage: true, Usage: Usage{CompletionTokens: 15}, Sequence: -1}},
		{"Messages cache", `{"type":"message_delta","delta":{},"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":15,"output_tokens_details":{"thinking_tokens":9}}}`, Event{HasUsage: true, Usage: Usage{125, 100, 15, 9, 0, 0}, Sequence: -1}},
		{"ping", `{"type": "ping"}`, Event{Sequence: -1}},
		{"Messages error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Event{Error: true, Sequence: -1}},

		{"transcript", `{"type":"transcript.text.delta","delta":"I","logprobs":[{"token":"I"}]}`, Event{Content: true, Bytes: 1, Sequence: -1}},
		{"transcript done", `{"type":"transcript.text.done","text":"I see","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":0,"audio_tokens":14},"output_tokens":45,"total_tokens":59}}`, Event{HasUsage: true, Usage: Usage{PromptTokens: 14, CompletionTokens: 45, AudioPromptTokens: 14}, Sequence: -1}},
		{"vLLM's transcription", `{"object":"transcription.chunk","choices":[{"delta":{"content":"I"}}]}`, Event{Content: true, Bytes: 1, Sequence: -1}},
		{"speech", `{"type":"speech.audio.delta","audio":"QUJD"}`, Event{Content: true, Sequence: -1}},
		{"speech done", `{"type":"speech.audio.done","usage":{"input_tokens":14,"output_tokens":101,"total_tokens":115}}`, Event{HasUsage: true, Usage: Usage{PromptTokens: 14, CompletionTokens: 101}, Sequence: -1}},
		{"image", `{"type":"image_generation.partial_image","b64_json":"QUJD","partial_image_index":0}`, Event{Content: true, Sequence: -1}},
		{"image in an answer", `{"type":"response.image_generation_call.partial_image","partial_image_b64":"QUJD"}`, Event{Content: true, Sequence: -1}},

		{"whole Response", `{"object":"response","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"Hi","annotations":[{"text":"no"}]}]},{"type":"function_call","name":"f","arguments":"{}"}],"text":{"format":{"type":"text"}},"tools":[{"name":"f"}],"usage":{"input_tokens":9,"output_tokens":5}}`, Event{Content: true, Bytes: 2 + 2 + 1 + 2, Reasoning: true, HasUsage: true, Usage: Usage{PromptTokens: 9, CompletionTokens: 5}, Sequence: -1}},
		{"whole Message", `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Hi"},{"type":"tool_use","name":"f","input":{"a":1}}],"usage":{"input_tokens":9,"output_tokens":5}}`, Event{Content: true, Bytes: 2 + 2 + 1 + 7, Reasoning: true, HasUsage: true, Usage: Usage{PromptTokens: 9, CompletionTokens: 5}, Sequence: -1}},
		{"whole transcription", `{"text":"I see","usage":{"type":"duration","seconds":3}}`, Event{Content: true, Bytes: 5, Sequence: -1}},
		{"rerank", `{"results":[{"index":0,"document":{"text":"x"}}],"usage":{"total_tokens":56}}`, Event{HasUsage: true, Usage: Usage{PromptTokens: 56}, Sequence: -1}},
		{"error answer", `{"error":{"message":"no"}}`, Event{Error: true, Sequence: -1}},
		{"usage beyond belief", `{"type":"message_delta","usage":{"input_tokens":-4,"cache_read_input_tokens":1e99,"cache_creation_input_tokens":1e99,"output_tokens":99999999999999999999}}`, Event{HasUsage: true, Usage: Usage{maxCount, maxCount, maxCount, 0, 0, 0}, Sequence: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Event{Content: true, HasUsage: true, Bytes: 99, Error: true} // must be overwritten
			if !(&Events{}).Parse(nil, typed(tt.data), &got) {
				t.Fatal("refused")
			}
			if typ := string(got.Type); typ != "" && !strings.Contains(tt.data, `"`+typ+`"`) {
				t.Errorf("type %q", typ)
			}
			got.Type = nil
			if !sameEvent(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func sameEvent(a, b Event) bool {
	return string(a.Type) == string(b.Type) && a.Content == b.Content && a.Bytes == b.Bytes && a.Reasoning == b.Reasoning &&
		a.HasUsage == b.HasUsage && a.Usage == b.Usage && a.Sequence == b.Sequence && a.Error == b.Error
}

// Without a type in the data the event's name is it, and what comes at the
// beginning of a stream still counts at its end.
func TestEventsOfOneStream(t *testing.T) {
	var s Events
	var ev Event
	for _, e := range [][2]string{
		{"message_start", `{"message":{"usage":{"input_tokens":25,"cache_read_input_tokens":7,"output_tokens":1}}}`},
		{"content_block_delta", `{"delta":{"text":"a"}}`},
		{"message_delta", `{"usage":{"input_tokens":0,"output_tokens":15}}`},
	} {
		if !s.Parse([]byte(e[0]), []byte(e[1]), &ev) {
			t.Fatalf("%s refused", e[0])
		}
		if got := ev.HasUsage; got != (e[0] == "message_delta") {
			t.Errorf("%s: usage %v", e[0], got)
		}
		if got := ev.Content; got != (e[0] == "content_block_delta") {
			t.Errorf("%s: content %v", e[0], got)
		}
	}
	if want := (Usage{32, 7, 15, 0, 0, 0}); ev.Usage != want {
		t.Errorf("usage %+v, want %+v", ev.Usage, want)
	}
	// What is refused leaves nothing behind.
	if s.Parse(nil, []byte(`{"usage":{"output_tokens":99}`), &ev) || !sameEvent(ev, Event{Sequence: -1}) {
		t.Errorf("half an event gave %+v", ev)
	}
	if s.Parse(nil, []byte(`{"type":"message_delta","usage":{"output_tokens":16}}`), &ev); ev.Usage.CompletionTokens != 16 {
		t.Errorf("%d tokens, want 16: a refused event was counted", ev.Usage.CompletionTokens)
	}
}

// FuzzParseEvent compares with encoding/json, which decides what is JSON.
func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"type":"response.output_text.delta","delta":"\ud83d\ude00","response":{"usage":{"input_tokens":1,"output_tokens":2}}}`))
	f.Add([]byte(`{"type":"content_block_delta","delta":{"thinking":"x","partial_json":"{"},"usage":{"cache_read_input_tokens":1e2,"input_tokens":3}}`))
	f.Add([]byte(`{"output":[{"content":[{"text":"a"},["b"]],"arguments":{"a":[1]}}],"choices":[{"text":"c"}],"error":null}`))
	f.Add([]byte(`{"type":"response.output_text.delta","delta":"x","logprobs":[{"logprob":-Infinity}],"usage":{"output_tokens":NaN,"input_tokens":Infinity}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ev Event
		ok := (&Events{}).Parse(nil, data, &ev)
		var top map[string]json.RawMessage
		if want := json.Unmarshal(finite(data), &top) == nil && top != nil; ok != want && (ok || !deep(data)) {
			t.Fatalf("%q: JSON object %v, encoding/json says %v", data, ok, want)
		}
		if ev.Bytes > len(data)+2 || ev.Bytes < 0 || ev.Bytes > 0 && !ev.Content || !ok && !sameEvent(ev, Event{Sequence: -1}) {
			t.Fatalf("%q: %+v", data, ev)
		}
		u := ev.Usage
		if min(u.PromptTokens, u.CachedTokens, u.CompletionTokens, u.ReasoningTokens) < 0 ||
			u.CachedTokens > u.PromptTokens || u.ReasoningTokens > u.CompletionTokens || u.PromptTokens > maxCount {
			t.Fatalf("%q: usage %+v", data, u)
		}
	})
}

var events = map[string]string{
	"responses": `{"type":"response.output_text.delta","sequence_number":41,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"Xk2Vb9cQ"}`,
	"messages":  `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}`,
	"done":      `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":472,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":89}}`,
}

// Budget: 500 ns and no allocation.
func BenchmarkParseEvent(b *testing.B) {
	for name, data := range events {
		b.Run(name, func(b *testing.B) {
			raw := []byte(data)
			var s Events
			var ev Event
			b.ReportAllocs()
			for b.Loop() {
				s.Parse(nil, raw, &ev)
			}
		})
	}
}

package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// parseChunk is ParseChunkText where nobody keeps the text.
func parseChunk(data []byte, c *Chunk) bool {
	_, ok := ParseChunkText(data, c, nil, 0)
	return ok
}

func TestParseChunk(t *testing.T) {
	usage := Usage{PromptTokens: 9, CompletionTokens: 5}
	for _, tt := range []struct {
		name, data string
		want       Chunk
	}{
		{"content", `{"id":"c","choices":[{"index":0,"delta":{"content":"héy"},"finish_reason":null}]}`, Chunk{Content: true, Bytes: 4}},
		{"escapes", `{"choices":[{"delta":{"content":"\n\"\u00e9\ud83d\ude00\ud800x"}}]}`, Chunk{Content: true, Bytes: 1 + 1 + 2 + 4 + 3 + 1}},
		{"role", `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, Chunk{}},
		{"null", `{"choices":[{"delta":{"role":"assistant","content":null}}]}`, Chunk{}},
		{"finish", `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, Chunk{}},
		{"reasoning_content", `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, Chunk{Content: true, Bytes: 2, Reasoning: true}},
		{"reasoning", `{"choices":[{"delta":{"reasoning":"hm","content":null}}]}`, Chunk{Content: true, Bytes: 2, Reasoning: true}},
		{"empty reasoning", `{"choices":[{"delta":{"reasoning":"","content":"x"}}]}`, Chunk{Content: true, Bytes: 1}},
		{"refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, Chunk{Content: true, Bytes: 2}},
		{"tool name", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}}]}`, Chunk{Content: true, Bytes: 1}},
		{"tool arguments", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}`, Chunk{Content: true, Bytes: 5}},
		{"arguments as JSON", `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}}]}`, Chunk{Content: true, Bytes: 8}},
		{"empty tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"arguments":""}}]}}]}`, Chunk{}},
		{"function_call", `{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{}"}}}]}`, Chunk{Content: true, Bytes: 3}},
		{"audio", `{"choices":[{"delta":{"audio":{"id":"a","data":"QUJD"}}}]}`, Chunk{Content: true}},
		{"audio transcript", `{"choices":[{"delta":{"audio":{"transcript":"hi"}}}]}`, Chunk{Content: true, Bytes: 2}},
		{"text", `{"object":"text_completion","choices":[{"text":" a","index":0}]}`, Chunk{Content: true, Bytes: 2}},
		{"typed parts", `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"x"}]}}]}`, Chunk{Content: true, Bytes: 3, Reasoning: true}},
		{"two choices", `{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}`, Chunk{Content: true, Bytes: 2}},
		{"message", `{"choices":[{"message":{"role":"assistant","content":"hey"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`, Chunk{Content: true, Bytes: 3, HasUsage: true, Usage: usage}},
		{"content elsewhere", `{"content":"x","choices":[{"logprobs":{"content":[{"token":"a","text":"x"}]},"delta":{"id":"y"}}]}`, Chunk{}},
		{"usage", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}`, Chunk{HasUsage: true, Usage: usage, UsageOnly: true}},
		{"usage first", ` { "usage" : {"completion_tokens": 5 ,"prompt_tokens":9} , "choices" : [ ] } `, Chunk{HasUsage: true, Usage: usage, UsageOnly: true}},
		{"usage details", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}}`, Chunk{HasUsage: true, Usage: Usage{9, 4, 5, 3, 0, 0}, UsageOnly: true}},
		{"usage of DeepSeek", `{"choices":[{"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_cache_hit_tokens":8}}`, Chunk{HasUsage: true, Usage: Usage{9, 8, 5, 0, 0, 0}}},
		{"usage null", `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, Chunk{Content: true, Bytes: 1}},
		{"usage empty", `{"choices":[],"usage":{}}`, Chunk{UsageOnly: true}},
		{"usage of Groq", `{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":9,"completion_tokens":5}}}`, Chunk{HasUsage: true, Usage: usage}},
		{"usage in a choice", `{"choices":[{"delta":{},"usage":{"prompt_tokens":9,"completion_tokens":5}}]}`, Chunk{HasUsage: true, Usage: usage}},
		{"usage beyond belief", `{"choices":[],"usage":{"prompt_tokens":-4,"completion_tokens":99999999999999999999999,"completion_tokens_details":{"reasoning_tokens":1e99},"prompt_tokens_details":{"cached_tokens":7}}}`, Chunk{HasUsage: true, Usage: Usage{0, 0, maxCount, maxCount, 0, 0}, UsageOnly: true}},
		{"usage as text", `{"choices":[],"usage":{"prompt_tokens":"9"}}`, Chunk{UsageOnly: true}},
		{"embeddings", `{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":9,"total_tokens":9}}`, Chunk{HasUsage: true, Usage: Usage{PromptTokens: 9}}},
		{"Azure's first", `{"choices":[],"created":0,"prompt_filter_results":[{"prompt_index":0}],"usage":null}`, Chunk{}},
		{"Azure's first with usage", `{"choices":[],"prompt_filter_results":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}`, Chunk{HasUsage: true, Usage: usage}},
		{"empty choices alone", `{"choices":[]}`, Chunk{}},
		{"choices null", `{"choices":null,"usage":{"prompt_tokens":9,"completion_tokens":5}}`, Chunk{HasUsage: true, Usage: usage}},
		{"no choices", `{"id":"x"}`, Chunk{}},
		{"timings", `{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":2,"prompt_n":7,"prompt_ms":1.5,"predicted_n":5,"predicted_ms":33.1}}`, Chunk{HasTimings: true, Timings: Usage{9, 2, 5, 0, 0, 0}}},
		{"error", `{"error":{"message":"CUDA","code":500}}`, Chunk{Error: true}},
		{"error as text", `{"error":"CUDA"}`, Chunk{Error: true}},
		{"error null", `{"error":null,"choices":[{"delta":{"content":"a"}}]}`, Chunk{Content: true, Bytes: 1}},
		{"error object", `{"object":"error","message":"CUDA"}`, Chunk{Error: true}},
		{"error with usage", `{"error":{},"choices":[],"usage":{}}`, Chunk{Error: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Chunk{Content: true, HasUsage: true, Bytes: 99} // must be overwritten
			if !parseChunk([]byte(tt.data), &got) {
				t.Fatal("refused")
			}
			got.Running, got.Choices = Running{}, Choices{} // TestRunningUsage, TestChoices
			got.Texts, got.Text = 0, Text{}                 // providers' FuzzShape
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// Taken out, the rest is as if the usage had not been there.
func TestRunningUsage(t *testing.T) {
	const is = `{"completion_tokens":2, "prompt_tokens_details":{"cached_tokens":1}}`
	for _, tt := range []struct{ name, data, without, null string }{
		{"last", `{"id":"c","choices":[{}],"usage":` + is + `}`, `{"id":"c","choices":[{}]}`, `{"id":"c","choices":[{}],"usage":null}`},
		{"in the midst", `{"choices":[{}], "usage" : ` + is + ` , "x":1}`, `{"choices":[{}] , "x":1}`, `{"choices":[{}], "usage" : null , "x":1}`},
		{"first", ` { "usage": ` + is + ` , "choices":[{}]}`, ` { "choices":[{}]}`, ` { "usage": null , "choices":[{}]}`},
		{"nested before", `{"choices":[{"usage":{"completion_tokens":2},"delta":{"usage":3}}],"usage":` + is + `}`, `{"choices":[{"usage":{"completion_tokens":2},"delta":{"usage":3}}]}`, `{"choices":[{"usage":{"completion_tokens":2},"delta":{"usage":3}}],"usage":null}`},
		{"alone with its choices", `{"usage":` + is + `,"choices":[{}]}`, `{"choices":[{}]}`, `{"usage":null,"choices":[{}]}`},
		{"null", `{"choices":[{}],"usage": null}`, `{"choices":[{}]}`, `{"choices":[{}],"usage": null}`},
		{"null, first", `{"usage":null,"choices":[{}],"x":1}`, `{"choices":[{}],"x":1}`, `{"usage":null,"choices":[{}],"x":1}`},
		{"null, no choices yet", `{"choices":[],"prompt_filter_results":[{}],"usage":null}`, `{"choices":[],"prompt_filter_results":[{}]}`, `{"choices":[],"prompt_filter_results":[{}],"usage":null}`},
		{"null, no choices at all", `{"usage":null,"x":1}`, "", ""},
		{"none", `{"choices":[{}]}`, "", ""},
		{"no choices", `{"choices":[],"usage":` + is + `}`, "", ""},
		{"no choices at all", `{"usage":` + is + `}`, "", ""},
		{"text", `{"choices":[{}],"usage":"{}"}`, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Chunk
			if !parseChunk([]byte(tt.data), &c) {
				t.Fatal("refused")
			}
			r := c.Running
			if tt.without == "" {
				if r != (Running{}) {
					t.Errorf("got %+v, want none", r)
				}
				return
			}
			if want := strings.HasPrefix(tt.name, "null"); r.Null != want {
				t.Errorf("null: %v, want %v", r.Null, want)
			}
			if got := tt.data[:r.From] + tt.data[r.To:]; got != tt.without {
				t.Errorf("taken out: %s, want %s", got, tt.without)
			}
			if got := tt.data[:r.Value] + "null" + tt.data[r.End:]; got != tt.null {
				t.Errorf("made null: %s, want %s", got, tt.null)
			}
		})
	}
}

func TestParseChunkRefuses(t *testing.T) {
	for _, data := range []string{
		"", " ", "[DONE]", "x", "7", `"x"`, "[]", "null", "{", `{"choices":[`, `{"choices":[{"delta":{"content":"a"}}]`, "{}x",
		`{"choices":[{"delta":{"content":"a"}}]}}`, `{"usage":{"prompt_tokens":}}`, `{"choices":[{"delta":{"tool_calls":[{]}}]}`,
		`{"choices":[{"delta":{"content":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}]}`,
		`{"choices":[{"delta":{"content":` + strings.Repeat(`{"text":`, 2000) + "1" + strings.Repeat("}", 2000) + `}}]}`,
	} {
		got := Chunk{Content: true}
		if parseChunk([]byte(data), &got) || got != (Chunk{}) {
			t.Errorf("%.60q was taken for a chunk: %+v", data, got)
		}
	}
}

// FuzzParseChunk compares with encoding/json, which decides what is JSON and
// what its first content is.
func FuzzParseChunk(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"\ud83d\ude00\n","reasoning":"x"},"text":"y"}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`))
	f.Add([]byte(`{"choices":[],"usage":{"completion_tokens":1.5e2,"completion_tokens_details":{"reasoning_tokens":3}},"error":null}`))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":[1]}}}],"audio":{"data":"x"}}}],"timings":{"predicted_n":7}}`))
	f.Add([]byte(`{"choices":[{"delta":{"content":"x"},"logprobs":{"content":[{"logprob":-Infinity},{"logprob":NaN}]}}],"usage":{"completion_tokens":Infinity}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Chunk
		ok := parseChunk(data, &c)
		var top map[string]json.RawMessage
		if want := json.Unmarshal(finite(data), &top) == nil && top != nil; ok != want && (ok || !deep(data)) {
			t.Fatalf("%q: JSON object %v, encoding/json says %v", data, ok, want)
		}
		if c.Bytes > len(data)+2 || c.Bytes < 0 || c.Bytes > 0 && !c.Content || c.UsageOnly && c.Content {
			t.Fatalf("%q: %+v", data, c)
		}
		for _, u := range []Usage{c.Usage, c.Timings} {
			if min(u.PromptTokens, u.CachedTokens, u.CompletionTokens, u.ReasoningTokens) < 0 ||
				u.CachedTokens > u.PromptTokens || u.ReasoningTokens > u.CompletionTokens {
				t.Fatalf("%q: usage %+v", data, u)
			}
		}
		if ok && c.UsageOnly && string(top["choices"]) == "null" {
			t.Fatalf("%q: null is no empty array", data)
		}
		if r := c.Running; r.To > 0 {
			var without map[string]json.RawMessage
			if err := json.Unmarshal(finite(append(bytes.Clone(data[:r.From]), data[r.To:]...)), &without); err != nil {
				t.Fatalf("%q without its usage: %v", data, err)
			}
			if len(without) < len(top)-1 {
				t.Fatalf("%q lost more than its usage: %v", data, without)
			}
		}
	})
}

// finite is data with another number for each that JSON does not have.
func finite(data []byte) []byte {
	for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
		data = bytes.ReplaceAll(data, []byte(word), []byte(" 0 "))
	}
	return data
}

func deep(data []byte) bool {
	w := walker{b: data, inf: true}
	return w.value(w.space(0), 0) < 0 && w.deep
}

// FuzzTextLen compares with the string that encoding/json makes.
func FuzzTextLen(f *testing.F) {
	f.Add(`\ud83d\ude00`)
	f.Add(`\ud83d\ud83d\ude00\udead\u00e9\n`)
	f.Fuzz(func(t *testing.T, text string) {
		raw := []byte(`"` + text + `"`)
		var s string
		if json.Unmarshal(raw, &s) != nil || strings.ContainsRune(s, '\uFFFD') && !strings.Contains(text, `\u`) {
			return // not JSON, or not UTF-8, which is counted as it came
		}
		w := walker{b: raw}
		if end, escaped := w.str(0); end != len(raw) {
			t.Fatalf("%s ends at %d", raw, end)
		} else if got := textLen(raw[1:len(raw)-1], escaped); got != len(s) && json.Valid(raw) && strings.ToValidUTF8(text, "") == text {
			t.Fatalf("%s: %d bytes, want %d", raw, got, len(s))
		}
	})
}

var chunks = map[string]string{
	"delta": `{"id":"chatcmpl-8f2c1f6f5b3e4a8f9d0c","object":"chat.completion.chunk","created":1732147200,"model":"meta-llama/Llama-3.1-70B-Instruct","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}`,
	"usage": `{"id":"chatcmpl-8f2c1f6f5b3e4a8f9d0c","object":"chat.completion.chunk","created":1732147200,"model":"meta-llama/Llama-3.1-70B-Instruct","choices":[],"usage":{"prompt_tokens":17,"total_tokens":145,"completion_tokens":128,"prompt_tokens_details":{"cached_tokens":0}}}`,
}

// Budget: 600 ns and no allocation.
func BenchmarkParseChunk(b *testing.B) {
	for name, data := range chunks {
		b.Run(name, func(b *testing.B) {
			raw := []byte(data)
			var c Chunk
			b.ReportAllocs()
			for b.Loop() {
				parseChunk(raw, &c)
			}
		})
	}
}

func TestChoices(t *testing.T) {
	for data, want := range map[string]Choices{
		`{"choices":[]}`: {},
		`{"choices":[{"index":2,"text":"é","finish_reason":null}]}`:                               {Count: 1, Index: 2, FirstBytes: 2},
		`{"choices":[{"index":0,"text":"abc"},{"index":1,"text":"ab","finish_reason":"length"}]}`: {Count: 2, Index: 1, FirstBytes: 3, Finished: true},
		`{"choices":[null,{"index":-1}]}`:                                                         {Count: 2},
	} {
		var c Chunk
		if !parseChunk([]byte(data), &c) || c.Choices != want {
			t.Errorf("%s: got %+v, want %+v", data, c.Choices, want)
		}
	}
	for data, want := range map[string]string{
		`{"choices":[],"system_fingerprint" : "fp_1" }`: `"fp_1"`, `{"system_fingerprint":null,"x":1}`: "null",
		`{"system_fingerprint":""}`: "", `{"system_fingerprint":7}`: "", `{"x":{"system_fingerprint":"no"}}`: "",
	} {
		var c Chunk
		if f := &c.Fingerprint; !parseChunk([]byte(data), &c) || data[f.From:f.To] != want || f.Null != (want == "null") {
			t.Errorf("%s: got %+v, want %s", data, f, want)
		}
	}
}

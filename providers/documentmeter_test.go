package providers

import (
	"bytes"
	"testing"
)

func document(pieces ...[]byte) (sum total) {
	m := (&Backend{}).NewMeter("/chat/completions", false, StripEvent)
	for _, p := range pieces {
		sum.add(m.Read(p))
	}
	sum.add(m.End())
	return sum
}

func TestDocument(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       total
	}{
		{"chat", `{"choices":[{"message":{"role":"assistant","content":"hey"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`, total{Chunks: 1, Bytes: 3, Usage: Usage{9, 0, 5, 0, 0, 0}, HasUsage: true, Done: true}},
		{"keep-alive lines in front", "\n\n\n" + `{"choices":[{"text":"a"}]}` + "\n", total{Chunks: 1, Bytes: 1, Done: true}},
		{"llama.cpp, of three the first is counted", `{"choices":[{"index":0,"message":{"content":"aaa aaa aaa aaa "}},{"index":1,"message":{"content":"aaa aaa "}},{"index":2,"message":{"content":""}}],"usage":{"prompt_tokens":9,"completion_tokens":8},"timings":{"predicted_n":8}}`, total{Chunks: 1, Bytes: 24, Usage: Usage{9, 0, 12, 0, 0, 0}, HasUsage: true, Done: true}},
		{"llama.cpp, a short one is counted", `{"choices":[{"text":"a"},{"text":"aaa aaa aaa aaa "}],"usage":{"prompt_tokens":9,"completion_tokens":2},"timings":{"predicted_n":2}}`, total{Chunks: 1, Bytes: 17, Usage: Usage{9, 0, 6, 0, 0, 0}, HasUsage: true, Done: true}},
		{"llama.cpp, all are counted", `{"choices":[{"text":"a"},{"text":"aaa aaa aaa aaa "}],"usage":{"prompt_tokens":9,"completion_tokens":9},"timings":{"predicted_n":2}}`, total{Chunks: 1, Bytes: 17, Usage: Usage{9, 0, 9, 0, 0, 0}, HasUsage: true, Done: true}},
		{"two choices", `{"choices":[{"text":"a"},{"text":"aaa aaa aaa aaa "}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`, total{Chunks: 1, Bytes: 17, Usage: Usage{9, 0, 9, 0, 0, 0}, HasUsage: true, Done: true}},
		{"usage only, not stripped", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}`, total{Usage: Usage{9, 0, 0, 0, 0, 0}, HasUsage: true, Done: true}},
		{"embeddings", `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":9,"total_tokens":9}}`, total{Usage: Usage{9, 0, 0, 0, 0, 0}, HasUsage: true, Done: true}},
		{"error", `{"error":{"message":"no"}}`, total{Error: true, Done: true}},
		{"cut", `{"choices":[{"message":{"content":"h`, total{Bad: true}},
		{"HTML", "<html>", total{Bad: true}},
		{"nothing", "", total{Bad: true}},
	} {
		tt.want.passed = tt.text
		if got := document([]byte(tt.text)); got != tt.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, got, tt.want)
		}
		if got := document(bytewise([]byte(tt.text))...); got != tt.want {
			t.Errorf("%s, byte by byte:\ngot  %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
}

// One document of each endpoint, in the form of those that serve it.
func TestDocumentsOfEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name, path, text string
		want             total
	}{
		{"Responses", "/responses", `{"id":"resp_1","object":"response","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hey"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2}}}`, total{Chunks: 1, Bytes: 3, Usage: Usage{9, 4, 5, 2, 0, 0}, Done: true}},
		{"Messages", "/messages?beta=true", `{"type":"message","content":[{"type":"text","text":"Hey"}],"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":5}}`, total{Chunks: 1, Bytes: 3, Usage: Usage{13, 4, 5, 0, 0, 0}, Done: true}},
		{"Messages error", "/messages", `{"type":"error","error":{"type":"api_error","message":"x"}}`, total{Error: true, Done: true}},
		{"Messages cut", "/messages", `{"type":"message","content":[{"type":"text","te`, total{Bad: true}},
		{"count_tokens", "/messages/count_tokens", `{"input_tokens":14}`, total{Done: true}},
		{"embeddings", "/embeddings", `{"object":"list","data":[{"embedding":[0.1,2e-5]}],"usage":{"prompt_tokens":9,"total_tokens":9}}`, total{Usage: Usage{9, 0, 0, 0, 0, 0}, Done: true}},
		{"embeddings cut", "/embeddings", `{"object":"list","data":[{"embedding":[0.1,2e-5`, total{Bad: true}},
		{"embeddings, HTML", "/embeddings", `<html>`, total{Bad: true}},
		{"rerank of vLLM", "/rerank", `{"id":"r","model":"m","usage":{"total_tokens":56},"results":[{"index":1,"document":{"text":"x"},"relevance_score":0.9}]}`, total{Usage: Usage{56, 0, 0, 0, 0, 0}, Done: true}},
		{"rerank of TEI", "/rerank", `[{"index":1,"score":0.9}]`, total{Done: true}},
		{"moderations", "/moderations", `{"id":"modr","results":[{"flagged":false}]}`, total{Done: true}},
		{"images", "/images/generations", `{"created":1,"data":[{"b64_json":"QUJD"}],"usage":{"input_tokens":50,"output_tokens":4160,"total_tokens":4210}}`, total{Usage: Usage{50, 0, 4160, 0, 0, 0}, Done: true}},
		{"error with 200", "/images/generations", `{"error":{"message":"no"}}`, total{Error: true, Done: true}},
		{"transcription", "/audio/transcriptions", `{"text":"I see","usage":{"type":"tokens","input_tokens":14,"output_tokens":45,"total_tokens":59}}`, total{Usage: Usage{14, 0, 45, 0, 0, 0}, Done: true}},
		{"transcription as text", "/audio/transcriptions", "I see\n", total{Done: true}},
		{"transcription as SRT", "/audio/transcriptions", "1\n00:00:00,000 --> 00:00:02,000\n{I} see\n", total{Done: true}},
		{"transcription as text that begins like JSON", "/audio/transcriptions", "{I} see\n", total{Done: true}},
		{"sound", "/audio/speech", "\xFF\xFB\x90\x00{", total{Done: true}},
		{"sound that begins like JSON", "/audio/speech", "{\x00\x01", total{Done: true}},
	} {
		tt.want.passed, tt.want.HasUsage = tt.text, tt.want.Usage != Usage{}
		for _, pieces := range [][][]byte{{[]byte(tt.text)}, bytewise([]byte(tt.text))} {
			if got := look(tt.path, false, 0, pieces...); got != tt.want {
				t.Errorf("%s in %d pieces:\ngot  %+v\nwant %+v", tt.name, len(pieces), got, tt.want)
			}
		}
	}
}

// Vectors are passed on and counted without being kept.
func TestALargeAnswerIsReadWithoutBeingKept(t *testing.T) {
	m := (&Backend{}).NewMeter("/embeddings", false, 0).(*bulkMeter)
	m.Read([]byte(`{"data":[`))
	piece := bytes.Repeat([]byte(`{"embedding":[0.123456,-0.1],"object":"embedding"},`), 1000)
	for range 400 {
		if pass, _ := m.Read(piece); len(pass) != len(piece) {
			t.Fatalf("%d bytes of %d passed on", len(pass), len(piece))
		}
	}
	m.Read([]byte(`{}],"usage":{"prompt_tokens":9,`))
	m.Read([]byte(`"total_tokens":9}}`))
	if _, seen := m.End(); !seen.Done || seen.Usage == nil || seen.Usage.PromptTokens != 9 {
		t.Errorf("the end reports %+v, want 9 tokens", seen)
	}
	if kept := m.document.Kept(); kept > 8<<10 {
		t.Errorf("%d bytes are kept of 20 MB", kept)
	}
}

func TestALargeDocumentIsPassedButNotKept(t *testing.T) {
	m := &documentMeter{}
	piece := bytes.Repeat([]byte(" "), 1<<20)
	for range 6 {
		if pass, _ := m.Read(piece); len(pass) != len(piece) {
			t.Fatalf("%d bytes of %d passed on", len(pass), len(piece))
		}
		if len(m.text) > maxDocument {
			t.Fatalf("%d bytes are kept, want at most %d", len(m.text), maxDocument)
		}
	}
	if m.text != nil {
		t.Error("memory is kept although nothing will be read")
	}
	if pass, seen := m.End(); len(pass) > 0 || seen != (Seen{}) {
		t.Errorf("the end reports %+v, want nothing", seen)
	}
}

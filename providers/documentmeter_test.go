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
		{"chat", `{"choices":[{"message":{"role":"assistant","content":"hey"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`, total{Chunks: 1, Bytes: 3, Usage: Usage{9, 0, 5, 0}, HasUsage: true, Done: true}},
		{"keep-alive lines in front", "\n\n\n" + `{"choices":[{"text":"a"}]}` + "\n", total{Chunks: 1, Bytes: 1, Done: true}},
		{"usage only, not stripped", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}`, total{Usage: Usage{9, 0, 0, 0}, HasUsage: true, Done: true}},
		{"embeddings", `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":9,"total_tokens":9}}`, total{Usage: Usage{9, 0, 0, 0}, HasUsage: true, Done: true}},
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

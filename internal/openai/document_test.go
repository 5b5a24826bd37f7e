package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// reading is what a Document says of a text.
type reading struct {
	Usage
	has, failed, whole bool
}

func readDocument(pieces ...[]byte) reading {
	var d Document
	for _, p := range pieces {
		d.Feed(p)
	}
	u, has, failed, whole := d.End()
	return reading{u, has, failed, whole}
}

func TestDocument(t *testing.T) {
	usage := Usage{PromptTokens: 9}
	for _, tt := range []struct {
		name, text string
		want       reading
	}{
		{"embeddings", `{"object":"list","data":[{"embedding":[0.1,-2e-3],"index":0}],"model":"m","usage":{"prompt_tokens":9,"total_tokens":9}}`, reading{usage, true, false, true}},
		{"usage first", "\n\n{ \"usage\" : { \"prompt_tokens\" : 9 } , \"data\" : [ ] }\n", reading{usage, true, false, true}},
		{"usage deeper down", `{"data":[{"usage":{"prompt_tokens":1}}],"x":{"usage":{"prompt_tokens":2}}}`, reading{whole: true}},
		{"usage in text", `{"a":"\"usage\":{\"prompt_tokens\":1}","b\\":"\\","usage":{"prompt_tokens":9}}`, reading{usage, true, false, true}},
		{"a longer key", `{"usages":{"prompt_tokens":1},"usag":{"prompt_tokens":1},"Usage":{"prompt_tokens":1}}`, reading{whole: true}},
		{"usage null", `{"usage":null}`, reading{whole: true}},
		{"usage as text", `{"usage":"9"}`, reading{whole: true}},
		{"usage broken", `{"usage":{"prompt_tokens":9,}}`, reading{whole: true}},
		{"usage too long", `{"usage":{"prompt_tokens":9,"x":"` + strings.Repeat("x", maxMember) + `"}}`, reading{whole: true}},
		{"images", `{"created":1,"data":[{"b64_json":"QUJD"}],"usage":{"input_tokens":50,"output_tokens":4160,"total_tokens":4210}}`, reading{Usage{PromptTokens: 50, CompletionTokens: 4160}, true, false, true}},
		{"rerank of TEI", `[{"index":0,"score":0.9},"usage",{"usage":{"prompt_tokens":1}}]`, reading{whole: true}},
		{"error", `{"error":{"message":"no","usage":{"prompt_tokens":1}}}`, reading{failed: true, whole: true}},
		{"error null", `{"error":null}`, reading{whole: true}},
		{"cut", `{"usage":{"prompt_tokens":9},"data":[`, reading{usage, true, false, false}},
		{"cut in text", `{"usage":{"prompt_tokens":9},"data":"`, reading{usage, true, false, false}},
		{"HTML", `<html>{"usage":{"prompt_tokens":9}}`, reading{}},
		{"something behind", `{}x`, reading{}},
		{"nothing", ``, reading{}},
	} {
		check := func(how string, got reading) {
			t.Helper()
			if got != tt.want {
				t.Errorf("%s, %s: got %+v, want %+v", tt.name, how, got, tt.want)
			}
		}
		text := []byte(tt.text)
		check("whole", readDocument(text))
		var bytewise [][]byte
		for i := range text {
			bytewise = append(bytewise, text[i:i+1])
			check(fmt.Sprintf("cut at %d", i), readDocument(text[:i], text[i:]))
		}
		check("byte by byte", readDocument(bytewise...))
	}
}

// FuzzDocument compares with encoding/json on what that takes for JSON.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"a":[{"usage":1}],"usage":{"prompt_tokens":9,"total_tokens":12},"error":{}}`), uint16(7))
	f.Add([]byte("[\"usage\"]"), uint16(3))
	f.Add([]byte(`{"\\":"\"","usage" : {"input_tokens":1,"output_tokens":2}}`), uint16(5))
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		at := min(int(cut), len(text))
		got := readDocument(text)
		if halves := readDocument(text[:at], text[at:]); halves != got {
			t.Fatalf("%q cut at %d: %+v, in one piece %+v", text, at, halves, got)
		}
		var v any
		if json.Unmarshal(text, &v) != nil {
			return
		}
		first := bytes.TrimLeft(text, " \t\r\n")[0]
		if want := first == '{' || first == '['; got.whole != want {
			t.Fatalf("%q: whole %v, want %v", text, got.whole, want)
		}
		var ev Event
		if (&Events{}).Parse(nil, text, &ev) && !strings.Contains(string(text), "message") && !strings.Contains(string(text), "response") &&
			!strings.Contains(string(text), "type") && len(text) < maxMember {
			if got.has != ev.HasUsage || got.has && got.Usage != ev.Usage || got.failed != ev.Error {
				t.Fatalf("%q: %+v, the event parser says %+v", text, got, ev)
			}
		}
	})
}

// Budget: 2 ns for a byte, and no allocation.
func BenchmarkDocument(b *testing.B) {
	floats := []byte(`{"data":[` + strings.Repeat("-0.0123456789,", 2000) + `0],"usage":{"prompt_tokens":9}}`)
	base64 := []byte(`{"data":["` + strings.Repeat("QUJDREVG", 4000) + `"],"usage":{"prompt_tokens":9}}`)
	for name, text := range map[string][]byte{"floats": floats, "base64": base64} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			d := Document{member: make([]byte, 0, maxMember)}
			for b.Loop() {
				d = Document{member: d.member[:0]}
				d.Feed(text)
			}
		})
	}
}

package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// appended is what ParseChunkText makes of text and data.
func appended(text, data []byte, most int) []byte {
	var c Chunk
	text, _ = ParseChunkText(data, &c, text, most)
	return text
}

func TestTextOfAChunk(t *testing.T) {
	for data, want := range map[string]string{
		`{"choices":[{"delta":{"content":"héy \n\"you\" \u00e9\ud83d\ude00\ud800x"}}]}`:                     "héy \n\"you\" é😀\uFFFDx",
		`{"choices":[{"delta":{"reasoning":"hm ","content":"x","refusal":"no"}}]}`:                          "hm xno",
		`{"choices":[{"delta":{"tool_calls":[{"id":"i","function":{"name":"f","arguments":"{\"a\":"}}]}}]}`: `f{"a":`,
		`{"choices":[{"text":" a"},{"text":" b"}]}`:                                                         " a b",
		`{"choices":[{"message":{"role":"assistant","content":"hey"}}]}`:                                    "hey",
		`{"choices":[],"usage":{"completion_tokens":5}}`:                                                    "",
		`{"choices":[{"delta":{"content":"a"}}]}x`:                                                          "",
		`[]`: "",
	} {
		if got := string(appended(nil, []byte(data), 1000)); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}

// However little room there is, whole characters are kept, and no more.
func TestTheTextIsBounded(t *testing.T) {
	const text = "aé語😀\n\"bb"
	raw := `"` + text[:len(text)-4] + `\n\"bb"`
	for name, content := range map[string]string{"plain": `"aé語😀"`, "escaped": raw, "all escaped": `"a\u00e9\u8a9e\ud83d\ude00\n\"bb"`} {
		for most := range 30 {
			got := string(appended([]byte("x"), []byte(`{"choices":[{"text":`+content+`}]}`), most))
			if !utf8.ValidString(got) || len(got) > max(most, 1) || !strings.HasPrefix("x"+text, got) {
				t.Errorf("%s: %q in %d bytes", name, got, most)
			}
			if most >= 20 && len(got) < 10 {
				t.Errorf("%s: only %q in %d bytes", name, got, most)
			}
		}
	}
}

func TestPromptText(t *testing.T) {
	for _, tt := range []struct {
		body, want string
		within     int // 0 = all of it
	}{
		{`{"model":"m","messages":[{"role":"system","content":"Be\u0020kind."},{"role":"user","content":[{"type":"text","text":"hé"},{"type":"image_url","image_url":{"url":"data:xyz"}}]}]}`, "Be kind.\nhé\n", 0},
		{`{"model":"m","prompt":["one","two"],"stop":["x"]}`, "one\ntwo\n", 0},
		{`{"model":"m","prompt":[[1,2],[3]]}`, "", 0},
		{`{"model":"m","input":"one","instructions":"two","tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]}`, "one\ntwo\nd\n", 0},
		{`{"prompt":"` + strings.Repeat("a", 60) + `","model":"m"}`, strings.Repeat("a", 49) + "\n", 11 + 49},
	} {
		got, within := PromptText([]byte(tt.body), 50)
		if tt.within == 0 {
			tt.within = len(tt.body)
		}
		if string(got) != tt.want || within != tt.within {
			t.Errorf("%s:\ngot  %q within %d bytes\nwant %q within %d", tt.body, got, within, tt.want, tt.within)
		}
	}
	if got, within := PromptText([]byte("--form\r\n"), 50); got != nil || within != 0 {
		t.Errorf("a form has the text %q", got)
	}
}

// FuzzText compares with encoding/json.
func FuzzKeptText(f *testing.F) {
	f.Add(`plain`, 100)
	f.Add(`\ud83d\ude00 \ud800\u0041 \n\\ é`, 9)
	f.Add("\xff\\u00e9", 3)
	f.Fuzz(func(t *testing.T, raw string, most int) {
		most = min(max(most, 0), 1<<10)
		var want string
		if json.Unmarshal([]byte(`"`+raw+`"`), &want) != nil {
			t.Skip()
		}
		got := string(appended(nil, fmt.Appendf(nil, `{"choices":[{"text":"%s"}]}`, raw), most))
		if len(got) > most {
			t.Fatalf("%q: %d bytes, want at most %d", raw, len(got), most)
		}
		if utf8.ValidString(raw) && !strings.HasPrefix(want, got) {
			t.Fatalf("%q: %q, want the beginning of %q", raw, got, want)
		}
		PromptText(fmt.Appendf(nil, `{"model":"m","prompt":"%s"}`, raw), most)
	})
}

func TestKeepingTextAllocatesNothing(t *testing.T) {
	data := []byte(`{"choices":[{"index":0,"delta":{"content":" to\u006ben"}}]}`)
	text := make([]byte, 0, 8192)
	var c Chunk
	if n := testing.AllocsPerRun(1000, func() { text, _ = ParseChunkText(data, &c, text, 8192) }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

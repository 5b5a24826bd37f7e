package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func nested(levels int, inner string) string {
	return strings.Repeat("[", levels) + inner + strings.Repeat("]", levels)
}

// depthOf is how deep what is JSON nests.
func depthOf(text []byte) (most int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			most = max(most, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return most
}

// FuzzValid holds Valid against encoding/json, and against gjson, which reads what Valid
// let through and looks at nothing itself. They differ in how deep it may nest.
func FuzzValid(f *testing.F) {
	for _, s := range []string{
		"", " ", "1", "-", "-0", "01", "1.", ".1", "1e", "1e+", "1E-07", "true", "tru", "nul", "null ", "\v1", "\ufeff1",
		`"\u00e9\ud800"`, `"\x"`, `"\u12"`, "\"\x1f\"", "\"\x7f\xff\"", `"a`, `"a\`, "[1,]", "[,1]", "[1 2]", "[]]", "{}{}",
		`{"a":1,}`, `{"a" :1 , "a":2}`, `{a:1}`, `{"a"}`, `{"a":}`, `{,}`, "NaN", "Infinity", "-Infinity", "1 // x", "'a'",
		nested(3, `{"a":[{}]}`), nested(maxDepth, ""), nested(maxDepth+1, ""), nested(maxDepth-1, "{}"), nested(maxDepth, "{}"), strings.Repeat("[", 5000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, want := Valid(text), json.Valid(text)
		if want && depthOf(text) > maxDepth {
			want = false
		}
		if got != want {
			t.Errorf("%q: Valid says %v, encoding/json up to %d levels %v", text, got, maxDepth, want)
		}
		if got && !gjson.ValidBytes(text) {
			t.Errorf("%q is valid, and gjson takes it for broken", text)
		}
	})
}

func TestCountValues(t *testing.T) {
	for text, want := range map[string]int{
		`{}`: 1, ` [1,"a",null,{"b":[],"c":{"d":true}}]`: 8, `"a"`: 1, `{"a":1,`: 2, ``: 1,
	} {
		if got := CountValues([]byte(text)); got != want {
			t.Errorf("%s: %d values, want %d", text, got, want)
		}
	}
}

package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestPeekReads(t *testing.T) {
	for _, tt := range []struct {
		body string
		want Request
	}{
		{`{}`, Request{Sequences: 1}},
		{`{"model":null,"n":2}`, Request{Sequences: 2}},
		{`{"model":"m"}`, Request{Model: "m", Sequences: 1}},
		{" \n{ \"model\" : \"m\" , \"stream\" : true } \r\n", Request{Model: "m", Stream: true, Sequences: 1}},
		{`{"model":"org\/näme\u00e9\ud83d\ude00"}`, Request{Model: "org/nämeé😀", Sequences: 1}},
		{`{"mod\u0065l":"m"}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","stream":null,"stream_options":null,"max_tokens":null,"n":null}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","stream_options":{"include_usage":true}}`, Request{Model: "m", IncludeUsage: true, Sequences: 1}},
		{`{"model":"m","stream_options":{"continuous_usage_stats":true}}`, Request{Model: "m", ContinuousUsage: true, Sequences: 1}},
		{`{"model":"m","stream_options":{"x":[1],"include_usage":false}}`, Request{Model: "m", Sequences: 1}},
		{`{"user":"u","model":"m"}`, Request{Model: "m", Session: "u", Sequences: 1}},
		{`{"user":"u","prompt_cache_key":"k\u0065y","model":"m"}`, Request{Model: "m", Session: "key", Sequences: 1}},
		{`{"prompt_cache_key":"k","user":"u","model":"m"}`, Request{Model: "m", Session: "k", Sequences: 1}},
		{`{"prompt_cache_key":null,"user":7,"model":"m"}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","max_tokens":7}`, Request{Model: "m", MaxTokens: 7, Sequences: 1}},
		{`{"model":"m","max_tokens":7,"max_completion_tokens":5,"max_output_tokens":3}`, Request{Model: "m", MaxTokens: 5, Sequences: 1}},
		{`{"model":"m","max_output_tokens":3}`, Request{Model: "m", MaxTokens: 3, Sequences: 1}},
		{`{"model":"m","max_tokens":-1}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","max_tokens":1e3}`, Request{Model: "m", MaxTokens: 1000, Sequences: 1}},
		{`{"model":"m","max_tokens":99999999999999999999}`, Request{Model: "m", MaxTokens: maxCount, Sequences: 1}},
		{`{"model":"m","max_tokens":1e999}`, Request{Model: "m", MaxTokens: maxCount, Sequences: 1}},
		{`{"model":"m","n":3}`, Request{Model: "m", Sequences: 3}},
		{`{"model":"m","n":2,"best_of":5}`, Request{Model: "m", Sequences: 5}},
		{`{"model":"m","n":0}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","n":1000000}`, Request{Model: "m", Sequences: 128}},
		{`{"model":"m","prompt":"a"}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","prompt":[]}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","prompt":["a","b","c"]}`, Request{Model: "m", Sequences: 3}},
		{`{"model":"m","prompt":[[1,2],[3]],"n":4}`, Request{Model: "m", Sequences: 8}},
		{`{"model":"m","prompt":[1,2,3]}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","prompt":[` + strings.Repeat(`"a",`, 9999) + `"a"],"n":100}`, Request{Model: "m", Sequences: maxSequences}},
		{`{"metadata":{"model":"x","stream":true},"model":"m","tools":[{"model":"y"}]}`, Request{Model: "m", Sequences: 1}},
		{`{"":1,"model":"m","seed":9007199254740993}`, Request{Model: "m", Sequences: 1}},
		// What Python's engines read as if it had the right type.
		{`{"model":"m","stream":"True","max_tokens":" 7 ","n":"2"}`, Request{Model: "m", Stream: true, MaxTokens: 7, Sequences: 2}},
		{`{"model":"m","stream":1,"stream_options":{"include_usage":"yes","continuous_usage_stats":1}}`, Request{Model: "m", Stream: true, IncludeUsage: true, ContinuousUsage: true, Sequences: 1}},
		{`{"model":"m","stream":"false","stream_options":{"include_usage":0}}`, Request{Model: "m", Sequences: 1}},
		{`{"model":"m","max_tokens":"1e999"}`, Request{Model: "m", MaxTokens: maxCount, Sequences: 1}},
	} {
		got, err := Peek([]byte(tt.body))
		if err != nil {
			t.Errorf("%.80s: %v", tt.body, err)
			continue
		}
		got.body, got.spans, got.model = nil, tt.want.spans, ""
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%.80s:\ngot  %+v\nwant %+v", tt.body, got, tt.want)
		}
	}
}

func TestPeekRefuses(t *testing.T) {
	for _, tt := range []struct{ body, param, says string }{
		{``, "", "is empty"},
		{"  \n", "", "is empty"},
		{`[]`, "", "must be a JSON object"},
		{`"model"`, "", "must be a JSON object"},
		{`null`, "", "must be a JSON object"},
		{`7`, "", "must be a JSON object"},
		{`model=m`, "", `unexpected "m" at byte 0`},
		{"\x00", "", `unexpected "\x00" at byte 0`},
		{"\xEF\xBB\xBF{}", "", `unexpected "\xef" at byte 0`},
		{`{`, "", "ends too early, after 1 bytes"},
		{`{"model":"m"`, "", "ends too early, after 12 bytes"},
		{`{"model":"m",`, "", "ends too early"},
		{`{"model":"m",}`, "", `unexpected "}" at byte 13`},
		{`{"model":"m"}{}`, "", "behind its JSON object, at byte 13"},
		{`{"model":"m"} x`, "", "behind its JSON object, at byte 14"},
		{`{"model":"m" "a":1}`, "", `unexpected "\"" at byte 13`},
		{`{'model':"m"}`, "", `unexpected "'" at byte 1`},
		{`{"model":m}`, "", `unexpected "m" at byte 9`},
		{`{"model":"m","x":01}`, "", `unexpected "1" at byte 18`},
		{`{"model":"m","x":tru}`, "", `unexpected "}" at byte 20`},
		{`{"model":"m","x":NaN}`, "", `unexpected "N"`},
		{"{\"model\":\"a\nb\"}", "", `unexpected "\n" at byte 11`},
		{`{"model":"\x"}`, "", `unexpected "x" at byte 11`},
		{`{"model":"\u00g0"}`, "", `unexpected "g" at byte 14`},
		{`{"model":"\u00`, "", "ends too early"},
		{`{"model":""}`, "model", "must not be empty"},
		{`{"model":7}`, "model", "must be a string"},
		{`{"model":["m"]}`, "model", "must be a string"},
		{`{"model":"a","model":"b"}`, "model", `field "model" twice`},
		{`{"model":"a","mod\u0065l":"b"}`, "model", `field "model" twice`},
		{`{"model":"a","x":1,"y":2,"x":1}`, "x", `field "x" twice`},
		{`{"model":"a","Model":"b"}`, "model", `write it in lower case: "model"`},
		{`{"model":"a","ſtream":true}`, "stream", "write it in lower case"},
		{`{"model":"m","stream_options":[]}`, "stream_options", "must be an object"},
		{`{"model":"m","stream_options":{"include_usage":true,"include_usag\u0065":false}}`, "stream_options.include_usage", "once"},
		{`{"model":"m","stream_options":{"Include_usage":true}}`, "stream_options.include_usage", "lower case"},
		{`{"model":"m","stream_options":{"continuous_usage_stats":true,"continuous_usage_stats":false}}`, "stream_options.continuous_usage_stats", "once"},
		{`{"model":"m","stream_options":{"Continuous_Usage_Stats":true}}`, "stream_options.continuous_usage_stats", "lower case"},
		{`{"model":"m","stream":"maybe"}`, "stream", "must be true or false"},
		{`{"model":"m","stream":2}`, "stream", "must be true or false"},
		{`{"model":"m","stream":[]}`, "stream", "must be true or false"},
		{`{"model":"m","stream":""}`, "stream", "must be true or false"},
		{`{"model":"m","stream_options":{"include_usage":"maybe"}}`, "stream_options.include_usage", "must be true or false"},
		{`{"model":"m","stream_options":{"continuous_usage_stats":{}}}`, "stream_options.continuous_usage_stats", "must be true or false"},
		{`{"model":"m","max_tokens":"many"}`, "max_tokens", "whole number"},
		{`{"model":"m","max_tokens":"7x"}`, "max_tokens", "whole number"},
		{`{"model":"m","max_tokens":""}`, "max_tokens", "whole number"},
		{`{"model":"m","max_tokens":true}`, "max_tokens", "whole number"},
		{`{"model":"m","n":"-1"}`, "n", "must not be negative"},
		{`{"model":"m","max_tokens":1.5}`, "max_tokens", "whole number"},
		{`{"model":"m","n":-1}`, "n", "must not be negative"},
		{`{"model":"m","best_of":-1}`, "best_of", "must not be negative"},
		{`{"model":"m","n":{}}`, "n", "whole number"},
		{`{"model":"m","x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, "", "deeper than 1000"},
		{strings.Repeat("[", 100_000), "", "deeper than 1000"},
		{manyFields(maxKeys) + `,"model":"m"}`, "", "more than 4096 fields"},
		{manyFields(100) + `,"k7":"m"}`, "k7", `field "k7" twice`},
		{`{"` + strings.Repeat("k", 1000) + `":1,"` + strings.Repeat("k", 1000) + `":1}`, strings.Repeat("k", 64), "twice"},
	} {
		_, err := Peek([]byte(tt.body))
		var bad *BadRequest
		if !errors.As(err, &bad) {
			t.Errorf("%.80q: got %v, want a *BadRequest", tt.body, err)
			continue
		}
		if bad.Param != tt.param || !strings.Contains(bad.Message, tt.says) {
			t.Errorf("%.80q:\ngot  %q, param %q\nwant %q, param %q", tt.body, bad.Message, bad.Param, tt.says, tt.param)
		}
	}
}

func manyFields(n int) string {
	var b strings.Builder
	b.WriteString(`{"k0":0`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return b.String()
}

func TestPeekAcceptsADeepBody(t *testing.T) {
	body := `{"model":"m","x":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1) + `}`
	if _, err := Peek([]byte(body)); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
}

func TestEdit(t *testing.T) {
	for _, tt := range []struct {
		name, body, model string
		ask               Ask
		want              string
	}{
		{"nothing", ` {"model":"m"} `, "", AskNothing, ` {"model":"m"} `},
		{"same model", `{"model":"\u006d"}`, "m", AskNothing, `{"model":"\u006d"}`},
		{"model", `{"a":1.0e2, "model" : "m" ,"b":"<\u00e9>"}`, "org/M \"x\" <é>", AskNothing, `{"a":1.0e2, "model" : "org/M \"x\" <é>" ,"b":"<\u00e9>"}`},
		{"escaped key", `{"mod\u0065l":"m"}`, "n", AskNothing, `{"mod\u0065l":"n"}`},
		{"absent", `{ "model":"m"}`, "", AskUsage, `{"stream_options":{"include_usage":true}, "model":"m"}`},
		{"absent and model", `{"model":"m","seed":9007199254740993}`, "n", AskUsage, `{"stream_options":{"include_usage":true},"model":"n","seed":9007199254740993}`},
		{"null", `{"stream_options": null ,"model":"m"}`, "n", AskUsage, `{"stream_options": {"include_usage":true} ,"model":"n"}`},
		{"empty", `{"model":"m","stream_options":{ }}`, "n", AskUsage, `{"model":"n","stream_options":{"include_usage":true }}`},
		{"other key", `{"model":"m","stream_options":{ "x":1}}`, "", AskUsage, `{"model":"m","stream_options":{"include_usage":true, "x":1}}`},
		{"false", `{"model":"m","stream_options":{"include_usage": false,"x":1}}`, "", AskUsage, `{"model":"m","stream_options":{"include_usage": true,"x":1}}`},
		{"inner null", `{"model":"m","stream_options":{"include_usage":null}}`, "", AskUsage, `{"model":"m","stream_options":{"include_usage":true}}`},
		{"true", `{"model":"m","stream_options":{"include_usage":true}}`, "", AskUsage, `{"model":"m","stream_options":{"include_usage":true}}`},
		{"continuous, absent", `{"model":"m"}`, "n", AskContinuous, `{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"model":"n"}`},
		{"continuous, null", `{"stream_options":null,"model":"m"}`, "", AskContinuous, `{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"model":"m"}`},
		{"continuous, empty", `{"model":"m","stream_options":{}}`, "", AskContinuous, `{"model":"m","stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
		{"continuous, usage asked", `{"model":"m","stream_options":{"include_usage": true}}`, "", AskContinuous, `{"model":"m","stream_options":{"continuous_usage_stats":true,"include_usage": true}}`},
		{"continuous, false before the model", `{"stream_options":{"continuous_usage_stats":false},"model":"m"}`, "n", AskContinuous, `{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"model":"n"}`},
		{"continuous, both false, the other way round", `{"model":"m","stream_options":{"continuous_usage_stats":null , "x":2, "include_usage":false}}`, "n", AskContinuous, `{"model":"n","stream_options":{"continuous_usage_stats":true , "x":2, "include_usage":true}}`},
		{"continuous, both asked", `{"model":"m","stream_options":{"continuous_usage_stats":true,"include_usage":true}}`, "", AskContinuous, `{"model":"m","stream_options":{"continuous_usage_stats":true,"include_usage":true}}`},
		{"continuous asked, usage to be", `{"model":"m","stream_options":{"continuous_usage_stats":true}}`, "", AskUsage, `{"model":"m","stream_options":{"include_usage":true,"continuous_usage_stats":true}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := []byte(tt.body)
			r := must.Get(Peek(body))(t)
			if got := string(applied(t, body, r.Edit(tt.model, tt.ask))); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if string(body) != tt.body {
				t.Errorf("the body itself was changed to %s", body)
			}
		})
	}
}

// A model that the address names, or the target, is written where the body has
// another one, or none.
func TestEditNames(t *testing.T) {
	for _, tt := range []struct{ body, named, target, want string }{
		{`{"a":1}`, "m", "", `{"model":"m","a":1}`},
		{`{ }`, "m", "", `{"model":"m" }`},
		{`{}`, "", "up", `{"model":"up"}`},
		{`{}`, "", "", `{}`},
		{`{"model":null,"a":1}`, "m", "", `{"model":"m","a":1}`},
		{`{"model":"x"}`, "m", "", `{"model":"m"}`},
		{`{"model":"x"}`, "m", "up", `{"model":"up"}`},
		{`{"model":"m"}`, "m", "", `{"model":"m"}`},
		{`{"stream":true}`, "m\"", "", `{"model":"m\"","stream_options":{"include_usage":true},"stream":true}`},
	} {
		r, err := Peek([]byte(tt.body))
		must.Do(t, err)
		ask := AskNothing
		if r.Stream {
			ask = AskUsage
		}
		if tt.named != "" {
			r.Name(tt.named)
		}
		got, err := io.ReadAll(NewReader([]byte(tt.body), r.Edit(tt.target, ask)))
		if err != nil || !sameFields(t, string(got), tt.want) {
			t.Errorf("%s named %q for %q is %s (%v), want %s", tt.body, tt.named, tt.target, got, err, tt.want)
		}
	}
}

// sameFields reports whether two bodies are the same JSON, and each key of got is
// there once.
func sameFields(t *testing.T, got, want string) bool {
	t.Helper()
	var a, b any
	if _, err := Peek([]byte(got)); err != nil || json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		return false
	}
	return reflect.DeepEqual(a, b)
}

func TestNothingToEdit(t *testing.T) {
	body := []byte(`{"model":"m","stream_options":{"include_usage":true}}`)
	r := must.Get(Peek(body))(t)
	if got := r.Edit("m", AskUsage); got != nil {
		t.Errorf("edits %v where there is nothing to be changed", got)
	}
}

func TestErrorBody(t *testing.T) {
	for _, tt := range []struct{ message, typ, param, code, want string }{
		{"no such \"model\"", "invalid_request_error", "model", "model_not_found", `{"error":{"message":"no such \"model\"","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
		{"<a>\n\x01\xff", "t", "", "", `{"error":{"message":"<a>\n\u0001` + "\uFFFD" + `","type":"t","param":null,"code":null}}`},
	} {
		got := string(ErrorBody(tt.message, tt.typ, tt.param, tt.code))
		if got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s is not JSON", got)
		}
	}
}

func FuzzPeek(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi \u00e9"}],"max_tokens":5}`,
		`{"stream_options":{"include_usage":false,"x":1},"model":"\ud83d\ude00"}`,
		`{"model":"m","stream_options":{"x":1,"continuous_usage_stats":false}}`,
		`{"model":"a","mod\u0065l":"b"}`,
		`{"model":"m","prompt":[[1,2],[3]],"n":2,"best_of":3}`,
		`{"model":"m","stream":"yes","n":"2","stream_options":{"include_usage":1}}`,
		` {"a":-0.5e+7,"b":[true,false,null,{}],"model":"m","stream_options":null}`,
		`{"model":"\ud800","x":"\u0000"}`,
		"{\"model\":\"\xff\"}",
	} {
		f.Add([]byte(s), "n\"\\\x00é", uint8(AskUsage))
		f.Add([]byte(s), "n", uint8(AskContinuous))
	}
	f.Fuzz(func(t *testing.T, body []byte, model string, ask uint8) {
		w := walker{b: body}
		end := w.value(w.space(0), 0)
		if valid := end >= 0 && w.space(end) == len(body); valid != json.Valid(body) && !w.deep {
			t.Fatalf("%q: the walker says %v, encoding/json %v", body, valid, !valid)
		}
		r, err := Peek(body)
		if err != nil {
			var bad *BadRequest
			if !errors.As(err, &bad) || bad.Message == "" {
				t.Fatalf("%q: error %v is no helpful *BadRequest", body, err)
			}
			return
		}
		var std struct {
			Model         string
			Stream        bool
			StreamOptions struct {
				IncludeUsage    bool `json:"include_usage"`
				ContinuousUsage bool `json:"continuous_usage_stats"`
			} `json:"stream_options"`
		}
		if err := json.Unmarshal(body, &std); errors.As(err, new(*json.UnmarshalTypeError)) {
			return // a truth or a number in other words
		} else if err != nil {
			t.Fatalf("%q is accepted, encoding/json says %v", body, err)
		}
		if r.Model != std.Model || r.Stream != std.Stream || r.IncludeUsage != std.StreamOptions.IncludeUsage ||
			r.ContinuousUsage != std.StreamOptions.ContinuousUsage {
			t.Fatalf("%q: got %+v, encoding/json %+v", body, r, std)
		}
		if r.Sequences < 1 || r.Sequences > maxSequences || r.MaxTokens < 0 {
			t.Fatalf("%q: %d sequences, %d tokens", body, r.Sequences, r.MaxTokens)
		}
		checkEdit(t, r, body, model, Ask(ask%3))
	})
}

// checkEdit compares Edit with the same edit made on the decoded body.
func checkEdit(t *testing.T, r Request, body []byte, model string, ask Ask) {
	t.Helper()
	original := bytes.Clone(body)
	edited := applied(t, body, r.Edit(model, ask))
	if !bytes.Equal(original, body) {
		t.Fatalf("%q: Edit changed the body", original)
	}
	decode := func(b []byte) (v map[string]any) {
		t.Helper()
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q is not JSON: %v", b, err)
		}
		return v
	}
	want, got := decode(body), decode(edited)
	if model != "" {
		want["model"] = strings.ToValidUTF8(model, "") // compared apart from the replacement of bad bytes
		got["model"] = strings.ReplaceAll(got["model"].(string), "\uFFFD", "")
		want["model"] = strings.ReplaceAll(want["model"].(string), "\uFFFD", "")
	}
	if ask > AskNothing {
		options, _ := want["stream_options"].(map[string]any)
		if options == nil {
			options = map[string]any{}
		}
		options["include_usage"] = true
		if ask == AskContinuous {
			options["continuous_usage_stats"] = true
		}
		want["stream_options"] = options
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q edited to %q:\ngot  %v\nwant %v", body, edited, got, want)
	}
	again, err := Peek(edited)
	if err != nil {
		t.Fatalf("%q is refused after the edit: %v", edited, err)
	}
	if ask > AskNothing && !again.IncludeUsage || ask == AskContinuous && !again.ContinuousUsage {
		t.Fatalf("%q does not ask for what it should, %d", edited, ask)
	}
}

// chatBody is a chat request of about size bytes with the fields that matter
// at the end, which is the worst case.
func chatBody(size int) []byte {
	const message = `{"role":"user","content":"The quick brown fox \"jumps\" over the lazy dog, and then it rests a while.\n"},`
	return []byte(`{"messages":[` + strings.Repeat(message, max(1, size/len(message))) + `{"role":"user","content":""}],"temperature":0.7,"max_tokens":128,"stream":true,"model":"llama-3.1-70b"}`)
}

// Budget: 5 µs and 3 small allocations for 4 KB.
func BenchmarkPeek4KB(b *testing.B) { benchmarkPeek(b, 4<<10) }

// Budget: 2 ms for 2 MB.
func BenchmarkPeek2MB(b *testing.B) { benchmarkPeek(b, 2<<20) }

func benchmarkPeek(b *testing.B, size int) {
	body := chatBody(size)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		must.Get(Peek(body))(b)
	}
}

// Budget: 1 µs and 5 allocations, whatever the size of the body.
func BenchmarkEdit(b *testing.B) {
	r := must.Get(Peek(chatBody(4 << 10)))(b)
	b.ReportAllocs()
	for b.Loop() {
		r.Edit("meta-llama/Llama-3.1-70B-Instruct", AskContinuous)
	}
}

// The parts stand in the order in which engines put them together, whatever the
// order in the body, and the next turn begins with those of the last.
func TestPartsOfAPrompt(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user"}, {"a":[1]}],"model":"m","tools":[{"x":1}],"system":"s"}`: `[{"x":1}]|"s"|{"role":"user"}|{"a":[1]}`,
		`{"prompt":"text","model":"m"}`:                        `"text"`,
		`{"input":[{"a":1},"b"],"instructions":"i"}`:           `"i"|{"a":1}|"b"`,
		`{"input":"text","tools":null}`:                        `"text"`,
		`{"prompt":["one","two"]}`:                             ``, // two prompts
		`{"messages":[{}],"n":2}`:                              ``,
		`{"model":"m"}`:                                        ``,
		`{"messages":[]}`:                                      ``,
		`{"messages":{"not":"a list"},"metadata":{"tools":1}}`: `{"not":"a list"}`,
	} {
		r := must.Get(Peek([]byte(body)))(t)
		var parts []string
		r.Parts(func(part []byte) { parts = append(parts, string(part)) })
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("%s: parts %s, want %s", body, got, want)
		}
		r.Forget()
		r.Parts(func(part []byte) { t.Errorf("%s: a part %q of a body that was let go", body, part) })
	}
}

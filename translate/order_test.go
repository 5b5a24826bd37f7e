package translate

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/must"
)

// Results of tools come before whatever else the user says, wherever they stand.
func TestResultsComeFirst(t *testing.T) {
	r := must.Get(Read(Gemini, []byte(`{"contents":[{"parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},
		{"role":"user","parts":[{"text":"before"},{"functionResponse":{"name":"g","response":{"output":"2"}}},{"text":"between"},{"functionResponse":{"name":"f","response":{"output":"1"}}}]}]}`)))(t)
	for _, c := range []struct {
		target Target
		path   string // what stands for the kinds of blocks, or for the roles
		want   string
	}{
		{targets[1], "messages.2.content.#.type", `["tool_result","tool_result","text","text"]`},
		{targets[4], "messages.2.content.#.toolResult.toolUseId", `["gcall_2","gcall_1"]`},
		{targets[0], "messages.#.role", `["user","assistant","tool","tool","user"]`},
		{targets[3], "messages.#.role", `["user","assistant","tool","tool","user"]`},
		{mistralTarget, "messages.#.role", `["user","assistant","tool","tool","assistant","user"]`},
	} {
		w := must.Get(r.Write(c.target))(t)
		if got := gjson.GetBytes(w.Body, c.path).Raw; got != c.want {
			t.Errorf("%s: %s is %s, want %s: %s", c.target.Model, c.path, got, c.want, w.Body)
		}
		if c.target.Dialect == Converse && !gjson.GetBytes(w.Body, "messages.2.content.0.toolResult").Exists() {
			t.Errorf("the results do not come first: %s", w.Body)
		}
	}
}

// What a model may think fits into what it may answer, and into what it can.
func TestABudgetFitsTheAnswer(t *testing.T) {
	for _, c := range []struct {
		limit, effort string
		target        Target
		path, want    string
	}{
		{`1100`, `high`, targets[1], "thinking.budget_tokens", "1099"},
		{`1024`, `high`, targets[1], "thinking", ""},
		{`50000`, `high`, targets[1], "thinking.budget_tokens", "24576"},
		{`50000`, `minimal`, targets[1], "thinking.budget_tokens", "1024"},
		{`1100`, `high`, targets[4], "additionalModelRequestFields.thinking.budget_tokens", "1099"},
		{`90000`, `max`, targets[2], "generationConfig.thinkingConfig.thinkingBudget", "32768"},
		{`90000`, `max`, Target{Dialect: Gemini, Model: "gemini-2.5-flash"}, "generationConfig.thinkingConfig.thinkingBudget", "24576"},
		{`90000`, `max`, targets[0], "reasoning_effort", `"xhigh"`},
		{`90000`, `minimal`, Target{Dialect: Messages, Model: "claude-opus-5"}, "output_config.effort", `"low"`},
	} {
		r, err := Read(Chat, []byte(`{"model":"m","max_tokens":`+c.limit+`,"reasoning_effort":"`+c.effort+`","messages":[{"role":"user","content":"hi"}]}`))
		must.Do(t, err)
		w, err := r.Write(c.target)
		if got := gjson.GetBytes(w.Body, c.path).Raw; err != nil || got != c.want || (len(w.Lost) > 0) != (c.want == "") {
			t.Errorf("%s of %s tokens to %s: %s is %s (%v, %v), want %s", c.effort, c.limit, c.target.Model, c.path, got, w.Lost, err, c.want)
		}
	}
}

// What is nested deeper than anything real is refused, be it of objects or of arrays.
func TestDeepNesting(t *testing.T) {
	for _, pair := range [][2]string{{`{"a":`, `}`}, {`[`, `]`}} {
		for depth, ok := range map[int]bool{900: true, 1100: false, 100_000: false} {
			deep := strings.Repeat(pair[0], depth) + "1" + strings.Repeat(pair[1], depth)
			if _, err := Read(Chat, []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"default":`+deep+`}}}]}`)); (err == nil) != ok {
				t.Errorf("%d of %s: %v", depth, pair[0], err)
			}
			_, look, err := Document(Messages, Chat, reply, []byte(`{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":`+deep+`}}],"stop_reason":"tool_use"}`))
			if (err == nil) != ok || look.Bad == ok {
				t.Errorf("an answer with %d of %s: %v", depth, pair[0], err)
			}
		}
	}
}

// Arguments of a call may be as large as they like, whatever their pieces, and come out
// as they went in.
func TestHugeArguments(t *testing.T) {
	value := strings.Repeat(`日本 \"quoted\" \\n `, 40_000) // about a megabyte, escaped twice below
	args := `{"text":"` + value + `"}`
	quotedArgs := string(quote(args))
	var events [][2]string
	events = append(events, [2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}`})
	for in := quotedArgs[1 : len(quotedArgs)-1]; in != ""; {
		n := min(997, len(in))
		for n < len(in) && (in[n]&0xC0 == 0x80 || strings.HasSuffix(in[:n], `\`)) { // no server cuts a letter or an escape
			n++
		}
		events = append(events, [2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + in[:n] + `"}}]}}]}`})
		in = in[n:]
	}
	events = append(events, [2]string{"", `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`}, [2]string{"", "[DONE]"})
	stream := sseOf(events...)
	want := gjson.Get(args, "text").Str
	for to, read := range map[Name]func(string) string{
		Messages: func(out string) string { return gjson.Get(joinedField(out, "delta.partial_json"), "text").Str },
		Cohere: func(out string) string {
			return gjson.Get(joinedField(out, "delta.message.tool_calls.function.arguments"), "text").Str
		},
		Gemini: func(out string) string {
			return gjson.Get(dataOf(out, "functionCall"), "candidates.0.content.parts.0.functionCall.args.text").Str
		},
		Responses: func(out string) string {
			return gjson.Get(gjson.Get(dataOf(out, `"response.completed"`), "response.output.0.arguments").Str, "text").Str
		},
	} {
		got, seen := through(Chat, to, stream)
		if text := read(got); text != want || !seen.Done {
			t.Errorf("%s: %d bytes of %d, saw %+v", to, len(text), len(want), seen)
		}
	}
}

// joinedField joins what stands at a path of each event.
func joinedField(stream, path string) string {
	var all strings.Builder
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			all.WriteString(gjson.Get(data, path).Str)
		}
	}
	return all.String()
}

// dataOf is the first event that holds a text.
func dataOf(stream, text string) string {
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, text) {
			return data
		}
	}
	return ""
}

// Instructions come before what a developer says, wherever the field stands.
func TestInstructionsComeFirst(t *testing.T) {
	r := must.Get(Read(Responses, []byte(`{"model":"m","input":[{"role":"developer","content":"b"},{"role":"user","content":"hi"}],"instructions":"a"}`)))(t)
	if w, err := r.Write(targets[0]); err != nil || gjson.GetBytes(w.Body, "messages.0.content").Str != "a\n\nb" {
		t.Errorf("got %s (%v)", w.Body, err)
	}
}

package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

var mistralTarget = Target{Dialect: Chat, Model: "mistral-large", Mistral: true}

// Every client's request in Mistral's form, OpenAI's own too.
func TestRequestsForMistral(t *testing.T) {
	for from, body := range requests {
		r, err := Read(from, []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		w, err := r.Write(mistralTarget)
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, w.Body, "", " "); err != nil {
			t.Errorf("%s: %v: %s", from, err, w.Body)
		}
		for _, l := range w.Lost {
			fmt.Fprintf(&pretty, "\nlost %s: %s", l.Param, l.Why)
		}
		golden.Want(t, fmt.Sprintf("request-%s-mistral.txt", from), pretty.String()+"\n")
	}
}

// What Mistral has otherwise than OpenAI, or not at all.
func TestChatsForMistral(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f"}}]`
	user := func(parts string) string {
		return `{"model":"m","messages":[{"role":"user","content":[` + parts + `]}]}`
	}
	hi := func(more string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}],` + more + `}`
	}
	for name, c := range map[string]struct{ body, path, want, lost string }{
		"seed":              {hi(`"seed":7`), "random_seed", `7`, ""},
		"user":              {hi(`"user":"u"`), "user", ``, ""},
		"top_k":             {hi(`"top_k":5`), "top_k", `5`, ""},
		"usage":             {hi(`"stream":true,"stream_options":{"include_usage":true}`), "stream_options", ``, ""},
		"newer limit":       {hi(`"max_completion_tokens":9`), "max_tokens", `9`, ""},
		"its own":           {hi(`"safe_prompt":true,"guardrails":[{"a": 1.50}]`), "guardrails", `[{"a": 1.50}]`, ""},
		"nobody's":          {hi(`"logit_bias":{"1":1}`), "logit_bias", ``, "logit_bias"},
		"a tool's schema":   {hi(tools), "tools.0.function.parameters", `{"type":"object","properties":{}}`, ""},
		"a file":            {user(`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}`), "messages.0.content.0", `{"type":"document_url","document_url":"data:application/pdf;base64,JVBE","document_name":"a.pdf"}`, ""},
		"its own file":      {user(`{"type":"document_url","document_url":"https://a/b.pdf"}`), "messages.0.content.0", `{"type":"document_url","document_url":"https://a/b.pdf"}`, ""},
		"a file it keeps":   {user(`{"type":"file","file_id":"x"},{"type":"text","text":"hi"}`), "messages.0.content.#", `1`, "messages[0].content[0].file_id"},
		"sound":             {user(`{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}`), "messages.0.content.0", `{"type":"input_audio","input_audio":"UklG"}`, ""},
		"its own sound":     {user(`{"type":"input_audio","input_audio":"UklG"}`), "messages.0.content.0.input_audio", `"UklG"`, ""},
		"sound elsewhere":   {user(`{"type":"input_audio","input_audio":"https://a/b.mp3"}`), "messages.0.content.0.input_audio", `"https://a/b.mp3"`, ""},
		"a developer":       {`{"messages":[{"role":"developer","content":"be short"},{"role":"user","content":"hi"}]}`, "messages.0", `{"role":"system","content":"be short"}`, ""},
		"words to go on":    {`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"so"}]}`, "messages.1", `{"role":"assistant","content":"so","prefix":true}`, ""},
		"words before":      {`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"so"},{"role":"user","content":"hi"}]}`, "messages.1.prefix", ``, ""},
		"its own thought":   {`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}],"signature":"s"},{"type":"text","text":"so"}]},{"role":"user","content":"hi"}]}`, "messages.0.content", `[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"signature":"s"},{"type":"text","text":"so"}]`, ""},
		"another's thought": {`{"messages":[{"role":"assistant","content":"so","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]},{"role":"user","content":"hi"}]}`, "messages.0.content", `"so"`, ""},
	} {
		r, err := Read(Chat, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w, err := r.Write(mistralTarget)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		lost := ""
		for _, l := range w.Lost {
			lost += l.Param
		}
		if got := gjson.GetBytes(w.Body, c.path).Raw; got != c.want || lost != c.lost || !json.Valid(w.Body) {
			t.Errorf("%s: %s is %s, want %s; lost %q, want %q: %s", name, c.path, got, c.want, lost, c.lost, w.Body)
		}
	}
}

// A loop of tools as Mistral takes it: ids of nine letters and digits, those of results
// like those of their calls, and words of the model before the next ones of the user.
func TestALoopForMistral(t *testing.T) {
	r := must.Get(Read(Chat, []byte(`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[
		{"id":"call_abc","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"abcdefgh9","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"abcdefgh9","content":"2"},{"role":"tool","tool_call_id":"call_abc","content":"1"},{"role":"user","content":"hi"}]}`)))(t)
	w := must.Get(r.Write(mistralTarget))(t)
	m := gjson.GetBytes(w.Body, "messages")
	first, second := m.Get("1.tool_calls.0.id").Str, m.Get("1.tool_calls.1.id").Str
	if len(first) != 9 || strings.ContainsAny(first, "_-") || second != "abcdefgh9" || m.Get("2.tool_call_id").Str != second || m.Get("3.tool_call_id").Str != first {
		t.Errorf("ids do not fit: %s", m)
	}
	if roles := m.Get("#.role").Raw; roles != `["user","assistant","tool","tool","assistant","user"]` || m.Get("4.content").Str == "" {
		t.Errorf("the roles are %s: %s", roles, m)
	}
}

func TestMistralIDs(t *testing.T) {
	for id, same := range map[string]bool{"abcDEF129": true, "abc_EF129": false, "abcDEF12": false, "abcDEF1299": false, "": false, "äöüäö": false} {
		if got := mistralID(id); (got == id) != same || len(got) != 9 {
			t.Errorf("%q is %q", id, got)
		}
	}
	seen := map[string]string{}
	for i := range 20_000 {
		id := fmt.Sprint("call_", i)
		short := mistralID(id)
		if other, ok := seen[short]; ok || len(short) != 9 || short != mistralID(id) {
			t.Fatalf("%s and %q are %s", id, other, short)
		}
		seen[short] = id
	}
}

// A signature of Mistral's goes to the client, comes back, and is believed by nobody
// else.
func TestASignatureOfMistral(t *testing.T) {
	stream := sseOf(
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[],"signature":"c2ln"}]},"finish_reason":null}]}`},
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`},
		[2]string{"", "[DONE]"},
	)
	got, seen := through(Chat, Messages, stream)
	if !seen.Done || !seen.Thgt || !strings.Contains(got, `{"type":"signature_delta","signature":"mistral:c2ln"}`) || strings.Count(got, "content_block_start\n") != 2 {
		t.Errorf("a client of messages reads %s", got)
	}
	if got, _ := through(Chat, Chat, stream); !strings.Contains(got, `"reasoning_content":"hm"`) || !strings.Contains(got, `"thinking":"hm","signature":"mistral:c2ln"}`) || !strings.Contains(got, `"content":"yes"`) {
		t.Errorf("a client of chats reads %s", got)
	}
	r := must.Get(Read(Messages, []byte(`{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"mistral:c2ln"},{"type":"text","text":"yes"}]},{"role":"user","content":"hi"}]}`)))(t)
	for _, target := range append(targets, mistralTarget) {
		w := must.Get(r.Write(target))(t)
		if want := target.Mistral; strings.Contains(string(w.Body), `"signature":"c2ln"`) != want || strings.Contains(string(w.Body), "mistral:") {
			t.Errorf("%s gets %s", target.Model, w.Body)
		}
	}
}

// Some servers number all calls of an answer alike, or not at all.
func TestCallsThatAreNumberedAlike(t *testing.T) {
	call := func(fields, name, args string) [2]string {
		return [2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{` + fields + `"function":{` + name + `"arguments":"` + args + `"}}]},"finish_reason":null}]}`}
	}
	end := [2]string{"", `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`}
	for name, events := range map[string][][2]string{
		"by their number": {call(`"index":0,"id":"a",`, `"name":"f",`, ""), call(`"index":0,`, "", `{\"x\":`), call(`"index":0,`, "", "1}"), call(`"index":1,"id":"b",`, `"name":"g",`, `{}`)},
		"all 0":           {call(`"index":0,"id":"a",`, `"name":"f",`, `{\"x\":1}`), call(`"index":0,"id":"b",`, `"name":"g",`, `{}`)},
		"no number":       {call(`"id":"a",`, `"name":"f",`, `{\"x\":1}`), call(`"id":"b",`, `"name":"g",`, `{}`)},
		"id with each":    {call(`"index":0,"id":"a",`, `"name":"f",`, `{\"x\":`), call(`"index":0,"id":"a",`, `"name":"f",`, `1}`), call(`"index":1,"id":"b",`, `"name":"g",`, `{}`)},
		"id, no name":     {call(`"index":0,"id":"a",`, `"name":"f",`, `{\"x\":`), call(`"index":0,"id":"other",`, ``, `1}`), call(`"index":1,"id":"b",`, `"name":"g",`, `{}`)},
		"last first":      {call(`"index":1,"id":"a",`, `"name":"f",`, `{\"x\":1}`), call(`"index":0,"id":"b",`, `"name":"g",`, `{}`)},
	} {
		got, seen := through(Chat, Responses, sseOf(append(events, end, [2]string{"", "[DONE]"})...))
		_, last, _ := strings.Cut(got, "event: response.completed\ndata: ")
		output := gjson.Get(last, "response.output")
		if seen.Error || output.Get("#").Int() != 2 || output.Get("0.name").Str != "f" || output.Get("0.arguments").Str != `{"x":1}` || output.Get("1.name").Str != "g" || output.Get("1.call_id").Str != "b" {
			t.Errorf("%s: %s", name, output)
		}
	}
}

// A thought that is not kept as a whole is told without its signature, which would be
// wrong for a part of it.
func TestALongThoughtIsNotSigned(t *testing.T) {
	event := func(typ, data string) string { return sseOf([2]string{typ, data}) }
	piece := strings.Repeat("x", 300<<10)
	for name, let := range map[string]bool{"too long": false, "let go": true} {
		s := NewStream(Messages, Chat, reply)
		var out strings.Builder
		feed := func(text string) {
			b, _ := s.Feed([]byte(text))
			out.Write(b)
		}
		feed(event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`))
		pieces := 5
		if let {
			pieces = 1
		}
		for range pieces {
			feed(event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"`+piece+`"}}`))
		}
		if n := s.Held(); n < 300<<10 || n > 3<<20 {
			t.Errorf("%s: %d bytes are held", name, n)
		}
		if let {
			s.LetGo()
		}
		feed(event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`))
		feed(event("content_block_stop", `{"type":"content_block_stop","index":0}`))
		feed(event("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}`))
		feed(event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"short"}}`))
		feed(event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"bmV4dA=="}}`))
		if strings.Contains(out.String(), "c2ln") || !strings.Contains(out.String(), `"thinking":"short","signature":"bmV4dA=="`) {
			t.Errorf("%s: it is signed, or the next one is not", name)
		}
	}
}

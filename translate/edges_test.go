package translate

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/must"
)

// Small things that the target is told, each by one field of a request.
func TestSmallThings(t *testing.T) {
	const hi = `{"role":"user","content":"hi"}`
	gemini3 := Target{Dialect: Gemini, Model: "gemini-3-flash", Bare: true}
	loop := `{"messages":[` + hi + `,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]}`
	file := func(name string) string {
		return `{"messages":[{"role":"user","content":[{"type":"file","file":{"filename":"` + name + `","file_data":"data:application/pdf;base64,JVBE"}},{"type":"text","text":"hi"}]}]}`
	}
	for name, c := range map[string]struct {
		from       Name
		body       string
		target     Target
		path, want string
	}{
		"a call of another model's at Gemini 3":   {Chat, loop, gemini3, "contents.1.parts.0.thoughtSignature", `"` + noSignature + `"`},
		"a call of another model's at Gemini 2.5": {Chat, loop, targets[2], "contents.1.parts.0.thoughtSignature", ``},
		"a name that Bedrock takes":               {Chat, file("a  b_c.pdf"), targets[4], "messages.0.content.0.document.name", `"a b c pdf"`},
		"no name that Bedrock takes":              {Chat, file("…"), targets[4], "messages.0.content.0.document.name", `"document"`},
		"base64 of URLs without an end":           {Gemini, `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"-_-_Yg"}}]}]}`, targets[1], "messages.0.content.0.source.data", `"+/+/Yg=="`},
		"base64 of URLs, one short":               {Gemini, `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"-_-_YWI"}}]}]}`, targets[1], "messages.0.content.0.source.data", `"+/+/YWI="`},
	} {
		r, err := Read(c.from, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w, err := r.Write(c.target)
		if got := gjson.GetBytes(w.Body, c.path).Raw; err != nil || got != c.want {
			t.Errorf("%s: %s is %s (%v), want %s", name, c.path, got, err, c.want)
		}
	}
}

// A tool that has a namespace comes back in it, whole and in pieces.
func TestNamespacesComeBack(t *testing.T) {
	r := reply
	r.Spaces = []string{"crm"}
	out, _ := throughFor(r, Chat, Responses, sseOf(
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"crm__find","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`}, [2]string{"", "[DONE]"}))
	if n := strings.Count(out, `"namespace":"crm","name":"find"`); n < 3 || strings.Contains(out, "crm__") {
		t.Errorf("%d events have the namespace: %s", n, out)
	}
}

// A response says again what was asked for, on one line and whatever becomes of the body.
func TestAResponseSaysWhatWasAsked(t *testing.T) {
	body := []byte("{\"model\":\"m\",\"input\":\"hi\",\"temperature\":0.2,\"metadata\":{\"job\":\"7\"},\"store\":true,\"user\":null,\"instructions\":\"be short\",\n" +
		"\"tools\":[\n {\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}\n],\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"}}")
	req, err := Read(Responses, body)
	must.Do(t, err)
	clear(body) // as the gateway gives it back
	r := reply
	r.Asked = req.Asked
	out, _ := throughFor(r, Chat, Responses, sseOf([2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`}, [2]string{"", "[DONE]"}))
	document, _, err := Document(Chat, Responses, r, []byte(`{"id":"c","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`))
	must.Do(t, err)
	said := []string{string(document)}
	for line := range strings.Lines(out) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && gjson.Get(data, "response").Exists() {
			said = append(said, gjson.Get(data, "response").Raw)
		}
	}
	if len(said) != 4 {
		t.Fatalf("%d of a document and of created, in_progress and completed: %s", len(said), out)
	}
	for _, response := range said {
		for path, want := range map[string]string{
			"temperature": "0.2", "metadata": `{"job":"7"}`, "instructions": `"be short"`, "tool_choice": `{"type":"function","name":"f"}`,
			"tools": `[{"type":"function","name":"f","parameters":{"type":"object"}}]`, "top_p": "null", "store": "false", "user": "", "parallel_tool_calls": "true",
		} {
			if got := gjson.Get(response, path).Raw; got != want {
				t.Errorf("%s is %q, want %q: %s", path, got, want, response)
			}
		}
	}
}

// The last item of an answer that was cut is not whole, and those before it are.
func TestTheLastItemOfACutAnswer(t *testing.T) {
	for _, c := range []struct{ finish, want string }{{"length", `["completed","incomplete"]`}, {"content_filter", `["completed","incomplete"]`}, {"stop", `["completed","completed"]`}} {
		stream := sseOf(
			[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"content":"hi"}}]}`},
			[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]},"finish_reason":"` + c.finish + `"}]}`},
			[2]string{"", "[DONE]"})
		out, _ := through(Chat, Responses, stream)
		last := out[strings.LastIndex(out, "data: ")+len("data: "):]
		if got := gjson.Get(last, "response.output.#.status").Raw; got != c.want {
			t.Errorf("%s: the items are %s, want %s: %s", c.finish, got, c.want, last)
		}
		body, _, err := Document(Chat, Responses, reply, []byte(`{"id":"c","choices":[{"index":0,"message":{"content":"hi","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"`+c.finish+`"}]}`))
		if got := gjson.GetBytes(body, "output.#.status").Raw; err != nil || got != c.want {
			t.Errorf("%s: the items of a document are %s (%v), want %s", c.finish, got, err, c.want)
		}
	}
}

// Calls without numbers, several in one event: what comes next is of the last one.
func TestPiecesOfTheLastCall(t *testing.T) {
	got, seen := through(Chat, Messages, sseOf(
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{\"x\":"}}]}}]}`},
		[2]string{"", `{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"1}"}}]},"finish_reason":"stop"}]}`},
		[2]string{"", "[DONE]"}))
	if seen.Error || !strings.Contains(got, `"index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}`) || !strings.Contains(got, `"stop_reason":"tool_use"`) {
		t.Errorf("got %s", got)
	}
}

// Of tools that Anthropic runs itself other clients see nothing, and the blocks behind
// them are whole.
func TestToolsThatAnthropicRuns(t *testing.T) {
	stream := sseOf(
		[2]string{"message_start", `{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":0}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[]}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":1}`},
		[2]string{"content_block_start", `{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`},
		[2]string{"content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"found"}}`},
		[2]string{"content_block_stop", `{"type":"content_block_stop","index":2}`},
		[2]string{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`},
		[2]string{"message_stop", `{"type":"message_stop"}`})
	for _, to := range []Name{Chat, Responses, Gemini, Cohere} {
		if got, seen := through(Messages, to, stream); strings.Contains(got, "query") || strings.Contains(got, "web_search") || !strings.Contains(got, "found") || !seen.Done {
			t.Errorf("%s: %s, saw %+v", to, got, seen)
		}
	}
}

// The status of an error within a stream is told in the client's words.
func TestErrorsKeepTheirKind(t *testing.T) {
	for name, c := range map[string]struct{ stream, want string }{
		"throttlingException":         {awsOf([2]string{"throttlingException", `{"message":"m"}`}), "rate_limit_error"},
		"serviceUnavailableException": {awsOf([2]string{"serviceUnavailableException", `{"message":"m"}`}), "overloaded_error"},
		"validationException":         {awsOf([2]string{"validationException", `{"message":"m"}`}), "invalid_request_error"},
		"internalServerException":     {awsOf([2]string{"internalServerException", `{"message":"m"}`}), "api_error"},
	} {
		if got, seen := through(Converse, Messages, c.stream); !seen.Error || !strings.Contains(got, `"type":"`+c.want+`"`) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A stream may end within an event: that is a cut, and nothing wrong with the API.
func TestACutEventIsNotBad(t *testing.T) {
	for from, stream := range streams {
		if from == Converse {
			continue // its messages have a length
		}
		_, seen := through(from, Chat, stream[:strings.LastIndex(strings.TrimRight(stream, "\n"), "data:")+9])
		if from == Chat {
			_, seen = through(from, Messages, stream[:strings.LastIndex(stream, `"usage"`)])
		}
		if seen.Bad || seen.Done {
			t.Errorf("%s: %+v", from, seen)
		}
	}
}

// A message of Bedrock's that was changed on its way is none, be it its head or its text.
func TestAChangedMessageIsBad(t *testing.T) {
	stream := streams[Converse]
	for _, at := range []int{5, 20, strings.Index(stream, "let me see")} {
		changed := []byte(stream)
		changed[at] ^= 1
		if got, seen := through(Converse, Chat, string(changed)); !seen.Bad || seen.Done {
			t.Errorf("byte %d: %+v, %s", at, seen, got)
		}
	}
}

// A body may hold a million things that the target does not take. Each one that is told is
// compared with those before it, so few are; the request is carried all the same.
func TestFewLossesAreTold(t *testing.T) {
	strange := strings.Repeat(`{"type":"strange"},`, 10*mostLost)
	body := `{"model":"m","messages":[{"role":"user","content":[` + strange + `{"type":"text","text":"hi"}]}]}`
	w := must.Get(must.Get(Read(Messages, []byte(body)))(t).Write(targets[0]))(t)
	if len(w.Lost) != mostLost || !strings.Contains(string(w.Body), `"hi"`) {
		t.Errorf("%d losses are told, want %d; sent is %s", len(w.Lost), mostLost, w.Body)
	}
}

package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// requests say all that a dialect's clients usually say: images, files, calls of
// tools and their results, thoughts, a schema, marks for a cache.
var requests = map[Name]string{
	Chat: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":20000,"temperature":1,"stop":["END"],"user":"u1",
		"reasoning_effort":"medium","parallel_tool_calls":true,"metadata":{"a":"b"},"n":1,"service_tier":"auto","frequency_penalty":0,
		"response_format":{"type":"json_schema","json_schema":{"name":"out","strict":true,"schema":{"type":"object","properties":{"a":{"type":"integer"}}}}},
		"tools":[{"type":"function","function":{"name":"weather","description":"of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"strict":true}},{"type":"function","function":{"name":"time"}}],
		"tool_choice":"auto",
		"messages":[{"role":"system","content":"be short"},{"role":"developer","content":[{"type":"text","text":"in French","cache_control":{"type":"ephemeral"}}]},
		{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aVZCT1I=","detail":"low"}},{"type":"file","file":{"filename":"a b_c.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}]},
		{"role":"assistant","content":null,"thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"b3A="}],
		 "tool_calls":[{"id":"call.1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Paris\", \"n\": 1.50}"}},{"id":"call_2","type":"function","function":{"name":"time","arguments":""}}]},
		{"role":"tool","tool_call_id":"call.1","content":"sunny"},{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"{\"hour\":12}"}]},
		{"role":"user","content":"and \"now\"?\n"}]}`,
	Messages: `{"model":"m","max_tokens":32000,"stream":true,"temperature":1,"stop_sequences":["END"],"metadata":{"user_id":"u1"},
		"system":[{"type":"text","text":"You are a tool.","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Be short."}],
		"thinking":{"type":"enabled","budget_tokens":10000},"context_management":{"edits":[]},"output_config":{"effort":"high"},
		"tools":[{"name":"Read","description":"a file","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},{"name":"Bash","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
		"tool_choice":{"type":"auto"},
		"messages":[{"role":"user","content":"look"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I read it."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"path":"/a"}},{"type":"tool_use","id":"toolu_2","name":"Bash","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"line 1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aVZCT1I="}}]},
		 {"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":"no such command"},
		 {"type":"text","text":"go on","cache_control":{"type":"ephemeral"}}]}]}`,
	Responses: `{"model":"m","instructions":"You are a coder.","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","parallel_tool_calls":true,
		"reasoning":{"effort":"high","summary":"auto"},"text":{"verbosity":"low","format":{"type":"json_schema","name":"out","schema":{"type":"object"}}},"max_output_tokens":30000,
		"tools":[{"type":"function","name":"shell","description":"runs","parameters":{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}}},"strict":false}],"tool_choice":"auto",
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"in a sandbox"}]},{"role":"user","content":"list"},
		{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"anthropic:c2ln"},
		{"type":"function_call","call_id":"call_1","name":"shell","arguments":"{\"command\":[\"ls\"]}"},
		{"type":"function_call_output","call_id":"call_1","output":"a\nb"},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"and this?"},{"type":"input_image","image_url":"data:image/jpeg;base64,aVZCT1I="}]}]}`,
	Cohere: `{"model":"m","stream":true,"max_tokens":20000,"temperature":1,"p":0.95,"k":0,"stop_sequences":["END"],"priority":1,"safety_mode":"CONTEXTUAL","strict_tools":true,
		"thinking":{"type":"enabled","token_budget":4000},"response_format":{"type":"json_object","json_schema":{"type":"object","properties":{"a":{"type":"integer"}}}},
		"tools":[{"type":"function","function":{"name":"weather","description":"of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},{"type":"function","function":{"name":"time","parameters":{"type":"object"}}}],
		"messages":[{"role":"system","content":"be short"},{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aVZCT1I=","detail":"low"}}]},
		{"role":"assistant","tool_plan":"I look","content":[{"type":"thinking","thinking":"hm"}],"tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},{"id":"b","type":"function","function":{"name":"time","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":[{"type":"document","document":{"id":"1","data":{"sky":"sunny"}}}]},{"role":"tool","tool_call_id":"b","content":"12"},
		{"role":"user","content":"and \"now\"?\n"}]}`,
	Gemini: `{"contents":[{"role":"user","parts":[{"text":"what is this?"},{"inlineData":{"mimeType":"image/png","data":"aVZCT1I_"}},{"inline_data":{"mime_type":"application/pdf","data":"JVBERg==","display_name":"a b_c.pdf"}}]},
		{"role":"model","parts":[{"text":"h","thought":true},{"text":"m","thought":true},{"text":"","thought":true,"thoughtSignature":"YW50aHJvcGljOmMybG4="},{"functionCall":{"id":"call.1","name":"weather","args":{"city": "Paris", "n": 1.50}}},{"functionCall":{"name":"time"},"thoughtSignature":"Z29vZ2xl"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"time","response":{"hour":12}}},{"functionResponse":{"id":"call.1","name":"weather","response":{"output":"sunny"}}},{"text":"and \"now\"?\n"}]}],
		"systemInstruction":{"parts":[{"text":"be short"},{"text":"in French"}]},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"labels":{"a":"b"},
		"tools":[{"functionDeclarations":[{"name":"weather","description":"of a city","parameters":{"type":"OBJECT","properties":{"city":{"type":"STRING","nullable":true,"maxLength":"40"}},"propertyOrdering":["city"],"required":["city"]}},{"name":"time"}]}],
		"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
		"generation_config":{"max_output_tokens":20000,"temperature":1,"stopSequences":["END"],"candidateCount":1,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"a":{"type":"INTEGER","format":"int32"}}},
		"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}}}`,
}

// targets are as the gateway makes them.
var targets = []Target{
	{Dialect: Chat, Model: "engine", Engine: true},
	{Dialect: Messages, Model: "claude-sonnet-4-5"},
	{Dialect: Gemini, Model: "gemini-2.5-pro", Bare: true},
	{Dialect: Cohere, Model: "command-a-reasoning-08-2025"},
	{Dialect: Converse, Model: "eu.anthropic.claude-sonnet-4-5-v1:0", Bare: true},
}

func TestRequests(t *testing.T) {
	for from, body := range requests {
		r, err := Read(from, []byte(body))
		if err != nil {
			t.Errorf("%s: %v", from, err)
			continue
		}
		for _, target := range targets {
			if target.Dialect == from {
				continue
			}
			w, err := r.Write(target)
			if err != nil {
				t.Errorf("%s to %s: %v", from, target.Dialect, err)
				continue
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, w.Body, "", " "); err != nil {
				t.Errorf("%s to %s: %v: %s", from, target.Dialect, err, w.Body)
			}
			for _, l := range w.Lost {
				fmt.Fprintf(&pretty, "\nlost %s: %s", l.Param, l.Why)
			}
			golden.Want(t, fmt.Sprintf("request-%s-%s.txt", from, target.Dialect), pretty.String()+"\n")
		}
	}
}

// Numbers are written as the target takes them.
func TestNumbersOfTheTarget(t *testing.T) {
	for _, c := range []struct {
		body string
		to   Name
		want string // in what is written
	}{
		{`"top_k":5.0,"seed":7e0`, Cohere, `"k":5,"seed":7`},
		{`"seed":12345678901234567890`, Cohere, `"seed":12345678901234567890`},
		{`"seed":7.5`, Cohere, `"seed":7.5`},
		{`"top_p":1`, Cohere, `"p":0.99`},
		{`"top_p":0`, Cohere, `"p":0.01`},
		{`"top_p":0.7500`, Cohere, `"p":0.7500`},
		{`"temperature":0.0`, Cohere, `"temperature":0.0`},
		{`"top_p":1.0`, Gemini, `"topP":1.0`},
	} {
		r, err := Read(Chat, []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}],`+c.body+`}`))
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		target := targets[slices.IndexFunc(targets, func(t Target) bool { return t.Dialect == c.to })]
		w, err := r.Write(target)
		if err != nil || len(w.Lost) > 0 || !strings.Contains(string(w.Body), c.want) {
			t.Errorf("%s to %s: %s (%v, %v), want %s", c.body, c.to, w.Body, w.Lost, err, c.want)
		}
	}
}

// What has no place in the target's dialect is named in the client's words.
func TestLosses(t *testing.T) {
	chat := func(more string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}],` + more + `}`
	}
	messages := func(more string) string {
		return `{"model":"m","max_tokens":9000,"messages":[{"role":"user","content":"hi"}],` + more + `}`
	}
	gemini := func(more string) string {
		return `{"contents":[{"parts":[{"text":"hi"}]}],` + more + `}`
	}
	tools := `"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct {
		from Name
		body string
		to   Name
		want string
	}{
		{Chat, chat(`"seed":1`), Messages, "seed"},
		{Chat, chat(`"seed":1`), Gemini, ""},
		{Chat, chat(`"seed":1`), Converse, "seed"},
		{Chat, chat(`"n":2,"logit_bias":{"5":1}`), Messages, "n logit_bias"},
		{Chat, chat(`"n":1,"logit_bias":{},"seed":null,"store":false,"frequency_penalty":0`), Messages, ""},
		{Chat, chat(`"logprobs":true,"top_logprobs":2`), Messages, "logprobs top_logprobs"},
		{Chat, chat(`"logprobs":true,"top_logprobs":2`), Gemini, ""},
		{Chat, chat(`"temperature":1.5`), Messages, "temperature"},
		{Chat, chat(`"temperature":1.5`), Gemini, ""},
		{Chat, chat(`"temperature":0.2,"reasoning_effort":"low"`), Messages, "temperature"},
		{Chat, chat(`"reasoning_effort":"low","max_tokens":500`), Messages, "reasoning_effort"},
		{Chat, chat(`"reasoning_effort":"none","max_tokens":500`), Messages, ""},
		{Chat, chat(`"response_format":{"type":"json_object"}`), Messages, "response_format"},
		{Chat, chat(`"response_format":{"type":"json_object"}`), Gemini, ""},
		{Chat, chat(`"audio":{"voice":"x"},"modalities":["audio"]`), Messages, "audio modalities"},
		{Chat, chat(`"web_search_options":{}`), Gemini, "web_search_options"},
		{Chat, chat(tools + `,"parallel_tool_calls":false`), Messages, ""},
		{Chat, chat(tools + `,"parallel_tool_calls":false`), Gemini, "parallel_tool_calls"},
		{Chat, chat(tools + `,"tool_choice":"none"`), Converse, ""},
		{Chat, chat(`"tools":[{"type":"custom","custom":{"name":"x"}}]`), Messages, "tools[0]"},
		{Chat, chat(`"some_extension":1`), Messages, "some_extension"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aaaa","format":"wav"}}]}]}`, Messages, "messages[0].content[0]"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`, Messages, "messages[0].content[0].file.file_id"},
		{Messages, messages(`"top_k":5`), Chat, ""},
		{Messages, messages(`"mcp_servers":[{"name":"x"}]`), Chat, "mcp_servers"},
		{Messages, messages(`"tools":[{"type":"web_search_20250305","name":"web_search"}]`), Chat, "tools[0]"},
		{Messages, messages(`"context_management":{},"service_tier":"auto","cache_control":{"type":"ephemeral"}`), Chat, ""},
		{Responses, `{"model":"m","input":"hi","previous_response_id":"resp_1"}`, Chat, "previous_response_id"},
		{Responses, `{"model":"m","input":"hi","background":true,"store":true}`, Messages, "background"},
		{Responses, `{"model":"m","input":"hi","tools":[{"type":"web_search"}]}`, Chat, "tools[0]"},
		{Gemini, gemini(`"generationConfig":{"seed":1,"topK":5}`), Chat, ""},
		{Gemini, gemini(`"generationConfig":{"seed":1,"candidateCount":2}`), Messages, "generationConfig.seed generationConfig.candidateCount"},
		{Gemini, gemini(`"generation_config":{"response_modalities":["IMAGE"]}`), Chat, "generation_config.response_modalities"},
		{Gemini, gemini(`"generationConfig":{"responseMimeType":"application/json"}`), Messages, "generationConfig.responseMimeType"},
		{Gemini, gemini(`"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f"}]}]`), Chat, "tools[0].googleSearch"},
		{Gemini, gemini(`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_LOW_AND_ABOVE"}]`), Chat, "safetySettings"},
		{Gemini, gemini(`"cachedContent":"cachedContents/1"`), Chat, "cachedContent"},
		{Gemini, `{"contents":[{"parts":[{"fileData":{"mimeType":"application/pdf","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/a"}}]}]}`, Messages, "contents[0].parts[0].fileData"},
		{Gemini, `{"contents":[{"parts":[{"inlineData":{"mimeType":"video/mp4","data":"aaaa"}}]}]}`, Chat, "contents[0].parts[0].inlineData"},
		{Chat, chat(`"logprobs":true,"frequency_penalty":-0.5,"presence_penalty":1.5,"top_k":501,"seed":1,"user":"u"`), Cohere, "logprobs frequency_penalty presence_penalty top_k"},
		{Chat, chat(tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`), Cohere, ""},
		{Chat, chat(tools + `,"tool_choice":{"type":"function","function":{"name":"g"}},"parallel_tool_calls":false`), Cohere, "tool_choice parallel_tool_calls"},
		{Cohere, chat(`"documents":[{}],"safety_mode":"STRICT","logprobs":true,"raw_prompting":true,"citation_options":{},"priority":1`), Chat, "documents safety_mode logprobs raw_prompting"},
		{Cohere, chat(`"documents":[],"safety_mode":"OFF","logprobs":false,"k":0,"p":0.75`), Messages, ""},
	} {
		r, err := Read(c.from, []byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		target := targets[slices.IndexFunc(targets, func(t Target) bool { return t.Dialect == c.to })]
		w, err := r.Write(target)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		var got []string
		for _, l := range w.Lost {
			got = append(got, l.Param)
		}
		slices.Sort(got)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s to %s loses %q, want %q", c.body, c.to, got, want)
		}
		if !json.Valid(w.Body) {
			t.Errorf("%s to %s is %s", c.body, c.to, w.Body)
		}
	}
}

// What is wrong in any dialect is refused by its place.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		from        Name
		body, param string
	}{
		{Chat, `{"model":"m"}`, "messages"},
		{Chat, `{"model":"m","messages":[]}`, "messages"},
		{Chat, `{"model":"m","messages":{}}`, "messages"},
		{Chat, `{"model":"m","messages":[{"role":"narrator","content":"x"}]}`, "messages[0].role"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"smell"}]}]}`, "messages[0].content[0].type"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`, "messages[0].content[0].image_url"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,abc"}}]}]}`, "messages[0].content[0].image_url"},
		{Chat, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"[1]"}}]}]}`, "messages[0].tool_calls[0].function.arguments"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":"hot"}`, "temperature"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":0}`, "max_tokens"},
		{Chat, `{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":"maybe"}`, "tool_choice"},
		{Messages, `{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"smoke"}}]}]}`, "messages[0].content[0].source.type"},
		{Messages, `{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"x"}}`, "tool_choice.type"},
		{Responses, `{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"oh"}]}`, "input[0].arguments"},
		{Chat, strings.Repeat(`{"a":`, 1100) + "1" + strings.Repeat("}", 1100), ""},
		{Chat, `[]`, ""},
		{Gemini, `{}`, "contents"},
		{Gemini, `{"contents":{}}`, "contents"},
		{Gemini, `{"contents":[{"role":"narrator","parts":[{"text":"x"}]}]}`, "contents[0].role"},
		{Gemini, `{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`, "contents[0].parts[0].functionResponse"},
		{Gemini, `{"contents":[{"parts":[{"inlineData":{"data":"aaaa"}}]}]}`, "contents[0].parts[0].inlineData.mimeType"},
		{Gemini, `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"temperature":"hot"}}`, "generationConfig.temperature"},
		{Gemini, `{"contents":[{"parts":[{"text":"x"}]}],"toolConfig":{"functionCallingConfig":{"mode":"MAYBE"}}}`, "toolConfig.functionCallingConfig.mode"},
		{Converse, `{}`, ""},
	} {
		r, err := Read(c.from, []byte(c.body))
		refusal, ok := err.(*Refusal) //nolint:errorlint // it is never wrapped
		if !ok || refusal.Param != c.param || refusal.Message == "" {
			t.Errorf("%.80s: got %+v, %v, want a refusal of %q", c.body, r, err, c.param)
		}
	}
}

// Whatever a request is, what is written of it is JSON.
func FuzzRequest(f *testing.F) {
	names := []Name{Chat, Messages, Responses, Gemini, Cohere}
	for from, body := range requests {
		f.Add(uint8(slices.Index(names, from)), body)
	}
	f.Fuzz(func(t *testing.T, from uint8, body string) {
		r, err := Read(names[int(from)%len(names)], []byte(body))
		if err != nil {
			return
		}
		for _, target := range targets {
			w, err := r.Write(target)
			if err == nil && !json.Valid(w.Body) {
				t.Errorf("to %s: %s", target.Dialect, w.Body)
			}
		}
	})
}

// In a document the thought comes first, wherever its field stands.
func TestAThoughtComesFirst(t *testing.T) {
	text := `{"id":"c","choices":[{"message":{"content":"so","reasoning_content":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
	out, look, err := Document(Chat, Messages, reply, []byte(text))
	want := `"content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"so"},{"type":"tool_use","id":"a","name":"f","input":{}}],"stop_reason":"tool_use"`
	if err != nil || !strings.Contains(string(out), want) || look.Chunks != 1 || !look.Reasoning {
		t.Errorf("got %s %+v (%v), want %s", out, look, err, want)
	}
}

func BenchmarkRequest(b *testing.B) {
	body := []byte(requests[Messages])
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r := must.Get(Read(Messages, body))(b)
		must.Get(r.Write(targets[0]))(b)
	}
}

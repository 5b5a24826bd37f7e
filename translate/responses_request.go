package translate

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// responsesFields are the fields of OpenAI's responses, as chatFields. What is
// translated is kept nowhere, so store is neither refused nor done.
var responsesFields = map[string]field{
	"model": readModel, "stream": readStream, "input": readInput,
	"instructions": func(in *reader, name string, v gjson.Result) {
		if text := in.text(name, v); text != "" {
			in.r.System = append([]Part{{Text: text}}, in.r.System...)
		}
	},
	"max_output_tokens": readLimit, "temperature": number(Temperature), "top_p": number(TopP), "top_logprobs": number(TopLogprobs),
	"user": words(User), "safety_identifier": words(User),
	"tools": readResponsesTools, "tool_choice": readResponsesChoice, "parallel_tool_calls": readParallel,
	"reasoning": func(in *reader, name string, v gjson.Result) {
		if effort := v.Get("effort"); effort.Str != "" {
			readEffort(in, name+".effort", effort)
		}
	},
	"text": func(in *reader, name string, v gjson.Result) {
		f := v.Get("format")
		switch kind := f.Get("type").Str; kind {
		case "", "text":
		case "json_object":
			in.r.names.format, in.r.Format.JSON = name+".format", true
		case "json_schema":
			in.r.names.format = name + ".format"
			in.schema(&in.r.Format, name+".format", f)
		default:
			in.refuse(name+".format.type", "%s.format.type must be text, json_object or json_schema.", name)
		}
	},
	"previous_response_id": unless(`""`), "conversation": unless(), "prompt": unless(), "background": unless("false"),
	"truncation": unless(`"disabled"`, `"auto"`), "service_tier": unless(`"auto"`, `"default"`), "max_tool_calls": unless(), "moderation": unless(),
	"context_management": unless("[]"),
	"include":            nil, "store": nil, "metadata": nil, "stream_options": nil, "prompt_cache_key": nil, "prompt_cache_retention": nil, "prompt_cache_options": nil, "client_metadata": nil,
}

// claudeMark begins the signature of a thought where responses have one of OpenAI's.
const claudeMark = "anthropic:"

func readInput(in *reader, name string, v gjson.Result) {
	if v.Type == gjson.String {
		in.turn(false, []Part{{Text: v.Str}})
		return
	}
	in.array(name, v, func(path string, v gjson.Result) {
		switch kind := cmp.Or(v.Get("type").Str, "message"); kind {
		case "message":
			in.inputMessage(path, v)
		case "function_call":
			p := Part{Kind: ToolCall, ID: cmp.Or(v.Get("call_id").Str, v.Get("id").Str), Name: inSpace(v.Get("namespace").Str, v.Get("name").Str), Input: cmp.Or(strings.TrimSpace(v.Get("arguments").Str), "{}")}
			if !isObject(p.Input) {
				in.refuse(path+".arguments", "%s.arguments must be a JSON object in a string.", path)
			}
			in.turn(true, []Part{p})
		case "function_call_output":
			p := Part{Kind: ToolResult, ID: v.Get("call_id").Str}
			if out := v.Get("output"); out.Type == gjson.String {
				p.Parts = []Part{{Text: out.Str}}
			} else {
				p.Parts = in.inputParts(path+".output", out)
			}
			in.turn(false, []Part{p})
		case "reasoning":
			p := Part{Kind: Thinking}
			if s, ok := strings.CutPrefix(v.Get("encrypted_content").Str, claudeMark); ok {
				p.Signature = s
			}
			for _, s := range v.Get("summary").Array() {
				p.Text += s.Get("text").Str
			}
			in.turn(true, []Part{p})
		default:
			in.unknown(path) // of a tool that OpenAI runs, or kept there
		}
	})
}

func (in *reader) inputMessage(path string, v gjson.Result) {
	parts := in.inputParts(path+".content", v.Get("content"))
	switch role := v.Get("role").Str; role {
	case "system", "developer":
		in.r.System = append(in.r.System, parts...)
	case "user":
		in.turn(false, parts)
	case "assistant":
		in.turn(true, parts)
	default:
		in.refuse(path+".role", "%s.role must be user, assistant, system or developer.", path)
	}
}

// inputParts reads content, which has parts like those of chat under other names.
func (in *reader) inputParts(path string, v gjson.Result) []Part {
	return in.content(path, v, false)
}

func readResponsesTools(in *reader, name string, v gjson.Result) {
	in.r.names.tools = name
	in.array(name, v, in.responsesTool)
}

// responsesTool reads a function, or those of a namespace: to other APIs they are
// told under names that begin with that of the space.
func (in *reader) responsesTool(path string, v gjson.Result) {
	switch v.Get("type").Str {
	case "function":
		in.tool(path, v, v.Get("parameters"))
	case "namespace":
		space, first := v.Get("name").Str, len(in.r.Tools)
		in.r.Spaces = append(in.r.Spaces, space)
		in.array(path+".tools", v.Get("tools"), in.responsesTool)
		for i := first; i < len(in.r.Tools); i++ {
			in.r.Tools[i].Name = inSpace(space, in.r.Tools[i].Name)
		}
	default:
		in.unknown(path)
	}
}

// spaceMark stands between a namespace and the name of a tool.
const spaceMark = "__"

// inSpace is the name of a tool that has a namespace, or none.
func inSpace(space, name string) string {
	if space == "" {
		return name
	}
	return space + spaceMark + name
}

func readResponsesChoice(in *reader, name string, v gjson.Result) {
	if !v.IsObject() {
		readChatChoice(in, name, v)
		return
	}
	in.r.names.choice = name
	if v.Get("type").Str != "function" {
		in.unknown(name)
		return
	}
	in.r.Choice.Mode, in.r.Choice.Name = ChoiceNamed, inSpace(v.Get("namespace").Str, v.Get("name").Str)
}

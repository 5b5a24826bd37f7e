package translate

import (
	"strings"

	"github.com/tidwall/gjson"
)

// cohereFields are the fields of Cohere's chat. nil = nothing is lost with it.
var cohereFields = map[string]field{
	"model": readModel, "stream": readStream, "messages": readCohereMessages, "max_tokens": readLimit,
	"temperature": number(Temperature), "p": number(TopP), "k": chatPenalty(TopK), "seed": number(Seed),
	"frequency_penalty": chatPenalty(FrequencyPenalty), "presence_penalty": chatPenalty(PresencePenalty),
	"stop_sequences": readStop, "logprobs": unless("false"), // they are of numbers of tokens, which no other API tells
	"tools": readChatTools, "tool_choice": readCohereChoice, "strict_tools": readStrictTools,
	"response_format": readCohereFormat, "thinking": readCohereThinking,
	"documents": unless("[]"), "safety_mode": unless(`"CONTEXTUAL"`, `"OFF"`, `"NONE"`),
	"citation_options": nil, // they are of documents
	"priority":         nil, "raw_prompting": unless("false"),
}

func readCohereChoice(in *reader, name string, v gjson.Result) {
	in.r.names.choice = name
	switch v.Str {
	case "REQUIRED":
		in.r.Choice.Mode = ChoiceRequired
	case "NONE":
		in.r.Choice.Mode = ChoiceNone
	default:
		in.refuse(name, "%s must be REQUIRED or NONE.", name)
	}
}

func readStrictTools(in *reader, _ string, v gjson.Result) { in.strict = v.Bool() }

// strictTools is called when all fields are read: one of them is about all tools.
func strictTools(in *reader) {
	for i := range in.r.Tools {
		in.r.Tools[i].Strict = in.r.Tools[i].Strict || in.strict
	}
}

func readCohereFormat(in *reader, name string, v gjson.Result) {
	in.r.names.format = name
	f := &in.r.Format
	switch kind := v.Get("type").Str; kind {
	case "text":
	case "json_object":
		f.JSON = true
		schema := v.Get("json_schema")
		if !schema.Exists() {
			schema = v.Get("schema")
		}
		if schema.IsObject() {
			f.Schema, f.Strict = schema.Raw, true
		}
	default:
		in.refuse(name+".type", "%s.type must be text or json_object.", name)
	}
}

func readCohereThinking(in *reader, name string, v gjson.Result) {
	t := &in.r.Think
	in.r.names.think = name
	t.Asked = true
	switch v.Get("type").Str {
	case "enabled":
		t.Budget, t.Show = count(v.Get("token_budget")), true
	case "disabled":
		t.Off = true
	default:
		in.refuse(name+".type", "%s.type must be enabled or disabled.", name)
	}
}

func readCohereMessages(in *reader, name string, v gjson.Result) {
	in.array(name, v, func(path string, m gjson.Result) {
		switch role := m.Get("role").Str; role {
		case "system":
			in.r.System = append(in.r.System, in.chatParts(path, m)...)
		case "user":
			in.turn(false, in.chatParts(path, m))
		case "assistant":
			in.turn(true, in.cohereAssistant(path, m))
		case "tool":
			in.turn(false, []Part{{Kind: ToolResult, ID: in.text(path+".tool_call_id", m.Get("tool_call_id")), Parts: in.cohereResult(path, m)}})
		default:
			in.refuse(path+".role", "%s.role must be system, user, assistant or tool.", path)
		}
	})
}

// cohereAssistant reads what the model said: thoughts, what it planned, its words
// and its calls.
func (in *reader) cohereAssistant(path string, m gjson.Result) (parts []Part) {
	if content := m.Get("content"); content.IsArray() {
		content.ForEach(func(_, b gjson.Result) bool {
			if text := b.Get("thinking").Str; text != "" {
				parts = append(parts, Part{Kind: Thinking, Text: text})
			}
			return true
		})
	}
	if plan := m.Get("tool_plan").Str; plan != "" {
		parts = append(parts, Part{Text: plan})
	}
	return append(parts, in.chatAssistant(path, m)...)
}

// cohereResult reads the result of a tool: texts, or documents.
func (in *reader) cohereResult(path string, m gjson.Result) (parts []Part) {
	content := m.Get("content")
	if !content.IsArray() {
		return in.chatParts(path, m)
	}
	in.array(path+".content", content, func(path string, v gjson.Result) {
		text := v.Get("text").Str
		switch kind := v.Get("type").Str; kind {
		case "text":
		case "document":
			if data := v.Get("document.data"); data.Type == gjson.String {
				text = data.Str
			} else {
				text = data.Raw
			}
		default:
			in.refuse(path+".type", "%s.type %.40q is not known.", path, kind)
		}
		if text != "" {
			parts = append(parts, Part{Text: text})
		}
	})
	return parts
}

// cohereParams are the features that Cohere's chat has. Its logprobs are those of
// numbers of tokens, without what else might have stood there.
var cohereParams = [features]string{
	Temperature: "temperature", TopP: "p", TopK: "k", Seed: "seed", FrequencyPenalty: "frequency_penalty", PresencePenalty: "presence_penalty",
	Stop: "stop_sequences",
}

// cohereSampling writes what is asked for in the ranges that Cohere's chat has.
func (w *requestWriter) cohereSampling() {
	saved := w.r.Params
	defer func() { w.r.Params = saved }()
	p := &w.r.Params
	if v := gjson.Parse(p[TopP].Value); v.Num > 0.99 {
		p[TopP].Value = "0.99" // as near as it gets to all
	} else if p[TopP].Name != "" && v.Num < 0.01 {
		p[TopP].Value = "0.01"
	}
	if gjson.Parse(p[TopK].Value).Num > 500 {
		w.loseParam(TopK, "the API of this model's backend chooses among 500 tokens at most")
	}
	for _, f := range []Feature{FrequencyPenalty, PresencePenalty} {
		if v := gjson.Parse(p[f].Value); v.Num < 0 || v.Num > 1 {
			w.loseParam(f, "the API of this model's backend has penalties from 0 to 1")
		}
	}
	w.params(cohereParams)
}

// writeCohere writes a chat of Cohere's.
func writeCohere(w *requestWriter) (path string) {
	r := w.r
	w.object(func() {
		w.head()
		w.within("messages", '[', ']', w.cohereMessages)
		if r.MaxTokens > 0 {
			w.intField("max_tokens", r.MaxTokens)
		}
		w.cohereSampling()
		if len(r.Tools) > 0 {
			w.cohereTools()
		}
		if f := &r.Format; f.JSON {
			w.within("response_format", '{', '}', func() {
				w.field("type", "json_object")
				if f.Schema != "" {
					w.rawField("json_schema", f.Schema)
				}
			})
		}
		w.cohereThinking()
	})
	return "/chat"
}

func (w *requestWriter) cohereThinking() {
	t := &w.r.Think
	if !t.Asked {
		return
	}
	w.within("thinking", '{', '}', func() {
		if t.Off {
			w.field("type", "disabled")
			return
		}
		w.field("type", "enabled")
		if n := t.budget(); n > 0 {
			w.intField("token_budget", n)
		}
	})
}

func (w *requestWriter) cohereTools() {
	strict := false
	w.within("tools", '[', ']', func() {
		for i := range w.r.Tools {
			t := &w.r.Tools[i]
			strict = strict || t.Strict
			w.functionTool(t, false)
		}
	})
	if strict {
		w.boolField("strict_tools", true)
	}
	switch c := &w.r.Choice; c.Mode {
	case ChoiceNone:
		w.field("tool_choice", "NONE")
	case ChoiceRequired:
		w.field("tool_choice", "REQUIRED")
	case ChoiceNamed:
		if len(w.r.Tools) != 1 || w.r.Tools[0].Name != c.Name {
			w.lose(w.r.names.choice, "the API of this model's backend takes no name of a tool")
		}
		w.field("tool_choice", "REQUIRED")
	}
	w.loseSerial()
}

func (w *requestWriter) cohereMessages() {
	w.systemMessage()
	for i := range w.r.Turns {
		t := &w.r.Turns[i]
		if t.Assistant {
			w.cohereAnswered(t.Parts)
		} else if rest := w.chatResults(t.Parts); len(rest) > 0 { // results of tools first, as chat has them
			w.userMessage(rest, w.coherePart)
		}
	}
}

func (w *requestWriter) coherePart(p *Part) {
	if p.Kind == Text || p.Kind == Image {
		w.chatPart(p)
	} else {
		w.losePart(p, "files and no sound")
	}
}

// cohereAnswered writes what the model said.
func (w *requestWriter) cohereAnswered(parts []Part) {
	thoughts, calls := thoughtsAndCalls(parts)
	text := textOf(parts, "")
	if text == "" && calls == 0 {
		return // thoughts alone are no answer
	}
	w.object(func() {
		w.field("role", "assistant")
		switch {
		case len(thoughts) > 0:
			w.within("content", '[', ']', func() {
				w.object(func() {
					w.field("type", "thinking")
					w.field("thinking", strings.Join(thoughts, "\n\n"))
				})
				if text != "" {
					w.textPart(text)
				}
			})
		case text != "":
			w.field("content", text)
		}
		if calls > 0 {
			w.chatCalls(parts)
		}
	})
}

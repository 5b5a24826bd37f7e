package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// chatParams are the features that chat has.
var chatParams = [features]string{
	Temperature: "temperature", TopP: "top_p", Seed: "seed", FrequencyPenalty: "frequency_penalty", PresencePenalty: "presence_penalty",
	Stop: "stop", User: "user", Logprobs: "logprobs", TopLogprobs: "top_logprobs",
}

// anyInput is the schema of a tool that has none.
const anyInput = `{"type":"object","properties":{}}`

// writeChat writes a chat completion.
func writeChat(w *requestWriter) (path string) {
	r := w.r
	w.object(func() {
		w.head()
		w.within("messages", '[', ']', w.chatMessages)
		if r.MaxTokens > 0 {
			name := "max_tokens"
			if w.t.NewLimit {
				name = "max_completion_tokens"
			}
			w.intField(name, r.MaxTokens)
		}
		known := chatParams
		if w.t.Engine {
			known[TopK] = "top_k"
		}
		if w.t.Mistral {
			known = mistralParams()
		}
		w.params(known)
		for _, p := range w.own {
			w.rawField(p.Name, p.Value)
		}
		if len(r.Tools) > 0 {
			w.within("tools", '[', ']', w.chatTools)
			w.chatChoice()
		}
		w.chatFormat()
		if effort := r.Think.effort(); effort != "" {
			w.field("reasoning_effort", effort)
		}
	})
	return "/chat/completions"
}

func (w *requestWriter) chatTools() {
	for i := range w.r.Tools {
		w.functionTool(&w.r.Tools[i], w.r.Tools[i].Strict)
	}
}

// functionTool writes a tool as OpenAI and Cohere have them.
func (w *requestWriter) functionTool(t *Tool, strict bool) {
	w.object(func() {
		w.field("type", "function")
		w.within("function", '{', '}', func() {
			w.field("name", t.Name)
			w.optional("description", t.Description)
			w.rawField("parameters", cmp.Or(t.Schema, anyInput))
			if strict {
				w.boolField("strict", true)
			}
		})
	})
}

func (w *requestWriter) chatChoice() {
	switch c := &w.r.Choice; c.Mode {
	case ChoiceAuto:
		w.field("tool_choice", "auto")
	case ChoiceNone:
		w.field("tool_choice", "none")
	case ChoiceRequired:
		w.field("tool_choice", "required")
	case ChoiceNamed:
		w.within("tool_choice", '{', '}', func() {
			w.field("type", "function")
			w.within("function", '{', '}', func() { w.field("name", c.Name) })
		})
	}
	if w.r.Choice.Serial {
		w.boolField("parallel_tool_calls", false)
	}
}

func (w *requestWriter) chatFormat() {
	f := &w.r.Format
	switch {
	case f.Schema != "":
		w.within("response_format", '{', '}', func() {
			w.field("type", "json_schema")
			w.within("json_schema", '{', '}', func() {
				w.field("name", cmp.Or(f.Name, "answer"))
				w.rawField("schema", f.Schema)
				if f.Strict {
					w.boolField("strict", true)
				}
			})
		})
	case f.JSON:
		w.within("response_format", '{', '}', func() { w.field("type", "json_object") })
	}
}

func (w *requestWriter) chatMessages() {
	w.systemMessage()
	for i := range w.r.Turns {
		if t := &w.r.Turns[i]; t.Assistant {
			w.chatAnswered(t.Parts, i == len(w.r.Turns)-1)
		} else {
			w.chatAsked(t.Parts)
		}
	}
}

// systemMessage writes what the system says, if anything.
func (w *requestWriter) systemMessage() {
	if text := textOf(w.r.System, "\n\n"); text != "" {
		w.object(func() {
			w.field("role", "system")
			w.field("content", text)
		})
	}
}

// chatResults writes the results of tools, each as a message of its own, and returns
// the rest of what the user said.
func (w *requestWriter) chatResults(parts []Part) (rest []Part) {
	for i := range parts {
		p := &parts[i]
		if p.Kind != ToolResult {
			rest = append(rest, *p)
			continue
		}
		w.object(func() {
			w.field("role", "tool")
			w.field("tool_call_id", w.callID(p.ID))
			text := textOf(p.Parts, "\n")
			if p.Failed {
				text = strings.TrimSpace("Error: " + text)
			}
			w.field("content", text)
		})
		for _, inner := range p.Parts { // a tool's message has only text
			if inner.Kind != Text {
				rest = append(rest, Part{Text: fmt.Sprintf("Of the result of %s:", p.ID)}, inner)
			}
		}
	}
	return rest
}

// chatAsked writes what the user said: results of tools first, then the rest.
func (w *requestWriter) chatAsked(parts []Part) {
	rest := w.chatResults(parts)
	if len(rest) > 0 {
		w.bridge(parts)
		w.userMessage(rest, w.chatPart)
	}
}

// userMessage writes what the user said as one message: a text, or its parts each.
func (w *requestWriter) userMessage(parts []Part, part func(*Part)) {
	w.object(func() {
		w.field("role", "user")
		if !hasMedia(parts) {
			w.field("content", textOf(parts, "\n\n"))
			return
		}
		w.within("content", '[', ']', func() {
			for i := range parts {
				part(&parts[i])
			}
		})
	})
}

func hasMedia(parts []Part) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.Kind != Text })
}

func (w *requestWriter) chatPart(p *Part) {
	switch {
	case p.Kind == Text:
		w.textPart(p.Text)
	case w.mistralPart(p):
	case p.Kind == Image && (p.Data != "" || p.URL != ""):
		w.object(func() {
			w.field("type", "image_url")
			w.within("image_url", '{', '}', func() {
				w.field("url", p.address())
				w.optional("detail", p.Detail)
			})
		})
	case p.Kind == Audio && p.Data != "" && p.Media != "":
		w.object(func() {
			w.field("type", "input_audio")
			w.within("input_audio", '{', '}', func() {
				w.field("data", p.Data)
				w.field("format", strings.TrimPrefix(p.Media, "audio/"))
			})
		})
	case p.Kind == File && p.Data != "":
		w.object(func() {
			w.field("type", "file")
			w.within("file", '{', '}', func() {
				w.field("filename", cmp.Or(p.Name, "file"))
				w.field("file_data", p.address())
			})
		})
	default:
		w.losePart(p, "content of this kind by its address")
	}
}

// address is where the data of p are, or they themselves as a URL.
func (p *Part) address() string {
	if p.Data != "" {
		return "data:" + p.Media + ";base64," + p.Data
	}
	return p.URL
}

// thoughtsAndCalls are the texts of the thoughts among parts, and how many calls there are.
func thoughtsAndCalls(parts []Part) (thoughts []string, calls int) {
	for i := range parts {
		switch p := &parts[i]; {
		case p.Kind == Thinking && p.Text != "":
			thoughts = append(thoughts, p.Text)
		case p.Kind == ToolCall:
			calls++
		}
	}
	return thoughts, calls
}

// chatAnswered writes what the model said; last is whether nothing follows.
func (w *requestWriter) chatAnswered(parts []Part, last bool) {
	thoughts, calls := thoughtsAndCalls(parts)
	text := textOf(parts, "")
	if text == "" && calls == 0 {
		return // thoughts alone are no answer
	}
	w.object(func() {
		w.field("role", "assistant")
		switch {
		case w.mistralContent(parts, text):
		case text == "":
			w.rawField("content", "null")
		default:
			w.field("content", text)
		}
		w.prefix(last, calls)
		if len(thoughts) > 0 && w.t.Engine {
			w.field("reasoning_content", strings.Join(thoughts, "\n\n"))
		}
		if calls > 0 {
			w.chatCalls(parts)
		}
	})
}

// chatCalls writes the calls of tools among parts.
func (w *requestWriter) chatCalls(parts []Part) {
	w.within("tool_calls", '[', ']', func() {
		for i := range parts {
			if p := &parts[i]; p.Kind == ToolCall {
				w.object(func() {
					w.field("id", w.callID(p.ID))
					w.field("type", "function")
					w.within("function", '{', '}', func() {
						w.field("name", p.Name)
						w.field("arguments", p.Input)
					})
				})
			}
		}
	})
}

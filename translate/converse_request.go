package translate

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// converseParams are the features of converse, within inferenceConfig.
var converseParams = [features]string{Temperature: "temperature", TopP: "topP", Stop: "stopSequences"}

// writeConverse writes a request for Bedrock's converse. The model stands in the
// path.
func writeConverse(w *requestWriter) string {
	r := w.r
	is, c := strings.Contains(w.t.Model, "anthropic."), claudeOf(w.t.Model)
	w.object(func() {
		if len(r.System) > 0 {
			w.within("system", '[', ']', func() { w.converseBlocks(r.System) })
		}
		w.within("messages", '[', ']', func() {
			for i := range r.Turns {
				w.blocksTurn(&r.Turns[i], w.converseBlocks)
			}
		})
		thinks := is && r.Think.Asked && !r.Think.Off && (c.adaptive || !r.brokenThoughts())
		if r.Think.Asked && !r.Think.Off && !thinks {
			w.lose(r.names.think, "the model of this backend is not told how to think, or misses its last thoughts")
		}
		w.converseConfig(is, c, thinks)
		w.converseTools(thinks || c.unforced)
		if f := &r.Format; f.Schema != "" {
			w.converseFormat(f)
		} else if f.JSON {
			w.lose(r.names.format, "the API of this model's backend knows JSON only by a schema")
		}
	})
	return ""
}

// converseConfig writes what all models know, and what Claude knows beside it.
func (w *requestWriter) converseConfig(is bool, c claude, thinks bool) {
	saved := w.r.Params
	defer func() { w.r.Params = saved }()
	p := &w.r.Params
	w.claudeSampling(c)
	if t := gjson.Parse(p[Temperature].Value); t.Num > 1 {
		w.loseParam(Temperature, "the API of this model's backend has temperatures from 0 to 1")
	}
	top := p[TopK]
	if is {
		p[TopK] = Param{}
	}
	if thinks {
		p[TopK] = top
		for _, f := range []Feature{Temperature, TopK, TopP} {
			if p[f].Name != "" {
				w.loseParam(f, "the model of this backend does not take it while it thinks")
			}
		}
	}
	most := w.r.MaxTokens
	if thinks && most == 0 {
		most = defaultTokens("")
	}
	w.within("inferenceConfig", '{', '}', func() {
		if most > 0 {
			w.intField("maxTokens", most)
		}
		w.params(converseParams)
	})
	before, at, empty := len(w.b), 0, false
	w.within("additionalModelRequestFields", '{', '}', func() {
		at = len(w.b)
		w.converseThinking(c, thinks, most)
		if is && !thinks && top.Name != "" {
			w.rawField("top_k", top.Value)
		}
		empty = len(w.b) == at
	})
	if empty {
		w.b = w.b[:before]
	}
}

// converseThinking writes how Claude is to think, as Anthropic's own API has it.
func (w *requestWriter) converseThinking(c claude, thinks bool, most int) {
	switch t := &w.r.Think; {
	case c.adaptive && t.Asked:
		if effort := c.effort(t); w.thinkAdaptively(c) && effort != "" {
			w.within("output_config", '{', '}', func() { w.field("effort", effort) })
		}
	case thinks:
		w.within("thinking", '{', '}', func() {
			w.field("type", "enabled")
			w.intField("budget_tokens", min(max(cmp.Or(t.budget(), budgets[2].tokens), leastBudget), max(most-1, leastBudget)))
		})
	}
}

func (w *requestWriter) converseFormat(f *Format) {
	w.within("outputConfig", '{', '}', func() {
		w.within("textFormat", '{', '}', func() {
			w.field("type", "json_schema")
			w.within("structure", '{', '}', func() {
				w.within("jsonSchema", '{', '}', func() {
					w.field("schema", f.Schema) // as text
					w.optional("name", f.Name)
				})
			})
		})
	})
}

func (w *requestWriter) converseTools(unforced bool) {
	r, c := w.r, &w.r.Choice
	if len(r.Tools) == 0 {
		return
	}
	w.loseSerial()
	if c.Mode == ChoiceNone {
		if len(r.toolNames()) == 0 {
			return // where there is no tool none is called
		}
		w.lose(r.names.choice, "the API of this model's backend cannot be told to call no tool")
	}
	w.within("toolConfig", '{', '}', func() {
		w.within("tools", '[', ']', func() {
			for i := range r.Tools {
				t := &r.Tools[i]
				w.object(func() {
					w.within("toolSpec", '{', '}', func() {
						w.field("name", t.Name)
						w.optional("description", t.Description)
						w.within("inputSchema", '{', '}', func() {
							w.rawField("json", cmp.Or(t.Schema, anyInput))
						})
					})
				})
			}
		})
		mode := c.Mode
		if unforced && (mode == ChoiceRequired || mode == ChoiceNamed) {
			w.lose(r.names.choice, "the model of this backend is forced to no tool, or not while it thinks")
			mode = ChoiceAuto
		}
		switch mode {
		case ChoiceAuto:
			w.rawField("toolChoice", `{"auto":{}}`)
		case ChoiceRequired:
			w.rawField("toolChoice", `{"any":{}}`)
		case ChoiceNamed:
			w.within("toolChoice", '{', '}', func() {
				w.within("tool", '{', '}', func() { w.field("name", c.Name) })
			})
		}
	})
}

// caches reports whether the model knows marks for a cache; others refuse them.
func (w *requestWriter) caches() bool {
	return strings.Contains(w.t.Model, "anthropic.claude") || strings.Contains(w.t.Model, "amazon.nova")
}

func (w *requestWriter) converseBlocks(parts []Part) {
	for i := range parts {
		p := &parts[i]
		w.converseBlock(p)
		if p.Cached && w.caches() {
			w.raw(`{"cachePoint":{"type":"default"}}`)
		}
	}
}

func (w *requestWriter) converseBlock(p *Part) {
	switch p.Kind {
	case Text:
		w.object(func() { w.field("text", p.Text) })
	case Thinking:
		if !p.claudes() {
			return
		}
		w.object(func() {
			w.within("reasoningContent", '{', '}', func() {
				w.within("reasoningText", '{', '}', func() {
					w.field("text", p.Text)
					w.field("signature", p.Signature)
				})
			})
		})
	case Redacted:
		w.object(func() {
			w.within("reasoningContent", '{', '}', func() { w.field("redactedContent", p.Data) })
		})
	case ToolCall:
		w.object(func() {
			w.within("toolUse", '{', '}', func() {
				w.field("toolUseId", callID(p.ID))
				w.field("name", p.Name)
				w.rawField("input", p.Input)
			})
		})
	case ToolResult:
		w.object(func() {
			w.within("toolResult", '{', '}', func() {
				w.field("toolUseId", callID(p.ID))
				w.within("content", '[', ']', func() { w.converseBlocks(p.Parts) })
				if p.Failed {
					w.field("status", "error")
				}
			})
		})
	default:
		w.converseMedia(p)
	}
}

// converseFormats are the formats of images and documents by their types.
var converseFormats = map[string]string{
	"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp",
	"application/pdf": "pdf", "text/csv": "csv", "text/html": "html", "text/plain": "txt", "text/markdown": "md",
}

func (w *requestWriter) converseMedia(p *Part) {
	format := converseFormats[p.Media]
	if p.Data == "" || format == "" || p.Kind == Audio {
		w.losePart(p, "content of this kind, or by its address")
		return
	}
	kind := "document"
	if strings.HasPrefix(p.Media, "image/") {
		kind = "image"
	}
	w.object(func() {
		w.within(kind, '{', '}', func() {
			w.field("format", format)
			if kind == "document" {
				w.field("name", documentName(p.Name))
			}
			w.within("source", '{', '}', func() { w.field("bytes", p.Data) })
		})
	})
}

// documentName is the name of a file as converse takes it: letters, digits, single
// blanks, - and brackets.
func documentName(name string) string {
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-()[]", r) {
			return r
		}
		return ' '
	}, name)
	return cmp.Or(strings.Join(strings.Fields(name), " "), "document")
}

package translate

import (
	"cmp"
	"path"
	"strings"
)

// geminiParams are the features of generateContent, within generationConfig.
var geminiParams = [features]string{
	Temperature: "temperature", TopP: "topP", TopK: "topK", Seed: "seed", FrequencyPenalty: "frequencyPenalty", PresencePenalty: "presencePenalty",
	Stop: "stopSequences", Logprobs: "responseLogprobs", TopLogprobs: "logprobs",
}

// geminiMark begins a signature of Gemini's where it stands in place of one of
// Anthropic's: neither believes the other's.
const geminiMark = "gemini:"

// noSignature has Gemini take a call of a tool that another model made.
const noSignature = "skip_thought_signature_validator"

// writeGemini writes a request for Google's generateContent. The model stands in
// the path.
func writeGemini(w *requestWriter) string {
	r := w.r
	w.object(func() {
		if text := textOf(r.System, "\n\n"); text != "" {
			w.within("systemInstruction", '{', '}', func() {
				w.within("parts", '[', ']', func() { w.object(func() { w.field("text", text) }) })
			})
		}
		w.within("contents", '[', ']', func() {
			names := r.toolNames()
			for i := range r.Turns {
				w.geminiTurn(&r.Turns[i], names)
			}
		})
		if len(r.Tools) > 0 {
			w.geminiTools()
		}
		w.within("generationConfig", '{', '}', w.geminiConfig)
	})
	return ""
}

func (w *requestWriter) geminiTools() {
	w.within("tools", '[', ']', func() {
		w.object(func() {
			w.within("functionDeclarations", '[', ']', func() {
				for i := range w.r.Tools {
					t := &w.r.Tools[i]
					w.object(func() {
						w.field("name", t.Name)
						w.optional("description", t.Description)
						if t.Schema != "" {
							w.rawField("parametersJsonSchema", t.Schema)
						}
					})
				}
			})
		})
	})
	c := &w.r.Choice
	w.loseSerial()
	mode := [...]string{ChoiceUnsaid: "", ChoiceAuto: "AUTO", ChoiceNone: "NONE", ChoiceRequired: "ANY", ChoiceNamed: "ANY"}[c.Mode]
	if mode == "" {
		return
	}
	w.within("toolConfig", '{', '}', func() {
		w.within("functionCallingConfig", '{', '}', func() {
			w.field("mode", mode)
			if c.Mode == ChoiceNamed {
				w.within("allowedFunctionNames", '[', ']', func() { w.str(c.Name) })
			}
		})
	})
}

// loseSerial loses that tools are to be called one at a time.
func (w *requestWriter) loseSerial() {
	if w.r.Choice.Serial {
		w.lose(w.r.names.serial, "the API of this model's backend may call several tools at once")
	}
}

func (w *requestWriter) geminiConfig() {
	r := w.r
	if r.MaxTokens > 0 {
		w.intField("maxOutputTokens", r.MaxTokens)
	}
	w.params(geminiParams)
	if r.Format.JSON {
		w.field("responseMimeType", "application/json")
		if r.Format.Schema != "" {
			w.rawField("responseJsonSchema", r.Format.Schema)
		}
	}
	t := &r.Think
	if !t.Asked {
		return
	}
	w.geminiThinking(t)
}

// geminiThinking writes how much the model is to think: a budget of tokens up to
// Gemini 2.5, a level from 3 on. The larger models always think.
func (w *requestWriter) geminiThinking(t *Reasoning) {
	pro, levels := strings.Contains(w.t.Model, "-pro"), geminiLevels(w.t.Model)
	if t.Off && pro {
		w.lose(w.r.names.think, "the model of this backend always thinks")
		return
	}
	w.within("thinkingConfig", '{', '}', func() {
		most := 24576
		if pro {
			most = 32768
		}
		switch b := t.budget(); {
		case t.Off && levels:
			w.field("thinkingLevel", "minimal")
		case t.Off:
			w.intField("thinkingBudget", 0)
			return
		case levels && (t.Effort != "" || b > 0):
			w.field("thinkingLevel", geminiLevel(t.effort(), pro))
		case b > 0:
			w.intField("thinkingBudget", min(b, most))
		}
		w.boolField("includeThoughts", t.Show && !t.Off)
	})
}

// geminiLevels reports whether a model is told a level, and not a budget.
func geminiLevels(model string) bool {
	_, version, found := strings.Cut(model, "gemini-")
	return found && version != "" && version[0] >= '3' && version[0] <= '9'
}

func geminiLevel(effort string, pro bool) string {
	switch {
	case effort == "minimal" && pro:
		return "low"
	case effort == "xhigh":
		return "high"
	}
	return effort
}

func (w *requestWriter) geminiTurn(t *Turn, names map[string]string) {
	w.unlessEmpty(func() {
		role := "user"
		if t.Assistant {
			role = "model"
		}
		w.field("role", role)
	}, "parts", func() {
		signature := ""
		for i := range t.Parts {
			p := &t.Parts[i]
			switch p.Kind {
			case Thinking:
				signature, _ = strings.CutPrefix(p.Signature, geminiMark)
				if signature == p.Signature {
					signature = ""
				}
			case ToolCall:
				w.geminiCall(p, cmp.Or(p.Signature, signature))
				signature = ""
			case ToolResult:
				w.geminiResult(p, names)
			default:
				w.geminiPart(p)
			}
		}
	})
}

// unlessEmpty writes an object of head and an array that fill fills, or nothing if
// it has no items.
func (w *requestWriter) unlessEmpty(head func(), list string, fill func()) {
	before, empty := len(w.b), false
	w.object(func() {
		head()
		w.key(list)
		w.b = append(w.b, '[')
		at := len(w.b)
		fill()
		empty = len(w.b) == at
		w.close(']')
	})
	if empty {
		w.b = w.b[:before]
	}
}

func (w *requestWriter) geminiCall(p *Part, signature string) {
	if signature == "" && geminiLevels(w.t.Model) {
		signature = noSignature
	}
	w.object(func() {
		w.within("functionCall", '{', '}', func() {
			w.field("name", p.Name)
			w.rawField("args", p.Input)
		})
		w.optional("thoughtSignature", signature)
	})
}

func (w *requestWriter) geminiResult(p *Part, names map[string]string) {
	w.object(func() {
		w.within("functionResponse", '{', '}', func() {
			w.field("name", cmp.Or(names[p.ID], p.Name, p.ID))
			text := textOf(p.Parts, "\n")
			switch {
			case p.Failed:
				w.within("response", '{', '}', func() { w.field("error", text) })
			case isObject(text):
				w.rawField("response", text)
			default:
				w.within("response", '{', '}', func() { w.field("result", text) })
			}
		})
	})
	for i := range p.Parts {
		if p.Parts[i].Kind != Text {
			w.geminiPart(&p.Parts[i])
		}
	}
}

func (w *requestWriter) geminiPart(p *Part) {
	switch {
	case p.Kind == Text:
		w.object(func() { w.field("text", p.Text) })
	case p.Kind == Redacted:
	case p.Data != "":
		w.object(func() {
			w.within("inlineData", '{', '}', func() {
				w.field("mimeType", cmp.Or(p.Media, "application/octet-stream"))
				w.field("data", p.Data)
			})
		})
	case p.URL != "":
		w.object(func() {
			w.within("fileData", '{', '}', func() {
				w.field("mimeType", mediaOf(p))
				w.field("fileUri", p.URL)
			})
		})
	default:
		w.losePart(p, "file of another service")
	}
}

// mediaOf is the type of what p names by its address, as its name says.
func mediaOf(p *Part) string {
	address, _, _ := strings.Cut(p.URL, "?")
	switch strings.ToLower(path.Ext(address)) {
	case ".png":
		return "image/png"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".pdf":
		return "application/pdf"
	}
	if p.Kind == File {
		return "application/pdf"
	}
	return "image/jpeg"
}

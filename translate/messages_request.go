package translate

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// messagesFields are the fields of Anthropic's messages, as chatFields.
var messagesFields = map[string]field{
	"model": readModel, "stream": readStream, "max_tokens": readLimit, "messages": readTurns, "system": readSystem,
	"temperature": number(Temperature), "top_p": number(TopP), "top_k": number(TopK), "stop_sequences": readStop,
	"tools": readMessagesTools, "tool_choice": readMessagesChoice, "thinking": readThinking,
	"output_config": readOutputConfig, "output_format": readOutputFormat,
	"metadata": func(in *reader, name string, v gjson.Result) {
		if user := v.Get("user_id"); user.Str != "" {
			in.r.Params[User] = Param{Name: name + ".user_id", Value: user.Raw}
		}
	},
	"container": unless(), "mcp_servers": unless("[]"),
	// They are about who pays, how fast, what is remembered and where it runs; a
	// client that trims its own context asks for what others do not have to do.
	"cache_control": nil, "service_tier": nil, "speed": nil, "inference_geo": nil, "diagnostics": nil, "context_management": nil,
	"user_profile_id": nil, "workspace_id": nil,
}

// messagesParams are the features that messages has. User stands within metadata.
var messagesParams = [features]string{
	Temperature: "temperature", TopP: "top_p", TopK: "top_k", Stop: "stop_sequences",
}

func readSystem(in *reader, name string, v gjson.Result) {
	in.r.System = in.blocks(name, v)
}

func readTurns(in *reader, name string, v gjson.Result) {
	in.array(name, v, func(path string, m gjson.Result) {
		switch role := m.Get("role").Str; role {
		case "user":
			in.turn(false, in.blocks(path+".content", m.Get("content")))
		case "assistant":
			in.turn(true, in.blocks(path+".content", m.Get("content")))
		case "system":
			in.r.System = append(in.r.System, in.blocks(path+".content", m.Get("content"))...)
		default:
			in.refuse(path+".role", "%s.role must be user or assistant.", path)
		}
	})
}

// blocks reads content: a string, or an array of blocks.
func (in *reader) blocks(path string, v gjson.Result) (parts []Part) {
	if v.Type == gjson.String {
		if v.Str == "" {
			return nil
		}
		return []Part{{Text: v.Str}}
	}
	if v.Type == gjson.Null {
		return nil
	}
	in.array(path, v, func(path string, v gjson.Result) {
		p := Part{path: path, Cached: isMarked(v, v)}
		switch kind := v.Get("type").Str; kind {
		case "text":
			if p.Text, p.path = v.Get("text").Str, ""; p.Text == "" {
				return
			}
		case "image":
			p.Kind = Image
			in.source(path+".source", v.Get("source"), &p)
		case "document":
			p.Kind, p.Name = File, v.Get("title").Str
			in.source(path+".source", v.Get("source"), &p)
		case "thinking", "redacted_thinking":
			p = thought(v)
		case "tool_use":
			p = Part{Kind: ToolCall, ID: v.Get("id").Str, Name: v.Get("name").Str, Input: cmp.Or(v.Get("input").Raw, "{}"), Cached: p.Cached}
			if !v.Get("input").IsObject() && v.Get("input").Exists() {
				in.refuse(path+".input", "%s.input must be an object.", path)
			}
		case "tool_result":
			p = Part{
				Kind: ToolResult, ID: v.Get("tool_use_id").Str, Failed: v.Get("is_error").Bool(), Cached: p.Cached,
				Parts: in.blocks(path+".content", v.Get("content")),
			}
		default:
			in.unknown(path) // of a tool that only Anthropic runs
			return
		}
		parts = append(parts, p)
	})
	return parts
}

// source reads where the data of an image or a document are.
func (in *reader) source(path string, v gjson.Result, p *Part) {
	switch kind := v.Get("type").Str; kind {
	case "base64":
		p.Media, p.Data = v.Get("media_type").Str, v.Get("data").Str
	case "url":
		p.URL = v.Get("url").Str
	case "text":
		p.Kind, p.Text, p.path = Text, v.Get("data").Str, ""
	case "content":
		p.Kind, p.Text, p.path = Text, textOf(in.blocks(path+".content", v.Get("content")), "\n"), ""
	case "file":
		p.path = path + ".file_id"
	default:
		in.refuse(path+".type", "%s.type %.40q is not known.", path, kind)
	}
}

func readMessagesTools(in *reader, name string, v gjson.Result) {
	in.r.names.tools = name
	in.array(name, v, func(path string, v gjson.Result) {
		if kind := v.Get("type").Str; kind != "" && kind != "custom" {
			in.unknown(path)
			return
		}
		in.tool(path, v, v.Get("input_schema"))
		if n := len(in.r.Tools); n > 0 && isMarked(v, v) {
			in.r.Tools[n-1].Cached = true
		}
	})
}

func readMessagesChoice(in *reader, name string, v gjson.Result) {
	in.r.names.choice = name
	c := &in.r.Choice
	mode, ok := map[string]ChoiceMode{"auto": ChoiceAuto, "none": ChoiceNone, "any": ChoiceRequired, "tool": ChoiceNamed}[v.Get("type").Str]
	if !ok {
		in.refuse(name+".type", "%s.type must be auto, any, tool or none.", name)
	}
	in.r.names.serial = name + ".disable_parallel_tool_use"
	c.Mode, c.Name, c.Serial = mode, v.Get("name").Str, v.Get("disable_parallel_tool_use").Bool()
}

// readOutputConfig reads the effort and the format of the answer.
func readOutputConfig(in *reader, name string, v gjson.Result) {
	if effort := v.Get("effort"); effort.Str != "" {
		readEffort(in, name+".effort", effort)
	}
	if f := v.Get("format"); f.IsObject() {
		readOutputFormat(in, name+".format", f)
	}
}

func readOutputFormat(in *reader, name string, v gjson.Result) {
	in.r.names.format = name
	if v.Get("type").Str != "json_schema" {
		in.refuse(name+".type", "%s.type must be json_schema.", name)
		return
	}
	in.schema(&in.r.Format, name, v)
}

// mostTokens is what an answer may have where the client does not say: messages
// wants a number, which no model of the name refuses.
var mostTokens = []struct {
	name   string
	tokens int
}{{"claude-3-7", 32000}, {"claude-3-5", 8192}, {"claude-3-", 4096}, {"claude-2", 4096}, {"claude-instant", 4096}, {"", 32000}}

func defaultTokens(model string) int {
	for _, m := range mostTokens {
		if strings.Contains(model, m.name) {
			return m.tokens
		}
	}
	return 0
}

// leastBudget is the least that messages takes as a budget for thinking.
const leastBudget = 1024

// writeMessages writes a request for Anthropic.
func writeMessages(w *requestWriter) (path string) {
	r := w.r
	w.object(func() {
		w.head()
		most, c := cmp.Or(r.MaxTokens, defaultTokens(w.t.Model)), claudeOf(w.t.Model)
		thinks := w.messagesThinking(c, most)
		w.intField("max_tokens", most)
		if len(r.System) > 0 {
			w.within("system", '[', ']', func() { w.messagesBlocks(r.System) })
		}
		w.within("messages", '[', ']', func() {
			for i := range r.Turns {
				w.blocksTurn(&r.Turns[i], w.messagesBlocks)
			}
		})
		if user := r.Params[User]; user.Name != "" {
			w.within("metadata", '{', '}', func() { w.rawField("user_id", user.Value) })
		}
		w.messagesParams(c, thinks)
		if len(r.Tools) > 0 {
			w.within("tools", '[', ']', w.messagesTools)
			w.messagesChoice(c, thinks)
		}
		w.outputConfig(c, thinks)
	})
	return "/messages"
}

// outputConfig writes how hard the model is to work, and the schema of its answer.
func (w *requestWriter) outputConfig(c claude, thinks bool) {
	f, effort := &w.r.Format, ""
	if thinks && c.adaptive {
		effort = c.effort(&w.r.Think)
	}
	if f.Schema == "" && f.JSON {
		w.lose(w.r.names.format, "the API of this model's backend knows JSON only by a schema")
	}
	if f.Schema == "" && effort == "" {
		return
	}
	w.within("output_config", '{', '}', func() {
		w.optional("effort", effort)
		if f.Schema != "" {
			w.within("format", '{', '}', func() {
				w.field("type", "json_schema")
				w.rawField("schema", f.Schema)
			})
		}
	})
}

// messagesThinking writes how much the model may think within most tokens, and
// reports whether it does.
func (w *requestWriter) messagesThinking(c claude, most int) bool {
	t := &w.r.Think
	switch {
	case !t.Asked:
		return false
	case c.adaptive:
		return w.thinkAdaptively(c)
	case t.Off:
		return false // what is not asked for is off
	case w.r.brokenThoughts():
		// It would be refused: the thoughts before a call have to be there, and a
		// client that does not keep them cannot be told.
		w.lose(w.r.names.think, "the thoughts that led to the last call of a tool did not come back with it")
		return false
	case most <= leastBudget:
		w.lose(w.r.names.think, "it takes more tokens than the answer may have")
		return false
	}
	budget := min(max(cmp.Or(t.budget(), budgets[2].tokens), leastBudget), most-1)
	w.within("thinking", '{', '}', func() {
		w.field("type", "enabled")
		w.intField("budget_tokens", budget)
	})
	return true
}

// brokenThoughts reports whether the last turn of the model called a tool and has
// no signed thought, so that it cannot go on thinking.
func (r *Request) brokenThoughts() bool {
	for i := len(r.Turns) - 1; i >= 0; i-- {
		t := &r.Turns[i]
		if !t.Assistant {
			continue
		}
		called, signed := false, false
		for _, p := range t.Parts {
			called = called || p.Kind == ToolCall
			signed = signed || p.Kind == Redacted || p.claudes()
		}
		return called && !signed
	}
	return false
}

// messagesParams writes the features. One that thinks takes its own temperature.
func (w *requestWriter) messagesParams(c claude, thinks bool) {
	known := messagesParams
	saved := w.r.Params
	defer func() { w.r.Params = saved }()
	p := &w.r.Params
	p[User] = Param{} // written already
	w.claudeSampling(c)
	if t := gjson.Parse(p[Temperature].Value); p[Temperature].Name != "" && (t.Num > 1 || thinks && t.Num != 1) {
		why := "the API of this model's backend has temperatures from 0 to 1"
		if thinks {
			why = "the API of this model's backend has no temperature while it thinks"
		}
		w.loseParam(Temperature, why)
	}
	if thinks && p[TopK].Name != "" {
		w.loseParam(TopK, "the API of this model's backend has no top_k while it thinks")
	}
	if top := gjson.Parse(p[TopP].Value); thinks && p[TopP].Name != "" && top.Num < 0.95 {
		w.loseParam(TopP, "the API of this model's backend has a top_p of at least 0.95 while it thinks")
	}
	w.params(known)
}

// loseParam loses a feature. The caller puts the features of the request back.
func (w *requestWriter) loseParam(f Feature, why string) {
	p := &w.r.Params[f]
	w.lose(p.Name, why)
	*p = Param{}
}

func (w *requestWriter) messagesTools() {
	for i := range w.r.Tools {
		t := &w.r.Tools[i]
		w.object(func() {
			w.field("name", t.Name)
			w.optional("description", t.Description)
			w.rawField("input_schema", cmp.Or(t.Schema, anyInput))
			if t.Strict {
				w.boolField("strict", true)
			}
			w.mark(t.Cached)
		})
	}
}

func (w *requestWriter) mark(cached bool) {
	if cached {
		w.within("cache_control", '{', '}', func() { w.field("type", "ephemeral") })
	}
}

func (w *requestWriter) messagesChoice(m claude, thinks bool) {
	c := &w.r.Choice
	mode := c.Mode
	if (thinks || m.unforced) && (mode == ChoiceRequired || mode == ChoiceNamed) {
		w.lose(w.r.names.choice, "the API of this model's backend forces no tool while it thinks")
		mode = ChoiceAuto
	}
	if mode == ChoiceUnsaid && !c.Serial {
		return
	}
	w.within("tool_choice", '{', '}', func() {
		switch mode {
		case ChoiceNone:
			w.field("type", "none")
			return
		case ChoiceRequired:
			w.field("type", "any")
		case ChoiceNamed:
			w.field("type", "tool")
			w.field("name", c.Name)
		default:
			w.field("type", "auto")
		}
		if c.Serial {
			w.boolField("disable_parallel_tool_use", true)
		}
	})
}

// blocksTurn writes a turn whose parts are blocks that write writes. One of thoughts that
// nobody signed says nothing, and an empty one is refused.
func (w *requestWriter) blocksTurn(t *Turn, write func([]Part)) {
	w.unlessEmpty(func() {
		role := "user"
		if t.Assistant {
			role = "assistant"
		}
		w.field("role", role)
	}, "content", func() {
		if t.Assistant {
			write(t.Parts)
			return
		}
		write(only(t.Parts, true)) // results of tools have to come first
		write(only(t.Parts, false))
	})
}

// only returns the results of tools among parts, or all but them.
func only(parts []Part, results bool) (some []Part) {
	for i := range parts {
		if (parts[i].Kind == ToolResult) == results {
			some = append(some, parts[i])
		}
	}
	return some
}

func (w *requestWriter) messagesBlocks(parts []Part) {
	for i := range parts {
		w.messagesBlock(&parts[i])
	}
}

func (w *requestWriter) messagesBlock(p *Part) {
	switch p.Kind {
	case Text:
		w.object(func() {
			w.field("type", "text")
			w.field("text", p.Text)
			w.mark(p.Cached)
		})
	case Image, File:
		w.messagesMedia(p)
	case Audio:
		w.losePart(p, "audio")
	case Thinking:
		if !p.claudes() {
			return // only its author could believe it
		}
		w.object(func() {
			w.field("type", "thinking")
			w.field("thinking", p.Text)
			w.field("signature", p.Signature)
		})
	case Redacted:
		w.object(func() {
			w.field("type", "redacted_thinking")
			w.field("data", p.Data)
		})
	case ToolCall:
		w.object(func() {
			w.field("type", "tool_use")
			w.field("id", callID(p.ID))
			w.field("name", p.Name)
			w.rawField("input", p.Input)
			w.mark(p.Cached)
		})
	case ToolResult:
		w.object(func() {
			w.field("type", "tool_result")
			w.field("tool_use_id", callID(p.ID))
			if len(p.Parts) > 0 {
				w.within("content", '[', ']', func() { w.messagesBlocks(p.Parts) })
			}
			if p.Failed {
				w.boolField("is_error", true)
			}
			w.mark(p.Cached)
		})
	}
}

// messagesMedia writes an image, or a document: PDF or plain text.
func (w *requestWriter) messagesMedia(p *Part) {
	kind := "document"
	switch {
	case p.Data == "" && p.URL == "":
		w.losePart(p, "file of another service")
		return
	case p.Kind == Image || strings.HasPrefix(p.Media, "image/"):
		kind = "image"
	case p.Data != "" && p.Media != "application/pdf":
		w.losePart(p, "file but PDF")
		return
	}
	w.object(func() {
		w.field("type", kind)
		w.within("source", '{', '}', func() {
			if p.Data == "" {
				w.field("type", "url")
				w.field("url", p.URL)
				return
			}
			w.field("type", "base64")
			w.field("media_type", p.Media)
			w.field("data", p.Data)
		})
		if kind == "document" {
			w.optional("title", p.Name)
		}
		w.mark(p.Cached)
	})
}

// callID is the id of a call of a tool as messages takes it: letters, digits, _
// and -.
func callID(id string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

package translate

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// chatFields are the fields of a chat completion. nil = nothing is lost with it:
// it is about storage, a cache, who pays or how the answer is written, or is read
// elsewhere.
var chatFields = map[string]field{
	"model": readModel, "stream": readStream, "messages": readChatMessages,
	"max_tokens": readLimit, "max_completion_tokens": readLimit,
	"temperature": number(Temperature), "top_p": number(TopP), "top_k": number(TopK), "seed": number(Seed),
	"frequency_penalty": chatPenalty(FrequencyPenalty), "presence_penalty": chatPenalty(PresencePenalty),
	"stop": readStop, "user": words(User), "safety_identifier": words(User),
	"logprobs": readLogprobs, "top_logprobs": number(TopLogprobs),
	"tools": readChatTools, "tool_choice": readChatChoice, "parallel_tool_calls": readParallel,
	"response_format": readChatFormat, "reasoning_effort": readEffort, "thinking": readThinking,
	"stream_options": func(in *reader, _ string, v gjson.Result) { in.r.WantUsage = v.Get("include_usage").Bool() },
	"n":              unless("1"), "logit_bias": unless("{}"), "store": unless("false"), "modalities": unless(`["text"]`),
	"service_tier": unless(`"auto"`, `"default"`), "verbosity": unless(`"medium"`),
	"random_seed": number(Seed), "safe_prompt": unless("false"), // Mistral's
	"include_reasoning": unless("true"), "reasoning_format": unless(`"parsed"`), // Groq's
	"functions": unless("[]"), "function_call": unless(`"auto"`, `"none"`),
	"metadata": nil, "prediction": nil, "prompt_cache_key": nil, "prompt_cache_retention": nil, "prompt_cache_options": nil,
}

// chatPenalty is a number of which zero asks for nothing.
func chatPenalty(f Feature) field {
	take := number(f)
	return func(in *reader, name string, v gjson.Result) {
		if v.Type != gjson.Number || v.Num != 0 {
			take(in, name, v)
		}
	}
}

func readLogprobs(in *reader, name string, v gjson.Result) {
	if v.Bool() {
		in.r.Params[Logprobs] = Param{Name: name, Value: "true"}
	}
}

func readParallel(in *reader, name string, v gjson.Result) {
	in.r.Choice.Serial, in.r.names.serial = !v.Bool(), name
}

// readEffort reads how much the model may think, as OpenAI says it.
func readEffort(in *reader, name string, v gjson.Result) {
	t := &in.r.Think
	in.r.names.think = name
	switch effort := in.text(name, v); effort {
	case "none":
		t.Asked, t.Off = true, true
	case "minimal", "low", "medium", "high", "xhigh", "max":
		t.Asked, t.Effort, t.Show = true, effort, true
	default:
		in.refuse(name, "%s must be none, minimal, low, medium, high, xhigh or max.", name)
	}
}

// readThinking reads the same as Anthropic says it. Several gateways take it in
// chats, too.
func readThinking(in *reader, name string, v gjson.Result) {
	t := &in.r.Think
	in.r.names.think = name
	switch kind := v.Get("type").Str; kind {
	case "enabled":
		t.Asked, t.Budget, t.Show = true, count(v.Get("budget_tokens")), v.Get("display").Str != "omitted"
	case "adaptive":
		t.Asked, t.Show = true, v.Get("display").Str != "omitted"
	case "disabled", "between_tools":
		t.Asked, t.Off = true, true
	default:
		in.refuse(name, "%s.type must be enabled, adaptive or disabled.", name)
	}
}

func readChatFormat(in *reader, name string, v gjson.Result) {
	in.r.names.format = name
	f := &in.r.Format
	switch kind := v.Get("type").Str; kind {
	case "text":
	case "json_object":
		f.JSON = true
	case "json_schema":
		in.schema(f, name+".json_schema", v.Get("json_schema"))
	default:
		in.refuse(name+".type", "%s.type must be text, json_object or json_schema.", name)
	}
}

// schema reads a named JSON schema for the answer.
func (in *reader) schema(f *Format, path string, v gjson.Result) {
	schema := v.Get("schema")
	if !schema.IsObject() {
		in.refuse(path+".schema", "%s.schema must be an object.", path)
	}
	f.JSON, f.Schema, f.Name, f.Strict = true, schema.Raw, v.Get("name").Str, v.Get("strict").Bool()
}

func readChatTools(in *reader, name string, v gjson.Result) {
	in.r.names.tools = name
	in.array(name, v, func(path string, v gjson.Result) {
		if kind := v.Get("type").Str; kind != "function" {
			in.unknown(path) // a custom tool, or one of OpenAI's own
			return
		}
		f := v.Get("function")
		in.tool(path+".function", f, f.Get("parameters"))
		if n := len(in.r.Tools); n > 0 && isMarked(v, f) {
			in.r.Tools[n-1].Cached = true
		}
	})
}

// tool reads a function that may be called.
func (in *reader) tool(path string, v, schema gjson.Result) {
	t := Tool{Name: in.text(path+".name", v.Get("name")), Description: in.text(path+".description", v.Get("description")), Strict: v.Get("strict").Bool()}
	if t.Name == "" {
		in.refuse(path+".name", "%s.name is missing.", path)
	}
	if schema.IsObject() {
		t.Schema = schema.Raw
	}
	in.r.Tools = append(in.r.Tools, t)
}

func readChatChoice(in *reader, name string, v gjson.Result) {
	in.r.names.choice = name
	c := &in.r.Choice
	if v.IsObject() {
		if c.Mode, c.Name = ChoiceNamed, v.Get("function.name").Str; c.Name == "" {
			in.unknown(name) // allowed_tools, or a custom one
			c.Mode = ChoiceUnsaid
		}
		return
	}
	// any is Mistral's word for it.
	mode, ok := map[string]ChoiceMode{"auto": ChoiceAuto, "none": ChoiceNone, "required": ChoiceRequired, "any": ChoiceRequired}[v.Str]
	if !ok {
		in.refuse(name, "%s must be auto, none, required or the name of a function.", name)
	}
	c.Mode = mode
}

func readChatMessages(in *reader, name string, v gjson.Result) {
	in.array(name, v, func(path string, m gjson.Result) {
		switch role := m.Get("role").Str; role {
		case "system", "developer":
			in.r.System = append(in.r.System, in.chatParts(path, m)...)
		case "user":
			in.turn(false, in.chatParts(path, m))
		case "assistant":
			in.turn(true, in.chatAssistant(path, m))
		case "tool":
			in.turn(false, []Part{{
				Kind: ToolResult, ID: in.text(path+".tool_call_id", m.Get("tool_call_id")), Parts: in.chatParts(path, m), Cached: isMarked(m, m),
			}})
		default:
			in.refuse(path+".role", "%s.role must be system, developer, user, assistant or tool.", path)
		}
	})
}

// isMarked reports whether a cache may end at v or at what is in it: an Anthropic
// mark that many clients put into chats.
func isMarked(v, within gjson.Result) bool {
	return v.Get("cache_control").IsObject() || within.Get("cache_control").IsObject()
}

// chatParts reads the content of the message m at path.
func (in *reader) chatParts(path string, m gjson.Result) (parts []Part) {
	return in.content(path+".content", m.Get("content"), isMarked(m, m))
}

// content reads a text, or parts of chat or responses; marked is whether a cache
// may end behind a text.
func (in *reader) content(path string, v gjson.Result, marked bool) (parts []Part) {
	switch {
	case v.Type == gjson.Null:
		return nil
	case v.Type == gjson.String:
		if v.Str == "" {
			return nil
		}
		return []Part{{Text: v.Str, Cached: marked}}
	}
	in.array(path, v, func(path string, v gjson.Result) {
		p := Part{path: path, Cached: isMarked(v, v)}
		switch kind := v.Get("type").Str; kind {
		case "text", "input_text", "output_text", "refusal":
			p.path, p.Text = "", cmp.Or(v.Get("text").Str, v.Get("refusal").Str)
			if p.Text == "" {
				return
			}
		case "image_url", "input_image":
			in.chatImage(path, v, &p)
		case "input_audio":
			in.audio(v.Get("input_audio"), &p)
		case "file":
			if f := v.Get("file"); f.Exists() {
				in.file(path+".file", f, &p)
			} else {
				in.file(path, v, &p)
			}
		case "document_url": // Mistral's
			p.Kind, p.Name, p.URL = File, v.Get("document_name").Str, v.Get("document_url").Str
			if media, data, ok := dataURL(p.URL); ok {
				p.Media, p.Data, p.URL = media, data, ""
			}
		case "input_file":
			in.file(path, v, &p)
		case "thinking":
			p = mistralThought(v)
		case "reasoning":
			return // in the shape of no chat
		default:
			in.refuse(path+".type", "%s.type %.40q is not known.", path, kind)
		}
		parts = append(parts, p)
	})
	return parts
}

// chatImage reads an image of chat, or of responses, where the address stands
// by itself.
func (in *reader) chatImage(path string, v gjson.Result, p *Part) {
	url := v.Get("image_url")
	if url.IsObject() {
		p.Detail = url.Get("detail").Str
		url = url.Get("url")
	} else {
		p.Detail = v.Get("detail").Str
	}
	p.Kind = Image
	if url.Str == "" {
		in.refuse(path+".image_url", "%s has no image_url.", path)
	}
	if media, data, ok := dataURL(url.Str); ok {
		p.Media, p.Data = media, data
	} else if p.URL = url.Str; strings.HasPrefix(p.URL, "data:") {
		in.refuse(path+".image_url", "%s has a data: URL that is not base64.", path)
	}
}

// audio reads sound, of which Mistral's form does not say what it is.
func (in *reader) audio(v gjson.Result, p *Part) {
	p.Kind = Audio
	switch address := v.Str; {
	case v.IsObject():
		p.Data, p.Media = v.Get("data").Str, "audio/"+v.Get("format").Str
	case strings.HasPrefix(address, "http"):
		p.URL = address
	default:
		media, data, ok := dataURL(address)
		if p.Media, p.Data = media, data; !ok {
			p.Media, p.Data = "", address
		}
	}
}

// file reads a file by its data.
func (in *reader) file(path string, v gjson.Result, p *Part) {
	p.Kind, p.Name = File, v.Get("filename").Str
	media, data, ok := dataURL(v.Get("file_data").Str)
	switch {
	case ok:
		p.Media, p.Data = media, data
	case v.Get("file_url").Str != "":
		p.URL = v.Get("file_url").Str
	case v.Get("file_data").Str != "":
		p.Media, p.Data = "application/pdf", v.Get("file_data").Str
	case v.Get("file_id").Exists():
		p.path = path + ".file_id" // only its own service knows it
	default:
		in.refuse(path, "%s has no file_data.", path)
	}
}

// chatAssistant reads what the model said. Its thoughts come first.
func (in *reader) chatAssistant(path string, m gjson.Result) (parts []Part) {
	blocks := m.Get("thinking_blocks")
	blocks.ForEach(func(_, b gjson.Result) bool {
		parts = append(parts, thought(b))
		return true
	})
	if !blocks.IsArray() {
		if text := cmp.Or(m.Get("reasoning_content").Str, m.Get("reasoning").Str); text != "" {
			parts = append(parts, Part{Kind: Thinking, Text: text})
		}
	}
	parts = append(parts, in.chatParts(path, m)...)
	if refusal := m.Get("refusal").Str; refusal != "" {
		parts = append(parts, Part{Text: refusal})
	}
	calls := m.Get("tool_calls")
	if !calls.Exists() || calls.Type == gjson.Null {
		return parts
	}
	in.array(path+".tool_calls", calls, func(path string, v gjson.Result) {
		f := v.Get("function")
		p := Part{
			Kind: ToolCall, ID: v.Get("id").Str, Name: f.Get("name").Str, Input: cmp.Or(strings.TrimSpace(f.Get("arguments").Str), "{}"),
			Signature: v.Get("extra_content.google.thought_signature").Str, Cached: isMarked(v, f),
		}
		if !isObject(p.Input) {
			in.refuse(path+".function.arguments", "%s.function.arguments must be a JSON object in a string.", path)
		}
		parts = append(parts, p)
	})
	return parts
}

// mistralThought reads a thought as Mistral has it: of texts.
func mistralThought(v gjson.Result) Part {
	p := Part{Kind: Thinking}
	for _, t := range v.Get("thinking").Array() {
		p.Text += t.Get("text").Str
	}
	if s := v.Get("signature").Str; s != "" {
		p.Signature = mistralMark + s
	}
	return p
}

// thought reads a block of thinking as Anthropic has it.
func thought(v gjson.Result) Part {
	if v.Get("type").Str == "redacted_thinking" {
		return Part{Kind: Redacted, Data: v.Get("data").Str}
	}
	return Part{Kind: Thinking, Text: v.Get("thinking").Str, Signature: v.Get("signature").Str}
}

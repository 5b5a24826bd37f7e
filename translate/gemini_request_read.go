package translate

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// geminiFields are the fields of Google's generateContent, as chatFields. Google
// takes each of them with underscores as well (camel).
var geminiFields = map[string]field{
	"model": nil, "labels": nil, "contents": readContents, "systemInstruction": readInstruction,
	"tools": readGeminiTools, "toolConfig": readToolConfig, "generationConfig": readGenerationConfig, "safetySettings": readSafety,
	"cachedContent": unless(`""`), "store": unless("false"), "serviceTier": unless(`"unspecified"`, `"standard"`, `"auto"`),
}

// generationFields are those within generationConfig.
var generationFields = map[string]field{
	"temperature": number(Temperature), "topP": number(TopP), "topK": number(TopK), "seed": number(Seed),
	"frequencyPenalty": chatPenalty(FrequencyPenalty), "presencePenalty": chatPenalty(PresencePenalty),
	"stopSequences": readStop, "maxOutputTokens": readLimit, "responseLogprobs": readLogprobs, "logprobs": number(TopLogprobs),
	"thinkingConfig": readThinkingConfig, "responseMimeType": readMimeType,
	"responseSchema": func(in *reader, name string, v gjson.Result) {
		in.answerSchema(name, v, jsonSchemaOf(v))
	},
	"responseJsonSchema": func(in *reader, name string, v gjson.Result) { in.answerSchema(name, v, v.Raw) },
	"candidateCount":     unless("1"), "responseModalities": unless(`["TEXT"]`, `["MODALITY_UNSPECIFIED"]`, "[]"),
	"mediaResolution": unless(`"MEDIA_RESOLUTION_UNSPECIFIED"`), "audioTimestamp": unless("false"), "enableEnhancedCivicAnswers": unless("false"),
}

// camel is a name of Google's as JSON has it, however it is written.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	var b strings.Builder
	for i, word := range strings.Split(name, "_") {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// googles is the field of v, an object of Google's, by its name in JSON.
func googles(v gjson.Result, name string) (found gjson.Result) {
	v.ForEach(func(key, v gjson.Result) bool {
		if camel(key.Str) == name {
			found = v
			return false
		}
		return true
	})
	return found
}

// readContents reads the turns. Who is not named is the user.
func readContents(in *reader, name string, v gjson.Result) {
	in.array(name, v, func(path string, c gjson.Result) {
		parts := in.geminiParts(path+".parts", googles(c, "parts"))
		switch role := c.Get("role").Str; role {
		case "", "user", "function", "tool":
			in.turn(false, parts)
		case "model":
			in.turn(true, parts)
		case "system":
			in.r.System = append(in.r.System, parts...)
		default:
			in.refuse(path+".role", "%s.role must be user or model.", path)
		}
	})
}

func readInstruction(in *reader, name string, v gjson.Result) {
	if v.Type == gjson.String { // as several SDKs have taken it
		in.r.System = append(in.r.System, Part{Text: v.Str})
		return
	}
	parts := googles(v, "parts")
	if parts.IsObject() {
		in.geminiPart(name+".parts", parts, &in.r.System)
		return
	}
	in.r.System = append(in.r.System, in.geminiParts(name+".parts", parts)...)
}

func (in *reader) geminiParts(path string, v gjson.Result) (parts []Part) {
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	in.array(path, v, func(path string, v gjson.Result) { in.geminiPart(path, v, &parts) })
	return parts
}

// geminiPart reads a part behind those of the same turn.
func (in *reader) geminiPart(path string, v gjson.Result, parts *[]Part) {
	signature, thought := "", false
	p, kinds := Part{path: path}, 0
	v.ForEach(func(key, v gjson.Result) bool {
		kinds++
		switch name := camel(key.Str); name {
		case "text":
			p.Text, p.path = in.text(path+"."+key.Str, v), ""
		case "thought":
			thought = v.Bool()
			kinds--
		case "thoughtSignature":
			signature = v.Str
			kinds--
		case "inlineData":
			p.Media, p.Data, p.Name = googles(v, "mimeType").Str, plainBase64(v.Get("data").Str), googles(v, "displayName").Str
			in.geminiMedia(path+"."+key.Str, &p)
		case "fileData":
			p.Media, p.URL, p.Name = googles(v, "mimeType").Str, googles(v, "fileUri").Str, googles(v, "displayName").Str
			in.geminiFile(path+"."+key.Str, &p)
		case "functionCall":
			in.geminiCall(path+"."+key.Str, v, &p)
		case "functionResponse":
			in.geminiResult(path+"."+key.Str, v, &p)
		case "mediaResolution", "partMetadata":
			kinds--
		default: // of a tool that Google runs, or of a film
			in.unknown(path + "." + key.Str)
		}
		return true
	})
	ours := signatureOf(signature)
	switch {
	case thought, kinds == 0 && ours.Kind != Text, kinds == 1 && p.Kind == Text && p.Text == "" && ours.Kind != Text:
		addThought(parts, p.Text, ours)
		return
	case p.Kind == ToolCall:
		if ours.Kind == Thinking && strings.HasPrefix(ours.Signature, geminiMark) {
			p.Signature = signature
		}
	case p.Kind == Text && p.Text == "":
		return
	}
	*parts = append(*parts, p)
}

// addThought adds a piece of a thought: what comes in pieces is signed at its end.
func addThought(parts *[]Part, text string, signed Part) {
	if signed.Kind == Redacted {
		*parts = append(*parts, signed)
		return
	}
	if n := len(*parts); n > 0 {
		if last := &(*parts)[n-1]; last.Kind == Thinking && last.Signature == "" {
			last.Text, last.Signature = last.Text+text, signed.Signature
			return
		}
	}
	*parts = append(*parts, Part{Kind: Thinking, Text: text, Signature: signed.Signature})
}

// redactedMark begins a thought that only Anthropic can read, where Google has a
// signature.
const redactedMark = "anthropic-redacted:"

// signatureOf reads a signature where Google has one: of a thought of Anthropic's, of
// one that only Anthropic can read, or of Google's own. Text = there is none.
func signatureOf(signature string) Part {
	if signature == "" {
		return Part{}
	}
	text, err := base64.StdEncoding.DecodeString(plainBase64(signature))
	if err == nil {
		if s, ok := strings.CutPrefix(string(text), claudeMark); ok {
			return Part{Kind: Thinking, Signature: s}
		}
		if s, ok := strings.CutPrefix(string(text), redactedMark); ok {
			return Part{Kind: Redacted, Data: s}
		}
	}
	return Part{Kind: Thinking, Signature: geminiMark + signature}
}

// plainBase64 is base64 in the alphabet of most, which Google's SDKs do not all use.
func plainBase64(data string) string {
	if strings.ContainsAny(data, "-_") {
		data = strings.NewReplacer("-", "+", "_", "/").Replace(data)
	}
	if rest := len(data) % 4; rest > 1 {
		data += "=="[:4-rest]
	}
	return data
}

// geminiMedia says what the data of p are.
func (in *reader) geminiMedia(path string, p *Part) {
	p.path = path
	switch kind, what, _ := strings.Cut(p.Media, "/"); kind {
	case "image":
		p.Kind = Image
	case "audio":
		p.Kind = Audio
		if known := map[string]string{"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}[what]; known != "" {
			p.Media = "audio/" + known
		}
	case "video":
		in.unknown(path)
	case "text":
		text, err := base64.StdEncoding.DecodeString(p.Data)
		if err != nil {
			in.refuse(path+".data", "%s.data is not base64.", path)
		}
		*p = Part{Text: string(text)}
	case "":
		in.refuse(path+".mimeType", "%s.mimeType is missing.", path)
	default:
		p.Kind = File
	}
}

// geminiFile says what the file of p is. Those that are kept by Google cannot be
// fetched by others.
func (in *reader) geminiFile(path string, p *Part) {
	p.path = path
	switch kind, _, _ := strings.Cut(p.Media, "/"); kind {
	case "image":
		p.Kind = Image
	case "audio", "video":
		in.unknown(path)
	default:
		p.Kind = File
	}
	if !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://") || strings.HasPrefix(p.URL, "https://generativelanguage.googleapis.com/") {
		p.URL = ""
	}
}

// geminiCall reads a call. Where it has no id it is given one, by which its result
// is found.
func (in *reader) geminiCall(path string, v gjson.Result, p *Part) {
	in.called++
	args := v.Get("args")
	*p = Part{
		Kind: ToolCall, Name: in.text(path+".name", v.Get("name")), Input: cmp.Or(args.Raw, "{}"),
		ID: cmp.Or(v.Get("id").Str, fmt.Sprintf("gcall_%d", in.called)),
	}
	if args.Type == gjson.Null {
		p.Input = "{}"
	} else if !args.IsObject() {
		in.refuse(path+".args", "%s.args must be an object.", path)
	}
	if len(in.open) >= maxOpenCalls {
		in.refuse(path, "More than %d functionCalls have no functionResponse.", maxOpenCalls)
		return
	}
	in.open = append(in.open, openCall{p.ID, p.Name})
}

// maxOpenCalls bounds the calls without a result: each result is looked for among
// them.
const maxOpenCalls = 1024

// openCall is a call of a tool whose result has not been read yet.
type openCall struct{ id, name string }

func (in *reader) geminiResult(path string, v gjson.Result, p *Part) {
	id, name := v.Get("id").Str, v.Get("name").Str
	at := slices.IndexFunc(in.open, func(c openCall) bool { return id != "" && c.id == id })
	if at < 0 {
		at = slices.IndexFunc(in.open, func(c openCall) bool { return c.name == name })
	}
	if at < 0 {
		in.refuse(path, "%s answers no functionCall.", path)
		return
	}
	*p = Part{Kind: ToolResult, ID: in.open[at].id, Name: name}
	in.open = slices.Delete(in.open, at, at+1)
	text, failed := functionOutput(v.Get("response"))
	if p.Failed = failed; text != "" {
		p.Parts = []Part{{Text: text}}
	}
	p.Parts = append(p.Parts, in.geminiParts(path+".parts", v.Get("parts"))...)
}

// functionOutput is what a function has answered: by Google's word, output or
// error, or else the whole object.
func functionOutput(v gjson.Result) (text string, failed bool) {
	fields, name, value := 0, "", gjson.Result{}
	v.ForEach(func(key, v gjson.Result) bool {
		fields++
		name, value = key.Str, v
		return true
	})
	if fields != 1 || name != "output" && name != "result" && name != "error" {
		return v.Raw, false
	}
	text = value.Raw
	if value.Type == gjson.String {
		text = value.Str
	}
	return text, name == "error"
}

func readGeminiTools(in *reader, name string, v gjson.Result) {
	in.r.names.tools = name
	in.array(name, v, func(path string, v gjson.Result) {
		v.ForEach(func(key, v gjson.Result) bool {
			path := path + "." + key.Str
			if camel(key.Str) != "functionDeclarations" {
				in.unknown(path) // one that Google runs
				return true
			}
			in.array(path, v, func(path string, f gjson.Result) {
				schema := googles(f, "parametersJsonSchema")
				if !schema.IsObject() {
					if old := f.Get("parameters"); old.IsObject() {
						schema = gjson.Parse(jsonSchemaOf(old))
					}
				}
				in.tool(path, f, schema)
			})
			return true
		})
	})
}

func readToolConfig(in *reader, name string, v gjson.Result) {
	v.ForEach(func(key, v gjson.Result) bool {
		path := name + "." + key.Str
		if camel(key.Str) != "functionCallingConfig" {
			in.unknown(path)
			return true
		}
		in.r.names.choice = path
		mode, ok := map[string]ChoiceMode{
			"": ChoiceUnsaid, "MODE_UNSPECIFIED": ChoiceUnsaid, "AUTO": ChoiceAuto, "VALIDATED": ChoiceAuto, "NONE": ChoiceNone, "ANY": ChoiceRequired,
		}[strings.ToUpper(v.Get("mode").Str)]
		if !ok {
			in.refuse(path+".mode", "%s.mode must be AUTO, ANY, NONE or VALIDATED.", path)
		}
		in.r.Choice.Mode = mode
		for _, allowed := range googles(v, "allowedFunctionNames").Array() {
			in.allowed = append(in.allowed, allowed.Str)
		}
		return true
	})
}

// allowSome leaves the tools that may be called, where only some of them may.
func allowSome(in *reader) {
	r := in.r
	if len(in.allowed) == 0 || r.Choice.Mode != ChoiceRequired && r.Choice.Mode != ChoiceAuto {
		return
	}
	if len(in.allowed) == 1 && r.Choice.Mode == ChoiceRequired {
		r.Choice.Mode, r.Choice.Name = ChoiceNamed, in.allowed[0]
		return
	}
	allowed := make(map[string]bool, len(in.allowed)) // a client may name as many as its body holds
	for _, name := range in.allowed {
		allowed[name] = true
	}
	r.Tools = slices.DeleteFunc(r.Tools, func(t Tool) bool { return !allowed[t.Name] })
}

func readGenerationConfig(in *reader, name string, v gjson.Result) {
	v.ForEach(func(key, v gjson.Result) bool {
		path := name + "." + key.Str
		switch take, ok := generationFields[camel(key.Str)]; {
		case v.Type == gjson.Null:
		case !ok:
			in.unknown(path)
		default:
			take(in, path, v)
		}
		return in.bad == nil
	})
}

func readMimeType(in *reader, name string, v gjson.Result) {
	switch v.Str {
	case "", "text/plain":
	case "application/json":
		in.r.Format.JSON, in.r.names.format = true, cmp.Or(in.r.names.format, name)
	default:
		in.unknown(name)
	}
}

// answerSchema notes the JSON schema of the answer.
func (in *reader) answerSchema(name string, v gjson.Result, schema string) {
	if !v.IsObject() {
		in.refuse(name, "%s must be an object.", name)
		return
	}
	in.r.names.format, in.r.Format.JSON, in.r.Format.Schema = name, true, schema
}

// readThinkingConfig reads how much the model may think: up to so many tokens, -1
// being as many as it likes, or a level.
func readThinkingConfig(in *reader, name string, v gjson.Result) {
	t := &in.r.Think
	in.r.names.think = name
	v.ForEach(func(key, v gjson.Result) bool {
		path := name + "." + key.Str
		switch camel(key.Str) {
		case "includeThoughts":
			t.Show = v.Bool()
			t.Asked = t.Asked || t.Show
		case "thinkingBudget":
			if v.Type != gjson.Number {
				in.refuse(path, "%s must be a number.", path)
			}
			t.Asked, t.Off, t.Budget = true, v.Num == 0, count(v)
		case "thinkingLevel":
			switch level := strings.ToLower(v.Str); level {
			case "minimal", "low", "medium", "high":
				t.Asked, t.Effort = true, level
			case "", "thinking_level_unspecified":
			default:
				in.refuse(path, "%s must be MINIMAL, LOW, MEDIUM or HIGH.", path)
			}
		default:
			in.unknown(path)
		}
		return true
	})
}

// readSafety reads what is to be filtered: nothing is what other APIs can do.
func readSafety(in *reader, name string, v gjson.Result) {
	for _, s := range v.Array() {
		switch s.Get("threshold").Str {
		case "", "BLOCK_NONE", "OFF", "HARM_BLOCK_THRESHOLD_UNSPECIFIED":
		default:
			in.unknown(name)
			return
		}
	}
}

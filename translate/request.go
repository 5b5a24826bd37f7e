package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
)

// Target is where a request is to go.
type Target struct {
	Dialect Name
	Model   string // the target's name of the model

	// Engine: it is, or may be, an engine with fields beside OpenAI's own: top_k,
	// and the thoughts of earlier turns.
	Engine bool

	// NewLimit: it wants max_completion_tokens and does not know max_tokens.
	NewLimit bool

	// Mistral: it takes chats of Mistral's form (mistral.go), and no others.
	Mistral bool

	// Bare: neither the model nor whether it streams stands in the body. Set are
	// fields that a body has in place of headers.
	Bare bool
	Set  map[string]string
}

// Equal reports whether a request is written the same for t and other.
func (t Target) Equal(other Target) bool {
	return t.Dialect == other.Dialect && t.Model == other.Model && t.Engine == other.Engine && t.NewLimit == other.NewLimit &&
		t.Mistral == other.Mistral && t.Bare == other.Bare && maps.Equal(t.Set, other.Set)
}

// Written is a request in a target's dialect.
type Written struct {
	Path string // below the base URL, with its query
	Body []byte
	Lost []Loss
}

// Read reads a request in a dialect. path is below the base URL of the dialect;
// of a model in it there is no need. The error is a *Refusal.
func Read(dialect Name, body []byte) (*Request, error) {
	d := table[dialect]
	if d.read == nil {
		return nil, &Refusal{Message: "Requests of this dialect are not translated."}
	}
	if !openai.Valid(body) {
		return nil, &Refusal{Message: "The request body is not valid JSON, or nests deeper than 1,000 levels."}
	}
	top := gjson.Parse(string(body)) // what is read must outlive the body
	if !top.IsObject() {
		return nil, &Refusal{Message: "The request body must be a JSON object."}
	}
	r := &Request{dialect: dialect}
	r.names.turns = d.turns
	in := reader{r: r}
	top.ForEach(func(key, v gjson.Result) bool {
		if v.Type == gjson.Null {
			return true
		}
		name := key.String()
		r.ask(d.again, name, v.Raw)
		take, ok := d.read[name]
		if d.camel && !ok {
			take, ok = d.read[camel(name)]
		}
		switch {
		case !ok:
			r.Unknown = append(r.Unknown, Param{Name: name, Value: v.Raw})
		case take != nil:
			take(&in, name, v)
		}
		return in.bad == nil
	})
	if in.bad == nil && d.done != nil {
		d.done(&in)
	}
	if in.bad == nil && len(r.Turns)+len(r.System)+len(r.Unknown) == 0 {
		in.refuse(d.turns, "%s must have at least one message.", d.turns)
	}
	if in.bad != nil {
		return nil, in.bad
	}
	return r, nil
}

// ask remembers a field that the answer says again.
func (r *Request) ask(again []Param, name, value string) {
	if !slices.ContainsFunc(again, func(p Param) bool { return p.Name == name }) {
		return
	}
	var line bytes.Buffer
	if json.Compact(&line, []byte(value)) == nil { // a line of an event ends where a line of the value does
		r.Asked = append(r.Asked, Param{Name: name, Value: line.String()})
	}
}

// Write writes r for a target.
func (r *Request) Write(t Target) (*Written, error) {
	w := &requestWriter{r: r, t: t}
	for _, p := range r.Unknown {
		if !w.owns(&p) {
			w.lose(p.Name, "no other API has such a field")
		}
	}
	w.b = make([]byte, 0, 4096)
	path := table[t.Dialect].write(w)
	if w.bad != nil {
		return nil, w.bad
	}
	return &Written{Path: path, Body: w.b, Lost: w.lost}, nil
}

// field takes the value of a field of a request.
type field = func(in *reader, name string, v gjson.Result)

// reader is the state of one Read.
type reader struct {
	r   *Request
	bad *Refusal

	// Of generateContent: the calls of tools that were read, those of them that have
	// no result yet, and the tools that may be called.
	called  int
	open    []openCall
	allowed []string

	strict bool // of Cohere's chat: what all tools are
}

func (in *reader) refuse(param, format string, args ...any) {
	if in.bad == nil {
		in.bad = &Refusal{Param: param, Message: fmt.Sprintf(format, args...)}
	}
}

// array calls take for each item of v, which has to be an array.
func (in *reader) array(path string, v gjson.Result, take func(path string, v gjson.Result)) {
	if !v.IsArray() {
		in.refuse(path, "%s must be an array.", path)
		return
	}
	i := 0
	v.ForEach(func(_, item gjson.Result) bool {
		take(fmt.Sprintf("%s[%d]", path, i), item)
		i++
		return in.bad == nil
	})
}

// text reads a string.
func (in *reader) text(path string, v gjson.Result) string {
	if v.Type != gjson.String && v.Type != gjson.Null {
		in.refuse(path, "%s must be a string.", path)
	}
	return v.Str
}

// number returns the field that carries a number as feature f.
func number(f Feature) field {
	return func(in *reader, name string, v gjson.Result) {
		if v.Type != gjson.Number {
			in.refuse(name, "%s must be a number.", name)
			return
		}
		value := v.Raw
		if f.whole() && v.Num == math.Trunc(v.Num) && math.Abs(v.Num) < 1<<53 {
			value = strconv.FormatInt(int64(v.Num), 10) // some clients write 5.0, which others do not read
		}
		in.r.Params[f] = Param{Name: name, Value: value}
	}
}

// words returns the field that carries a string as feature f.
func words(f Feature) field {
	return func(in *reader, name string, v gjson.Result) {
		if in.text(name, v); v.Str != "" {
			in.r.Params[f] = Param{Name: name, Value: v.Raw}
		}
	}
}

// unless returns the field of something that no other dialect has, but for the
// values that ask for nothing.
func unless(nothing ...string) field {
	return func(in *reader, name string, v gjson.Result) {
		for _, n := range nothing {
			if v.Raw == n {
				return
			}
		}
		in.r.Unknown = append(in.r.Unknown, Param{Name: name, Value: v.Raw})
	}
}

// unknown notes that no other dialect has what stands at path.
func (in *reader) unknown(path string) { in.r.Unknown = append(in.r.Unknown, Param{Name: path}) }

func readModel(in *reader, name string, v gjson.Result) { in.r.Model = in.text(name, v) }

func readStream(in *reader, _ string, v gjson.Result) { in.r.Stream = v.Bool() }

// readLimit reads how many tokens the answer may have.
func readLimit(in *reader, name string, v gjson.Result) {
	if v.Type != gjson.Number || v.Num < 1 {
		in.refuse(name, "%s must be a positive number.", name)
		return
	}
	in.r.MaxTokens, in.r.names.maxTokens = count(v), name
}

// readStop reads one stop sequence or several.
func readStop(in *reader, name string, v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		in.r.Params[Stop] = Param{Name: name, Value: "[" + v.Raw + "]"}
	case v.IsArray() && len(v.Array()) > 0:
		in.r.Params[Stop] = Param{Name: name, Value: v.Raw}
	}
}

// turn adds parts to what one side says.
func (in *reader) turn(assistant bool, parts []Part) {
	if len(parts) == 0 {
		return
	}
	turns := in.r.Turns
	if n := len(turns); n > 0 && turns[n-1].Assistant == assistant {
		turns[n-1].Parts = append(turns[n-1].Parts, parts...)
		return
	}
	in.r.Turns = append(turns, Turn{Assistant: assistant, Parts: parts})
}

// requestWriter is the state of one Write.
type requestWriter struct {
	writer
	r    *Request
	t    Target
	lost []Loss
	own  []Param // fields of the client's that the target has, too
	bad  *Refusal
}

// mostLost bounds the losses that are told. Each new one is compared with all of them, so
// what is lost beyond is lost without a word.
const mostLost = 256

func (w *requestWriter) lose(param, why string) {
	if len(w.lost) >= mostLost {
		return
	}
	for _, l := range w.lost {
		if l.Param == param {
			return
		}
	}
	w.lost = append(w.lost, Loss{Param: param, Why: why})
}

// losePart loses a part of a turn that the target does not take.
func (w *requestWriter) losePart(p *Part, what string) {
	param := p.path
	if param == "" {
		param = w.r.names.turns
	}
	w.lose(param, "the API of this model's backend takes no "+what)
}

// head writes the model, whether the answer is to be a stream, and what stands in
// place of headers.
func (w *requestWriter) head() {
	if !w.t.Bare {
		w.field("model", w.t.Model)
		if w.r.Stream {
			w.boolField("stream", true)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.t.Set)) {
		w.field(name, w.t.Set[name])
	}
}

// params writes the features that the target has, by their names there, and loses
// the others.
func (w *requestWriter) params(known [features]string) {
	for f := range features {
		p := w.r.Params[f]
		switch {
		case p.Name == "":
		case f == User && known[f] == "": // it is for billing and abuse, and changes no answer
		case known[f] == "":
			w.lose(p.Name, "the API of this model's backend has nothing like it")
		default:
			w.rawField(known[f], p.Value)
		}
	}
}

// budgets are how many tokens an effort may think, as Google publishes them for
// its own OpenAI layer.
var budgets = []struct {
	effort string
	tokens int
}{{"minimal", 1024}, {"low", 1024}, {"medium", 8192}, {"high", 24576}, {"xhigh", 32768}, {"max", 65536}}

// budget is how many tokens the request may think; 0 = nothing was said.
func (t *Reasoning) budget() int {
	if t.Budget > 0 {
		return t.Budget
	}
	for _, b := range budgets {
		if b.effort == t.Effort {
			return b.tokens
		}
	}
	return 0
}

// effort is the word for how much the request may think, of those that chat has;
// "" = nothing was said.
func (t *Reasoning) effort() string {
	switch {
	case t.Effort == "max":
		return "xhigh"
	case t.Effort != "":
		return t.Effort
	case t.Budget <= 0:
		return ""
	case t.Budget <= 2048:
		return "low"
	case t.Budget <= 12288:
		return "medium"
	}
	return "high"
}

// textOf joins the text of parts.
func textOf(parts []Part, between string) string {
	var all []string
	for i := range parts {
		if parts[i].Kind == Text && parts[i].Text != "" {
			all = append(all, parts[i].Text)
		}
	}
	return strings.Join(all, between)
}

// toolNames are the names of the tools that were called, by the ids of the calls:
// a result of generateContent names its function.
func (r *Request) toolNames() map[string]string {
	names := map[string]string{}
	for i := range r.Turns {
		for _, p := range r.Turns[i].Parts {
			if p.Kind == ToolCall {
				names[p.ID] = p.Name
			}
		}
	}
	return names
}

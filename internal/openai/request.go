package openai

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// maxCount bounds every count that is read from a body, so that sums of them
	// cannot overflow.
	maxCount = math.MaxInt32

	// maxChoices bounds n and best_of as a weight. OpenAI allows 128; what is
	// above goes to the backend, which will refuse it.
	maxChoices = 128

	// maxSequences bounds the weight of one request.
	maxSequences = 4096
)

// Request is what was found at the top level of a request body. Nothing nested
// is looked at but two of the stream_options and the shape of prompt.
type Request struct {
	Model           string // "" = the body has none
	Stream          bool
	IncludeUsage    bool // the client itself asked for usage
	ContinuousUsage bool // and for it in every chunk, as vLLM and SGLang do
	Store           bool // the backend was asked, by store, to keep the answer; absent is false, though on /responses it means true
	MaxTokens       int  // max_completion_tokens, else max_tokens, else max_output_tokens; 0 = absent
	Sequences       int  // n or best_of (the larger), times the prompts in an array; at least 1, at most 4,096

	// PreviousResponseID is the answer that a Responses request goes on from;
	// "" = none.
	PreviousResponseID string

	// Session is what tells the requests of one conversation or user: prompt_cache_key,
	// else user; "" = neither is there, or is no text.
	Session string

	body  []byte
	form  bool   // the body is multipart/form-data
	model string // as the body has it
	spans struct {
		model         span // the value
		streamOptions span // the value
		includeUsage  span // the value within stream_options
		continuous    span // the value of continuous_usage_stats within stream_options
		first         int  // of the first byte behind the opening brace
		delimiter     span // of a form: its first one, without the line ends
		optionsEmpty  bool // stream_options is {}
		empty         bool // the body is {}

		tools, system, text span   // the values; text is a prompt, input or instructions that is no list
		items               []span // of messages, or of input
	}
}

// ErrNoModel refuses a request whose body has no model, and which needs one.
var ErrNoModel = &BadRequest{Message: "You must provide a model parameter.", Param: "model"}

// Name has r ask for model, whatever its body says.
func (r *Request) Name(model string) { r.Model = model }

// Form reports whether the body is multipart/form-data.
func (r *Request) Form() bool { return r.form }

// Peek reads the top level of body. It refuses what is not one JSON object,
// invalid JSON, nesting deeper than 1,000, duplicate top-level keys, a model
// that is neither null nor a non-empty string, and wrong types of the fields above; the
// error is a *BadRequest. A key that differs from one of those fields only by
// case is refused too: some engines read it as the field.
//
// The Request refers to body, which must not be changed while it is in use.
func Peek(body []byte) (Request, error) {
	p := peeker{walker: walker{b: body}}
	p.req.body = body
	if bad := p.object(); bad != nil {
		return Request{}, bad
	}
	return p.request()
}

// peeker is the state of one Peek.
type peeker struct {
	walker
	req  Request
	keys keySet

	n, bestOf                                    int
	prompts                                      int
	maxTokens, maxCompletionTokens, maxOutTokens int
}

// object goes over the top level.
func (p *peeker) object() *BadRequest {
	start := p.space(0)
	switch p.kind(start) {
	case 0:
		if start == len(p.b) {
			return &BadRequest{Message: `The request body is empty; send a JSON object such as {"model": "…", …}.`}
		}
	case '{':
		at, done := p.first(start, '}')
		p.req.spans.first, p.req.spans.empty = start+1, done
		for !done {
			end, bad := p.member(at)
			if bad != nil {
				return bad
			}
			at, done = p.next(end, '}')
		}
		if at < 0 {
			return p.invalid()
		}
		if at = p.space(at); at < len(p.b) {
			return &BadRequest{Message: fmt.Sprintf("The request body has something behind its JSON object, at byte %d.", at)}
		}
		return nil
	}
	if end := p.value(start, 0); end < 0 || p.space(end) < len(p.b) {
		return p.invalid()
	}
	return &BadRequest{Message: "The request body must be a JSON object."}
}

// invalid says where the walker stopped.
func (p *peeker) invalid() *BadRequest {
	switch {
	case p.deep:
		return &BadRequest{Message: fmt.Sprintf("The request body nests deeper than %d levels, at byte %d.", maxDepth, p.bad)}
	case p.bad >= len(p.b):
		return &BadRequest{Message: fmt.Sprintf("The request body is not valid JSON: it ends too early, after %d bytes.", len(p.b))}
	}
	return &BadRequest{Message: fmt.Sprintf("The request body is not valid JSON: unexpected %q at byte %d.", p.b[p.bad:p.bad+1], p.bad)}
}

// member reads one field of the top level and returns the offset behind it.
func (p *peeker) member(at int) (int, *BadRequest) {
	raw, escaped, v := p.key(at)
	if v < 0 {
		return -1, p.invalid()
	}
	if escaped {
		raw = []byte(unquote(p.b[at:at+len(raw)+2], true))
	}
	if bad := p.keys.add(raw); bad != nil {
		return -1, bad
	}
	end := p.part(raw, v)
	if end < 0 {
		return -1, p.invalid()
	}
	return end, p.field(raw, v, end)
}

// field takes the value [v, end) of a top-level key.
func (p *peeker) field(key []byte, v, end int) (bad *BadRequest) {
	switch string(key) {
	case "model":
		return p.model(v, end)
	case "stream":
		p.req.Stream, bad = p.boolean("stream", v, end)
	case "stream_options":
		return p.streamOptions(v, end)
	case "n":
		p.n, bad = p.count("n", v, end)
	case "best_of":
		p.bestOf, bad = p.count("best_of", v, end)
	case "max_tokens":
		p.maxTokens, bad = p.limit("max_tokens", v, end)
	case "max_completion_tokens":
		p.maxCompletionTokens, bad = p.limit("max_completion_tokens", v, end)
	case "max_output_tokens":
		p.maxOutTokens, bad = p.limit("max_output_tokens", v, end)
	case "prompt":
		p.countPrompts(v)
	case "previous_response_id":
		return p.previous(v, end)
	case "prompt_cache_key", "user": // what is no text is the backend's to refuse
		if raw := p.b[v:end]; raw[0] == '"' && (len(key) > len("user") || p.req.Session == "") {
			p.req.Session = unquote(raw, bytes.IndexByte(raw, '\\') >= 0)
		}
	case "store": // what is neither true nor false is the backend's to refuse
		p.req.Store = p.kind(v) != 'f' && p.kind(v) != 'n'
	default:
		return lookalike(string(key))
	}
	return bad
}

// fields are the keys that Pacer reads.
var fields = [...]string{
	"model", "stream", "stream_options", "n", "best_of", "prompt",
	"max_tokens", "max_completion_tokens", "max_output_tokens", "previous_response_id", "store",
}

// lookalike refuses a key that a parser which ignores case (Go's own, so
// Ollama) would take for a field that Pacer decides by.
func lookalike(key string) *BadRequest {
	for _, f := range fields {
		if strings.EqualFold(key, f) {
			return &BadRequest{Message: fmt.Sprintf("Unknown field %q; write it in lower case: %q.", key, f), Param: f}
		}
	}
	return nil
}

func (p *peeker) model(v, end int) *BadRequest {
	p.req.spans.model = span{v, end}
	switch p.kind(v) {
	case 'n': // null is none
		return nil
	case '"':
	default:
		return &BadRequest{Message: "model must be a string.", Param: "model"}
	}
	raw := p.b[v:end]
	p.req.Model = unquote(raw, bytes.IndexByte(raw, '\\') >= 0)
	p.req.model = p.req.Model
	if p.req.Model == "" {
		return &BadRequest{Message: "model must not be empty.", Param: "model"}
	}
	return nil
}

// previous reads the id of an answer; null is none.
func (p *peeker) previous(v, end int) *BadRequest {
	switch p.kind(v) {
	case 'n':
	case '"':
		raw := p.b[v:end]
		p.req.PreviousResponseID = unquote(raw, bytes.IndexByte(raw, '\\') >= 0)
	default:
		return &BadRequest{Message: "previous_response_id must be a string.", Param: "previous_response_id"}
	}
	return nil
}

// boolean reads true, false or null (false), and what vLLM and SGLang take for
// them, as forms do.
func (p *peeker) boolean(name string, v, end int) (bool, *BadRequest) {
	switch text := p.b[v:end]; text[0] {
	case 't':
		return true, nil
	case 'f', 'n':
		return false, nil
	default:
		if is, ok := truth(plain(text)); ok {
			return is, nil
		}
	}
	return false, &BadRequest{Message: name + " must be true or false.", Param: name}
}

// truth reads a truth value as Python's models do, in JSON and in forms.
func truth(text string) (is, ok bool) {
	switch strings.ToLower(text) {
	case "true", "1", "t", "on", "yes", "y":
		return true, true
	case "false", "0", "f", "off", "no", "n":
		return false, true
	}
	return false, false
}

// plain is the text of a simple value, a string's without its quotes and the
// space in them.
func plain(value []byte) string {
	if value[0] == '"' {
		value = bytes.TrimSpace(value[1 : len(value)-1])
	}
	return string(value)
}

// count reads a number of sequences: null is 0, and so is absent.
func (p *peeker) count(name string, v, end int) (int, *BadRequest) {
	n, bad := p.integer(name, v, end)
	if bad == nil && n < 0 {
		bad = &BadRequest{Message: name + " must not be negative.", Param: name}
	}
	return n, bad
}

// limit reads a number of tokens. Some engines take a negative one for "no
// limit", which is what an absent one means: both are 0.
func (p *peeker) limit(name string, v, end int) (int, *BadRequest) {
	n, bad := p.integer(name, v, end)
	return max(n, 0), bad
}

// integer reads a whole number within ±maxCount, also one written as 1e3, or as
// a string, which vLLM and SGLang take; null is 0.
func (p *peeker) integer(name string, v, end int) (int, *BadRequest) {
	if p.kind(v) == 'n' {
		return 0, nil
	}
	text := plain(p.b[v:end])
	if rest := strings.TrimLeft(text, "+-"); rest != "" && '0' <= rest[0] && rest[0] <= '9' {
		// Out of range is ±Inf, which is cut to the bound like any large number.
		f, err := strconv.ParseFloat(text, 64)
		if f == math.Trunc(f) && (err == nil || errors.Is(err, strconv.ErrRange)) {
			return int(max(-maxCount, min(f, maxCount))), nil
		}
	}
	return 0, &BadRequest{Message: name + " must be a whole number.", Param: name}
}

func (p *peeker) streamOptions(v, end int) *BadRequest {
	p.req.spans.streamOptions = span{v, end}
	switch p.kind(v) {
	case 'n':
		return nil
	case '{':
	default:
		return &BadRequest{Message: "stream_options must be an object.", Param: "stream_options"}
	}
	at, done := p.first(v, '}')
	p.req.spans.optionsEmpty = done
	for !done {
		key, escaped, value := p.key(at)
		if escaped {
			key = []byte(unquote(p.b[at:at+len(key)+2], true))
		}
		behind := p.value(value, 2)
		var bad *BadRequest
		switch {
		case strings.EqualFold(string(key), includeUsage):
			p.req.IncludeUsage, bad = p.option(includeUsage, key, span{value, behind}, &p.req.spans.includeUsage)
		case strings.EqualFold(string(key), continuousUsage):
			p.req.ContinuousUsage, bad = p.option(continuousUsage, key, span{value, behind}, &p.req.spans.continuous)
		}
		if bad != nil {
			return bad
		}
		at, done = p.next(behind, '}')
	}
	return nil
}

// The stream_options that Pacer asks for usage with.
const (
	includeUsage    = "include_usage"
	continuousUsage = "continuous_usage_stats"
)

// option reads one of the stream_options, written as key, and notes where its
// value is.
func (p *peeker) option(name string, key []byte, value span, at *span) (bool, *BadRequest) {
	if string(key) != name || at.to > 0 {
		return false, &BadRequest{Message: "stream_options must hold " + name + " once, in lower case.", Param: "stream_options." + name}
	}
	*at = value
	return p.boolean("stream_options."+name, value.from, value.to)
}

// countPrompts counts the prompts at v: an array of numbers is one prompt in
// tokens, an array of strings or of such arrays is several.
func (p *peeker) countPrompts(v int) {
	if p.kind(v) != '[' {
		return
	}
	at, done := p.first(v, ']')
	for !done && p.prompts < maxSequences {
		if c := p.kind(at); c != '"' && c != '[' {
			return
		}
		p.prompts++
		at, done = p.next(p.value(at, 2), ']')
	}
}

// request returns what was gathered.
func (p *peeker) request() (Request, error) {
	r := p.req
	choices := max(1, min(max(p.n, p.bestOf), maxChoices))
	r.Sequences = min(choices*max(1, p.prompts), maxSequences)
	for _, n := range []int{p.maxCompletionTokens, p.maxTokens, p.maxOutTokens} {
		if n > 0 {
			r.MaxTokens = n
			break
		}
	}
	return r, nil
}

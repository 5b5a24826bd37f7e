package openai

// Request is what was found at the top level of a request body. Nothing nested
// is looked at but stream_options.include_usage and the shape of prompt.
type Request struct {
	Model        string
	Stream       bool
	IncludeUsage bool // the client itself asked for usage
	MaxTokens    int  // max_completion_tokens, else max_tokens, else max_output_tokens; 0 = absent
	Sequences    int  // n or best_of (the larger), times the prompts in an array; at least 1
	body         []byte
	spans        struct{ model, streamOptions, objectStart span }
}

type span struct{ from, to int } // byte offsets into body; from == to: absent

// Peek reads the top level of body. It refuses what is not one JSON object,
// invalid JSON, nesting deeper than 1,000, duplicate top-level keys, a model
// that is not a non-empty string, and wrong types of the fields above; the
// error is a *BadRequest.
func Peek(body []byte) (Request, error) { panic("unwritten") }

// Edit returns the body with model replaced (unless "" or the same) and, if
// injectUsage, stream_options.include_usage set to true. All other bytes stay.
// Without an edit it returns the body itself.
func (r *Request) Edit(model string, injectUsage bool) []byte { panic("unwritten") }

// BadRequest is a client's mistake.
type BadRequest struct {
	Message string
	Param   string // "" = none
	Code    string // "" = none
}

// Error returns the message.
func (e *BadRequest) Error() string { return e.Message }

// ErrorBody returns {"error":{"message","type","param","code"}}; empty param
// and code are null.
func ErrorBody(message, typ, param, code string) []byte { panic("unwritten") }

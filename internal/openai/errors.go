package openai

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
func ErrorBody(message, typ, param, code string) []byte {
	b := make([]byte, 0, 64+len(message)+len(typ)+len(param)+len(code))
	b = appendString(append(b, `{"error":{"message":`...), message)
	b = appendString(append(b, `,"type":`...), typ)
	b = appendOrNull(append(b, `,"param":`...), param)
	b = appendOrNull(append(b, `,"code":`...), code)
	return append(b, "}}"...)
}

func appendOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// Quote returns s as a JSON string.
func Quote(s string) []byte { return appendString(nil, s) }

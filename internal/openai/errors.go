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
	b = AppendString(append(b, `{"error":{"message":`...), message)
	b = AppendString(append(b, `,"type":`...), typ)
	b = appendOrNull(append(b, `,"param":`...), param)
	b = appendOrNull(append(b, `,"code":`...), code)
	return append(b, "}}"...)
}

func appendOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return AppendString(b, s)
}

// Quote returns s as a JSON string.
func Quote(s string) []byte { return AppendString(nil, s) }

// MessagesErrorBody is ErrorBody for the endpoint that speaks Anthropic's
// dialect: {"type":"error","error":{…},"request_id"}, with the type that goes
// with the status, and the members of both dialects.
func MessagesErrorBody(message string, status int, param, code, requestID string) []byte {
	inner := ErrorBody(message, messagesErrorType(status), param, code)
	b := append([]byte(`{"type":"error",`), inner[1:len(inner)-1]...)
	b = AppendString(append(b, `,"request_id":`...), requestID)
	return append(b, '}')
}

func messagesErrorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, 529:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// CohereErrorBody is ErrorBody for the endpoint that speaks Cohere's dialect:
// {"id","message"}, and the members of OpenAI's.
func CohereErrorBody(message, typ, param, code, requestID string) []byte {
	inner := ErrorBody(message, typ, param, code)
	b := AppendString([]byte(`{"id":`), requestID)
	b = AppendString(append(b, `,"message":`...), message)
	return append(append(b, ','), inner[1:]...)
}

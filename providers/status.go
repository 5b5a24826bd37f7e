package providers

import (
	"bytes"
	"net/http"
)

// statusOverloaded is what Anthropic answers when it is overloaded.
const statusOverloaded = 529

// loadingStart is how much of an error answer is searched for its reason.
const loadingStart = 4 << 10

// Failed says whether an answer's status is a failure of the backend that
// another may not have: 502, 503, 504, and Anthropic's 529 when it is
// overloaded. loading is true for a 503 that only means "not now" and counts for
// no breaker: the model is being loaded, or the engine's queue is full. body is
// the start of the answer.
//
// A 500 is none: llama.cpp gives it to a client's bad JSON. Nor is a 429: a
// full backend is a healthy one.
func (b *Backend) Failed(status int, body []byte) (failed, loading bool) {
	switch status {
	case http.StatusBadGateway, http.StatusGatewayTimeout, statusOverloaded:
		return true, false
	case http.StatusServiceUnavailable:
		return true, isNotNow(body[:min(len(body), loadingStart)])
	}
	return false, false
}

// isNotNow knows the words of llama.cpp ("Loading model"), of TGI and those
// around it ("Model … is currently loading"), of SGLang ("The request queue is
// full.") and of Ollama ("server busy, please try again.  maximum pending
// requests exceeded").
func isNotNow(body []byte) bool {
	body = bytes.ToLower(body)
	for _, words := range []string{
		"loading model", "is loading", "currently loading",
		"request queue is full", "maximum pending requests",
	} {
		if bytes.Contains(body, []byte(words)) {
			return true
		}
	}
	return false
}

package providers

import (
	"bytes"
	"net/http"
)

// loadingStart is how much of an error answer is searched for its reason.
const loadingStart = 4 << 10

// Failed says whether an answer's status is a failure of the backend that
// another may not have: 502, 503, 504; loading is true for a 503 that only
// means "not yet" and counts for no breaker. body is the start of the answer.
//
// A 500 is none: llama.cpp gives it to a client's bad JSON. Nor is a 429: a
// full backend is a healthy one.
func (b *Backend) Failed(status int, body []byte) (failed, loading bool) {
	switch status {
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return true, false
	case http.StatusServiceUnavailable:
		return true, isLoading(body[:min(len(body), loadingStart)])
	}
	return false, false
}

// isLoading knows the words of llama.cpp ("Loading model"), and of TGI and
// those around it ("Model … is currently loading").
func isLoading(body []byte) bool {
	body = bytes.ToLower(body)
	for _, words := range []string{"loading model", "is loading", "currently loading"} {
		if bytes.Contains(body, []byte(words)) {
			return true
		}
	}
	return false
}

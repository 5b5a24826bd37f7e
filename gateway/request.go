package gateway

import (
	"net/http"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

// request is what the client sent, as far as it was read.
type request struct {
	http     *http.Request
	end      *endpoint.Endpoint
	path     string    // below /v1: "/chat/completions"
	arrived  time.Time // the body was complete: waiting counts from here
	body     *body     // nil = not there, or let go
	parsed   openai.Request
	estimate int // tokens of the prompt, by the size of the body; 0 = it is no prompt
}

// streams reports whether the client asked for a stream that is generated token
// by token.
func (r *request) streams() bool { return r.parsed.Stream && r.end.Decodes }

// dropBody gives the body up, if there is one.
func (r *request) dropBody() {
	if r.body != nil {
		r.body.leave()
		r.body = nil
		r.parsed.Forget()
	}
}

// upPath is the path of the request at the backend, with the client's query.
func (r *request) upPath() string {
	if q := r.http.URL.RawQuery; q != "" {
		return r.path + "?" + q
	}
	return r.path
}

// upHeader returns the client's headers as they go up: without Pacer's own.
func (r *request) upHeader() http.Header {
	h := r.http.Header.Clone()
	for name := range h {
		if strings.HasPrefix(name, "X-Pacer-") {
			delete(h, name)
		}
	}
	delete(h, "Content-Encoding") // the body goes up as it was read
	return h
}

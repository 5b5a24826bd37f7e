package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

// request is what the client sent, as far as it was read.
type request struct {
	http     *http.Request
	end      *endpoint.Endpoint
	path     string    // of the endpoint: "/chat/completions"
	named    string    // the model, where the address has it; "" = it has none
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

// upPath is the path of the request at the backend, with the client's query as
// far as it is for the backend: not a key, which is for Pacer, nor the version
// of an address that has the model in it.
func (r *request) upPath() string {
	query := r.http.URL.RawQuery
	for _, ours := range []string{"key=", "api-version="} {
		if strings.Contains(query, ours) && (ours == "key=" || r.named != "") {
			query = withoutParameter(query, strings.TrimSuffix(ours, "="))
		}
	}
	if query != "" {
		return r.path + "?" + query
	}
	return r.path
}

// withoutParameter returns query without what is named name.
func withoutParameter(query, name string) string {
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(p string) bool {
		key, _, _ := strings.Cut(p, "=")
		return key == name
	})
	return strings.Join(kept, "&")
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

package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
)

// request is what the client sent, as far as it was read.
type request struct {
	http     *http.Request
	end      *endpoint.Endpoint
	path     string             // of the endpoint: "/chat/completions"
	named    string             // the model, where the address has it; "" = it has none
	carried  *providers.Carried // who takes it to its backend; nil = the gateway itself
	arrived  time.Time          // the body was complete: waiting counts from here
	body     *body              // nil = not there, or let go
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

// showsKey reports whether clients put their key into the parameter name of a query:
// Google's, and those of Azure in browsers.
func showsKey(name string) bool {
	switch strings.ToLower(name) {
	case "key", "api-key", "api_key", "authorization":
		return true
	}
	return false
}

// upPath is the path of the request at the backend, with the client's query as
// far as it is for the backend: not a key, which is for Pacer, nor the version
// of an address that has the model in it.
func (r *request) upPath() string {
	if r.http.URL.RawQuery == "" {
		return r.path
	}
	kept := slices.DeleteFunc(strings.Split(r.http.URL.RawQuery, "&"), func(p string) bool {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		return showsKey(name) || name == "api-version" && r.named != ""
	})
	if query := strings.Join(kept, "&"); query != "" {
		return r.path + "?" + query
	}
	return r.path
}

// upHeader returns the client's headers as they go up, which who changes them has
// to be told: a copy is made where it is needed alone. What is Pacer's own is left
// out by providers.
func (r *request) upHeader(changed bool) http.Header {
	h := r.http.Header
	if !changed && h["Content-Encoding"] == nil {
		return h
	}
	h = h.Clone()
	delete(h, "Content-Encoding") // the body goes up as it was read
	return h
}

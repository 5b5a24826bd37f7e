package gateway

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/tokens"
)

// offerCount has the gateway count a prompt where the backend cannot. Clients of
// Messages ask before they send, and few engines have an answer. It reports whether
// the backend itself is asked.
func (u *roundTrip) offerCount() (asked bool) {
	path := u.request.path
	serves := u.backend.Serves(path)
	has, known := u.backend.Has(path)
	if serves && (u.backend.Counts(path, cmp.Or(u.model, u.request.parsed.Model)) || known && has) {
		return true
	}
	own := substitute{call: u.call, counted: u.countTokens()}
	if known || !serves || u.request.end.PartOf(endpoint.Google) {
		u.use(own)
		return false
	}
	u.instead = append(u.instead, own)
	return true
}

// countTokens is about how many tokens the request's prompt has: what a tokenizer
// says of its text, and, for what is no text, what the size of the body says. It
// is at least 1.
func (o *order) countTokens() int {
	r := &o.request
	sample, within := openai.PromptText(r.body.bytes(), tokens.MaxText)
	if len(sample) == 0 || within == 0 {
		return max(1, o.prompt.tokens, r.estimate)
	}
	whole := float64(len(r.body.bytes())) / float64(within)
	return int(min(max(1, tokens.Count(string(sample))*max(1, whole)), maxPromptTokens))
}

// countAnswer is the gateway's own answer to who asks how many tokens a prompt has.
// It has the form that the endpoint at path has.
func countAnswer(path string, n int) *http.Response {
	body := `{"object":"response.input_tokens","input_tokens":` + strconv.Itoa(n) + `}`
	switch {
	case endpoint.InMessages(path):
		body = `{"input_tokens":` + strconv.Itoa(n) + `}`
	case endpoint.Of(path).PartOf(endpoint.Google):
		body = `{"totalTokens":` + strconv.Itoa(n) + `}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

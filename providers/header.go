package providers

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/httpfield"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// withheld reports whether a header of the client does not go up, by its
// canonical name: those of one connection, those that the transport writes
// itself, the client's credentials and cookies (they are for Pacer), and
// Pacer's own.
func withheld(name string) bool {
	switch name {
	case "Proxy-Authenticate", "Proxy-Authorization", "Http2-Settings",
		"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "X-Request-Id":
		return true
	}
	return upstream.OfConnection(name) || strings.HasPrefix(name, "X-Pacer-")
}

// ownHeaders returns the headers that every request to the backend carries. Its
// errors name a header, never its value.
func (o Options) ownHeaders() (http.Header, error) {
	own := http.Header{}
	if o.APIKey != "" && !upstream.HeaderValue(o.APIKey) {
		return nil, errors.New("field APIKey holds a control character or outer blanks")
	}
	for name, values := range o.Headers {
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !upstream.HeaderName(name):
			return nil, fmt.Errorf("field Headers: %q is no header name", name)
		case upstream.OwnHeader(name):
			return nil, fmt.Errorf("field Headers: %s cannot be set", name)
		case slices.ContainsFunc(values, func(v string) bool { return !upstream.HeaderValue(v) }):
			return nil, fmt.Errorf("field Headers: %s holds a control character or outer blanks", name)
		}
		own[name] = slices.Clone(values)
	}
	return own, nil
}

// upward returns the headers of one request as the backend gets it.
func (b *Backend) upward(c Call) http.Header {
	h := make(http.Header, len(c.Header)+len(b.headers)+5)
	b.eachUpward(c, func(name, value string) { h[name] = append(h[name], value) })
	if h["Idempotency-Key"] == nil {
		// An empty list is not sent, but tells the transport that the request may
		// be sent again when a kept connection turns out to be closed.
		h["Idempotency-Key"] = []string{}
	}
	return h
}

// eachUpward calls add for each header of one request as the backend gets it,
// by its canonical name, and each of its values.
func (b *Backend) eachUpward(c Call, add func(name, value string)) {
	var named []string // by Connection: they belong to the client's connection
	for _, v := range c.Header["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			named = append(named, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	ours := func(name string) bool { return b.headers[name] != nil }
	typed, agent := false, false
	for name, values := range c.Header {
		name, _ = httpfield.Canonical(name)
		if withheld(name) || len(named) > 0 && slices.Contains(named, name) || ours(name) {
			continue
		}
		typed, agent = typed || name == "Content-Type", agent || name == "User-Agent"
		for _, v := range values {
			add(name, v)
		}
	}
	add("Accept-Encoding", "identity")
	if c.RequestID != "" && !ours("X-Request-Id") {
		add("X-Request-Id", c.RequestID)
	}
	if !typed && !ours("Content-Type") && (c.Method == "" || c.Method == http.MethodPost) {
		add("Content-Type", "application/json")
	}
	if !agent && !ours("User-Agent") {
		add("User-Agent", "pacer")
	}
	for name, value := range b.kind.Headers {
		if ours(name) || c.Header[name] != nil && !withheld(name) && !slices.Contains(named, name) {
			continue
		}
		add(name, value)
	}
	for name, values := range b.headers {
		for _, v := range values {
			add(name, v)
		}
	}
}

package providers

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

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
func (o Options) ownHeaders(kind *upstream.Kind) (http.Header, error) {
	own := http.Header{}
	if o.APIKey != "" {
		if !upstream.HeaderValue(o.APIKey) {
			return nil, errors.New("field APIKey holds a control character or outer blanks")
		}
		name, value := kind.Key(o.APIKey)
		own[name] = []string{value}
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
	var named []string // by Connection: they belong to the client's connection
	for _, v := range c.Header["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			named = append(named, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	h := make(http.Header, len(c.Header)+len(b.headers)+5)
	for name, values := range c.Header {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if !withheld(name) {
			h[name] = values
		}
	}
	for _, name := range named {
		delete(h, name)
	}
	h["Accept-Encoding"] = []string{"identity"}
	if c.RequestID != "" {
		h["X-Request-Id"] = []string{c.RequestID}
	}
	if h["Content-Type"] == nil && (c.Method == "" || c.Method == http.MethodPost) {
		h["Content-Type"] = []string{"application/json"}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"pacer"}
	}
	if h["Idempotency-Key"] == nil {
		// An empty list is not sent, but tells the transport that the request may
		// be sent again when a kept connection turns out to be closed.
		h["Idempotency-Key"] = []string{}
	}
	for name, value := range b.kind.Headers {
		if h[name] == nil {
			h[name] = []string{value}
		}
	}
	for name, values := range b.headers {
		h[name] = values
	}
	return h
}

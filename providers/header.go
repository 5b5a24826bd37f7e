package providers

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
)

// withheld reports whether a header of the client does not go up, by its
// canonical name: those of one connection, those that the transport writes
// itself, the client's credentials and cookies (they are for Pacer), and
// Pacer's own.
func withheld(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		"Host", "Content-Length", "Accept-Encoding", "Expect",
		"Authorization", "X-Api-Key", "Api-Key", "Cookie", "X-Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Pacer-")
}

// ownHeaders returns the headers that every request to the backend carries,
// and the Host header if one is given. Its errors name a header, never its
// value.
func ownHeaders(kind, apiKey string, extra http.Header) (own http.Header, host string, err error) {
	own = http.Header{}
	if apiKey != "" {
		if !validValue(apiKey) {
			return nil, "", errors.New("field APIKey holds a control character")
		}
		name, before := keyHeader(kind)
		own[name] = []string{before + apiKey}
	}
	for name, values := range extra {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if !validName(name) {
			return nil, "", fmt.Errorf("field Headers: %q is no header name", name)
		}
		for _, v := range values {
			if !validValue(v) {
				return nil, "", fmt.Errorf("field Headers: %s holds a control character", name)
			}
		}
		switch name {
		case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
			"Content-Length", "Accept-Encoding", "Expect":
			return nil, "", fmt.Errorf("field Headers: %s cannot be set", name)
		case "Host":
			if len(values) > 0 {
				host = values[0]
			}
		default:
			own[name] = append([]string(nil), values...)
		}
	}
	return own, host, nil
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
	if b.kind == kindAnthropic && h["Anthropic-Version"] == nil {
		h["Anthropic-Version"] = []string{anthropicVersion}
	}
	for name, values := range b.headers {
		h[name] = values
	}
	return h
}

// validName reports whether s is a token of RFC 9110.
func validName(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func validValue(s string) bool {
	for _, c := range []byte(s) {
		if c < 0x20 && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}

package upstream

import (
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxHeaderName bounds the name of a header, in bytes.
const maxHeaderName = 128

// HeaderName reports whether s can be the name of an HTTP header: a token of
// RFC 9110.
func HeaderName(s string) bool {
	return httpguts.ValidHeaderFieldName(s) && len(s) <= maxHeaderName
}

// HeaderValue reports whether s can be the value of an HTTP header: without
// control characters, and without outer blanks, which would be lost.
func HeaderValue(s string) bool {
	return strings.TrimSpace(s) == s && httpguts.ValidHeaderFieldValue(s)
}

// OfConnection reports whether a header, by its canonical name, is about one
// connection or written by the transport: it neither goes up nor can be set.
func OfConnection(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Host", "Content-Length", "Accept-Encoding", "Expect":
		return true
	}
	return false
}

// OwnHeader reports whether a header, by its canonical name, cannot be
// configured: the transport or Pacer itself sets it.
func OwnHeader(name string) bool {
	return OfConnection(name) || name == "Content-Encoding" || name == "Content-Type"
}

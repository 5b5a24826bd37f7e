package gateway

import (
	"net"
	"net/http"
	"strconv"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/openai"
)

// Listen wraps l, which s is to serve, so that what net/http answers by itself
// (to a malformed request, for one) has OpenAI's shape and a request id like
// any other answer, and so that clients have most connections at once at most;
// 0 = any number. It takes s.ConnContext and s.ConnState.
func (g *Gateway) Listen(s *http.Server, l net.Listener, most int) *clientconn.Listener {
	g.clients = most
	return clientconn.Listen(s, l, clientconn.Options{Name: "data", Most: most, Own: g.ownAnswer, Log: g.log})
}

// ownAnswer is the whole answer in place of one of net/http's own.
func (g *Gateway) ownAnswer(client net.Addr, status int) []byte {
	a := answerForServer(status)
	id := newID()
	body := openai.ErrorBody(a.message, a.typ, "", a.code)
	head := "HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nX-Request-Id: " + id + "\r\nConnection: close\r\n\r\n"
	g.access.Info("request", "request", id, "client", host(client), "status", status, "error", "gateway: refused by the HTTP server: "+a.code)
	return append([]byte(head), body...)
}

// host is an address without its port.
func host(a net.Addr) string {
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.String()
}

// answerForServer says in OpenAI's words what net/http refuses by itself.
func answerForServer(status int) answer {
	a := answer{status: status, typ: "invalid_request_error"}
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		a.code, a.message = "headers_too_large", "The request's headers are too large."
	case http.StatusExpectationFailed:
		a.code, a.message = "expectation_failed", "The Expect header may say 100-continue alone."
	case http.StatusNotImplemented:
		a.code, a.message = "unsupported_transfer_encoding", "The Transfer-Encoding may be chunked alone."
	case http.StatusHTTPVersionNotSupported:
		a.code, a.message = "unsupported_http_version", "This port speaks HTTP/1.1, and HTTP/2 over TLS."
	default:
		a.code, a.message = "malformed_request", "The request is not well-formed HTTP, or it is plain HTTP on a port for HTTPS."
	}
	return a
}

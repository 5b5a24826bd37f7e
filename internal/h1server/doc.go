// Package h1server is the HTTP/1.1 side of a port that clients connect to: the
// requests that most clients send, for less than net/http takes, and net/http's own
// server for all others.
//
// # What is served here
//
// A request whose head came whole in the first read, at most headRoom bytes, and
// leaves no doubt: a usual method, a path, HTTP/1.1, one Host, a Content-Length at
// most once and in digits, names that are tokens, values without control
// characters, lines that end in CRLF. See head.parse.
//
// # What is not
//
// At the first request that is anything else its connection goes to net/http, for
// good and with all that was read: chunked bodies, Expect, upgrades, HEAD, HTTP/1.0,
// heads that come in pieces or are long, and all that is malformed. So whoever
// smuggles meets net/http, and nothing here has to say no: there is no error answer
// in this package. TLS and HTTP/2 never come here.
//
// # What handlers see
//
// An *http.Request and an http.ResponseWriter as net/http's own, with Flush, Hijack
// and deadlines by http.ResponseController. Missing are trailers and the values of http.ServerContextKey and http.LocalAddrContextKey. A body that
// a handler has not read to its end closes the connection behind the answer. A
// request and its body belong to the goroutine of the handler.
//
// # Who sees a client hang up
//
// The context of a request ends when its client is gone, from when the body was
// read. net/http has a goroutine wait in a read for that, at each request. Here a
// hangups looks after all connections: on Linux one epoll that is told of their
// ends alone, and costs a request nothing. Elsewhere, and for connections that are
// no sockets, it is a goroutine as there.
package h1server

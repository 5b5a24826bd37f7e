package clientconn

import (
	"net/http"

	"golang.org/x/net/http2"
)

// ServeH2 has s serve HTTP/2 behind TLS as net/http does, but for what it does between
// two frames. net/http looks through all open streams of a connection for the next
// frame, twice for each chunk: of 250 streams that wait for their next token that is a
// tenth of all CPU. The scheduler that is used here knows those alone that have
// something to write, and takes any of them.
//
// It is called before s serves. A Go whose net/http does not take schedulers any more
// (1.27) serves with its own: all is as before then, at net/http's price.
func ServeH2(s *http.Server) error {
	//lint:ignore SA1019 net/http itself lets nobody choose a scheduler
	return http2.ConfigureServer(s, &http2.Server{NewWriteScheduler: http2.NewRandomWriteScheduler})
}

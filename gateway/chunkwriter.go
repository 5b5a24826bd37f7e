package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/internal/relayloop"
)

// chunkWriter is the http.ResponseWriter of an answer whose head has gone out, and
// whose connection is no longer the server's.
type chunkWriter struct {
	to    *relayloop.Socket
	until time.Time // when a write is over that has to wait
	chunk []byte
}

// Header implements http.ResponseWriter.
func (w *chunkWriter) Header() http.Header { return http.Header{} }

// WriteHeader implements http.ResponseWriter.
func (w *chunkWriter) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (w *chunkWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // a chunk without bytes would be the last
	}
	w.chunk = append(strconv.AppendUint(w.chunk[:0], uint64(len(p)), 16), '\r', '\n')
	w.chunk = append(append(w.chunk, p...), '\r', '\n')
	if err := w.to.Write(w.chunk, w.until); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushError is what http.ResponseController asks for.
func (w *chunkWriter) FlushError() error { return nil }

// SetWriteDeadline is what http.ResponseController asks for.
func (w *chunkWriter) SetWriteDeadline(t time.Time) error {
	w.until = t
	return nil
}

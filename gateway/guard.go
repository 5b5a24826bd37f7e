package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"runtime/debug"
	"time"
)

type requestIDKey struct{}

// guard is what every URL shares: an id on every answer, a time by which the
// client must have taken it (an exchange rolls it on), and an answer even when
// a handler panics.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !saneID(id) {
			id = "req-" + rand.Text()
		}
		w.Header().Set("X-Request-Id", id)
		extendWrite(w, g.plan.Load().conf.Timeouts.Write)
		if g.draining.Load() {
			w.Header().Set("Connection", "close") // on HTTP/2: GOAWAY
		}
		defer func() {
			switch p := recover(); {
			case p == nil:
			case isAbort(p):
				panic(p) // the way to end a broken answer: not a crash
			default:
				g.log.Error("panic", "request", id, "panic", p, "stack", string(debug.Stack()))
				answerFor(errPanicked).write(w, r)
			}
		}()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

func isAbort(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// saneID reports whether a client's request id may go into headers and logs.
func saneID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// extendWrite gives the client d from now to take what is written next. A
// connection that knows no deadlines has none.
func extendWrite(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d))
}

package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/pacer-dev/pacer/internal/httpfield"
)

type requestIDKey struct{}

// idContext is the context of a request that has an id.
type idContext struct {
	context.Context
	id string
}

func withID(ctx context.Context, id string) context.Context { return &idContext{ctx, id} }

// Value implements context.Context.
func (c *idContext) Value(key any) any {
	if key == (requestIDKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// guard is what every URL shares: an id on every answer, a time by which the
// client must have taken it (an exchange rolls it on), and an answer even when
// a handler panics.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := httpfield.First(r.Header, "X-Request-Id")
		if !saneID(id) {
			id = newID()
		}
		w.Header()["X-Request-Id"] = []string{id}
		if ofAnthropic(r) {
			w.Header().Set("Request-Id", id) // where its SDKs look; a backend that has one of its own is heard there
		}
		extendWrite(w, g.setup.Load().conf.Timeouts.Write)
		if g.endings.draining.Load() {
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
		next.ServeHTTP(w, r.WithContext(withID(r.Context(), id)))
	})
}

func isAbort(p any) bool {
	err, ok := p.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

func requestID(ctx context.Context) string {
	if c, ok := ctx.Value(requestIDKey{}).(*idContext); ok {
		return c.id
	}
	return ""
}

// newID is the id of a request that came without: as random as rand.Text.
func newID() string {
	const (
		letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
		prefix  = "req-"
	)
	var id [len(prefix) + 26]byte
	_, _ = rand.Read(id[copy(id[:], prefix):])
	for i := len(prefix); i < len(id); i++ {
		id[i] = letters[id[i]%32]
	}
	return string(id[:])
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
	until := time.Now().Add(d)
	if own, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok { // net/http's
		_ = own.SetWriteDeadline(until)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(until)
}

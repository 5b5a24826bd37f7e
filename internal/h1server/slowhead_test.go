package h1server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// A first head has the time that it is given, once, though its beginning comes late
// and net/http has the rest of it. A head behind an answer has it anew.
func TestASlowHead(t *testing.T) {
	const limit = 10 * time.Second
	for name, bounded := range map[string]bool{"alone": false, "among the clients of a port": true} {
		for at, c := range map[time.Duration]struct {
			before string // is sent, and answered, first
			ends   time.Duration
		}{
			9 * time.Second:  {"", limit},
			19 * time.Second: {"GET /none HTTP/1.1\r\nHost: h\r\n\r\n", 19*time.Second + limit},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if got := endOfHalfAHead(t, bounded, limit, c.before, at); got != c.ends {
						t.Errorf("half a head that came after %v: given up after %v, want %v", at, got, c.ends)
					}
				})
			})
		}
	}
}

// endOfHalfAHead returns when the server gives a connection up that sends before at
// once, and half a head at that time.
func endOfHalfAHead(t *testing.T, bounded bool, limit time.Duration, before string, at time.Duration) time.Duration {
	t.Helper()
	var network memnet.Network
	l := must.Get(network.Listen("server:80"))(t)
	s := &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: limit, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	served := net.Listener(l)
	if bounded {
		served = clientconn.Listen(s, l, clientconn.Options{Name: "data", Log: slog.New(slog.DiscardHandler)})
	}
	own := must.Get(New(s))(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = own.Serve(served) }()
	defer func() { _ = own.Close(); <-done }()
	c := must.Get(network.Dial(context.Background(), "tcp", "server:80"))(t)
	defer c.Close()
	began := time.Now()
	if before != "" {
		must.Get(io.WriteString(c, before))(t)
		must.Get(c.Read(make([]byte, 4<<10)))(t)
	}
	go func() {
		<-time.After(at)
		_, _ = io.WriteString(c, "GET / HT")
	}()
	_, _ = c.Read(make([]byte, 1)) // a refusal, or the end
	return time.Since(began)
}

package providers

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// refuser answers every request when its head is there, and reads no body. How
// it ends its connections is what differs.
func refuser(t *testing.T, end func(*net.TCPConn), wrap func(net.Conn) net.Conn) (address string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			tcp, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer tcp.Close()
				conn := wrap(tcp)
				var head []byte
				for piece := make([]byte, 512); !bytes.Contains(head, []byte("\r\n\r\n")); {
					n, err := conn.Read(piece)
					if err != nil {
						return
					}
					head = append(head, piece[:n]...)
				}
				const body = `{"error":{"message":"too large"}}`
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
				end(tcp.(*net.TCPConn))
			})
		}
	})
	return l.Addr().String()
}

// A server that answers before it has read the body, and closes, has answered:
// also where its kernel resets the connection because of what was not read.
func TestAnEarlyAnswerIsRead(t *testing.T) {
	tlsServer := httptest.NewTLSServer(nil) // for its certificate
	defer tlsServer.Close()
	roots := x509.NewCertPool()
	roots.AddCert(tlsServer.Certificate())
	for name, c := range map[string]struct {
		scheme string
		end    func(*net.TCPConn)
	}{
		"closes at once":           {"http", func(*net.TCPConn) {}},
		"resets at once":           {"http", func(c *net.TCPConn) { _ = c.SetLinger(0) }},
		"closes at once, with TLS": {"https", func(*net.TCPConn) {}},
		"lingers": {"http", func(c *net.TCPConn) {
			_ = c.CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			_, _ = io.Copy(io.Discard, c)
		}},
	} {
		for _, size := range []int{64 << 10, 1 << 20, 20 << 20} {
			t.Run(fmt.Sprintf("%s/%d KiB", name, size>>10), func(t *testing.T) {
				wrap := func(c net.Conn) net.Conn { return c }
				if c.scheme == "https" {
					wrap = func(c net.Conn) net.Conn { return tls.Server(c, &tls.Config{Certificates: tlsServer.TLS.Certificates}) }
				}
				b, err := New(Options{
					Client: *client,
					Name:   "a", BaseURL: c.scheme + "://" + refuser(t, c.end, wrap) + "/v1",
					TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"},
				})
				must.Do(t, err)
				defer b.Close()
				body := bytes.Repeat([]byte("x"), size)
				for range 20 {
					earlyAnswer(t, b, body)
				}
			})
		}
	}
}

// earlyAnswer sends body, and wants it refused.
func earlyAnswer(t *testing.T, b *Backend, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	resp, err := b.Send(ctx, Call{Path: "/chat/completions", Body: inMemory(body)})
	if err != nil {
		t.Errorf("the answer was lost: %v", err)
		return
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusRequestEntityTooLarge || len(said) == 0 || err != nil {
		t.Errorf("got %d, %q (%v), want 413 with its body", resp.StatusCode, said, err)
	}
}

// Where there is no answer, because the server sent none or its kernel threw it
// away, the size of the body is what is known.
func TestALargeBodyThatIsCutShort(t *testing.T) {
	for _, size := range []int{1 << 10, 20 << 20} {
		large := size > largeBody
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.Do(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Read(make([]byte, 512))
				_ = conn.Close()
			}
		}()
		b, err := New(Options{Client: *client, Name: "a", BaseURL: "http://" + l.Addr().String() + "/v1"})
		must.Do(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err = b.Send(ctx, Call{Path: "/chat/completions", Body: make(inMemory, size)})
		var send *SendError
		if !errors.As(err, &send) || send.CutShort() != large || strings.Contains(send.Reason(), "21.0 MB") != large {
			t.Errorf("%d bytes: %v, want it cut short: %v", size, err, large)
		}
		cancel()
		<-done
		_ = l.Close()
		b.Close()
	}
}

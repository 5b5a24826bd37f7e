package h1server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// patience bounds each wait for a condition.
const patience = time.Minute

// open serves handler on a port of this machine, and returns a connection to it.
func open(t *testing.T, handler http.HandlerFunc) (*Front, *net.TCPConn) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := must.Get(New(&http.Server{Handler: handler}))(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return s, dial(t, l.Addr().String())
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c := must.Get(net.Dial("tcp", addr))(t)
	_ = c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	must.Get(io.WriteString(c, text))(t)
}

const plain = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// A handler learns that its client is gone, whatever way it went, and a second
// request behind the first is no end.
func TestAHandlerSeesItsClientGo(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		leave func(*net.TCPConn)
	}{
		"closed":           {plain, func(c *net.TCPConn) { c.Close() }},
		"half closed":      {plain, func(c *net.TCPConn) { _ = c.CloseWrite() }},
		"reset":            {plain, func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() }},
		"behind a body":    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", func(c *net.TCPConn) { c.Close() }},
		"reset, with more": {plain + plain, func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			began, seen := make(chan struct{}), make(chan error, 1)
			var once atomic.Bool
			_, conn := open(t, func(w http.ResponseWriter, r *http.Request) {
				if once.Swap(true) {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				close(began)
				select {
				case <-r.Context().Done():
					seen <- nil
				case <-time.After(patience):
					seen <- errors.New("the handler was not told")
				}
			})
			write(t, conn, c.text)
			<-began
			c.leave(conn)
			if err := <-seen; err != nil {
				t.Error(err)
			}
		})
	}
}

// The client ended while its body was read, or before the handler began.
func TestAnEndThatCameEarly(t *testing.T) {
	seen, read := make(chan error, 1), make(chan struct{})
	_, conn := open(t, func(w http.ResponseWriter, r *http.Request) {
		<-read // both came, as far as this machine is concerned
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			seen <- err
			return
		}
		select {
		case <-r.Context().Done():
			seen <- nil
		case <-time.After(patience):
			seen <- errors.New("the handler was not told")
		}
	})
	write(t, conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
	_ = conn.CloseWrite()
	close(read)
	if err := <-seen; err != nil {
		t.Error(err)
	}
}

// A client that waits, or sends its next request early, is not gone.
func TestAClientThatWaitsIsNotGone(t *testing.T) {
	var gone atomic.Int64
	release := make(chan struct{})
	_, conn := open(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		if r.Context().Err() != nil {
			gone.Add(1)
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	write(t, conn, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
	write(t, conn, "GET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n")
	close(release)
	from := bufio.NewReader(conn)
	for i := 1; i <= 3; i++ {
		resp := must.Get(http.ReadResponse(from, nil))(t)
		if b, _ := io.ReadAll(resp.Body); string(b) != fmt.Sprintf("/%d", i) {
			t.Errorf("answer %d is %q", i, b)
		}
	}
	if n := gone.Load(); n > 0 {
		t.Errorf("%d of 3 were told that their client is gone", n)
	}
}

// What the client sent ahead is in the reader that comes with a connection, and the
// connection is nobody else's.
func TestHijack(t *testing.T) {
	taken := make(chan net.Conn, 1)
	s, conn := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "head")
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		ahead, _ := rw.Peek(rw.Reader.Buffered())
		_, _ = io.WriteString(c, "|"+string(ahead)+"|")
		if _, err := w.Write([]byte("x")); err != http.ErrHijacked {
			t.Errorf("writing says %v", err)
		}
		taken <- c
	})
	write(t, conn, plain+"more")
	c := <-taken
	if err := s.Shutdown(context.Background()); err != nil { // which does not wait for it
		t.Error(err)
	}
	_, _ = io.WriteString(c, "end")
	c.Close()
	got, _ := io.ReadAll(conn)
	if !strings.HasSuffix(string(got), "\r\n\r\n4\r\nhead\r\n|more|end") {
		t.Errorf("the client has read %q", got)
	}
}

// Shutdown closes what waits, and lets what runs come to its end.
func TestShutdown(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	s, conn := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-release
		}
	})
	idle := dial(t, conn.RemoteAddr().String())
	write(t, idle, plain)
	from := bufio.NewReader(idle)
	must.Get(http.ReadResponse(from, nil))(t)
	write(t, conn, "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
	<-began
	over := make(chan error, 1)
	go func() { over <- s.Shutdown(context.Background()) }()
	if _, err := from.ReadByte(); err != io.EOF {
		t.Errorf("the one that waits reads %v, want the end", err)
	}
	select {
	case err := <-over:
		t.Errorf("Shutdown did not wait: %v", err)
	default:
	}
	close(release)
	if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 OK\r\n") {
		t.Errorf("the answer is %q, %v", got, err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", conn.RemoteAddr().String()); err == nil {
		t.Error("the port is still open")
	}
}

// Close ends the requests that are answered, though their clients are still there.
func TestCloseEndsWhatIsAnswered(t *testing.T) {
	began, over := make(chan struct{}), make(chan struct{})
	s, conn := open(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(over)
	})
	write(t, conn, plain)
	<-began
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-over:
	case <-time.After(patience):
		t.Error("the handler waits on")
	}
}

// nowhere is a connection as of a socket that its client has reset.
type nowhere struct{ net.Conn }

func (nowhere) RemoteAddr() net.Addr { return nil }

// once is a listener of what is in conns, until it is closed.
type once struct {
	conns chan net.Conn
	over  sync.Once
}

func (o *once) Accept() (net.Conn, error) {
	if c, ok := <-o.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (o *once) Close() error   { o.over.Do(func() { close(o.conns) }); return nil }
func (o *once) Addr() net.Addr { return nil }

// A connection whose other end nobody knows is answered as any.
func TestAConnectionWithoutAnAddress(t *testing.T) {
	from := make(chan string, 1)
	s := must.Get(New(&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from <- r.RemoteAddr })}))(t)
	client, server := net.Pipe()
	defer client.Close()
	l := &once{conns: make(chan net.Conn, 1)}
	l.conns <- nowhere{server}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	defer func() { _ = s.Close(); <-done }()
	_ = client.SetDeadline(time.Now().Add(patience))
	write(t, client, plain)
	if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil {
		t.Error(err)
	}
	if got := <-from; got != "" {
		t.Errorf("it comes from %q", got)
	}
}

// net/http has the time for its answer that it gives itself, not what was left of the
// last request's.
func TestWhatIsHandedOnHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		l := &once{conns: make(chan net.Conn, 1)}
		l.conns <- server
		s := must.Get(New(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
		})}))(t)
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		defer func() { _ = s.Close(); _ = client.Close(); <-done }()
		write(t, client, plain)
		from := bufio.NewReader(client)
		must.Get(http.ReadResponse(from, nil))(t)
		time.Sleep(2 * time.Second) // virtual: the deadline is past
		go func() { _, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") }()
		if got, err := http.ReadResponse(from, nil); err != nil || got.StatusCode != http.StatusBadRequest {
			t.Errorf("got %v, %v, want 400", got, err)
		}
	})
}

// A panic ends its connection alone.
func TestAPanicEndsItsConnectionAlone(t *testing.T) {
	_, conn := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("on purpose")
		}
	})
	other := dial(t, conn.RemoteAddr().String())
	write(t, conn, "GET /panic HTTP/1.1\r\nHost: h\r\n\r\n")
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("who panics answers %q", got)
	}
	write(t, other, plain)
	if _, err := http.ReadResponse(bufio.NewReader(other), nil); err != nil {
		t.Error(err)
	}
}

// A request costs few allocations: what a handler gets, and no more.
func BenchmarkRequest(b *testing.B) {
	for _, own := range []bool{true, false} {
		b.Run(map[bool]string{true: "own", false: "nethttp"}[own], func(b *testing.B) {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
			settings := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("ok")) })}
			s := must.Get(New(settings))(b)
			defer s.Close()
			if own {
				go s.Serve(l)
			} else {
				go settings.Serve(l)
			}
			c := must.Get(net.Dial("tcp", l.Addr().String()))(b)
			defer c.Close()
			buf := make([]byte, 4<<10)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = io.WriteString(c, plain)
				must.Get(c.Read(buf))(b)
			}
		})
	}
}

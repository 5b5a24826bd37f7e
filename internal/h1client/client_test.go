package h1client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// script is a server by hand: handle gets each connection.
type script struct {
	*Client
	dials   atomic.Int32
	closed  atomic.Int32 // connections that the client has ended
	unasked atomic.Int32 // times that the server sent what no request asked for
	running sync.WaitGroup
}

func open(t *testing.T, handle func(n int, c net.Conn, r *bufio.Reader)) *script {
	t.Helper()
	s := &script{}
	s.Client = New(Options{Addr: "engine:80", ConnectTimeout: time.Second, IdleTimeout: 4 * time.Second, MaxIdle: 2, MaxHead: maxHead, Unasked: func() { s.unasked.Add(1) }, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		n := int(s.dials.Add(1))
		s.running.Go(func() {
			defer server.Close()
			r := bufio.NewReader(server)
			handle(n, server, r)
			if _, err := io.Copy(io.Discard, r); err == nil {
				s.closed.Add(1)
			}
		})
		return client, nil
	}})
	t.Cleanup(func() { s.CloseIdle(); s.running.Wait() })
	return s
}

// each answers every request with text.
func each(text string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

const get = "GET / HTTP/1.1\r\nHost: engine\r\n\r\n"

func (s *script) get(ctx context.Context) (string, error) {
	resp, err := s.Do(ctx, &Request{Head: []byte(get)})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		again  bool
	}{
		"length":                 {ok + "Content-Length: 2\r\n\r\nok", true},
		"no body":                {ok + "Content-Length: 0\r\n\r\n", true},
		"chunks":                 {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		"HTTP/1.0 that stays":    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true},
		"HTTP/1.0":               {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		"close":                  {ok + "Connection: x, Close\r\nContent-Length: 2\r\n\r\nok", false},
		"bytes behind a length":  {ok + "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", false},
		"bytes behind chunks":    {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", false},
		"bytes behind nothing":   {ok + "Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", false},
		"HTTP/1.0 with chunks":   {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nok", false},
		"another protocol":       {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", false},
		"length and chunks both": {ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, each(c.answer))
				for range 3 {
					if text, err := s.get(context.Background()); err != nil || text != "ok" && text != "" {
						t.Fatalf("%q, %v", text, err)
					}
				}
				if got, want := s.unasked.Load() == 3, strings.HasPrefix(name, "bytes behind"); got != want || !want && s.unasked.Load() != 0 {
					t.Errorf("told %d times of what nobody asked for, in three answers", s.unasked.Load())
				}
				if got, want := s.dials.Load(), map[bool]int32{true: 1, false: 3}[c.again]; got != want {
					t.Errorf("%d connections, want %d", got, want)
				}
			})
		})
	}
}

// What a server says on a connection that nobody asks on is no answer to the next
// request, over sockets too. It is told, unless it is a goodbye.
func TestWordsNobodyAskedFor(t *testing.T) {
	for name, x := range map[string]struct {
		says string
		told int32
	}{
		"an answer": {ok + "Content-Length: 4\r\n\r\nevil", 1},
		"a word":    {"evil", 1},
		"a goodbye": {"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer l.Close()
			var running sync.WaitGroup
			answered, said := make(chan struct{}), make(chan struct{})
			running.Go(func() {
				for n := 0; ; n++ {
					c, err := l.Accept()
					if err != nil {
						return
					}
					running.Go(func() {
						defer c.Close()
						r := bufio.NewReader(c)
						if _, err := http.ReadRequest(r); err != nil {
							return
						}
						_, _ = io.WriteString(c, ok+"Content-Length: 2\r\n\r\nok")
						if n == 0 {
							<-answered
							_, _ = io.WriteString(c, x.says)
							close(said)
						}
						_, _ = io.Copy(io.Discard, r)
					})
				}
			})
			s := &script{}
			s.Client = New(Options{Dial: (&net.Dialer{}).DialContext, Addr: l.Addr().String(), ConnectTimeout: time.Minute, IdleTimeout: time.Minute, MaxIdle: 2, MaxHead: maxHead, Unasked: func() { s.unasked.Add(1) }})
			for i := range 2 {
				if text, err := s.get(context.Background()); err != nil || text != "ok" {
					t.Errorf("%q, %v; want ok", text, err)
				}
				if i == 0 {
					close(answered)
				}
				<-said
			}
			if got := s.unasked.Load(); got != x.told {
				t.Errorf("told %d times, want %d", got, x.told)
			}
			s.CloseIdle()
			l.Close()
			running.Wait()
		})
	}
}

// Room that was given back twice would be lent to two answers at once, and one
// request would read what another one was answered.
func TestRoomIsLentOnce(t *testing.T) {
	for name, text := range answers {
		if len(text) < 10_000 {
			t.Run(name, func(t *testing.T) {
				for range 8 { // the pool loses some, by chance, beside the race detector
					viaOwn(t, "GET", text, 0)
				}
				lent := map[*[headRoom]byte]bool{}
				for range 32 {
					room := headRooms.Get().(*[headRoom]byte)
					if lent[room] {
						t.Fatal("the same room is lent twice")
					}
					lent[room] = true
				}
			})
		}
	}
}

// An answer pauses once, where it waits, and goes on; one that ends before leaves no
// deadline behind.
func TestAnAnswerPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, func(_ int, c net.Conn, r *bufio.Reader) {
			for {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				_, _ = io.WriteString(c, ok+"Content-Length: 4\r\n\r\nab")
				<-time.After(2 * time.Second)
				_, _ = io.WriteString(c, "cd")
			}
		})
		for _, after := range []time.Duration{time.Second, 2500 * time.Millisecond, time.Second} {
			resp := must.Get(s.Do(t.Context(), &Request{Head: []byte(get)}))(t)
			begun := time.Now()
			PauseAt(resp.Body, begun.Add(after))
			text, err := io.ReadAll(resp.Body)
			if paused := after < 2*time.Second; paused != errors.Is(err, ErrPaused) || paused && (string(text) != "ab" || time.Since(begun) != after) {
				t.Fatalf("to pause after %v: %q and %v after %v", after, text, err, time.Since(begun))
			}
			rest, err := io.ReadAll(resp.Body)
			if string(text)+string(rest) != "abcd" || err != nil {
				t.Fatalf("to pause after %v: %q and %q (%v), want abcd", after, text, rest, err)
			}
			_ = resp.Body.Close()
		}
		if n := s.dials.Load(); n != 1 {
			t.Errorf("%d connections, want one", n)
		}
	})
}

// An encrypted answer that never ceases pauses wherever it is, and goes on whole: the time
// may come between what TLS asked for and what is read ahead of it.
func TestAnEncryptedFloodPauses(t *testing.T) {
	record := bytes.Repeat([]byte("abc "), 75)
	const records = 20_000
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, ok+"Content-Length: "+strconv.Itoa(records*len(record))+"\r\n\r\n")
		for range records {
			if _, err := c.Write(record); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	for i := range 20 {
		cl := New(Options{Dial: (&net.Dialer{}).DialContext, Addr: srv.Listener.Addr().String(), ConnectTimeout: time.Minute, IdleTimeout: time.Minute, MaxIdle: 1, MaxHead: maxHead, TLS: &tls.Config{InsecureSkipVerify: true}})
		resp := must.Get(cl.Do(t.Context(), &Request{Head: []byte(get)}))(t)
		PauseAt(resp.Body, time.Now().Add(time.Duration(1+i)*time.Millisecond))
		text, err := io.ReadAll(resp.Body)
		if errors.Is(err, ErrPaused) {
			var rest []byte
			rest, err = io.ReadAll(resp.Body)
			text = append(text, rest...)
		}
		if err != nil || len(text) != records*len(record) {
			t.Fatalf("%d bytes of %d, %v", len(text), records*len(record), err)
		}
		_ = resp.Body.Close()
		cl.CloseIdle()
	}
}

// What came encrypted with an answer, and behind it, is no answer to the next
// request: the socket does not show it.
func TestWordsNobodyAskedForEncrypted(t *testing.T) {
	answer := ok + "Content-Length: 2\r\n\r\n"
	evil := ok + "Content-Length: 4\r\n\r\nevil"
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, answer) // a record
		_, _ = io.WriteString(c, "ok"+evil)
		_, _ = io.Copy(io.Discard, c)
	}))
	defer srv.Close()
	var dials atomic.Int32
	client := New(Options{
		Addr: srv.Listener.Addr().String(), ConnectTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxIdle: 2, MaxHead: maxHead,
		TLS: &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"},
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	})
	defer client.CloseIdle()
	for range 2 {
		resp := must.Get(client.Do(context.Background(), &Request{Head: []byte(get)}))(t)
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || string(text) != "ok" {
			t.Fatalf("got %q, %v", text, err)
		}
	}
	if dials.Load() != 2 {
		t.Errorf("%d connections, want 2", dials.Load())
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, each(ok+"Content-Length: 2\r\n\r\nok"))
		var all sync.WaitGroup
		for range 5 { // of which two are kept
			all.Go(func() {
				if _, err := s.get(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if got := s.dials.Load() - s.closed.Load(); got > 2 || got < 1 {
			t.Errorf("%d connections are kept, want two at most", got)
		}
		<-time.After(4 * time.Second)
		synctest.Wait()
		if got := s.dials.Load() - s.closed.Load(); got != 0 {
			t.Errorf("%d connections are kept after 4 s, want none", got)
		}
	})
}

// The end of the context ends the connection, in every phase, with its cause.
func TestTheEndOfTheContextEndsTheConnection(t *testing.T) {
	why := errors.New("why")
	head := ok + "Transfer-Encoding: chunked\r\n\r\n"
	for name, said := range map[string]string{"before the head": "", "within the head": ok, "before a chunk": head, "within a chunk": head + "5\r\nhel"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, func(_ int, c net.Conn, r *bufio.Reader) {
					if _, err := http.ReadRequest(r); err == nil {
						_, _ = io.WriteString(c, said)
					}
				})
				ctx, cancel := context.WithCancelCause(context.Background())
				began := time.Now()
				time.AfterFunc(time.Second, func() { cancel(why) })
				if _, err := s.get(ctx); !errors.Is(err, why) {
					t.Errorf("got %v, want the cause", err)
				}
				synctest.Wait()
				if s.closed.Load() != 1 || time.Since(began) != time.Second {
					t.Errorf("%d connections ended after %v, want one after 1s", s.closed.Load(), time.Since(began))
				}
			})
		})
	}
}

// What a request's body lies in may be let go when Close has returned: nobody
// reads it any more.
func TestNobodyReadsABodyThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, err := http.ReadRequest(r); err == nil { // and none of its body
				_, _ = io.WriteString(c, ok+"Content-Length: 2\r\n\r\nok")
			}
			<-time.After(time.Minute)
		})
		var closed atomic.Bool
		body := &watched{Reader: strings.NewReader(strings.Repeat("x", 1<<20)), closed: &closed}
		resp := must.Get(s.Do(context.Background(), &Request{
			Head: []byte("POST / HTTP/1.1\r\nHost: engine\r\nContent-Length: 1048576\r\n\r\n"), Length: 1 << 20,
			Body: body,
		}))(t)
		if closed.Load() {
			t.Error("the body was closed while it goes up")
		}
		resp.Body.Close()
		if !closed.Load() {
			t.Error("the body is open behind Close")
		}
	})
}

type watched struct {
	io.Reader
	closed *atomic.Bool
}

func (w *watched) Open() (io.ReadCloser, error) { return w, nil }

func (w *watched) Close() error { w.closed.Store(true); return nil }

// A request takes what net/http's takes, less its goroutines: budget 12
// allocations with the answer's headers, and 20 µs over loopback.
func BenchmarkRequest(b *testing.B) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf, text := make([]byte, 4<<10), []byte(ok+"Content-Type: application/json\r\nServer: x\r\nContent-Length: 2\r\n\r\nok")
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := c.Write(text); err != nil {
				return
			}
		}
	}()
	c := New(Options{Dial: (&net.Dialer{}).DialContext, Addr: l.Addr().String(), ConnectTimeout: time.Minute, IdleTimeout: time.Minute, MaxIdle: 2, MaxHead: maxHead})
	defer c.CloseIdle()
	r := &Request{Head: []byte(get)}
	room := make([]byte, 4<<10)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		resp := must.Get(c.Do(ctx, r))(b)
		if n, err := resp.Body.Read(room); n != 2 || err != io.EOF {
			b.Fatal(n, err)
		}
		resp.Body.Close()
	}
}

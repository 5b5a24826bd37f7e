package clientconn

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// serve serves handler on l, in the form of the program, and ends with the
// test.
func serve(t *testing.T, l net.Listener, handler http.HandlerFunc) *Listener {
	t.Helper()
	return serveWith(t, l, handler, nil)
}

func serveWith(t *testing.T, l net.Listener, handler http.HandlerFunc, config *tls.Config) *Listener {
	t.Helper()
	s := &http.Server{
		Handler: Early(handler), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	own := Listen(s, l, Options{Name: "data", Log: slog.New(slog.DiscardHandler)})
	served := net.Listener(own)
	if config != nil {
		served = tls.NewListener(own, config)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(served) }()
	t.Cleanup(func() { _ = s.Close(); <-done; own.End() })
	return own
}

// refuse answers without a look at the body, to /long in more than net/http
// holds back.
func refuse(w http.ResponseWriter, r *http.Request) {
	TakeRest(w, r)
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, "no")
	if r.URL.Path == "/long" {
		_, _ = io.WriteString(w, strings.Repeat("no", 32<<10))
	}
}

// accept reads the body and answers with it.
func accept(w http.ResponseWriter, r *http.Request) {
	if body, err := io.ReadAll(r.Body); err == nil {
		_, _ = w.Write(body)
	}
}

// An answer that does not need the body is there before any of it, and its
// connection is closed for good within ten seconds.
func TestAnAnswerDoesNotWaitForTheBody(t *testing.T) {
	for name, c := range map[string]struct {
		head, body string // head has the request's line and Host before it
		closed     bool   // want the connection to be closed
	}{
		"one byte promised":          {"Content-Length: 1\r\n", "", true},
		"256 KiB promised":           {"Content-Length: 262144\r\n", "", true},
		"1 TB promised":              {"Content-Length: 1000000000000\r\n", "", true},
		"half of it":                 {"Content-Length: 8\r\n", "half", true},
		"chunks promised":            {"Transfer-Encoding: chunked\r\n", "", true},
		"half a chunk":               {"Transfer-Encoding: chunked\r\n", "8\r\nhalf", true},
		"a client that asks first":   {"Expect: 100-continue\r\nContent-Length: 4\r\n", "", true},
		"a client that wants an end": {"Connection: close\r\nContent-Length: 4\r\n", "", true},
		"all of it":                  {"Content-Length: 4\r\n", "body", false},
		"no body":                    {"", "", false},
	} {
		for _, path := range []string{"/", "/long"} {
			t.Run(name+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { answersEarly(t, path, c.head, c.body, c.closed) })
			})
		}
	}
}

func answersEarly(t *testing.T, path, head, body string, closed bool) {
	network := &memnet.Network{}
	l, err := network.Listen("port:80")
	must.Do(t, err)
	own := serve(t, l, refuse)
	conn, err := network.Dial(context.Background(), "tcp", "port:80")
	must.Do(t, err)
	defer conn.Close()
	begun := time.Now()
	go func() { _, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+head+"\r\n"+body) }()
	answers := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v (%v), want 401", resp, err)
	}
	if took := time.Since(begun); took != 0 {
		t.Errorf("the answer took %v, want none of the clock's time", took)
	}
	if _, err := io.ReadAll(resp.Body); err != nil || resp.Close != closed {
		t.Errorf("connection: close is %v (%v), want %v", resp.Close, err, closed)
	}
	if !closed {
		go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") }()
		if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a second request: %v (%v), want 401", resp, err)
		}
		return
	}
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("%q and %v behind the answer, want the end", rest, err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("closed after %v, want within 10 s", took)
	}
	synctest.Wait()
	if n := own.connections.open; n != 0 {
		t.Errorf("%d connections open, want 0", n)
	}
}

// A handler that reads the body keeps its connection, several requests in one
// packet among them.
func TestABodyThatIsReadKeepsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &memnet.Network{}
		l := must.Get(network.Listen("port:80"))(t)
		serve(t, l, accept)
		conn := must.Get(network.Dial(context.Background(), "tcp", "port:80"))(t)
		defer conn.Close()
		const (
			sized   = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
			chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
		)
		go func() { _, _ = io.WriteString(conn, sized+sized+chunked+chunked+sized) }()
		answers := bufio.NewReader(conn)
		for i := range 5 {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "body" || resp.Close {
				t.Errorf("answer %d: %q (%v), connection: close %v; want the body, and no end", i, body, err, resp.Close)
			}
		}
	})
}

// sendFirst sends n bytes of a body before it reads, as most clients in Python
// do, and returns the status that it then finds.
func sendFirst(conn net.Conn, head string, n int64) (status int, sent int64, err error) {
	if _, err := io.WriteString(conn, head); err != nil {
		return 0, 0, err
	}
	piece := make([]byte, 64<<10)
	for sent < n {
		m, err := conn.Write(piece[:min(n-sent, int64(len(piece)))])
		sent += int64(m)
		if err != nil {
			break // of a pipe that is broken, what was said before can be read
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, sent, err
	}
	return resp.StatusCode, sent, nil
}

// A client that sends all before it reads finds the answer, on a plain port and
// behind TLS.
func TestAClientThatIsStillSendingReadsTheAnswer(t *testing.T) {
	const size = 64 << 20 // far beyond what the kernel holds
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			var config *tls.Config
			if secure {
				config = selfSigned(t)
			}
			own := serveWith(t, l, refuse, config)
			for range 3 {
				conn, err := net.Dial("tcp", l.Addr().String())
				must.Do(t, err)
				if secure {
					conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
				}
				_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // to find out about a hang
				status, sent, err := sendFirst(conn, fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size), size)
				if status != http.StatusUnauthorized {
					t.Errorf("status %d after %d bytes (%v), want 401", status, sent, err)
				}
				conn.Close()
			}
			own.End()
			if n := own.connections.open; n != 0 {
				t.Errorf("%d connections open, want 0", n)
			}
		})
	}
}

// What comes without an end is cut, by bytes or by time.
func TestAnEndlessBodyIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &memnet.Network{}
		l := must.Get(network.Listen("port:80"))(t)
		serve(t, l, refuse)
		for name, c := range map[string]struct {
			head  string
			pause time.Duration // between pieces
			bytes int64         // at most
			after time.Duration // at most
		}{
			"chunks":             {"Transfer-Encoding: chunked\r\n", 0, 33 << 20, 0},
			"1 TB":               {"Content-Length: 1000000000000\r\n", 0, 33 << 20, 0},
			"longer than it was": {"Content-Length: 10000\r\n", 0, 257 << 20, 0},
			"slow":               {"Content-Length: 10000\r\n", time.Second, 1 << 20, 10 * time.Second},
		} {
			conn, err := network.Dial(context.Background(), "tcp", "port:80")
			must.Do(t, err)
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			begun, sent, piece := time.Now(), int64(0), make([]byte, 64<<10)
			_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+c.head+"\r\n")
			for err == nil && sent < 1<<30 {
				n := 0
				n, err = conn.Write(piece)
				sent += int64(n)
				if c.pause > 0 {
					<-time.After(c.pause)
				}
			}
			if !errors.Is(err, io.ErrClosedPipe) || sent > c.bytes {
				t.Errorf("%s: %d bytes were taken (%v), want at most %d", name, sent, err, c.bytes)
			}
			if took := time.Since(begun); took > c.after {
				t.Errorf("%s: cut after %v, want at most %v", name, took, c.after)
			}
			conn.Close()
		}
		<-time.After(time.Second) // net/http waits for half of it behind an answer to a body that was not read
	})
}

// What lingers does not keep the program from ending.
func TestTheEndDoesNotLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &memnet.Network{}
		l := must.Get(network.Listen("port:80"))(t)
		own := serve(t, l, refuse)
		conn := must.Get(network.Dial(context.Background(), "tcp", "port:80"))(t)
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n") }()
		must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		synctest.Wait()
		begun := time.Now()
		own.End()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the end took %v, want nothing", took)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection is still open")
		}
	})
}

// The answers that net/http gives by itself reach a client that still sends.
func TestTheServersOwnAnswersReachTheClient(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	serve(t, l, accept)
	for want, head := range map[int]string{
		400: "POST / HTTP/1.1\r\nno colon\r\nContent-Length: 100\r\n\r\n",
		431: "POST / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n",
		501: "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
	} {
		conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		if status, sent, err := sendFirst(conn, head, 16<<20); status != want {
			t.Errorf("status %d after %d bytes (%v), want %d", status, sent, err, want)
		}
		conn.Close()
	}
}

func selfSigned(t testing.TB) *tls.Config {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// What Early adds to a request with a body.
func BenchmarkEarly(b *testing.B) {
	h := Early(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	r := must.Get(http.NewRequest(http.MethodPost, "http://x/", nil))(b)
	text := strings.NewReader("")
	r.Body = io.NopCloser(text)
	w := &blank{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		text.Reset("body")
		h.ServeHTTP(w, r)
	}
}

type blank struct{ header http.Header }

func (b *blank) Header() http.Header         { return b.header }
func (b *blank) Write(p []byte) (int, error) { return len(p), nil }
func (b *blank) WriteHeader(int)             {}

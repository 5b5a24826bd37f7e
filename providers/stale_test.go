package providers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// raw serves connections by hand: handle gets each with its number, from 1.
func raw(t *testing.T, handle func(n int, c net.Conn, r *bufio.Reader)) *engine {
	t.Helper()
	e := &engine{}
	var running sync.WaitGroup
	var err error
	e.Backend, err = New(Options{Client: *client, Name: "raw", BaseURL: "http://raw/v1", Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		n := int(e.dials.Add(1))
		running.Go(func() {
			defer server.Close()
			handle(n, server, bufio.NewReader(server))
		})
		return client, nil
	}})
	must.Do(t, err)
	t.Cleanup(func() {
		e.Close()
		running.Wait()
	})
	return e
}

// request reads one whole request and returns its body.
func request(r *bufio.Reader) (string, error) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(req.Body)
	return string(b), err
}

const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n\r\nok"

// An engine that closes a kept connection without a word is not broken: the
// request that finds out goes again, once, on a fresh connection.
func TestAClosedKeptConnectionIsNoFailure(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name string
		body string
		// second is what the engine does with the second request on a connection.
		second func(net.Conn, *bufio.Reader)
	}{
		{"after it read the request", "{}", func(_ net.Conn, r *bufio.Reader) { request(r) }},
		{"while a large body is written", large, func(_ net.Conn, r *bufio.Reader) { r.Discard(3000) }},
		{"before it read anything", "{}", func(net.Conn, *bufio.Reader) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bodies []string
				e := raw(t, func(_ int, c net.Conn, r *bufio.Reader) {
					body, err := request(r)
					if err != nil {
						return
					}
					bodies = append(bodies, body)
					io.WriteString(c, answer)
					if tt.name == "before it read anything" {
						<-time.After(time.Second)
					}
					tt.second(c, r)
				})
				for i := range 3 {
					if _, text, err := e.ask(Call{Body: inMemory(tt.body)}); err != nil || text != "ok" {
						t.Fatalf("request %d: %q, %v; want ok", i+1, text, err)
					}
					if tt.name == "before it read anything" {
						<-time.After(2 * time.Second)
					}
				}
				if len(bodies) != 3 || bodies[2] != tt.body {
					t.Errorf("the engine read %d whole requests, the last of %d bytes; want 3, of %d", len(bodies), len(bodies[len(bodies)-1]), len(tt.body))
				}
			})
		})
	}
}

// The retry must not take the next kept connection: the engine closed that one
// as well.
func TestTheRetryIsOnAFreshConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := raw(t, func(_ int, c net.Conn, r *bufio.Reader) {
			if _, err := request(r); err != nil {
				return
			}
			<-time.After(time.Second)
			io.WriteString(c, answer)
			r.Discard(3000) // and it is gone in the middle of the next body
		})
		body := bytes.Repeat([]byte("x"), 1<<20)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, _, err := e.ask(Call{Body: inMemory(body)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, text, err := e.ask(Call{Body: inMemory(body)}); err != nil || text != "ok" {
			t.Errorf("%q, %v with five stale connections at hand; want ok", text, err)
		}
		if n := e.dials.Load(); n != 6 {
			t.Errorf("%d connections, want 5 and a fresh one", n)
		}
	})
}

// The transport sends a POST again only if its header is there; an empty list
// is, and yet goes nowhere.
func TestARequestMayBeReplayed(t *testing.T) {
	b := must.Get(New(Options{Client: *client, Name: "b", BaseURL: "http://b"}))(t)
	req := b.request(Call{Path: "/x", Body: inMemory("{}")})
	if v, ok := req.Header["Idempotency-Key"]; !ok || len(v) != 0 {
		t.Errorf("Idempotency-Key is %q, %v; want an empty list", v, ok)
	}
	for range 2 {
		r := must.Get(req.GetBody())(t)
		if b, _ := io.ReadAll(r); string(b) != "{}" || req.ContentLength != 2 {
			t.Errorf("body %q of length %d", b, req.ContentLength)
		}
	}
}

func TestAClosedFreshConnectionIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := raw(t, func(n int, c net.Conn, r *bufio.Reader) {
			request(r)
			if n == 1 {
				io.WriteString(c, answer)
				request(r)
			}
		})
		if _, _, err := e.ask(Call{Body: inMemory("{}")}); err != nil {
			t.Fatal(err)
		}
		_, _, err := e.ask(Call{Body: inMemory("{}")}) // on the kept one, then on a fresh one
		var send *SendError
		if !errors.As(err, &send) || send.Phase != Headers {
			t.Fatalf("got %v, want a *SendError of the headers phase", err)
		}
		if send.Reason() != "closed the connection before it answered" {
			t.Errorf("reason %q", send.Reason())
		}
		if n := e.dials.Load(); n != 2 {
			t.Errorf("%d connections, want 2: one retry and no more", n)
		}
	})
}

// Once a byte of an answer was there the engine was at work on the request.
func TestABrokenAnswerIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := raw(t, func(_ int, c net.Conn, r *bufio.Reader) {
			request(r)
			io.WriteString(c, answer)
			if _, err := request(r); err == nil {
				io.WriteString(c, "HTTP/1.1 20")
			}
		})
		if _, _, err := e.ask(Call{Body: inMemory("{}")}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.ask(Call{Body: inMemory("{}")}); err == nil {
			t.Error("half an answer was taken for one")
		}
		if n := e.dials.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func TestTheHeadOfAnAnswerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := raw(t, func(_ int, c net.Conn, r *bufio.Reader) {
			request(r)
			io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for range 2 * maxHeader / 100 {
				if _, err := io.WriteString(c, "X-A: "+strings.Repeat("a", 93)+"\r\n"); err != nil {
					return
				}
			}
			io.WriteString(c, "\r\n")
		})
		if _, _, err := e.ask(Call{}); err == nil {
			t.Error("an endless head was read")
		}
	})
}

// llama.cpp closes the connection after every streamed answer although its
// headers promise to keep it; without the measures against it 14 to 33 of 100
// requests back to back fail. Over real sockets, since the race is theirs.
func TestBackToBackStreamsOfAnEngineThatCloses(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				if _, err := request(bufio.NewReader(c)); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nKeep-Alive: timeout=5, max=100\r\nTransfer-Encoding: chunked\r\n\r\n")
				for range 3 {
					io.WriteString(c, "a\r\ndata: {}\n\n\r\n")
				}
				io.WriteString(c, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
			})
		}
	})
	b := must.Get(New(Options{Client: *client, Name: "b", BaseURL: "http://" + l.Addr().String()}))(t)
	e := &engine{Backend: b}
	defer func() {
		e.Close()
		l.Close()
		running.Wait()
	}()
	failed := 0
	for i := range 500 {
		body := bytes.Repeat([]byte("x"), 1+i%3*50_000)
		if _, text, err := e.ask(Call{Body: inMemory(body)}); err != nil || !strings.HasSuffix(text, "[DONE]\n\n") {
			failed++
			t.Logf("request %d: %v", i, err)
		}
	}
	if failed > 0 {
		t.Errorf("%d of 500 requests failed, want 0", failed)
	}
}

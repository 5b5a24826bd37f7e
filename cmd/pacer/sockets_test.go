package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/sim"
)

// These tests run over real sockets: what they look for are races between the
// two ends of a connection, which a network in memory does not have.

// often is how many requests a promise of "none of 10,000" is tried with. The
// race detector, ten times slower, sees a twentieth.
func often() int {
	if racetest.On {
		return 500
	}
	return 10_000
}

// onSockets starts a gateway in front of a backend, both on loopback, and
// returns the gateway and the address of its data port.
func onSockets(tb testing.TB, backend http.Handler, more string) (p *program, addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(tb, err)
	server := &http.Server{Handler: backend}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) })
	cfg := parsed(tb, `listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
log: { level: error }
backends: [ { name: a, url: "http://`+l.Addr().String()+`/v1", kind: openai`+more+` } ]
routes: [ { model: chat, targets: [ { backend: a, model: m } ], on_infeasible: [ { queue: 1m }, shed ] } ]
`)
	p = must.Get(wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{}))(tb)
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan string, 1)
	running.Go(func() {
		if err := p.run(ctx, func(data, _ string) { ready <- data }); err != nil {
			tb.Errorf("gateway: %v", err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		server.Close()
		running.Wait()
	})
	return p, strings.TrimPrefix(<-ready, "http://")
}

const shortStream = `{"model":"chat","stream":true,"max_tokens":1,"messages":[{"role":"user","content":"hello"}]}`

// likeNode sends n streams back to back over one connection as Node's fetch
// does, head and body in two writes, and returns the first that did not come
// whole.
func likeNode(addr string, n int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", addr, len(shortStream))
	answers := bufio.NewReader(conn)
	for i := range n {
		_, err := io.WriteString(conn, head)
		if i%4 == 0 { // the answer may overtake the body
			<-time.After(200 * time.Microsecond)
		}
		if _, err2 := io.WriteString(conn, shortStream); err != nil || err2 != nil {
			return fmt.Errorf("request %d: %w", i, errors.Join(err, err2))
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 || bytes.Count(body, []byte(`"content":"`)) != 3 || !bytes.HasSuffix(body, []byte("data: [DONE]\n\n")) {
			return fmt.Errorf("request %d: %d %q (%w)", i, resp.StatusCode, body, cmp.Or(err, errors.New("not what was sent")))
		}
	}
	return nil
}

// startsAtOnce is a backend that sends the start of its answer, with a first
// event, before it reads the request's body, and the rest after it. Only so
// does the race of golang/go#40747 show: the transport of a proxy that hands on
// its client's body as it comes looks for the body's end once more after its
// last byte, and fails, with the connection that the answer comes from, where
// http.Server has closed the body between the two, which it does before it
// writes the head of an answer. An answer that came in one piece would be in
// the transport's buffer by then, and come whole; and without an event the
// gateway, which may still turn to another backend, writes no head.
func startsAtOnce(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	const (
		head  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
		event = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
		rest  = event + event + "data: [DONE]\n\n"
	)
	start := fmt.Sprintf("%s%x\r\n%s\r\n", head, len(event), event)
	end := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(rest), rest)
	for err == nil {
		if _, err = io.WriteString(conn, start); err != nil {
			return
		}
		if _, err = io.CopyN(io.Discard, rw, r.ContentLength); err != nil {
			return
		}
		if _, err = io.WriteString(conn, end); err != nil {
			return
		}
		r, err = http.ReadRequest(rw.Reader)
	}
}

// The control of the test below: through httputil.ReverseProxy its client and
// its backend lose one stream in about 500 (Go 1.26.8, two cores), so that none
// lost by the gateway means something. Should a release of Go mend the proxy,
// this test has done its work.
func TestAPlainReverseProxyTruncates(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("one goroutine at a time: the reader and the closer of the body do not race")
	}
	backend := httptest.NewServer(http.HandlerFunc(startsAtOnce))
	defer backend.Close()
	to, err := url.Parse(backend.URL)
	must.Do(t, err)
	silent := log.New(io.Discard, "", 0)
	plain := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, ErrorLog: silent,
	})
	plain.Config.ErrorLog = silent
	plain.Start()
	defer plain.Close()
	err = likeNode(strings.TrimPrefix(plain.URL, "http://"), 10_000)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of 10,000 streams through a plain reverse proxy none was truncated (%v): the test of the gateway would not see one either", err)
	}
}

// Not one of 10,000 streams back to back is truncated, from one client or from
// 64 at once; nor does one fail where the engine closes every connection that
// it promised to keep.
func TestNoStreamOf10000IsTruncated(t *testing.T) {
	closing := must.Get(sim.NewServer(sim.Options{
		Names: []string{"m"}, Model: sim.Model{A: 0.001}, Speed: 10, Noise: -1, Behaviours: []string{"closes-after-stream"},
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var engine sync.WaitGroup
	engine.Go(func() { _ = closing.Run(ctx) })
	defer engine.Wait()
	defer cancel()
	for _, backend := range []struct {
		name   string
		engine http.Handler
	}{{"starts at once", http.HandlerFunc(startsAtOnce)}, {"closes after the stream", closing}} {
		for _, clients := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s/%d clients", backend.name, clients), func(t *testing.T) {
				p, addr := onSockets(t, backend.engine, "")
				var running sync.WaitGroup
				for range clients {
					running.Go(func() {
						if err := likeNode(addr, (often()+clients-1)/clients); err != nil {
							t.Error(err)
						}
					})
				}
				running.Wait()
				s := p.metrics.Route("chat")
				// A client has its last byte before the gateway has counted it.
				for end := time.Now().Add(10 * time.Second); s.Offered < uint64(often()) && time.Now().Before(end); s = p.metrics.Route("chat") {
					runtime.Gosched()
				}
				if s.Failed+s.Shed > 0 || s.Offered < uint64(often()) {
					t.Errorf("route counts %+v, want %d offered and none failed", s, often())
				}
			})
		}
	}
}

// BenchmarkCancel measures from a client's hang-up until the backend knows of
// it, over real sockets; in line, until its place in the line is free. The
// promise is a median of at most 20 ms.
func BenchmarkCancel(b *testing.B) {
	const body = `{"model":"chat","stream":%v,"messages":[{"role":"user","content":"hello"}]}`
	for _, c := range []struct {
		name           string
		stream, inLine bool
		said           bool // something of the answer has come before
	}{
		{"in line", true, true, false},
		{"before the first byte", true, false, false},
		{"mid-stream", true, false, true},
		{"not streaming", false, false, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			reached, gone := make(chan struct{}, 2), make(chan time.Time, 2)
			more := ""
			if c.inLine {
				more = ", max_concurrency: 1"
			}
			p, addr := onSockets(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if c.said {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")
					_ = http.NewResponseController(w).Flush()
				}
				reached <- struct{}{}
				<-r.Context().Done()
				gone <- time.Now()
			}), more)
			send := func() net.Conn {
				conn := must.Get(net.Dial("tcp", addr))(b)
				text := fmt.Sprintf(body, c.stream)
				fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
				return conn
			}
			waiting := func() int { return p.router.Routes(time.Now())[0].Waiting }
			if c.inLine {
				first := send()
				defer first.Close()
				<-reached
			}
			var took []time.Duration
			for b.Loop() {
				conn := send()
				if c.inLine {
					for tick := time.NewTicker(100 * time.Microsecond); waiting() == 0; {
						<-tick.C
					}
				} else {
					<-reached
				}
				if c.said {
					must.Get(conn.Read(make([]byte, 4096)))(b)
				}
				hungUp := time.Now()
				_ = conn.Close()
				if c.inLine {
					for tick := time.NewTicker(100 * time.Microsecond); waiting() > 0; {
						<-tick.C
					}
					took = append(took, time.Since(hungUp))
				} else {
					took = append(took, (<-gone).Sub(hungUp))
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

//go:build linux

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/relayloop"
	"github.com/pacer-dev/pacer/providers"
)

// These tests send the same to a gateway whose streams loops pass on, and to one
// whose streams goroutines do, over real sockets, and compare what the client, the
// backend and the log see.

// patience bounds each wait for a condition.
const patience = time.Minute

// speaker is a backend that says by hand what a test has it say, to each request
// on each connection.
type speaker struct {
	net.Listener
	over  wiring
	say   atomic.Pointer[func(c net.Conn) (again bool)]
	conns atomic.Int64 // accepted
}

func startSpeaker(t *testing.T, over wiring) *speaker {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	if over.back {
		l = tls.NewListener(l, certified(t).Config())
	}
	s := &speaker{Listener: l, over: over}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			running.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return s
}

func (s *speaker) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if req.Method == http.MethodGet { // the prober's
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			continue
		}
		if !(*s.say.Load())(c) {
			return
		}
	}
}

func (s *speaker) says(f func(c net.Conn) (again bool)) { s.say.Store(&f) }

// wiring is what is encrypted.
type wiring struct{ front, back bool }

// overAll runs test in each wiring.
func overAll(t *testing.T, test func(t *testing.T, over wiring)) {
	for _, over := range []wiring{{}, {front: true}, {back: true}, {front: true, back: true}} {
		t.Run(fmt.Sprintf("tls in front %v, to the backend %v", over.front, over.back), func(t *testing.T) { test(t, over) })
	}
}

// certified is a certificate that nobody has signed.
func certified(t *testing.T) *Certificate {
	t.Helper()
	file, key := writeCertificate(t, t.TempDir(), 1)
	c := must.Get(LoadCertificate(file, key, slog.New(slog.DiscardHandler)))(t)
	return c
}

// socketOf is what is below c.
func socketOf(c net.Conn) *net.TCPConn {
	if encrypted, ok := c.(*tls.Conn); ok {
		c = encrypted.NetConn()
	}
	return c.(*net.TCPConn)
}

// front is a gateway before s, by loops or by goroutines.
type front struct {
	*house
	addr string
	name string
	over wiring
}

func openFront(t *testing.T, s *speaker, relay string, change func(*config.Config)) *front {
	t.Helper()
	c := settings("a")
	c.Relay = relay
	c.Backends[0].Kind = "vllm"
	c.Routes[0].SLO.MinTPS = 0
	if change != nil {
		change(c)
	}
	loops := must.Get(relayloop.New(2))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = loops.Run(ctx) })
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr().String())
	}
	if s.over.back {
		c.Backends[0].URL = "https://a/v1"
	}
	h := openWith(t, c, nil, houseOptions{dial: dial, loops: loops, tls: &tls.Config{InsecureSkipVerify: true}})
	h.gateway.relays.after = 0 // all that there is to a stream passes through a loop
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	settings := &http.Server{Handler: h.gateway.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	wrapped := h.gateway.Listen(settings, l, 0)
	server, served := serverOf(t, settings), net.Listener(wrapped)
	if s.over.front {
		server, served = settings, tls.NewListener(wrapped, certified(t).Config())
	}
	running.Go(func() { _ = server.Serve(served) })
	running.Go(func() { _ = server.Serve(wrapped.Returned()) })
	t.Cleanup(func() {
		h.gateway.End()
		server.Close()
		until(t, "no answer is with the loops", func() bool { return h.gateway.Looped() == 0 })
		cancel()
		running.Wait()
		wrapped.End()
	})
	return &front{house: h, addr: l.Addr().String(), name: relay, over: s.over}
}

func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// both are the two ways, before one backend.
func both(t *testing.T, over wiring, change func(*config.Config)) (*speaker, []*front) {
	t.Helper()
	s := startSpeaker(t, over)
	return s, []*front{openFront(t, s, "goroutines", change), openFront(t, s, "loop", change)}
}

func (f *front) dial() net.Conn {
	f.t.Helper()
	c := must.Get(net.Dial("tcp", f.addr))(f.t)
	if f.over.front {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	f.t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request for a stream.
func (f *front) ask() net.Conn {
	f.t.Helper()
	c := f.dial()
	_, _ = io.WriteString(c, asking("HTTP/1.1", ""))
	return c
}

const askedStream = `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hi"}]}`

func asking(proto, header string) string {
	return fmt.Sprintf("POST /v1/chat/completions %s\r\nHost: gateway\r\nX-Request-Id: same\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", proto, header, len(askedStream), askedStream)
}

// seen is what a client saw of one answer.
type seen struct {
	Status int
	Header string
	Body   string
	Err    string // of reading the body
	Close  bool
}

func read(t *testing.T, r *bufio.Reader) seen {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return seen{Err: err.Error()}
	}
	body, err := io.ReadAll(resp.Body)
	resp.Header.Del("Date")
	resp.Header.Del("X-Pacer-Decision")
	resp.Header.Del("X-Pacer-Predicted-Tps")
	var header bytes.Buffer
	_ = resp.Header.Write(&header)
	out := seen{Status: resp.StatusCode, Header: header.String(), Body: string(body), Close: resp.Close}
	if err != nil {
		out.Err = err.Error()
	}
	return out
}

// line is the access-log line of the request that is the nth, without times.
func (f *front) line(n int) logLine {
	f.t.Helper()
	until(f.t, "the log has its line", func() bool { return len(f.log.requests()) >= n })
	line := f.log.requests()[n-1]
	line.TPS, line.TTFTms, line.WaitedMS = 0, 0, 0
	if line.Source == "estimate" { // it goes by how much came at once
		line.Tokens = 0
	}
	if line.Source == "continuous" { // in whole reads: what came at once is one count
		line.Source = "usage"
	}
	line.Error = ports.ReplaceAllString(line.Error, "")
	return line
}

// ports are those that net names in its errors.
var ports = regexp.MustCompile(`read tcp [0-9.:]+->[0-9.:]+: `)

func sayHead(c net.Conn, header string) {
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"+header+"\r\n")
}

func sayChunks(c net.Conn, text string, cut func(n int) int) {
	for len(text) > 0 {
		n := min(cut(len(text)), len(text))
		_, _ = fmt.Fprintf(c, "%x\r\n%s\r\n", n, text[:n])
		text = text[n:]
	}
}

// sayEnd says text in one chunk, and ends the answer.
func sayEnd(c net.Conn, text string) {
	sayChunks(c, text, func(n int) int { return n })
	_, _ = io.WriteString(c, "0\r\n\r\n")
}

// sayAll says an answer in chunks of so many bytes.
func sayAll(text string, chunk int) func(net.Conn) (again bool) {
	return func(c net.Conn) bool {
		sayHead(c, chunked)
		sayChunks(c, text, func(int) int { return chunk })
		sayEnd(c, "")
		return true
	}
}

const (
	chunked = "Transfer-Encoding: chunked\r\n"
	content = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}` + "\n\n"
	ends    = "data: [DONE]\n\n"
)

// What a client gets of recorded streams is the same, however they are cut, and so
// is what the log says of them.
func TestLoopsPassOnWhatGoroutinesDo(t *testing.T) { overAll(t, loopsPassOnWhatGoroutinesDo) }

func loopsPassOnWhatGoroutinesDo(t *testing.T, over wiring) {
	t.Helper()
	s, fronts := both(t, over, nil)
	late := openFront(t, s, "loop", nil) // whose loop takes a stream somewhere on its way
	fronts = append(fronts, late)
	files, err := filepath.Glob(filepath.Join("..", "providers", "testdata", "*.sse"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recorded streams (%v)", len(files), err)
	}
	recorded := make([]string, len(files))
	for i, file := range files {
		b := must.Get(os.ReadFile(file))(t)
		recorded[i] = string(b)
	}
	random := rand.New(rand.NewPCG(1, 2))
	requests := 0
	for range 5 { // the streams that fail are apart: five failures in a row would open a breaker
		for i, file := range files {
			requests++
			most, seed := 1+random.IntN(200), random.Uint64()
			late.gateway.relays.after = time.Duration(random.IntN(1000)) * time.Microsecond
			s.says(func(c net.Conn) bool {
				cuts := rand.New(rand.NewPCG(seed, 1))
				sayHead(c, chunked)
				sayChunks(c, recorded[i], func(n int) int {
					if cuts.IntN(20) == 0 {
						return n // all that is left
					}
					return 1 + cuts.IntN(most)
				})
				_, _ = io.WriteString(c, "0\r\n\r\n")
				return true
			})
			compare(t, filepath.Base(file), fronts, requests, func(f *front) seen {
				c := f.ask()
				defer c.Close()
				return read(t, bufio.NewReader(c))
			})
		}
	}
}

// compare has both fronts do the same, and checks that they do, and log, the same.
func compare(t *testing.T, name string, fronts []*front, n int, do func(*front) seen) (saw seen, line logLine) {
	t.Helper()
	for i, f := range fronts {
		got := do(f)
		logged := f.line(n)
		if i == 0 {
			saw, line = got, logged
			continue
		}
		if got != saw {
			t.Errorf("%s: %s: the client saw\n%+v\nwant\n%+v", name, f.name, got, saw)
		}
		if logged != line {
			t.Errorf("%s: %s: the log has\n%+v\nwant\n%+v", name, f.name, logged, line)
		}
	}
	return saw, line
}

// Ends of all kinds look the same, to the client and in the log.
func TestLoopsEndAsGoroutinesDo(t *testing.T) { overAll(t, loopsEndAsGoroutinesDo) }

func loopsEndAsGoroutinesDo(t *testing.T, over wiring) {
	t.Helper()
	start := func(c net.Conn, header string) {
		sayHead(c, header)
		sayChunks(c, content+content, func(n int) int { return len(content) })
	}
	for name, say := range map[string]func(c net.Conn) bool{
		"closed within the stream": func(c net.Conn) bool { start(c, chunked); return false },
		"closed within a chunk": func(c net.Conn) bool {
			start(c, chunked)
			_, _ = io.WriteString(c, "ff\r\ndata: {")
			return false
		},
		"reset": func(c net.Conn) bool {
			start(c, chunked)
			_ = socketOf(c).SetLinger(0)
			return false
		},
		"no chunk": func(c net.Conn) bool {
			start(c, chunked)
			_, _ = io.WriteString(c, "no size\r\n")
			_, _ = c.Read(make([]byte, 1)) // until it is closed there
			return false
		},
		"a clean end without the last event": func(c net.Conn) bool {
			start(c, chunked)
			_, _ = io.WriteString(c, "0\r\n\r\n")
			return true
		},
		"an error event": func(c net.Conn) bool {
			start(c, chunked)
			sayEnd(c, `data: {"error":{"message":"no","code":500}}`+"\n\n")
			return true
		},
		"garbage": func(c net.Conn) bool {
			start(c, chunked)
			sayEnd(c, "data: {garbage\n\n"+ends)
			return true
		},
		"more behind the end": func(c net.Conn) bool {
			start(c, chunked)
			sayChunks(c, ends, func(n int) int { return n })
			_, _ = io.WriteString(c, "0\r\n\r\nHTTP/1.1 200 OK\r\n")
			return false
		},
		"the last event, and no end": func(c net.Conn) bool {
			start(c, chunked)
			sayChunks(c, ends, func(n int) int { return n })
			_, _ = c.Read(make([]byte, 1))
			return false
		},
		"silence": func(c net.Conn) bool {
			start(c, chunked)
			_, _ = c.Read(make([]byte, 1))
			return false
		},
		"until the connection ends": func(c net.Conn) bool {
			sayHead(c, "Connection: close\r\n")
			_, _ = io.WriteString(c, content)
			_, _ = io.WriteString(c, content+ends)
			return false
		},
		"a length": func(c net.Conn) bool {
			sayHead(c, fmt.Sprintf("Content-Length: %d\r\n", 2*len(content)+len(ends)))
			_, _ = io.WriteString(c, content)
			_, _ = io.WriteString(c, content+ends)
			return true
		},
		"a length, and less": func(c net.Conn) bool {
			sayHead(c, "Content-Length: 100000\r\n")
			_, _ = io.WriteString(c, content)
			_, _ = io.WriteString(c, content)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, fronts := both(t, over, func(c *config.Config) {
				if name == "silence" {
					c.Timeouts.Silence, c.Timeouts.FirstByte = 200*time.Millisecond, 200*time.Millisecond
				}
			})
			s.says(say)
			saw, line := compare(t, name, fronts, 1, func(f *front) seen {
				c := f.ask()
				return read(t, bufio.NewReader(c))
			})
			if !strings.HasPrefix(saw.Body, content) {
				t.Errorf("the client saw %+v (%+v)", saw, line)
			}
		})
	}
}

// A connection serves one request after the other, also those that were sent
// before they could be read, and ends where somebody says so.
func TestALoopedConnectionGoesBack(t *testing.T) { overAll(t, aLoopedConnectionGoesBack) }

func aLoopedConnectionGoesBack(t *testing.T, over wiring) {
	t.Helper()
	s, fronts := both(t, over, nil)
	s.says(sayAll(content+content+ends, len(content)))
	for _, f := range fronts {
		c := f.dial()
		r := bufio.NewReader(c)
		one := asking("HTTP/1.1", "")
		for i, text := range []string{one, one, one + one + one, "", "", "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n", one + one[:40], one[40:], asking("HTTP/1.1", "Connection: close\r\n")} {
			_, _ = io.WriteString(c, text)
			got := read(t, r)
			if i == 6 {
				continue // of the second nothing may come yet
			}
			if got.Status != 200 || got.Err != "" || got.Close != (i == 8) || i != 5 && got.Body != content+content+ends {
				t.Fatalf("%s: answer %d: %+v", f.name, i, got)
			}
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("%s: the connection did not end: %v", f.name, err)
		}
		old := f.dial()
		_, _ = io.WriteString(old, asking("HTTP/1.0", ""))
		if got, err := io.ReadAll(old); err != nil || !bytes.HasSuffix(got, []byte("\r\n\r\n"+content+content+ends)) {
			t.Errorf("%s: HTTP/1.0 got %q (%v)", f.name, got, err)
		}
	}
	if n := s.conns.Load(); n > 2+2 { // a connection of its own for each prober
		t.Errorf("%d connections were made to the backend for requests that came one by one, want two, and two of the probers", n)
	}
}

// Line ends behind the body of a request are skipped, as servers do, whenever they come.
func TestLineEndsBehindALoopedRequest(t *testing.T) { overAll(t, lineEndsBehindALoopedRequest) }

func lineEndsBehindALoopedRequest(t *testing.T, over wiring) {
	t.Helper()
	s, fronts := both(t, over, nil)
	var client atomic.Pointer[net.Conn]
	s.says(func(c net.Conn) bool {
		sayHead(c, chunked)
		sayChunks(c, content+content, func(int) int { return len(content) })
		time.Sleep(20 * time.Millisecond) // epoll knows no virtual time; whatever comes together, the answers are the same
		if client := client.Load(); client != nil {
			_, _ = io.WriteString(*client, "\r\n")
			time.Sleep(20 * time.Millisecond)
		}
		sayEnd(c, ends)
		return true
	})
	for _, f := range fronts {
		for _, when := range []string{"with the request", "during the answer", "behind it"} {
			c := f.dial()
			r := bufio.NewReader(c)
			for i := range 3 {
				client.Store(nil)
				if when == "during the answer" {
					client.Store(&c)
				}
				text := asking("HTTP/1.1", "")
				if when == "with the request" {
					text += "\r\n"
				}
				_, _ = io.WriteString(c, text)
				if got := read(t, r); got.Status != 200 || got.Err != "" || got.Body != content+content+ends {
					t.Fatalf("%s: line ends %s: answer %d: %+v", f.name, when, i, got)
				}
				if when == "behind it" {
					_, _ = io.WriteString(c, "\r\n")
				}
			}
			c.Close()
		}
	}
}

// A client that leaves takes its request with it, before the backend says another
// word, in the middle of a stream and behind bytes that it has not read.
func TestALoopedClientThatLeaves(t *testing.T) { overAll(t, aLoopedClientThatLeaves) }

func aLoopedClientThatLeaves(t *testing.T, over wiring) {
	t.Helper()
	s, fronts := both(t, over, nil)
	for _, f := range fronts {
		for n, reset := range []bool{false, true} {
			left := make(chan error, 1)
			s.says(func(c net.Conn) bool {
				sayHead(c, chunked)
				sayChunks(c, content+content, func(int) int { return len(content) })
				_, err := c.Read(make([]byte, 1)) // it says nothing more until the connection ends
				left <- err
				return false
			})
			c := f.ask()
			got := make([]byte, 4<<10)
			for all := 0; !bytes.Contains(got[:all], []byte("hello")); {
				m, err := c.Read(got[all:])
				if all += m; err != nil {
					t.Fatal(err)
				}
			}
			if reset {
				_ = socketOf(c).SetLinger(0)
			}
			c.Close()
			select {
			case err := <-left:
				if err == nil {
					t.Errorf("%s: the backend was told something", f.name)
				}
			case <-time.After(patience):
				t.Fatalf("%s: the backend was not told that its client has left", f.name)
			}
			if line := f.line(n + 1); line.Outcome != "client_gone" {
				t.Errorf("%s: outcome %q, want client_gone", f.name, line.Outcome)
			}
		}
	}
}

// A stream goes to a loop although its backend says nothing more, and goes on there. One
// that ends before leaves its connection as it was.
func TestASilentStreamGoesToALoop(t *testing.T) { overAll(t, aSilentStreamGoesToALoop) }

func aSilentStreamGoesToALoop(t *testing.T, over wiring) {
	t.Helper()
	s := startSpeaker(t, over)
	f := openFront(t, s, "loop", nil)
	f.gateway.relays.after = 50 * time.Millisecond
	for i := range 3 {
		more := make(chan bool)
		s.says(func(c net.Conn) bool {
			sayHead(c, chunked)
			sayChunks(c, content, func(n int) int { return n })
			if i == 1 {
				<-more
			}
			sayEnd(c, ends)
			return true
		})
		c := f.ask()
		if i == 1 {
			if *client != providers.ClientNetHTTP { // whose connections no loop takes
				until(t, "a loop has the silent stream", func() bool { return f.gateway.Looped() == 1 })
			}
			close(more)
		}
		if got := read(t, bufio.NewReader(c)); got.Body != content+ends || got.Err != "" {
			t.Errorf("stream %d: %+v", i, got)
		}
		_ = f.line(i + 1)
		c.Close()
	}
	if n := s.conns.Load(); n > 1+1 {
		t.Errorf("%d connections to the backend, want one, and one of the prober", n)
	}
}

// A client that takes nothing stops nobody else, and gets all when it reads.
func TestALoopedClientThatBlocks(t *testing.T) { overAll(t, aLoopedClientThatBlocks) }

func aLoopedClientThatBlocks(t *testing.T, over wiring) {
	t.Helper()
	s, fronts := both(t, over, nil)
	long := strings.Repeat(content, 100_000) // beyond what sockets hold
	for _, f := range fronts {
		s.says(sayAll(long+ends, 100*len(content)))
		blocked := f.ask()
		first := bufio.NewReader(blocked)
		must.Get(first.Peek(1))(t)
		s.says(sayAll(content+content+ends, len(content)))
		for range 20 {
			c := f.ask()
			if got := read(t, bufio.NewReader(c)); got.Body != content+content+ends || got.Err != "" {
				t.Fatalf("%s: beside one that blocks: %+v", f.name, got)
			}
			c.Close()
		}
		if got := read(t, first); got.Body != long+ends || got.Err != "" {
			t.Errorf("%s: %d bytes (%s), want %d", f.name, len(got.Body), got.Err, len(long)+len(ends))
		}
	}
}

// One that takes nothing for too long is given up, and one that the gateway's end
// breaks off is told so.
func TestALoopedStreamThatIsGivenUp(t *testing.T) { overAll(t, aLoopedStreamThatIsGivenUp) }

func aLoopedStreamThatIsGivenUp(t *testing.T, over wiring) {
	t.Helper()
	s, fronts := both(t, over, func(c *config.Config) { c.Timeouts.Write = 300 * time.Millisecond })
	long := strings.Repeat(content, 200_000)
	for _, f := range fronts {
		s.says(func(c net.Conn) bool {
			sayHead(c, chunked)
			sayChunks(c, long, func(int) int { return 100 * len(content) })
			return false
		})
		f.ask() // and reads nothing
		if line := f.line(1); line.Outcome != "client_gone" || line.Error != errClientSlow.Error() && !strings.Contains(line.Error, errClientSlow.Error()) {
			t.Errorf("%s: %+v, want a client that is too slow", f.name, line)
		}
		s.says(func(c net.Conn) bool {
			sayHead(c, chunked)
			sayChunks(c, content+content, func(int) int { return len(content) })
			_, _ = c.Read(make([]byte, 1))
			return false
		})
		c := f.ask()
		r := bufio.NewReader(c)
		resp := must.Get(http.ReadResponse(r, nil))(t)
		must.Get(io.ReadFull(resp.Body, make([]byte, 2*len(content))))(t)
		f.gateway.End()
		rest, err := io.ReadAll(resp.Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Contains(rest, []byte("upstream_disconnected")) {
			t.Errorf("%s: the end of the gateway: %q (%v), want an error event and no end", f.name, rest, err)
		}
	}
}

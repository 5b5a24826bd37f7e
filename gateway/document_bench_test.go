package gateway

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/providers"
)

const (
	documentAnswer  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nServer: uvicorn\r\nContent-Length: 164\r\n\r\n" + documentBody
	documentBody    = `{"id":"c1","object":"chat.completion","model":"big","choices":[{"index":0,"message":{"content":"hello"}}],"usage":{"prompt_tokens":7,"completion_tokens":2,"x":"0"}}`
	documentRequest = "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nAccept: */*\r\nUser-Agent: OpenAI/Python 1.0\r\nAuthorization: Bearer x\r\nContent-Length: 68\r\n\r\n" +
		`{"model":"chat","messages":[{"role":"user","content":"hello, you"}]}`
)

// answerEach answers each request on l with answer, allocating nothing for it: a
// request has come when its bytes end with a brace.
func answerEach(l net.Listener, answer string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			buf, text := make([]byte, 64<<10), []byte(answer)
			for n := 0; ; {
				m, err := c.Read(buf[n:])
				if err != nil {
					return
				}
				if n += m; buf[n-1] == '}' {
					n = 0
					if _, err := c.Write(text); err != nil {
						return
					}
				}
			}
		}()
	}
}

// socketClient is a client with one connection to a gateway on a socket, with an engine
// on another. It allocates nothing for a request.
type socketClient struct {
	tb   testing.TB
	conn net.Conn
	buf  []byte
}

func newSocketClient(tb testing.TB, answer string) *socketClient {
	engine := must.Get(net.Listen("tcp", "127.0.0.1:0"))(tb)
	go answerEach(engine, answer)
	h := openWith(tb, settings("a"), nil, houseOptions{learnEvery: 1000 * time.Hour, dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", engine.Addr().String())
	}})
	port := must.Get(net.Listen("tcp", "127.0.0.1:0"))(tb)
	settings := &http.Server{Handler: h.gateway.Handler()}
	wrapped := h.gateway.Listen(settings, port, 0)
	s := serverOf(tb, settings)
	go s.Serve(wrapped)
	conn := must.Get(net.Dial("tcp", port.Addr().String()))(tb)
	tb.Cleanup(func() { conn.Close(); s.Close(); engine.Close() })
	return &socketClient{tb: tb, conn: conn, buf: make([]byte, 64<<10)}
}

// ask sends a request and reads its answer up to end.
func (a *socketClient) ask(request, end []byte) {
	must.Get(a.conn.Write(request))(a.tb)
	for n := 0; !bytes.HasSuffix(a.buf[:n], end); {
		m, err := a.conn.Read(a.buf[n:])
		if err != nil {
			a.tb.Fatalf("%v behind %s", err, a.buf[:n])
		}
		n += m
	}
}

// A document over sockets, from the client to the engine and back: budget 60
// allocations.
func BenchmarkDocument(b *testing.B) {
	a := newSocketClient(b, documentAnswer)
	request, end := []byte(documentRequest), []byte(documentBody)
	a.ask(request, end)
	b.ReportAllocs()
	for b.Loop() {
		a.ask(request, end)
	}
}

// mostAllocations is what a document may take.
const mostAllocations = 60

func TestADocumentAllocatesLittle(t *testing.T) {
	if racetest.On {
		t.Skip("the race detector allocates too")
	}
	if *client != providers.ClientOwn || *server != serverOwn {
		t.Skip("the bound is of the own client and the own server: those of net/http take 60 and 15 more")
	}
	a := newSocketClient(t, documentAnswer)
	request, end := []byte(documentRequest), []byte(documentBody)
	for range 50 { // pools fill, and curves are learned
		a.ask(request, end)
	}
	if got := testing.AllocsPerRun(200, func() { a.ask(request, end) }); got > mostAllocations {
		t.Errorf("%v allocations for a document, want %d at most", got, mostAllocations)
	}
}

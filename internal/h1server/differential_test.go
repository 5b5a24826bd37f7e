package h1server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// echo answers with what it was asked, in the way that the path says.
func echo(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/unread", "/rest":
		if r.URL.Path == "/rest" {
			clientconn.TakeRest(w, r)
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "no")
		return
	case "/panic":
		panic(http.ErrAbortHandler)
	case "/cut":
		_, _ = io.WriteString(w, "a part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(w, "x")
		if err != http.ErrBodyNotAllowed {
			panic(err)
		}
		return
	case "/silent":
		return
	case "/early":
		w.Header().Set("Link", "</x>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusProcessing)
	case "/switch", "/unchanged", "/empty":
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "12")
		w.Header().Set("Upgrade", "other")
		w.WriteHeader(map[string]int{"/switch": 101, "/unchanged": 304, "/empty": 204}[r.URL.Path])
		return
	}
	body, err := io.ReadAll(r.Body)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %q %q %q %v %v %v %q %d\n", r.Method, r.RequestURI, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Proto, r.Close, r.ContentLength, r.Host, len(r.TransferEncoding))
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%s: %q\n", name, r.Header[name])
	}
	fmt.Fprintf(&b, "%q %v\n", body, err)
	switch r.URL.Path {
	case "/long":
		b.WriteString(strings.Repeat("long ", 2000))
	case "/length":
		w.Header().Set("Content-Length", fmt.Sprint(b.Len()))
	case "/short":
		w.Header().Set("Content-Length", fmt.Sprint(b.Len()+1))
	case "/over":
		w.Header().Set("Content-Length", "3")
	case "/type":
		w.Header()["Content-Type"] = nil
	case "/json":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "not seen")
	case "/odd":
		w.Header().Set("X-Lines", " a\r\nX-Evil: 1\n")
		w.Header()["bad name"] = []string{"x"}
		w.Header()["lower"] = []string{"1", "2"}
		w.Header().Set("Date", "now")
		w.WriteHeader(299)
	case "/close":
		w.Header().Set("Connection", "close")
	case "/flush":
		w.Header().Set("Content-Type", "text/event-stream")
		c := http.NewResponseController(w)
		_ = c.Flush()
		for part := range slices.Chunk(b.Bytes(), 7) {
			_, _ = w.Write(part)
			_ = c.Flush()
		}
		return
	}
	_, _ = w.Write(b.Bytes())
}

// ask has a server, own or net/http's, answer what is written in parts over one
// connection, and returns all that came back. It runs in virtual time.
func ask(t *testing.T, own bool, parts ...string) []byte {
	t.Helper()
	var network memnet.Network
	l := must.Get(network.Listen("server:80"))(t)
	s := &http.Server{Handler: clientconn.Early(http.HandlerFunc(echo)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	served := interface {
		Serve(net.Listener) error
		Close() error
	}(s)
	if own {
		served = must.Get(New(s))(t)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = served.Serve(l) }()
	c := must.Get(network.Dial(context.Background(), "tcp", "server:80"))(t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				return
			}
			synctest.Wait()
		}
	}()
	got, _ := io.ReadAll(c) // until the server closes it
	c.Close()
	<-sent
	_ = served.Close()
	<-done
	return got
}

// answers is what a client reads in got.
func answers(got []byte) string {
	var b strings.Builder
	r := bufio.NewReader(bytes.NewReader(got))
	for {
		if _, err := r.Peek(1); err != nil {
			return b.String()
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			fmt.Fprintf(&b, "no answer: %v\n", err)
			return b.String()
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Header.Get("Date") == "" {
			b.WriteString("without a date\n")
		}
		if resp.Header.Get("Date") != "now" {
			resp.Header.Del("Date")
		}
		fmt.Fprintf(&b, "%s %v %d %v %v\n", resp.Status, resp.Close, resp.ContentLength, resp.TransferEncoding, resp.Header)
		fmt.Fprintf(&b, "%q %v\n", body, err)
	}
}

// last ends the connection behind a request that leaves it open.
const last = "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

// same fails unless both servers say the same to what comes in parts.
func same(t *testing.T, parts ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		want, got := answers(ask(t, false, parts...)), answers(ask(t, true, parts...))
		if got != want {
			t.Errorf("to %q\nown:\n%s\nnet/http:\n%s", parts, got, want)
		}
	})
}

// requests are of all forms: plain ones, unusual ones, and such as smuggle.
var requests = []string{
	"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST /json?q=%20x&y HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\ncontent-type: text/plain\r\nX-A: 1\r\nx-a:  2 \r\n\r\nhello",
	"POST /flush HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
	"POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
	"POST /rest HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
	"PUT /length HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
	"DELETE /a%2fb HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
	"GET /long HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /short HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /over HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /type HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /odd HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /close HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /none HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /silent HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /panic HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /cut HTTP/1.1\r\nHost: h\r\n\r\n",
	"OPTIONS /x HTTP/1.1\r\nHost: h\r\nOrigin: http://a\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	"HEAD /json HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /{x} HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /a(b)'c*!;=@:$&+, HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /a?b#c HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET //a/../b HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET http://other/x HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /\x80 HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
	"GET / HTTP/1.2\r\nHost: h\r\n\r\n",
	"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
	"get / HTTP/1.1\r\nHost: h\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nPragma: no-cache\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nX-Tab:\ta\tb\r\nX-High: \xff\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nConnection: close, x\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	"GET / HTTP/1.1\nHost: h\n\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nnothing\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX\xc3\xa4: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2, 2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 02\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nTrailer: X\r\nContent-Length: 2\r\n\r\nhi",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\n\r\n\r\n",
	"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\nX-Behind: 1\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nX-Long: " + strings.Repeat("long ", headRoom/4) + "\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X-Many: 1\r\n", 200) + "\r\n",
	"GET /early HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /switch HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /unchanged HTTP/1.1\r\nHost: h\r\n\r\n",
	"GET /empty HTTP/1.1\r\nHost: h\r\n\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}

// Both servers say the same, whatever is asked, alone and behind a plain request.
func TestAnswersAsNetHTTP(t *testing.T) {
	for i, r := range requests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			same(t, r, last)
			same(t, r+last)
			same(t, requests[1]+r+last)
			same(t, requests[1], r+last)
		})
	}
}

// Lengths up to the largest that there is, and beyond: a request of one that is too
// large to be counted is net/http's, which says 400.
func TestLengthsAsNetHTTP(t *testing.T) {
	for _, length := range lengths {
		r := "POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: " + length + "\r\n\r\nhi"
		same(t, r, last)
		same(t, r+last)
		same(t, requests[1]+r+last)
	}
}

var lengths = []string{
	"1000000000000000000", "9223372036854775806", "9223372036854775807", "9223372036854775808", "9999999999999999999",
	"18446744073709551615", "18446744073709551616", "18446744073709551618", "10000000000000000000000", "9223372036854775807 ",
	"9_223", "1e3", "٣", "2\t", "0x7fffffffffffffff",
}

// Wherever a read ends.
func TestAnswersAsNetHTTPAtEveryCut(t *testing.T) {
	text := requests[1] + requests[2] + requests[51] + last
	for i := 1; i < len(text); i++ {
		same(t, text[:i], text[i:])
	}
}

// Requests put together at random, with bytes that were changed at random.
func TestAnswersAsNetHTTPAtRandom(t *testing.T) {
	count := 400
	if testing.Short() {
		count = 40
	}
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 15))
		text := ""
		for range 1 + r.IntN(3) {
			one := []byte(requests[r.IntN(len(requests))])
			if r.IntN(2) == 0 {
				const bytes = "\r\n \t:,;0139aZ\x00\x7f\xff/%?#-"
				one[r.IntN(len(one))] = bytes[r.IntN(len(bytes))]
			}
			text += string(one)
		}
		text += last
		cut := r.IntN(len(text))
		same(t, text[:cut], text[cut:])
	}
}

// What is parsed here is to net/http the same request.
func FuzzHead(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(r))
	}
	for _, length := range lengths {
		f.Add([]byte("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + length + "\r\n\r\nhi"))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var h head
		n := h.parse(p)
		if n == 0 {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p)))
		if err != nil {
			t.Fatalf("net/http: %v", err)
		}
		if r.Host != h.host || r.Method != h.method || r.RequestURI != h.target || *r.URL != *h.url || r.ContentLength != h.length || r.Close != h.close || len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			t.Errorf("%+v, net/http: %+v", h, r)
		}
		r.Header.Del("Host")
		if !maps.EqualFunc(r.Header, h.header, slices.Equal[[]string]) {
			t.Errorf("headers %v, net/http: %v", h.header, r.Header)
		}
	})
}

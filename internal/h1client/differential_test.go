package h1client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // net/http says what it found behind an answer
	goleak.VerifyTestMain(m)
}

const maxHead = 64 << 10

// said is what a client makes of an answer.
type said struct {
	Status int
	Header http.Header
	Length int64
	Body   string
	Failed bool // with the head, or in the body
}

// server says text on each connection, in pieces of cut bytes (0 = at once), and
// closes it.
func server(text string, cut int) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			r := bufio.NewReader(server)
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			for rest := text; rest != ""; {
				n := len(rest)
				if cut > 0 {
					n = min(n, cut)
				}
				if _, err := io.WriteString(server, rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		return client, nil
	}
}

func readAll(resp *http.Response, err error) said {
	if err != nil {
		return said{Failed: true}
	}
	defer resp.Body.Close()
	s := said{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength}
	b, err := io.ReadAll(resp.Body)
	s.Body, s.Failed = string(b), err != nil
	return s
}

func viaOwn(t testing.TB, method, text string, cut int) said {
	c := New(Options{Dial: server(text, cut), Addr: "engine:80", ConnectTimeout: time.Minute, IdleTimeout: time.Minute, MaxIdle: 1, MaxHead: maxHead})
	defer c.CloseIdle()
	return readAll(c.Do(context.Background(), &Request{Head: []byte(method + " / HTTP/1.1\r\nHost: engine\r\n\r\n"), NoAnswerBody: method == "HEAD"}))
}

func viaTransport(t testing.TB, method, text string, cut int) said {
	tr := &http.Transport{DialContext: server(text, cut), DisableCompression: true, MaxResponseHeaderBytes: maxHead}
	defer tr.CloseIdleConnections()
	req := must.Get(http.NewRequest(method, "http://engine/", nil))(t)
	return readAll(tr.RoundTrip(req))
}

// same reports how what both made of text differs; "" = not at all. strict says
// that the own client may refuse what the other one takes.
func same(t testing.TB, method, text string, cut int) (diff string, refused bool) {
	own, other := viaOwn(t, method, text, cut), viaTransport(t, method, text, cut)
	if own.Failed && !other.Failed {
		return "", true
	}
	if own.Failed && other.Failed { // how much of a body came before it failed is chance
		if n := min(len(own.Body), len(other.Body)); own.Body[:n] != other.Body[:n] {
			return fmt.Sprintf("bodies %q and %q", own.Body, other.Body), false
		}
		return "", false
	}
	// What net/http makes up out of Pragma, and what it says of connections.
	for _, h := range []http.Header{own.Header, other.Header} {
		delete(h, "Connection")
		delete(h, "Trailer")
		if h["Pragma"] != nil {
			delete(h, "Cache-Control")
		}
	}
	return cmp.Diff(other, own), false
}

const ok = "HTTP/1.1 200 OK\r\n"

// answers are what servers say: of good faith, careless, and of bad faith.
var answers = map[string]string{
	"length":                      ok + "Content-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
	"nothing":                     ok + "Content-Length: 0\r\n\r\n",
	"to the end":                  ok + "Content-Type: text/plain\r\n\r\nhello",
	"chunks":                      ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
	"chunks with extensions":      ok + "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1;c\r\n!\r\n0;x\r\n\r\n",
	"a blank behind a size":       ok + "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
	"a blank before an extension": ok + "Transfer-Encoding: chunked\r\n\r\n5 ;a\r\nhello\r\n0\r\n\r\n",
	"chunks in capitals":          ok + "transfer-encoding: CHUNKED\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
	"a trailer":                   ok + "Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\nX-B: c\r\n\r\n",
	"zeroes before a size":        ok + "Transfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n000\r\n\r\n",
	"chunks that are cut":         ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
	"no last chunk":               ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	"a last chunk that is cut":    ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
	"a length that is cut":        ok + "Content-Length: 50\r\n\r\nhello",
	"more than the length":        ok + "Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"more than the last chunk":    ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
	"two equal lengths":           ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"two lengths":                 ok + "Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello",
	"a list of lengths":           ok + "Content-Length: 5, 5\r\n\r\nhello",
	"a negative length":           ok + "Content-Length: -5\r\n\r\nhello",
	"a length with a sign":        ok + "Content-Length: +5\r\n\r\nhello",
	"a length that is no number":  ok + "Content-Length: five\r\n\r\nhello",
	"a length too large":          ok + "Content-Length: 99999999999999999999\r\n\r\nhello",
	"an empty length":             ok + "Content-Length: \r\n\r\nhello",
	"length and chunks":           ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"chunks and a bad length":     ok + "Transfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"two encodings":               ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"a list of encodings":         ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"identity":                    ok + "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
	"a blank before the colon":    ok + "Transfer-Encoding : chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"a name with a tab":           ok + "Content\tLength: 5\r\n\r\nhello",
	"no name":                     ok + ": x\r\nContent-Length: 5\r\n\r\nhello",
	"no colon":                    ok + "Content-Length\r\n\r\nhello",
	"a folded line":               ok + "X-A: b\r\n  c\r\nContent-Length: 5\r\n\r\nhello",
	"a folded length":             ok + "Content-Length:\r\n 5\r\n\r\nhello",
	"a first line that is folded": ok + " X: y\r\nContent-Length: 5\r\n\r\nhello",
	"a null":                      ok + "X-A: b\x00c\r\nContent-Length: 5\r\n\r\nhello",
	"a bare return":               ok + "X-A: b\rc\r\nContent-Length: 5\r\n\r\nhello",
	"line feeds alone":            "HTTP/1.1 200 OK\nContent-Length: 5\nX-A: b\n\nhello",
	"chunks with line feeds":      ok + "Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
	"a negative chunk":            ok + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
	"a chunk with a sign":         ok + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
	"a chunk in hexadecimal":      ok + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
	"a huge chunk":                ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n",
	"a chunk too large":           ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
	"an empty size":               ok + "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n",
	"a chunk that is too short":   ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
	"a chunk without its end":     ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
	"a long extension":            ok + "Transfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 5000) + "\r\nhello\r\n0\r\n\r\n",
	"many long extensions":        ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\ny\r\n", 100) + "0\r\n\r\n",
	"many small chunks":           ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 5000) + "0\r\n\r\n",
	"a long trailer":              ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X-A: b\r\n", 2000) + "\r\n",
	"a huge head":                 ok + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 100) + "\r\n",
	"an endless line":             ok + "X-A: " + strings.Repeat("b", 200_000),
	"a large head":                ok + strings.Repeat("X-A: "+strings.Repeat("b", 100)+"\r\n", 100) + "Content-Length: 5\r\n\r\nhello",
	"continue":                    "HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello",
	"early hints":                 strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 3) + ok + "Content-Length: 5\r\n\r\nhello",
	"a flood of 1xx":              strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 5000) + ok + "Content-Length: 5\r\n\r\nhello",
	"1xx alone":                   "HTTP/1.1 100 Continue\r\n\r\n",
	"204":                         "HTTP/1.1 204 No Content\r\n\r\n",
	"204 with a body":             "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
	"304 with a length":           "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.0":                    "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhello",
	"HTTP/1.0 with chunks":        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"HTTP/1.0 that stays":         "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
	"another version":             "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"no version":                  "ICY 200 OK\r\n\r\nhello",
	"no reason":                   "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
	"a status of two digits":      "HTTP/1.1 20 OK\r\n\r\nhello",
	"a status of four digits":     "HTTP/1.1 2000 OK\r\n\r\nhello",
	"a status with a sign":        "HTTP/1.1 -20 OK\r\n\r\nhello",
	"empty lines first":           "\r\n\r\n" + ok + "Content-Length: 5\r\n\r\nhello",
	"a page":                      "<html>hello</html>",
	"no word":                     "",
	"half a head":                 ok + "Content-Le",
	"names in small letters":      ok + "content-type: text/plain\r\nx-request-id: a\r\ncontent-length: 5\r\n\r\nhello",
	"one name in two spellings":   ok + "X-A: b\r\nx-a: c\r\nX-a: d\r\nContent-Length: 5\r\n\r\nhello",
	"a value with blanks":         ok + "X-A: \t b c \t\r\nX-B:\r\nContent-Length:5 \r\n\r\nhello",
	"letters beyond ASCII":        ok + "X-A: \xe9\xff\r\nContent-Length: 5\r\n\r\nhello",
	"pragma":                      ok + "Pragma: no-cache\r\nContent-Length: 5\r\n\r\nhello",
	"close":                       ok + "Connection: close\r\nContent-Length: 5\r\n\r\nhello",
	"switching protocols":         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}

// stricter are those that net/http takes and the own client refuses.
var stricter = []string{"a folded line", "a folded length", "a blank before the colon"}

// What net/http takes the own client takes in the same way, whatever the cuts;
// what that refuses it refuses.
func TestAnswersAreReadAsNetHTTPReadsThem(t *testing.T) {
	for name, text := range answers {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"GET", "HEAD"} {
				for _, cut := range []int{0, 1, 7} {
					if cut == 1 && len(text) > 10_000 {
						continue // a byte at a time takes too long, and 7 cut as oddly
					}
					diff, refused := same(t, method, text, cut)
					if diff != "" {
						t.Errorf("%s, cut at %d: net/http −, own +:\n%s", method, cut, diff)
					}
					if want := slices.Contains(stricter, name); refused && !want {
						t.Errorf("%s, cut at %d: refused, and net/http takes it", method, cut)
					}
				}
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	for _, text := range answers {
		if len(text) < 4000 {
			f.Add(text, uint8(0))
			f.Add(text, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, text string, cut uint8) {
		if diff, refused := same(t, "GET", text, int(cut)); diff != "" {
			t.Errorf("%q: net/http −, own +:\n%s", text, diff)
		} else if refused && !odd.MatchString(text) {
			t.Errorf("%q is refused, and net/http takes it", text)
		}
	})
}

// odd matches what the own client may refuse alone: a line that begins with a
// blank, a name with one, and, in a trailer, a line feed alone.
var odd = regexp.MustCompile(`\n[ \t]|\n[^:\n]* [^:\n]*:|(?s)\n0.*[^\r]\n`)

// Wherever reads cut a chunked body, it is the same one.
func FuzzChunks(f *testing.F) {
	f.Add("5\r\nhello\r\n1;x\r\n!\r\n0\r\n\r\n", uint16(3), uint16(9))
	f.Fuzz(func(t *testing.T, text string, a, b uint16) {
		whole, err := chunks(text)
		i, j := int(a)%(len(text)+1), int(b)%(len(text)+1)
		i, j = min(i, j), max(i, j)
		cut, cutErr := chunks(text[:i], text[i:j], text[j:])
		if whole != cut || !errors.Is(err, cutErr) {
			t.Errorf("%q is %q, %v; cut at %d and %d it is %q, %v", text, whole, err, i, j, cut, cutErr)
		}
	})
}

func chunks(pieces ...string) (body string, err error) {
	var c chunked
	for _, p := range pieces {
		b := []byte(p)
		n, _, err := c.take(b)
		if body += string(b[:n]); err != nil {
			return body, err
		}
	}
	return body, nil
}

package attack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
)

// promise opens n connections that send text and nothing more, and that stay
// open when the gateway has said its last. It returns when the gateway has
// closed all of them, some unread to make room for others. Each that is answered
// must begin with want.
func promise(v *victim, addr, text string, n int, want string) {
	begun := time.Now()
	ours := descriptors(v, v.gateway.PID())
	var all sync.WaitGroup
	var answered atomic.Int64
	dialing := make(chan struct{}, 256)
	for range n {
		dialing <- struct{}{}
		all.Go(func() {
			c, err := net.DialTimeout("tcp", addr, time.Minute)
			<-dialing
			if errors.Is(err, syscall.EMFILE) {
				v.Error("the attack itself has too few descriptors: raise ulimit -n")
			}
			if err != nil {
				return // closed to make room
			}
			v.Cleanup(func() { c.Close() })
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(c)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				v.Errorf("no end after a minute, but %.100q", answer)
			case len(answer) == 0:
			case !strings.HasPrefix(string(answer), want):
				v.Errorf("answered with %.300q, want %s", answer, want)
			default:
				answered.Add(1)
			}
		})
	}
	dialed := time.Since(begun)
	all.Wait()
	told := time.Since(begun)
	proctest.Until(v, "the gateway has closed its ends", func() bool { return descriptors(v, v.gateway.PID()) < ours+100 })
	v.Logf("%d connections dialed in %v, %d answered within %v, closed within %v", n,
		dialed.Round(time.Millisecond), answered.Load(), told.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
}

// A body that is promised, and never sent, by strangers.
func promisedWithoutKey(v *victim) {
	promise(v, v.addr, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", size(1_900, 10_000), "HTTP/1.1 401 ")
}

// The same where everybody may ask: the gateway waits for these bodies.
func promisedToAnOpenGateway(v *victim) {
	promise(v, v.addr, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"+`{"model":`, size(1_900, 10_000), "HTTP/1.1 408 ")
}

// Whatever is answered without its body is answered at once, and the connection
// ends.
func promisedToEveryEarlyAnswer(v *victim) {
	for _, request := range []struct {
		line, headers string
		want          int
	}{
		{"POST /v1/chat/completions", "", 401},
		{"POST /v1/messages", "x-api-key: wrong\r\n", 401},
		{"POST /v1/nothing", "", 404},
		{"PUT /v1/chat/completions", "", 405},
		{"POST /v1/chat/completions", "Authorization: Bearer other\r\nContent-Encoding: zstd\r\n", 415},
		{"GET /healthz", "", 200},
		{"GET /readyz", "", 200},
		{"POST /healthz", "", 405},
		{"GET /v1/models", "Authorization: Bearer other\r\n", 200},
		{"GET /v1/models/other", "Authorization: Bearer other\r\n", 200},
		{"GET /v1/models", "", 401},
		{"POST /v1/chat/completions", "Authorization: Bearer other\r\nContent-Length: 10000000000\r\n", 413},
		{"OPTIONS *", "", 404},
	} {
		for _, length := range []string{"Content-Length: 1\r\n", "Content-Length: 262144\r\n", "Transfer-Encoding: chunked\r\n"} {
			if strings.Contains(request.headers, "Content-Length") {
				length = ""
			}
			ends(v, v.addr, request.line+" HTTP/1.1\r\nHost: x\r\n"+request.headers+length+"\r\n", request.want)
		}
	}
}

// ends sends a head, and wants status and the end of the connection.
func ends(v *victim, addr, head string, want int) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		v.Error(err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, head)
	answer, err := io.ReadAll(c)
	if got := status(string(answer)); got != want || err != nil {
		v.Errorf("%q: %d (%v), want %d and the end", head, got, err, want)
	}
}

// The admin port gives nothing to those who promise, and stays open to others.
func promisedToTheAdminPort(v *victim) {
	_, admin, _ := strings.Cut(v.gateway.Ready["admin"], "://")
	for line, want := range map[string]int{
		"GET /metrics": 200, "GET /healthz": 200, "GET /": 200, "GET /api/v1/profiles": 200, "GET /nothing": 404, "POST /metrics": 405,
		"POST /api/v1/backends/a/drain": 403, "POST /api/v1/explain": 408,
	} {
		ends(v, admin, line+" HTTP/1.1\r\nHost: "+admin+"\r\nContent-Length: 1000\r\n\r\n", want)
	}
	promise(v, admin, "GET /healthz HTTP/1.1\r\nHost: "+admin+"\r\nContent-Length: 1000\r\n\r\n", size(1_900, 10_000), "HTTP/1.1 200 ")
	proctest.Get(v, v.gateway.Ready["admin"]+"/metrics")
}

// Many streams of one connection of HTTP/2, each with a body that never comes.
func promisedOverHTTP2(v *victim) {
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			patience, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			body, never := io.Pipe()
			defer never.Close()
			r, err := http.NewRequestWithContext(patience, http.MethodPost, "https://"+v.addr+"/v1/chat/completions", body)
			if err != nil {
				v.Error(err)
				return
			}
			resp, err := v.client.Do(r)
			if err != nil {
				v.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized || resp.ProtoMajor != 2 {
				v.Errorf("%s over HTTP/%d, want 401 over HTTP/2", resp.Status, resp.ProtoMajor)
			}
		})
	}
	all.Wait()
}

// A client that sends 128 MB before it reads, and takes a write that fails for
// the end as most do, finds what it was answered.
func farTooLarge(v *victim) {
	const size = 128_000_000
	piece := make([]byte, 1<<20)
	for _, c := range []struct {
		key  string
		want int
	}{{"other", 413}, {"wrong", 401}} {
		for range 4 {
			conn := v.dial()
			_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
			_, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", c.key, size)
			sent := 0
			for sent < size && err == nil {
				var n int
				n, err = conn.Write(piece[:min(len(piece), size-sent)])
				sent += n
			}
			var resp *http.Response
			if err == nil {
				resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
			}
			if err != nil || resp.StatusCode != c.want {
				v.Errorf("key %s: %v after %d bytes (%v), want %d", c.key, resp, sent, err, c.want)
			}
			conn.Close()
		}
	}
}

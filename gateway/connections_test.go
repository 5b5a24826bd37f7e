package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// At the bound a connection that idles makes room for a new one, the one that
// has idled for longest first; while all are busy, a new one is closed, and one
// that is closed makes room.
func TestConnectionsOfClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: talk(100, 100*time.Millisecond)}})
		h.frontOf(nil, 4)
		dial := func() net.Conn {
			c := must.Get(h.net.Dial(context.Background(), "tcp", "gateway:443"))(t)
			synctest.Wait()
			return c
		}
		gone := func(c net.Conn) bool {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			_ = c.SetReadDeadline(time.Time{})
			return err == io.EOF
		}
		stream := func(c net.Conn) *bufio.Reader {
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\n\r\n%s", chat, len(streamBody), streamBody)
			r := bufio.NewReader(c)
			if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
				t.Fatalf("%q (%v), want 200", line, err)
			}
			return r
		}

		var silent [4]net.Conn
		for i := range silent {
			silent[i] = dial()
			<-time.After(time.Millisecond)
		}
		busy := [4]net.Conn{silent[3]}
		answers := [4]*bufio.Reader{stream(busy[0])} // of the four, this one does not idle
		for i := 1; i < 4; i++ {
			if gone(silent[i-1]) {
				t.Errorf("connection %d is closed though there is room", i-1)
			}
			busy[i] = dial()
			if !gone(silent[i-1]) {
				t.Errorf("connection %d, which has idled for longest, does not make room", i-1)
			}
			answers[i] = stream(busy[i])
		}
		if c := dial(); !gone(c) {
			t.Error("a fifth connection is open beside four that stream")
		}
		if n := strings.Count(h.log.String(), "as many connections"); n != 1 {
			t.Errorf("%d lines of the log tell of the bound, want 1", n)
		}
		for i, r := range answers {
			if rest, err := io.ReadAll(io.LimitReader(r, 1<<10)); err != nil || len(rest) < 1<<10 {
				t.Errorf("stream %d came to %d bytes (%v): it was disturbed", i, len(rest), err)
			}
		}
		busy[0].Close()
		<-time.After(time.Second)
		if c := dial(); gone(c) {
			t.Error("no room though one has left")
		}
		for _, c := range busy {
			c.Close()
		}
		<-time.After(time.Second)
	})
}

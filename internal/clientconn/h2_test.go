package clientconn

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// h2Front serves handler to clients of HTTP/2, who share one connection. own: by ServeH2.
func h2Front(t testing.TB, own bool, handler http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	if own {
		must.Do(t, ServeH2(s))
	}
	config := selfSigned(t)
	config.NextProtos = []string{"h2"}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(tls.NewListener(l, config)) }()
	through := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(func() { through.CloseIdleConnections(); _ = s.Close(); <-done })
	return &http.Client{Transport: through}, "https://" + l.Addr().String() + "/"
}

// Each stream has its bytes, all of them and in order, with a trailer behind them:
// whatever is written at once, in pieces larger than a frame, to clients that take
// them slowly.
func TestStreamsOfHTTP2AreWhole(t *testing.T) {
	piece := func(name string, i int) string { return strings.Repeat(name+string(rune('a'+i%26)), 5000) + "\n" }
	const pieces = 20
	client, at := h2Front(t, true, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Name")
		name := r.URL.Query().Get("name")
		for i := range pieces {
			_, _ = io.WriteString(w, piece(name, i))
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set("Name", name)
	})
	var all sync.WaitGroup
	for i := range 50 {
		name := strings.Repeat(string(rune('A'+i)), 1+i%3)
		all.Go(func() {
			resp, err := client.Get(at + "?name=" + url.QueryEscape(name))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			for i := range pieces {
				if line, err := lines.ReadString('\n'); err != nil || line != piece(name, i) {
					t.Errorf("piece %d of %s: %.20q (%v)", i, name, line, err)
					return
				}
			}
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 || resp.Trailer.Get("Name") != name {
				t.Errorf("behind %s: %q, %v, and the trailer %q", name, rest, err, resp.Trailer.Get("Name"))
			}
		})
	}
	all.Wait()
}

// A chunk of one stream while 249 others of its connection wait, until its client has
// it: budget 20 µs, and less than net/http's.
func BenchmarkAChunkAmongStreams(b *testing.B) {
	for _, own := range []bool{true, false} {
		name := "own"
		if !own {
			name = "net-http"
		}
		b.Run(name, func(b *testing.B) {
			over := make(chan struct{})
			defer close(over)
			turn := make(chan struct{})
			client, at := h2Front(b, own, func(w http.ResponseWriter, r *http.Request) {
				flush := http.NewResponseController(w).Flush
				_ = flush()
				if r.URL.Path == "/waits" {
					<-over
					return
				}
				for range turn {
					_, _ = io.WriteString(w, "data: a chunk\n")
					_ = flush()
				}
			})
			for range 249 {
				resp := must.Get(client.Get(at + "waits"))(b)
				defer resp.Body.Close()
			}
			resp := must.Get(client.Get(at))(b)
			defer resp.Body.Close()
			defer close(turn)
			lines := bufio.NewReader(resp.Body)
			b.ReportAllocs()
			for b.Loop() {
				turn <- struct{}{}
				must.Get(lines.ReadSlice('\n'))(b)
			}
		})
	}
}

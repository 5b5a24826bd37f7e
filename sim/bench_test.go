package sim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// Budget: 25 µs of CPU for a token over loopback TCP, client and kernel
// included. The server's part is a third of that, and of it two thirds are the
// one write; nothing is allocated for a token. The demo's three engines then
// leave room for the gateway: 200 streams of 40 tokens/s are 8,000 tokens/s.
// An operation is one token of one stream; its time is mostly waiting.
func BenchmarkTokenOverTCP(b *testing.B) {
	const streams = 200
	s := must.Get(NewServer(Options{Names: []string{"m"}, Model: Model{A: 0.02}}))(b)
	server := httptest.NewServer(s)
	defer server.Close()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	defer client.CloseIdleConnections()

	each := b.N/streams + 1
	before := cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	var clients sync.WaitGroup
	for range streams {
		clients.Go(func() {
			for left := each; left > 0; left -= maxModelLen / 2 {
				body := fmt.Sprintf(`{%s,"stream":true,"max_tokens":%d}`, hello, min(left, maxModelLen/2))
				resp, err := client.Post(server.URL+chat, "application/json", strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, bufio.NewReader(resp.Body))
				resp.Body.Close()
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	clients.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(each*streams), "cpu-ns/token")
	cancel()
	wg.Wait()
}

// cpuTime is what the process has used, in user and kernel mode.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Budget: 100 ns and no allocation for the bytes of a token's event.
func BenchmarkTokenEvent(b *testing.B) {
	g := must.Get((&request{}).generation([]int{1}))(b)
	v := chatWire.speak(&answer{g: g, id: "chatcmpl-0123456789abcdef0123456789abcdef", model: "llama-3.1-70b"})
	buffer := make([]byte, 0, 1024)
	b.ReportAllocs()
	for t := 0; b.Loop(); t++ {
		buffer = v.token(buffer[:0], 0, t)
	}
}

package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A short stream, from the client's request to its access-log line, with a
// backend that answers at once over a network in memory: budget 150 µs and 240
// allocations, most of them net/http's. A route that hedges pays a goroutine, a
// channel and a timer: 5 allocations more.
func BenchmarkRequest(b *testing.B) {
	for _, hedge := range []bool{false, true} {
		b.Run(fmt.Sprintf("hedge=%v", hedge), func(b *testing.B) {
			c := settings("a")
			c.Routes[0].Hedge = hedge
			gpu := &script{answer: talk(8, 5*time.Millisecond)}
			h := openWith(b, c, map[string]http.Handler{"a": gpu}, houseOptions{learnEvery: 1000 * time.Hour})
			serve := func() {
				r := h.request("POST", chat, "")
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(streamBody)), int64(len(streamBody))
				h.gateway.Handler().ServeHTTP(&discardWriter{header: http.Header{}}, r)
			}
			for range 20 { // after which a late first byte could be told
				serve()
			}
			h.learned("a")
			gpu.answer = func(w http.ResponseWriter, _ *http.Request) {
				eventStream(w)
				_, _ = io.WriteString(w, delta+delta+lastDelta+usageEvent(7, 2)+doneEvent)
			}
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}

package gateway

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// repeat is an answer of n times the same chunk, one a read.
type repeat struct {
	chunk string
	n     int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	r.n--
	return copy(p, r.chunk), nil
}

func (*repeat) Close() error { return nil }

// relayed prepares an exchange whose backend has answered with body, as it is
// when forward has done its work.
func relayed(tb testing.TB, h *house, body io.ReadCloser) *exchange {
	tb.Helper()
	w, now := &discardWriter{header: http.Header{}}, time.Now()
	x := h.gateway.newExchange(h.gateway.setup.Load(), anyone,
		request{http: h.request("POST", chat, streamBody), end: endpoint.Of("/chat/completions"), path: "/chat/completions", arrived: now})
	x.request.parsed.Stream = true
	x.down.start(w, x.request.http, time.Minute)
	x.route = x.setup.route("chat")
	d := h.router.Place(now, router.Request{Route: "chat", Arrived: now, Stream: true})
	if d.Lease == nil {
		tb.Fatal("no lease")
	}
	x.attempt = x.newAttempt(d)
	must.Do(tb, x.send(x.attempt))
	t, u := x.attempt, &x.attempt.up
	u.ask = openai.AskUsage
	u.resp = &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
	u.first.at = now
	u.first.buf.begin(&h.gateway.buffers, true)
	t.answer.form, t.answer.events = formEvents, true
	t.answer.meter = t.backend.NewMeter(x.request.path, true, providers.StripEvent)
	t.kind = answerGood
	t.phase.answer()
	t.measured.stream = t.openStream()
	return x
}

// A chunk costs two clock reads, a scan of its bytes, the booking and the
// write: budget 1 µs and no allocation, without the kernel's share.
func BenchmarkRelayChunk(b *testing.B) {
	h := openWith(b, settings("a"), nil, houseOptions{})
	x := relayed(b, h, &repeat{chunk: delta, n: b.N})
	b.ReportAllocs()
	b.SetBytes(int64(len(delta)))
	b.ResetTimer()
	err := x.relay()
	b.StopTimer()
	if err == nil {
		b.Fatal("a stream without an end was taken for whole")
	}
	x.settle(err)
}

func TestAChunkAllocatesNothing(t *testing.T) {
	h := openWith(t, settings("a"), nil, houseOptions{})
	const chunks = 20_000
	// AllocsPerRun runs once before it counts.
	streams := []*exchange{relayed(t, h, &repeat{chunk: delta, n: chunks}), relayed(t, h, &repeat{chunk: delta, n: chunks})}
	next := 0
	// What a whole stream allocates is far below one for each chunk.
	if got := testing.AllocsPerRun(1, func() {
		x := streams[next]
		next++
		x.settle(x.relay())
	}); got > chunks/100 {
		t.Errorf("%v allocations for %d chunks", got, chunks)
	}
	x := streams[1]
	if w := x.down.w.(*discardWriter); w.bytes < chunks*int64(len(delta)) {
		t.Errorf("%d bytes came through, want at least %d", w.bytes, chunks*len(delta))
	}
}

package gateway

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/profiles"
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
	w := &discardWriter{header: http.Header{}}
	x := &exchange{
		g: h.gateway, plan: h.gateway.plan.Load(), w: w, rc: http.NewResponseController(w),
		r: h.request("POST", chat, streamBody), end: endpoint.Of("/chat/completions"), path: "/chat/completions", tenant: anyone, stream: true,
	}
	x.deadline.start(x.rc, x.r, time.Minute)
	now := time.Now()
	x.arrived, x.sent, x.route = now, now, x.plan.route("chat")
	d := h.router.Place(now, router.Request{Route: "chat", Arrived: now, Stream: true})
	if d.Lease == nil {
		tb.Fatal("no lease")
	}
	x.decision, x.lease = d, d.Lease
	target := x.lease.Target()
	t := &attempt{name: target.Backend, target: target, lease: d.Lease, backend: x.plan.backends[target.Backend], events: true, sse: true, at: now, ask: openai.AskUsage}
	t.verdict, _ = t.backend.Begin()
	t.ctx, t.cancel = context.WithCancelCause(x.r.Context())
	t.timer = startUpstreamTimer(now, now.Add(time.Hour), time.Hour, errFirstByte, t.cancel)
	t.resp = &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
	t.buf = h.gateway.buffers.Get().(*[relayBuffer]byte)
	t.look = t.backend.NewMeter(x.path, true, providers.StripEvent)
	x.meter = h.book.Open(target, profiles.Open{Sent: now, Occupancy: x.lease.Occupancy()})
	x.try = t
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
	if w := x.w.(*discardWriter); w.bytes < chunks*int64(len(delta)) {
		t.Errorf("%d bytes came through, want at least %d", w.bytes, chunks*len(delta))
	}
}

package gateway

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/sim"
)

// Ten minutes of bursty traffic through the whole house: what was learned from
// the relayed bytes is what the engine really did.
func TestTheCurveIsLearnedFromTheRelay(t *testing.T) {
	if racetest.On {
		t.Skip("100,000 tokens: make numbers runs it, and TestFirstTokensAreLearnedFromTheRelay goes the same way under the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		gpu := engine(t, func(o *sim.Options) { o.Noise, o.Seed = 0.05, 7 })
		c := settings("a")
		h := open(t, c, map[string]http.Handler{"a": gpu})
		rnd := rand.New(rand.NewPCG(3, 4))
		var users sync.WaitGroup
		for range 60 {
			for range 1 + rnd.IntN(12) {
				body := fmt.Sprintf(`{"model":"chat","messages":[{"role":"user","content":%q}],"max_tokens":%d,"stream":true}`,
					strings.Repeat("word", rnd.IntN(400)), 20+rnd.IntN(500))
				users.Go(func() { h.post(chat, body) })
			}
			<-time.After(time.Duration(rnd.ExpFloat64() * float64(8*time.Second)))
		}
		users.Wait()
		h.idle()
		<-time.After(5 * time.Second)
		curve := h.book.Curve(router.Target{Backend: "a", Model: "big"})
		truth := gpu.Truth()
		var all float64
		for _, p := range truth.Points {
			all += p.StreamSeconds
		}
		// Of a level that was visited for seconds alone, the engine's own figure is
		// noise too: levels side by side are taken together until they are 3 % of all.
		var seconds, tokens, learned float64
		groups := 0
		for _, p := range truth.Points {
			seconds, tokens, learned = seconds+p.StreamSeconds, tokens+p.Tokens, learned+curve.TPS(p.N)*p.StreamSeconds
			if seconds < 0.03*all {
				continue
			}
			groups++
			if math.Abs(learned/tokens-1) > 0.02 {
				t.Errorf("up to n = %d learned %.2f tokens/s, the engine gave %.2f", p.N, learned/seconds, tokens/seconds)
			}
			seconds, tokens, learned = 0, 0, 0
		}
		if groups < 5 {
			t.Errorf("only %d levels of concurrency were visited: the load is no test", groups)
		}
	})
}

// Reading the request while the answer is already coming truncates streams on
// HTTP/1 (golang/go#40747). Here head and body of each request are written
// apart, over real sockets, to a backend that starts its answer before it reads
// them.
func TestNoStreamIsTruncatedByItsOwnBody(t *testing.T) {
	h, base := onSockets(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // else the head waits for the body
		eventStream(w)
		say(w, roleOnly)
		_, _ = io.Copy(io.Discard, r.Body)
		say(w, delta+delta)
		say(w, lastDelta+usageEvent(7, 2)+doneEvent)
	}))
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(base, "http://")))(t)
	defer conn.Close()
	body := fmt.Sprintf(`{"model":"chat","stream":true,"x":%q}`, strings.Repeat("x", 4000))
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", chat, len(body))
	buf := newResponseReader(conn)
	for i := range 500 {
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		if _, err := io.WriteString(conn, body); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
		got, err := buf.next()
		if want := roleOnly + delta + delta + lastDelta + doneEvent; err != nil || got != want {
			t.Fatalf("stream %d of 500: %v, got %q", i, err, got)
		}
	}
	h.stop()
}

// An engine may close a kept connection after every stream, without a word
// (llama.cpp). No client sees it.
func TestBackendsThatCloseKeptConnections(t *testing.T) {
	gpu := must.Get(sim.NewServer(sim.Options{
		Names: []string{"big"}, Model: sim.Model{A: 0.001}, Noise: -1, Speed: 10, Behaviours: []string{"closes-after-stream"},
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { _ = gpu.Run(ctx); close(ran) }()
	defer func() { cancel(); <-ran }()
	h, base := onSockets(t, gpu)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for i := range 300 {
		resp, err := client.Post(base+chat, "application/json", strings.NewReader(`{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":4,"stream":true}`))
		if err != nil {
			t.Fatalf("stream %d of 300: %v", i, err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.HasSuffix(string(body), doneEvent) {
			t.Fatalf("stream %d of 300: %d %v %q", i, resp.StatusCode, err, body)
		}
	}
	if strings.Contains(h.log.String(), "moving on") {
		t.Error("a closed connection counted as a failed backend")
	}
	h.stop()
}

// onSockets is a house whose gateway and one backend listen on real sockets.
func onSockets(t *testing.T, backend http.Handler) (h *house, base string) {
	t.Helper()
	up := httptest.NewServer(backend)
	t.Cleanup(up.Close)
	c := settings("a")
	h = openWith(t, c, nil, houseOptions{dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, up.Listener.Addr().String())
	}})
	down := httptest.NewServer(h.gateway.Handler())
	t.Cleanup(down.Close)
	return h, down.URL
}

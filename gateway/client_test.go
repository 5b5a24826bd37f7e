package gateway

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/router"
)

// onSchedule streams n tokens, one each gap: what a slow client has not taken
// piles up, and follows as fast as it does take it.
func onSchedule(n int, gap time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		eventStream(w)
		start := time.Now()
		for i := range n {
			if !pause(r, time.Until(start.Add(time.Duration(i+1)*gap))) {
				return
			}
			say(w, delta)
		}
		say(w, lastDelta+usageEvent(7, n)+doneEvent)
	}
}

// A client that takes nothing for half of the time must not look like a slow
// backend, and what has piled up meanwhile not like a fast one.
func TestASlowClientIsNoEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		backend func(*testing.T) http.Handler
		want    float64 // tokens/s
	}{
		"piled up before the gateway": {func(*testing.T) http.Handler { return &script{answer: onSchedule(3000, 20*time.Millisecond)} }, 50},
		"piled up in the engine":      {func(t *testing.T) http.Handler { return engine(t) }, 1 / 0.021},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": c.backend(t)})
			resp := must.Get(h.client.Do(h.request("POST", chat, `{"model":"chat","messages":[{"role":"user","content":"hello"}],"max_tokens":3000,"stream":true}`)))(t)
			defer resp.Body.Close()
			lines, seen := bufio.NewScanner(resp.Body), 0
			for lines.Scan() {
				if !strings.HasPrefix(lines.Text(), "data: {") {
					continue
				}
				<-time.After(time.Millisecond) // less than counts as blocking
				if seen++; seen%500 == 0 {
					<-time.After(5 * time.Second) // 30 s in all; the answer itself takes a minute
				}
			}
			h.idle()
			<-time.After(5 * time.Second) // the book is folded
			p := h.book.Curve(router.Target{Backend: "a", Model: "big"}).At(1)
			if p.TPS < 0.98*c.want || p.TPS > 1.02*c.want {
				t.Errorf("learned %.2f tokens/s at n = 1, the engine gave %.2f", p.TPS, c.want)
			}
			if p.Tokens < 1000 {
				t.Errorf("learned from %.0f tokens of 3000: the client blocked for less than half of them", p.Tokens)
			}
		})
	}
}

// While the client is waited for, the backend is not silent.
func TestAPatientGatewayWaitsForItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Timeouts.Write, c.Timeouts.Silence, c.Timeouts.FirstByte = 5*time.Minute, 10*time.Second, 10*time.Second
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(1000, time.Millisecond)}})
		resp := must.Get(h.client.Do(h.request("POST", chat, streamBody)))(t)
		defer resp.Body.Close()
		<-time.After(time.Minute)
		body, err := io.ReadAll(resp.Body)
		if err != nil || strings.Count(string(body), delta) != 1000 {
			t.Errorf("%d of 1000 tokens came, then %v", strings.Count(string(body), delta), err)
		}
	})
}

// An answer that nobody takes holds its connection no longer than a write may
// take.
func TestAnAnswerThatNobodyTakesIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), nil)
		conn := must.Get(h.net.Dial(context.Background(), "tcp", "gateway:80"))(t)
		defer conn.Close()
		must.Get(io.WriteString(conn, "GET /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n"))(t)
		<-time.After(31 * time.Second)
		synctest.Wait()
	})
}

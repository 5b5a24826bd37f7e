package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// serve answers every request with handler, inside the bubble of the test.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	var network memnet.Network
	l := must.Get(network.Listen("backend:80"))(t)
	server := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() { defer close(ended); server.Serve(l) }()
	transport := &http.Transport{DialContext: network.Dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-ended
	})
	return &Client{BaseURL: "http://backend/v1", HTTP: &http.Client{Transport: transport}}
}

const token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"

func TestStreamMeasuresWhatTheClientSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			rc := http.NewResponseController(w)
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")
			rc.Flush()
			<-time.After(500 * time.Millisecond) // virtual time: prefill
			for range 41 {
				fmt.Fprint(w, token)
				rc.Flush()
				<-time.After(25 * time.Millisecond) // virtual time: one decode step
			}
			fmt.Fprint(w, "data: [DONE]\n\n")
		})
		r := c.Stream(t.Context(), Request{Model: "m", PromptTokens: 10, MaxTokens: 41})
		if r.Outcome != Done || r.Tokens != 41 || r.TTFT != 500*time.Millisecond {
			t.Fatalf("got %v, %d tokens, TTFT %v; want done, 41, 500ms (%v)", r.Outcome, r.Tokens, r.TTFT, r.Err)
		}
		if tps, ok := r.TPS(); !ok || math.Abs(tps-40) > 0.001 {
			t.Errorf("got %.3f tokens/s, want 40", tps)
		}
		if !r.Kept(40, 0) || r.Kept(41, 0) || !r.Kept(41, 100*time.Millisecond) {
			t.Errorf("a stream at 40 tokens/s: keeps 40 %v, 41 %v, 41 with grace %v; want true, false, true",
				r.Kept(40, 0), r.Kept(41, 0), r.Kept(41, 100*time.Millisecond))
		}
	})
}

func TestAStreamWithoutDoneHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, token) })
		r := c.Stream(t.Context(), Request{Model: "m", MaxTokens: 1})
		if r.Outcome != Failed || !errors.Is(r.Err, errNoDone) {
			t.Errorf("got %v (%v), want failed without [DONE]", r.Outcome, r.Err)
		}
	})
}

func TestShedTellsWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		r := c.Stream(t.Context(), Request{Model: "m", MaxTokens: 1})
		if r.Outcome != Shed || r.RetryAfter != 7*time.Second {
			t.Errorf("got %v after %v, want shed after 7s", r.Outcome, r.RetryAfter)
		}
	})
}

func TestAGivenUpRequestIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // only then does the server notice that the client left
			<-r.Context().Done()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := c.Stream(ctx, Request{Model: "m", MaxTokens: 1}); r.Outcome != Aborted {
			t.Errorf("got %v, want aborted", r.Outcome)
		}
	})
}

func TestContentAndCount(t *testing.T) {
	for line, want := range map[string]bool{
		`data: {"choices":[{"delta":{"content":"a"}}]}`:                               true,
		`data: {"choices": [{"delta": {"content": "a"}}]}`:                            true,
		`data: {"choices":[{"delta":{"content":"","reasoning_content":"a"}}]}`:        true,
		`data: {"choices":[{"delta":{"content":null,"reasoning":"a"}}]}`:              true,
		`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}`:             false,
		`data: {"choices":[{"delta":{"content":null}}]}`:                              false,
		`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens": 1234 }}`: false,
	} {
		if got := isContent([]byte(line)); got != want {
			t.Errorf("content in %s: %t", line, got)
		}
		if got := counted([]byte(line)); got != map[bool]int{true: 1234}[strings.Contains(line, "usage")] {
			t.Errorf("counted in %s: %d", line, got)
		}
	}
}

func TestBody(t *testing.T) {
	if got, want := string(body(Request{Model: `a"b`, PromptTokens: 5, MaxTokens: 7, Salt: 0xabc, Usage: true})),
		`{"model":"a\"b","stream":true,"max_tokens":7,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"0000000000000abcword"}]}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	if got, want := string(body(Request{Model: "m", MaxTokens: 7})),
		`{"model":"m","stream":true,"max_tokens":7,"messages":[{"role":"user","content":"word"}]}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
}

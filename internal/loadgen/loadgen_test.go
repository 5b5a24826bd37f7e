package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/memnet"
)

// serve answers every request with handler, inside the bubble of the test.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	var network memnet.Network
	l, err := network.Listen("backend:80")
	if err != nil {
		t.Fatal(err)
	}
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

package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
)

// everyNth passes on every n-th event with content, as an engine does that
// sends n tokens in one chunk. The usage stays that of all tokens.
type everyNth struct {
	http.ResponseWriter
	n, seen int
	rest    []byte // the beginning of an event
}

func (w *everyNth) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		end := bytes.Index(w.rest, []byte("\n\n"))
		if end < 0 {
			return len(p), nil
		}
		event := w.rest[:end+2]
		w.rest = w.rest[end+2:]
		if _, text, ok := bytes.Cut(event, []byte(`"content":"`)); ok && text[0] != '"' {
			if w.seen++; w.seen%w.n != 0 {
				continue
			}
		}
		if _, err := w.ResponseWriter.Write(event); err != nil {
			return 0, err
		}
	}
}

func (w *everyNth) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A backend that nobody knows yet sends four tokens in a chunk: 73 tokens/s
// look like 18, and stay so for the streams under way until three have finished
// and told. Nobody is kept out for that.
func TestAColdBackendWithLargeChunksIsNotLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 5}}, floor30, options{})
		h.servers["a"].Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.engines["a"].ServeHTTP(&everyNth{ResponseWriter: w, n: 4}, r)
		})
		var wg sync.WaitGroup
		wg.Go(func() { // 1500 tokens take more than 20 s
			h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 1500})
		})
		sleep(2 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var got results
		for i := range 12 {
			sleep(500 * time.Millisecond)
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(4, uint64(i)))
				for ctx.Err() == nil {
					r := h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 100 + rng.IntN(200)})
					got.add(r)
					loadgen.Wait(ctx, max(r.RetryAfter, time.Duration(rng.ExpFloat64()*float64(time.Second))))
				}
			})
		}
		wg.Wait()
		h.idle()
		offered := got.count(func(loadgen.Result) bool { return true })
		done := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done })
		kept := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Done && r.Kept(30.0/4, time.Second) })
		t.Logf("%d offered, %d done, %d kept 30 tokens/s", offered, done, kept)
		if offered < 40 || float64(done) < 0.95*float64(offered) || kept < done {
			t.Errorf("%d of %d served and %d at 30 tokens/s, want 95 %% and all of these", done, offered, kept)
		}
	})
}

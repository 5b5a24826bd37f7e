package gateway

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A stream waits with little, and takes more while what comes fills that.
func TestAStreamWaitsWithASmallBuffer(t *testing.T) {
	var all buffers
	var r readBuffer
	if r.room() != nil {
		t.Fatal("there is room before anything came")
	}
	r.begin(&all, true)
	if got := len(r.room()); got != waitBuffer {
		t.Errorf("the first byte is waited for with %d bytes, want %d", got, waitBuffer)
	}
	for i, c := range []struct{ read, want int }{
		{relayBuffer, relayBuffer}, // it filled all
		{waitBuffer, relayBuffer},
		{waitBuffer/2 - 1, waitBuffer},
		{100, waitBuffer},
		{0, waitBuffer},
		{waitBuffer/2 + 1, waitBuffer},
		{waitBuffer - 900, relayBuffer}, // the frames of its chunks were the rest
		{1, waitBuffer},
	} {
		if got := len(r.next(c.read, &all)); got != c.want || len(r.room()) != got {
			t.Errorf("step %d: behind a read of %d bytes %d are waited with, want %d", i, c.read, got, c.want)
		}
	}
	r.giveBack(&all)
	r.giveBack(&all)
	if r.room() != nil {
		t.Error("there is room behind the end")
	}
}

// However large the pieces are, and whoever had the buffers in between, each
// client gets the bytes of its own stream.
func TestBuffersChangeHandsAndNoByteDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			mark := r.Header.Get("X-Mark")
			rnd := rand.New(rand.NewPCG(1, uint64(len(mark))))
			for range 40 {
				if !pause(r, time.Duration(rnd.IntN(3))*time.Millisecond) {
					return
				}
				say(w, fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n", strings.Repeat(mark, 1+rnd.IntN(12<<10/len(mark)))))
			}
			say(w, lastDelta+usageEvent(7, 40)+doneEvent)
		}}})
		var clients sync.WaitGroup
		for i := range 12 {
			clients.Go(func() {
				mark := strings.Repeat(string(rune('a'+i)), i+1)
				resp, err := h.client.Do(h.request("POST", chat, streamBody, "X-Mark", mark))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				rnd, want := rand.New(rand.NewPCG(1, uint64(len(mark)))), ""
				for range 40 {
					rnd.IntN(3)
					want += fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n", strings.Repeat(mark, 1+rnd.IntN(12<<10/len(mark))))
				}
				if want += lastDelta + doneEvent; err != nil || string(text) != want {
					t.Errorf("client %d got %d bytes (%v), want its own %d", i, len(text), err, len(want))
				}
			})
		}
		clients.Wait()
	})
}

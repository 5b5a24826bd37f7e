package gateway

import (
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// An API collects fifty tokens, half a second of them, for every chunk, the first one
// too. Who begins beside a stream that runs decodes with it half a second before its first
// chunk shows that, and the relay tells the profile so.
func TestAFirstChunkOfFiftyTokensThroughTheRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks = 20 // of half a second each
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, r *http.Request) {
			eventStream(w)
			w.WriteHeader(http.StatusOK)
			gap := time.Second // of which half is the prompt's
			for range chunks {
				if !pause(r, gap) {
					return
				}
				say(w, saying("content", strings.Repeat("fox ", 50)))
				gap = 500 * time.Millisecond
			}
			say(w, lastDelta+usageEvent(7, 50*chunks)+doneEvent)
		}}})
		for range 5 { // what chunks and bytes hold, and how fast one stream is
			h.post(chat, streamBody)
		}
		h.idle()
		<-time.After(10 * time.Second) // all windows are closed
		var users sync.WaitGroup
		for range 2 { // the second is sent when the first one has decoded for 4 s
			users.Go(func() { h.post(chat, streamBody) })
			<-time.After(4500 * time.Millisecond)
		}
		users.Wait()
		h.idle()
		<-time.After(10 * time.Second)
		// The first decodes until 10.5 s, and the second, which shows it from 5.5 s on, beside
		// it from 5.01 s on by the truth. The curve knows two streams by one.
		got := h.book.Curve(router.Target{Backend: "a", Model: "big"}).At(2).StreamSeconds
		if want := (10.5 - 5.01) + (10.5 - 5.5); math.Abs(got-want) > 0.25 {
			t.Errorf("they ran beside each other for %.2f stream-seconds, want %.2f within 0.25", got, want)
		}
	})
}

package gateway

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/tokens"
)

// prompt is a streamed request of at least size bytes.
func prompt(size int) string {
	return `{"model":"chat","messages":[{"role":"user","content":"` + strings.Repeat("words ", size/6) + `"}],"stream":true}`
}

// A body is held once, though it is edited, until the answer begins.
func TestARunningStreamHoldsNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &script{answer: func(w http.ResponseWriter, r *http.Request) {
			pause(r, time.Second)
			talk(10, time.Second)(w, r)
		}}
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		body := prompt(1 << 20)
		done := make(chan reply, 1)
		go func() { done <- h.post(chat, body) }()
		<-time.After(500 * time.Millisecond)
		if held := h.gateway.buffered.used.Load(); held < int64(len(body)) || held > int64(len(body))+64<<10 {
			t.Errorf("%d bytes held of a body of %d that waits for its answer", held, len(body))
		}
		<-time.After(5 * time.Second)
		if held := h.gateway.buffered.used.Load(); held > 4*tokens.MaxText {
			t.Errorf("%d bytes held while the answer runs", held)
		}
		if r := <-done; r.status != 200 || r.err != nil {
			t.Errorf("got %d, %v", r.status, r.err)
		}
		if want := strings.Replace(strings.Replace(body, `"chat"`, `"big"`, 1), "{", `{"stream_options":{"include_usage":true},`, 1); engine.bodies[0] != want {
			t.Errorf("%d bytes went up, beginning with %.100q, want %d", len(engine.bodies[0]), engine.bodies[0], len(want))
		}
	})
}

// An engine that answers before it has read the prompt gets the rest of it all
// the same, and until then the budget says that it is held.
func TestABackendThatAnswersEarlyGetsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan int64, 1)
		h := open(t, settings("a"), map[string]http.Handler{"a": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			eventStream(w)
			say(w, delta)
			pause(r, 5*time.Second)
			n, _ := io.Copy(io.Discard, r.Body)
			got <- n
			pause(r, 5*time.Second)
			say(w, delta+lastDelta+doneEvent)
		})})
		body := prompt(4 << 20)
		done := make(chan reply, 1)
		go func() { done <- h.post(chat, body) }()
		<-time.After(3 * time.Second)
		if held := h.gateway.buffered.used.Load(); held < int64(len(body)) {
			t.Errorf("%d bytes held of a body of %d that is still being sent", held, len(body))
		}
		if n := <-got; n < int64(len(body)) {
			t.Errorf("the backend got %d bytes of %d", n, len(body))
		}
		synctest.Wait()
		if held := h.gateway.buffered.used.Load(); held > 4*tokens.MaxText {
			t.Errorf("%d bytes held when all was sent", held)
		}
		if r := <-done; r.status != 200 || r.err != nil || !strings.Contains(r.body, "[DONE]") {
			t.Errorf("got %d, %q, %v", r.status, r.body, r.err)
		}
	})
}

// A body that is promised, and of which little or nothing comes, holds little:
// else thousands would fill the buffers of all.
func TestAPromisedBodyIsNotHeld(t *testing.T) {
	for name, c := range map[string]struct{ head, sent string }{
		"large":               {"Content-Length: 31457280\r\n", ""},
		"large, begun":        {"Content-Length: 31457280\r\n", "{"},
		"small":               {"Content-Length: 60000\r\n", ""},
		"small, begun":        {"Content-Length: 60000\r\n", "{"},
		"of any length":       {"Transfer-Encoding: chunked\r\n", ""},
		"of any, begun":       {"Transfer-Encoding: chunked\r\n", "1\r\n{\r\n"},
		"gzip":                {"Content-Encoding: gzip\r\nContent-Length: 60000\r\n", ""},
		"gzip, begun":         {"Content-Encoding: gzip\r\nContent-Length: 60000\r\n", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"},
		"gzip, of any length": {"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", ""},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), nil)
			const uploads = 20
			var open []net.Conn
			for range uploads {
				open = append(open, h.send("POST "+chat+" HTTP/1.1\r\nHost: x\r\n"+c.head+"\r\n"+c.sent))
			}
			if held := h.gateway.buffered.used.Load(); held == 0 || held > uploads*int64(max(onHeap*bodyStart, os.Getpagesize())) {
				t.Errorf("%d bytes held of %d bodies that did not come", held, uploads)
			}
			for _, c := range open {
				c.Close()
			}
			<-time.After(time.Minute)
		})
	}
}

// A body that unpacks to far too much is refused long before it has, and gzip
// as clients use it is not.
func TestCompressedBodiesAreBoundedByTheirRatio(t *testing.T) {
	lines := make([]string, 0, 60_000)
	for i := range 60_000 {
		lines = append(lines, fmt.Sprintf("2026-01-02T03:04:%02d INFO request served in %d ms", i%60, i%97))
	}
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"31 MiB of one letter":       {`{"model":"chat","stream":true,"x":"` + strings.Repeat("a", 31<<20) + `"}`, 413},
		"a little of one letter":     {`{"model":"chat","stream":true,"x":"` + strings.Repeat("a", 1<<20-100) + `"}`, 200},
		"a log that repeats itself":  {`{"model":"chat","stream":true,"x":"` + strings.Join(lines, `\n`) + `"}`, 200},
		"one letter behind the rest": {`{"model":"chat","stream":true,"x":"` + strings.Join(lines, `\n`) + strings.Repeat("a", 28<<20) + `"}`, 413},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Limits.Buffered = conf.Limits.Body // a second body of 31 MiB would have no room
			h := open(t, conf, map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
			var zipped bytes.Buffer
			z := must.Get(gzip.NewWriterLevel(&zipped, gzip.BestSpeed))(t)
			io.WriteString(z, c.body)
			z.Close()
			t.Logf("%d bytes unpack to %.1f times as many", zipped.Len(), float64(len(c.body))/float64(zipped.Len()))
			r := h.post(chat, zipped.String(), "Content-Encoding", "gzip")
			if r.status != c.status {
				t.Errorf("got %d %.200s, want %d", r.status, r.body, c.status)
			}
			if r.status == 413 && r.code(t) != "compression_ratio" {
				t.Errorf("got %s, want compression_ratio", r.body)
			}
		})
	}
}

func TestABodyIsFreedByItsLastUser(t *testing.T) {
	for i, size := range []int{100, 100, smallBody, smallBody, 3*bodyStep + 1, 3*bodyStep + 1} {
		told, most := i%2 == 0, size+1
		if !told {
			most = 1 << 20
		}
		all, own := unbounded(), unbounded()
		y := must.Get(newBody(budgets{all, own}, most, told))(t)
		text := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for left := text; len(left) > 0; {
			room, err := y.next()
			if err != nil || len(room) == 0 {
				t.Fatalf("no room for %d bytes more: %v", len(left), err)
			}
			n := copy(room, left)
			y.wrote(n)
			left = left[n:]
		}
		y.whole()
		if used := all.used.Load(); used < int64(size) || used > int64(max(size+os.Getpagesize(), onHeap*max(2*size, bodyStart))) || own.used.Load() != used {
			t.Errorf("%d bytes are taken for %d (the tenant: %d)", used, size, own.used.Load())
		}
		up := edited{y, []openai.Splice{{From: 1, To: 2, Text: []byte("one")}}}
		r := must.Get(up.Open())(t)
		again, _ := up.Open()
		y.leave()
		if all.used.Load() == 0 {
			t.Error("given back while it is read")
		}
		want := string(text[:1]) + "one" + string(text[2:])
		if got, err := io.ReadAll(r); err != nil || string(got) != want || up.Len() != int64(len(want)) {
			t.Errorf("read %d bytes, told %d, want %d: %v", len(got), up.Len(), len(want), err)
		}
		var both sync.WaitGroup // as a transport may that gives up
		both.Go(func() { io.Copy(io.Discard, again) })
		both.Go(func() { again.Close() })
		both.Wait()
		r.Close()
		r.Close()
		if all.used.Load() != 0 || own.used.Load() != 0 {
			t.Errorf("%d bytes are still taken", all.used.Load())
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a closed reader reads: %v", err)
		}
		if _, err := up.Open(); !errors.Is(err, errBodyGone) {
			t.Errorf("opened although it is gone: %v", err)
		}
	}
}

// Budget: 20 µs for 20 KiB, 1 ms for 1 MiB, and of that no garbage.
func BenchmarkBody(b *testing.B) {
	for _, size := range []int{4 << 10, 20 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%d KiB", size>>10), func(b *testing.B) {
			text := make([]byte, size)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				y := must.Get(newBody(budgets{unbounded(), unbounded()}, size+1, true))(b)
				for y.size < size {
					room, _ := y.next()
					y.wrote(copy(room, text[y.size:]))
				}
				y.whole()
				y.leave()
			}
		})
	}
}

// The system gives a process so many mappings, and the runtime ends the program
// when it finds none left: bodies leave it half of them, however many are
// promised.
func TestBodiesLeaveMappingsToTheRuntime(t *testing.T) {
	free := budgets{all: unbounded(), tenant: unbounded()}
	was := mostMappings
	defer func() { mostMappings = was }()
	mostMappings = mappings.Load() + 3
	var all []*body
	for i := range 4 {
		y, err := newBody(free, 2*smallBody, true)
		if full := i == 3; full != errors.Is(err, errOverloaded) {
			t.Errorf("body %d: %v", i, err)
		}
		all = append(all, y)
	}
	grown, err := newBody(free, 2*smallBody, false)
	for err == nil && grown.size <= smallBody {
		var room []byte
		if room, err = grown.next(); err == nil {
			grown.wrote(len(room))
		}
	}
	if !errors.Is(err, errOverloaded) || grown.size != smallBody {
		t.Errorf("one that grew to %d bytes: %v, want it refused beyond %d", grown.size, err, smallBody)
	}
	for _, y := range append(all, grown) {
		y.leave()
	}
	if left := mostMappings - mappings.Load(); left != 3 || free.all.used.Load() != 0 {
		t.Errorf("%d mappings are free and %d bytes taken when all have left, want 3 and none", left, free.all.used.Load())
	}
	if was < 1000 {
		t.Errorf("%d mappings at most: too few to serve", was)
	}
}

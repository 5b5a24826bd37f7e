package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// patient is a fleet whose route "other" goes to an engine that begins its
// answers at once, and ends them when the test does.
func patient(t *testing.T, engine string) string {
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(ended)
		s.Close()
	})
	return fmt.Sprintf(`backends:
  - { name: a, url: "%s/v1", kind: vllm }
  - { name: b, url: "%s/v1" }
routes:
  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] }
  - { model: other, targets: [ { backend: b, model: big } ] }
`, engine, s.URL)
}

// Streams with prompts of 1 MB run, more of them than all bodies may take
// together. Nobody is refused for it.
func largePrompts(v *victim) {
	body := `{"model":"other","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("words ", 1<<20/6) + `"}]}`
	streams := size(100, 600)
	before := resident(v, v.gateway.PID())
	for i := range streams {
		c := v.dial()
		io.WriteString(c, post("other", "", body))
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			v.Fatalf("stream %d: %+v, %v", i, resp, err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
			v.Fatalf("stream %d: no first token: %v", i, err)
		}
	}
	grown := resident(v, v.gateway.PID()) - before
	v.Logf("%d streams with prompts of %d KiB: memory grew by %d KiB for each", streams, len(body)>>10, grown>>10/int64(streams))
	if grown > int64(streams)*512<<10 {
		v.Errorf("memory grew by %d MiB, want much less than the %d of the prompts", grown>>20, streams*len(body)>>20)
	}
}

// Small bodies that unpack to just below limits.body, without a key.
func bombsWithinTheLimit(v *victim) {
	bomb := zipped(`{"model":"other","messages":[{"role":"user","content":"` + strings.Repeat("a", 31<<20) + `"}]}`)
	before := resident(v, v.gateway.PID())
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range size(4, 60) {
				if got := raw(v, v.addr, post("none", "Content-Encoding: gzip\r\n", bomb)); status(got) != 413 || !strings.Contains(got, "compression_ratio") {
					v.Errorf("a bomb of %d bytes: %.300q, want 413 compression_ratio", len(bomb), got)
				}
			}
		})
	}
	all.Wait()
	grown := peak(v, v.gateway.PID()) - before
	v.Logf("memory grew by %d MiB over %d bombs of %d KiB", grown>>20, 16*size(4, 60), len(bomb)>>10)
	if grown > 64<<20 {
		v.Errorf("memory grew by %d MiB, want less than 16 bombs of 1 MiB and what unpacks them", grown>>20)
	}
}

// One of two keys fills its half of limits.buffered, 128 MiB, with bodies of all
// sorts that are all there at once, again and again. None of them is JSON.
func fullBuffers(v *victim) {
	const half = 128 << 20
	large := strings.Repeat("1234567,", 2<<20/8) // 2 MiB
	kinds := []func() (head, body string){
		func() (string, string) { return fmt.Sprintf("Content-Length: %d", len(large)), large },
		func() (string, string) {
			return "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(large), large)
		},
		func() (string, string) { return fmt.Sprintf("Content-Length: %d", 60<<10), large[:60<<10] },
	}
	before := resident(v, v.gateway.PID())
	full, read, late := 0, 0, 0
	for range size(4, 20) {
		var senders, sent sync.WaitGroup
		arrived := make(chan struct{})
		statuses := make(chan int, 300)
		for i := range cap(statuses) {
			sent.Add(1)
			senders.Go(func() { statuses <- v.sendAtOnce(kinds[i%len(kinds)], &sent, arrived) })
		}
		sent.Wait()
		close(arrived)
		senders.Wait()
		for range cap(statuses) {
			switch got := <-statuses; got {
			case http.StatusBadRequest:
				read++
			case http.StatusServiceUnavailable:
				full++
			case http.StatusRequestTimeout: // on a busy machine the others took longer than timeouts.write
				late++
			default:
				v.Errorf("got %d, want 400, 408 or 503", got)
			}
		}
	}
	grown := peak(v, v.gateway.PID()) - before
	v.Logf("%d bodies were read, %d found no room, %d waited too long for the others; memory grew by %d MiB at most, %.2f times what they may take", read, full, late, grown>>20, float64(grown)/half)
	if full == 0 {
		v.Errorf("all %d bodies found room: nothing was full", read)
	}
	if grown > half*13/10+64<<20 {
		v.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// sendAtOnce sends all of a body but its end, tells sent, and sends the end when
// the others have arrived. It returns the status.
func (v *victim) sendAtOnce(kind func() (head, body string), sent *sync.WaitGroup, arrived <-chan struct{}) int {
	c, err := net.Dial("tcp", v.addr)
	if err != nil {
		sent.Done()
		v.Error(err)
		return 0
	}
	defer c.Close()
	head, body := kind()
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer other\r\n%s\r\n\r\n", head)
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	go func() {
		io.WriteString(c, body[:len(body)-3])
		sent.Done()
		<-arrived
		io.WriteString(c, body[len(body)-3:])
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		v.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

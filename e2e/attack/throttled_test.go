package attack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// zipped is text with gzip, as small as it gets.
func zipped(text string) string {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// size is short in the short form, and long in the full one.
func size(short, long int) int {
	if *full {
		return long
	}
	return short
}

// A key that has used up its minute sends small bodies that unpack to 31 MiB,
// eight at a time. None of them is unpacked.
func throttledGzip(v *victim) {
	body := zipped(`{"model":"other","messages":[{"role":"user","content":"` + strings.Repeat("a", 31<<20) + `"}]}`)
	if got := raw(v, v.addr, post("other", "", hello)); status(got) != 200 {
		v.Fatalf("the one request of the minute: %.200q", got)
	}
	before := resident(v, v.gateway.PID())
	bodies := size(200, 2000)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range bodies / 8 {
				if got := raw(v, v.addr, post("other", "Content-Encoding: gzip\r\n", body)); status(got) != 429 {
					v.Errorf("a body of %d bytes: %.200q, want 429", len(body), got)
				}
			}
		})
	}
	all.Wait()
	grown := peak(v, v.gateway.PID()) - before
	v.Logf("memory grew by %d MiB over %d bodies of %d KiB", grown>>20, bodies, len(body)>>10)
	if grown > 48<<20 {
		v.Errorf("memory grew by %d MiB, want less than two of the bodies unpacked", grown>>20)
	}
}

// A key with a concurrency of 1 opens more connections than the gateway may
// have, each with a body that is promised and does not come. All but the first
// are told 429 by their heads, and make room.
func manyAtConcurrency(v *victim) {
	const promise = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\nContent-Length: 1000000\r\n\r\n{"
	told := 0
	for range size(4, 20) {
		var batch []net.Conn
		for range 800 {
			c := v.dial()
			io.WriteString(c, promise)
			batch = append(batch, c)
		}
		for _, c := range batch {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				v.Fatalf("after %d were told: no answer: %v", told, err)
			}
			resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusTooManyRequests:
				told++
			case http.StatusRequestTimeout: // its turn, and no body within timeouts.write
			default:
				v.Errorf("got %d, want 429", resp.StatusCode)
			}
			c.Close()
		}
	}
	v.Logf("%d connections were told 429", told)
	if want := 800 * size(4, 20) * 9 / 10; told < want {
		v.Errorf("%d connections were told 429, want more than %d", told, want)
	}
}

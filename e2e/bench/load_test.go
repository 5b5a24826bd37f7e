package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is what one leg sends.
type load struct {
	name    string
	clients int
	chunks  int           // of each answer; 0 = it is a document
	every   time.Duration // between two chunks; 0 = as fast as they come
	hold    bool          // streams are held, and nothing but that is measured
	over    wiring
	header  string // of each request, beside the usual ones: whole lines
	calls   bool   // the proxy's system calls are counted, which costs it CPU
	targets int    // that the route has; 0 = one
	slowly  bool   // 1,000 streams begin each second; else ten times as many
}

// tps is the speed of l's streams, where they have one.
func (l *load) tps() float64 {
	if l.every == 0 {
		return usualTPS
	}
	return 1 / l.every.Seconds()
}

// client is one connection that sends one request after the other; over HTTP/2 one
// stream after the other, on connections that clients share.
type client struct {
	addr    string
	dial    *dialer
	load    *load
	request []byte
	counts  *counts
	stop    *atomic.Bool
	late    []int64 // nanoseconds from the backend's write of a chunk to its arrival here, while counting
}

// counts are what all clients of a leg have seen.
type counts struct {
	counting atomic.Bool
	requests atomic.Int64 // answered whole
	chunks   atomic.Int64
	running  atomic.Int64 // streams that have begun
	errors   atomic.Int64
	first    atomic.Pointer[error]
}

func (c *counts) fail(err error) {
	c.errors.Add(1)
	c.first.CompareAndSwap(nil, &err)
}

// newRequest returns a request as it is written, and as net/http sends it.
func newRequest(l *load, header string) []byte {
	body := `{"model":"chat","messages":[{"role":"user","content":"` + string(bytes.Repeat([]byte("What is it? "), 20)) + `"}],"max_tokens":` + strconv.Itoa(max(l.chunks, 8))
	if l.chunks > 0 || l.hold {
		body += `,"stream":true`
	}
	body += "}"
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nAccept: */*\r\n%s%s: %d\r\n%s: %d\r\nContent-Length: %d\r\n\r\n%s",
		header, headerChunks, l.chunks, headerEvery, l.every.Microseconds(), len(body), body)
}

// run sends requests until it is stopped.
func (c *client) run() {
	asks := c.dial.shared(c.addr, c.request)
	if asks == nil {
		conn, err := c.dial.connect(c.addr)
		if err != nil {
			c.counts.fail(err)
			return
		}
		defer conn.Close()
		r := bufio.NewReaderSize(conn, 4<<10)
		asks = func() (*http.Response, error) {
			if _, err := conn.Write(c.request); err != nil {
				return nil, err
			}
			return http.ReadResponse(r, nil)
		}
	}
	lines := bufio.NewReaderSize(nil, 4<<10)
	for !c.stop.Load() {
		if err := c.once(asks, lines); err != nil {
			if !c.stop.Load() {
				c.counts.fail(err)
			}
			return
		}
		if c.counts.counting.Load() {
			c.counts.requests.Add(1)
		}
	}
}

func (c *client) once(asks func() (*http.Response, error), lines *bufio.Reader) error {
	resp, err := asks()
	if err != nil {
		return err
	}
	if resp.ProtoMajor == 2 {
		defer resp.Body.Close()
	}
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("status %d: %s", resp.StatusCode, b)
	}
	if c.load.chunks == 0 {
		b, err := io.ReadAll(resp.Body)
		if err == nil && string(b) != document {
			err = fmt.Errorf("another document: %s", b)
		}
		return err
	}
	lines.Reset(resp.Body)
	c.counts.running.Add(1)
	defer c.counts.running.Add(-1)
	return c.stream(lines)
}

// stream reads one stream, and finds every chunk of it there, in order.
func (c *client) stream(lines *bufio.Reader) error {
	chunks, finished, last := 0, false, int64(0)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF:
			if chunks != c.load.chunks || !finished {
				return fmt.Errorf("%d chunks of %d, finished: %v", chunks, c.load.chunks, finished)
			}
			return nil
		case err != nil:
			return err
		case c.stop.Load():
			return nil
		case string(line) == done[:len(done)-1]:
			finished = true
		case len(line) > len(chunkHead) && string(line[:len(chunkHead)]) == chunkHead:
			const digits = 19
			at, err := strconv.ParseInt(string(line[len(chunkHead):len(chunkHead)+digits]), 10, 64)
			if err != nil || at < last {
				return fmt.Errorf("not the next chunk: %s", line)
			}
			last = at
			chunks++
			if c.counts.counting.Load() {
				c.counts.chunks.Add(1)
				c.late = append(c.late, time.Now().UnixNano()-at)
			}
		}
	}
}

// takeProfile has p take a profile of its CPU for as long as a leg is measured.
func takeProfile(t *testing.T, p *proxy, l *load, length time.Duration) {
	t.Helper()
	b := p.ask(t, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(length.Seconds()))))
	name := fmt.Sprintf("%s-%s.pprof", l.name, strings.ReplaceAll(p.name, ", ", "-"))
	if err := os.WriteFile(filepath.Join(*profile, name), b, 0o644); err != nil {
		t.Error(err)
	}
}

// wait returns when the leg is over, and how many system calls p made meanwhile, if
// these are counted.
func wait(t *testing.T, p *proxy, l *load, length time.Duration) (made int64) {
	t.Helper()
	switch {
	case l.calls:
		var err error
		if made, err = calls(p.pids, length); err != nil {
			t.Error(err)
		}
	case *profile != "" && p.admin != "":
		takeProfile(t, p, l, length)
	default:
		<-time.After(length)
	}
	return made
}

// figures are those of one leg.
type figures struct {
	Requests, Chunks, Errors int64
	CPU                      time.Duration
	Each                     float64 // µs of CPU for each request or chunk; for streams that are held, KiB for each
	P50, P99                 float64 // ms from the backend to the client
	Worst                    float64 `json:",omitempty"` // the same, of cancels
	Memory                   int64   // bytes that the proxy has more than before
	Calls                    float64 `json:",omitempty"` // system calls for each request or chunk, where they are counted
}

// leg puts l on p for as long as that takes to be measured.
func leg(t *testing.T, p *proxy, l *load, length time.Duration) figures {
	t.Helper()
	var (
		c    counts
		stop atomic.Bool
		all  sync.WaitGroup
	)
	before := p.memory(t)
	clients := make([]*client, l.clients)
	request, dial := newRequest(l, l.header), newDialer(l.over, p.ca)
	begun := time.Now()
	for i := range clients {
		clients[i] = &client{addr: p.addr, dial: dial, load: l, request: request, counts: &c, stop: &stop}
		all.Go(clients[i].run)
		switch {
		case l.slowly: // evenly: many at once would be many chunks at once for as long as they last
			<-time.After(time.Until(begun.Add(time.Duration(i+1) * time.Millisecond)))
		case l.chunks > 0 && i%50 == 49: // no burst of a thousand handshakes
			<-time.After(5 * time.Millisecond)
		}
	}
	for l.chunks > 0 && l.every > 0 && c.running.Load() < int64(l.clients) && c.errors.Load() == 0 && time.Since(begun) < time.Minute {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(length / 5)
	cpu := p.cpu(t)
	c.counting.Store(true)
	made := wait(t, p, l, length)
	c.counting.Store(false)
	f := figures{Requests: c.requests.Load(), Chunks: c.chunks.Load(), CPU: p.cpu(t) - cpu, Memory: p.memory(t) - before}
	if l.hold {
		f.Each = float64(f.Memory) / 1024 / float64(l.clients)
	}
	stop.Store(true)
	all.Wait()
	dial.close()
	if f.Errors = c.errors.Load(); f.Errors > 0 {
		t.Errorf("%s, %s: %d errors, the first: %v", p.name, l.name, f.Errors, *c.first.Load())
	}
	if !l.hold {
		f.Each = float64(f.CPU.Microseconds()) / float64(max(f.Requests, 1))
		if l.chunks > 0 {
			f.Each = float64(f.CPU.Microseconds()) / float64(max(f.Chunks, 1))
		}
	}
	f.Calls = float64(made) / float64(max(f.Requests, 1))
	if l.chunks > 0 {
		f.Calls = float64(made) / float64(max(f.Chunks, 1))
	}
	var late []int64
	for _, one := range clients {
		late = append(late, one.late...)
	}
	if len(late) > 0 {
		slices.Sort(late)
		f.P50, f.P99 = float64(late[len(late)/2])/1e6, float64(late[len(late)*99/100])/1e6
	}
	return f
}

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A client of these leaves without a word when it has what it waited for.
var cancels = []struct {
	name string
	load load
}{
	{"cancel-before", load{hold: true}},                                           // the first token
	{"cancel-within", load{hold: true, chunks: 10, every: 50 * time.Millisecond}}, // the stream, which loops pass on by then
}

// measureCancels says how long it takes until the backend sees its connection end,
// from when the client of it has closed its own, while the backend is silent.
func measureCancels(t *testing.T, all []*proxy, backend string, clients, each int) (of []*outcome) {
	t.Helper()
	for _, kind := range cancels {
		for at, p := range all {
			if p.name == "none" {
				continue
			}
			var (
				running sync.WaitGroup
				mu      sync.Mutex // guards late
				late    []int64
			)
			for i := range clients {
				running.Go(func() {
					for k := range each {
						took, err := cancelOne(p, &kind.load, backend, fmt.Sprintf("%s-%d-%d-%d", kind.name, at, i, k))
						if err != nil {
							t.Errorf("%s, %s: %v", p.name, kind.name, err)
							return
						}
						mu.Lock()
						late = append(late, took)
						mu.Unlock()
					}
				})
			}
			running.Wait()
			if len(late) == 0 {
				continue
			}
			slices.Sort(late)
			of = append(of, &outcome{Load: kind.name, Proxy: p.name, Rounds: []figures{{
				Requests: int64(len(late)), P50: float64(late[len(late)/2]) / 1e6, P99: float64(late[len(late)*99/100]) / 1e6, Worst: float64(late[len(late)-1]) / 1e6,
			}}})
		}
	}
	return of
}

// cancelOne asks, leaves, and returns the nanoseconds until the backend saw that.
func cancelOne(p *proxy, l *load, backend, name string) (int64, error) {
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(newRequest(l, headerHold+": "+name+"\r\n")); err != nil {
		return 0, err
	}
	if l.chunks == 0 {
		<-time.After(200 * time.Millisecond) // the backend has it by then
	} else if err := readChunks(c, l.chunks); err != nil {
		return 0, err
	}
	left := time.Now().UnixNano()
	c.Close()
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + backend + pathEnded + name)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	ended, err := strconv.ParseInt(string(b), 10, 64)
	return ended - left, err
}

// readChunks reads an answer until so many chunks have come.
func readChunks(c net.Conn, chunks int) error {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(resp.Body)
	for seen := 0; seen < chunks; {
		if !lines.Scan() {
			return fmt.Errorf("status %d, the stream ended behind %d chunks: %v", resp.StatusCode, seen, lines.Err())
		}
		if bytes.HasPrefix(lines.Bytes(), []byte(chunkHead)) {
			seen++
		}
	}
	return nil
}

// renderCancels is the table of them.
func renderCancels(of []*outcome) string {
	if len(of) == 0 {
		return ""
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n| ms from a client's end to the backend's | p50 | p99 | worst | of |\n|---|---|---|---|---|\n")
	for _, o := range of {
		f := o.Rounds[0]
		fmt.Fprintf(&b, "| %s, %s | %.2f | %.2f | %.2f | %d |\n", o.Load, o.Proxy, f.P50, f.P99, f.Worst, f.Requests)
	}
	return b.String()
}

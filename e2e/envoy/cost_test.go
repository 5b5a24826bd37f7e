package envoy

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

const (
	costStreams = 64
	costEvery   = 20 * time.Millisecond
	costChunks  = 100 // of each answer
	costLeg     = 6 * time.Second
	ticksSecond = 100 // of /proc/PID/stat on Linux
)

// leg is one way from the clients to the engine.
type leg struct {
	name  string
	edits []string
	bare  bool // Envoy without the picker
	serve bool // the gateway in place of Envoy
}

// modes are the ways that are compared. In the ways that show no body of an answer
// nothing is learned.
var legs = []leg{
	{name: "Envoy alone", bare: true},
	{name: "picker, bodies streamed (FULL_DUPLEX_STREAMED)"},
	{name: "picker, bodies streamed (STREAMED)", edits: []string{"response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: STREAMED"}},
	{name: "picker, heads and trailers alone (NONE)", edits: []string{"response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: NONE"}},
	{name: "pacer serve, without Envoy", serve: true},
}

// cost is what one leg took.
type cost struct {
	chunks, streams   int64
	envoy, pacer      float64 // seconds of CPU
	late50, late99    time.Duration
	first50, first99  time.Duration
	learned, measured float64 // tokens
}

// What the picker costs beside what Envoy costs itself: CPU for each chunk, and how
// much later the chunks come. It measures, and promises nothing: -table FILE.
func TestCosts(t *testing.T) {
	if *table == "" {
		t.Skip("without -table FILE nothing is measured: make envoy does it")
	}
	file := binary(t)
	engine := chunksOf(t)
	rounds := 2
	if *long {
		rounds = 5
	}
	costs := make([][]cost, len(legs))
	for range rounds {
		for i, l := range legs {
			costs[i] = append(costs[i], l.measure(t, file, engine))
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "| %d streams, a chunk each %v | CPU of Envoy per chunk | CPU of Pacer per chunk | chunk later, p50 | p99 | first chunk, p50 | p99 | tokens counted |\n|---|---|---|---|---|---|---|---|\n", costStreams, costEvery)
	for i, l := range legs {
		fmt.Fprintf(&out, "| %s |", l.name)
		row := func(f func(cost) float64, format string) {
			all := make([]float64, 0, rounds)
			for _, c := range costs[i] {
				all = append(all, f(c))
			}
			slices.Sort(all)
			fmt.Fprintf(&out, " "+format+" (%.1f to %.1f) |", all[len(all)/2], all[0], all[len(all)-1])
		}
		row(func(c cost) float64 { return 1e6 * c.envoy / float64(c.chunks) }, "%.1f µs")
		row(func(c cost) float64 { return 1e6 * c.pacer / float64(c.chunks) }, "%.1f µs")
		row(func(c cost) float64 { return micros(c.late50) }, "%.0f µs")
		row(func(c cost) float64 { return micros(c.late99) }, "%.0f µs")
		row(func(c cost) float64 { return micros(c.first50) }, "%.0f µs")
		row(func(c cost) float64 { return micros(c.first99) }, "%.0f µs")
		c := costs[i][0]
		fmt.Fprintf(&out, " %.0f %% |\n", 100*c.learned/float64(max(c.measured, 1)))
	}
	t.Logf("\n%s", out.String())
	must.Do(t, os.WriteFile(*table, out.Bytes(), 0o644))
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// chunksOf is an engine that sends a chunk each costEvery, which says when it was
// written. It runs in this process, whose CPU is not counted.
func chunksOf(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			w.WriteHeader(http.StatusOK)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		tick := time.NewTicker(costEvery)
		defer tick.Stop()
		for range costChunks {
			fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%d"}}]}`+"\n\n", time.Now().UnixNano())
			if flush.Flush() != nil {
				return
			}
			<-tick.C
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", costChunks, costChunks+3)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// measure runs one leg.
func (l leg) measure(t *testing.T, file, engine string) (c cost) {
	conf := fmt.Sprintf(`picker: { listen: 127.0.0.1:0 }
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
log: { level: error }
limits: { streams: 1000 }
backends: [ { name: a, url: "http://%s/v1", kind: openai, usage: never } ]
routes: [ { model: chat, targets: [ { backend: a, model: m } ] } ]
`, engine)
	url := ""
	var pacer *proctest.Process
	var pids [2]int
	if l.serve {
		pacer = proctest.Start(t, nil, "serve", "-c", proctest.Write(t, conf))
		url = pacer.Ready["data"]
	} else {
		pacer = proctest.Start(t, nil, "picker", "-c", proctest.Write(t, conf))
		edits := l.edits
		if l.bare {
			text := must.Get(os.ReadFile("../../examples/envoy/envoy.yaml"))(t)
			from, to := strings.Index(string(text), "                  - name: envoy.filters.http.ext_proc"), strings.Index(string(text), "                  - name: envoy.filters.http.router")
			edits = []string{port.ReplaceAllString(string(text[from:to]), "$0"), ""}
		}
		p := portOf(t, engine)
		e := startEnvoy(t, map[string]string{"9101": p, "9102": p, "9103": p, "9002": portOf(t, pacer.Ready["grpc"])}, edits...)
		url, pids[0] = e.url, e.cmd.Process.Pid
		defer func() {
			_ = e.cmd.Process.Kill()
			<-e.ended
		}()
	}
	pids[1] = pacer.PID()
	defer kill(pacer)
	var counting atomic.Bool
	var stop atomic.Bool
	var mu sync.Mutex
	var late, first []int64
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: costStreams}}
	for range costStreams {
		wg.Go(func() {
			var mine, begins []int64
			var chunks, streams int64
			for !stop.Load() {
				resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"chat","stream":true,"messages":[{"role":"user","content":"hello"}]}`))
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("%v %v", resp, err)
					return
				}
				lines, n, done := bufio.NewScanner(resp.Body), 0, false
				for lines.Scan() {
					_, after, ok := bytes.Cut(lines.Bytes(), []byte(`"content":"`))
					if !ok {
						done = done || bytes.HasPrefix(lines.Bytes(), []byte("data: [DONE]"))
						continue
					}
					text, _, _ := bytes.Cut(after, []byte(`"`))
					at, _ := strconv.ParseInt(string(text), 10, 64)
					if n++; counting.Load() {
						chunks++
						if behind := time.Now().UnixNano() - at; n == 1 {
							begins = append(begins, behind)
						} else {
							mine = append(mine, behind)
						}
					}
				}
				resp.Body.Close()
				if n != costChunks || !done {
					t.Errorf("%s: %d of %d chunks, the end %v", l.name, n, costChunks, done)
				}
				streams++
			}
			mu.Lock()
			defer mu.Unlock()
			late, first = append(late, mine...), append(first, begins...)
			c.chunks += chunks
			c.streams += streams
		})
	}
	<-time.After(2500 * time.Millisecond) // until every connection is there
	before := [2]float64{cpu(t, pids[0]), cpu(t, pids[1])}
	counting.Store(true)
	<-time.After(costLeg)
	counting.Store(false)
	c.envoy, c.pacer = cpu(t, pids[0])-before[0], cpu(t, pids[1])-before[1]
	stop.Store(true)
	wg.Wait()
	slices.Sort(late)
	slices.Sort(first)
	c.late50, c.late99 = share(late, 0.5), share(late, 0.99)
	c.first50, c.first99 = share(first, 0.5), share(first, 0.99)
	c.measured = float64(c.streams * costChunks)
	page := string(proctest.Get(t, pacer.Ready["admin"]+"/metrics"))
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "pacer_tokens_total{") && strings.Contains(line, `direction="output"`) {
			c.learned += proctest.Sum(line, "pacer_tokens_total{")
		}
	}
	return c
}

func share(sorted []int64, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return time.Duration(sorted[int(q*float64(len(sorted)-1))])
}

// cpu is how many seconds of it a process has had; 0 for none.
func cpu(t *testing.T, pid int) float64 {
	if pid == 0 {
		return 0
	}
	text := must.Get(os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"))(t)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksSecond
}

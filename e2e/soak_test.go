package e2e

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// The long form is make soak.
var (
	soakFor     = flag.Duration("soak", 5*time.Second, "how long TestSoak runs")
	soakStreams = flag.Int("streams", 300, "how many streams TestSoak runs at once")
)

// soaker is clients that stream, hang up whenever they like, and count.
type soaker struct {
	t    *testing.T
	url  string
	http *http.Client

	sent, done, refused, left, failed atomic.Int64 // sent = the gateway has all of the request
}

// dial counts the requests that go over a connection: each goes in one write.
func (s *soaker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	return &countedConn{c, s}, err
}

type countedConn struct {
	net.Conn
	soaker *soaker
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err == nil && bytes.HasPrefix(p, []byte("POST ")) {
		c.soaker.sent.Add(1)
	}
	return n, err
}

// ask sends one request and gives up after patience.
func (s *soaker) ask(patience time.Duration, body string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return
	}
	resp, err := s.http.Do(r)
	var end []byte
	if err == nil {
		answer := bufio.NewReader(resp.Body)
		var text []byte
		for err == nil {
			end = append(end[:0], bytes.TrimSpace(text)...)
			for text, err = answer.ReadSlice('\n'); err == nil && len(bytes.TrimSpace(text)) == 0; {
				text, err = answer.ReadSlice('\n')
			}
		}
		if err == io.EOF {
			err = nil
		}
		resp.Body.Close()
	}
	switch {
	case ctx.Err() != nil && err != nil:
		s.left.Add(1)
	case err == nil && resp.StatusCode == http.StatusOK && (string(end) == "data: [DONE]" || !strings.Contains(body, `"stream":true`)):
		s.done.Add(1)
	case err == nil && resp.StatusCode == http.StatusTooManyRequests:
		s.refused.Add(1)
	default:
		if s.failed.Add(1) < 5 {
			s.t.Errorf("%v, ending in %.100q: %v", resp, end, err)
		}
	}
}

// vitals is what must not grow.
type vitals struct{ goroutines, files, heap float64 }

func (s *soaker) vitals(p *proctest.Process) vitals {
	page := string(proctest.Get(s.t, p.Ready["admin"]+"/metrics"))
	return vitals{proctest.Sum(page, "go_goroutines "), proctest.Sum(page, "process_open_fds "), proctest.Sum(page, "go_memstats_heap_inuse_bytes ")}
}

// Streams in hundreds, many of whose clients hang up, for as long as one likes:
// at the end nothing is left of them, nothing has grown, and every count is
// exact.
func TestSoak(t *testing.T) {
	engines := []*proctest.Process{}
	for i := range 2 {
		engines = append(engines, proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--max-num-seqs", "4096", "--seed", fmt.Sprint(i)))
	}
	gateway := proctest.Gateway(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
log: { level: error }
backends: [ { name: a, url: %q, kind: vllm }, { name: b, url: %q, kind: vllm } ]
routes:
  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b }, { backend: b, model: llama-3.1-70b } ] }
  - { model: strict, slo: { min_tps: 5 }, targets: [ { backend: a, model: llama-3.1-70b } ], on_infeasible: [ { queue: 1s }, shed ] }
`, engines[0].Ready["url"]+"/v1", engines[1].Ready["url"]+"/v1"))
	s := &soaker{t: t, url: gateway.Ready["data"]}
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *soakStreams, DialContext: s.dial}}

	run := func(d time.Duration) {
		over := time.Now().Add(d)
		var clients sync.WaitGroup
		for i := range *soakStreams {
			clients.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(over.UnixNano())))
				for time.Now().Before(over) {
					model, stream := "chat", "true"
					if rng.IntN(8) == 0 {
						model = "strict"
					}
					if rng.IntN(8) == 0 {
						stream = "false"
					}
					patience := time.Hour
					if rng.IntN(3) == 0 {
						patience = time.Duration(rng.ExpFloat64() * float64(time.Second))
					}
					s.ask(patience, fmt.Sprintf(`{"model":%q,"stream":%s,"max_tokens":%d,"messages":[{"role":"user","content":"hello"}]}`, model, stream, 1+rng.IntN(40)))
				}
			})
		}
		clients.Wait()
		s.http.CloseIdleConnections()
	}
	fresh := s.vitals(gateway)
	// quiet waits until nothing runs any more, and all is closed that was open
	// for it.
	quiet := func() vitals {
		proctest.Until(t, fmt.Sprintf("nothing is under way, and nothing more is open than in the beginning (%+v)", fresh), func() bool {
			v := s.vitals(gateway)
			return proctest.Sum(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), "pacer_inflight{") == 0 && v.files <= fresh.files+3 && v.goroutines <= fresh.goroutines+5
		})
		return s.vitals(gateway)
	}
	run(*soakFor / 5)
	before := quiet()
	run(*soakFor)
	after := quiet()

	page := string(proctest.Get(t, gateway.Ready["admin"]+"/metrics"))
	total := proctest.Sum(page, "pacer_requests_total{")
	t.Logf("%d requests: %d done, %d refused, %d hung up, %d failed; goroutines %.0f, then %.0f; files %.0f, %.0f; heap %.1f, %.1f MiB",
		s.sent.Load(), s.done.Load(), s.refused.Load(), s.left.Load(), s.failed.Load(),
		before.goroutines, after.goroutines, before.files, after.files, before.heap/(1<<20), after.heap/(1<<20))
	if s.failed.Load() > 0 {
		t.Errorf("%d requests failed", s.failed.Load())
	}
	if total != float64(s.sent.Load()) {
		t.Errorf("pacer_requests_total is %.0f, clients sent %d", total, s.sent.Load())
	}
	if after.heap > 2*before.heap+32<<20 {
		t.Errorf("the heap grew from %.0f to %.0f bytes", before.heap, after.heap)
	}
	offered := 0.0
	for _, r := range proctest.JSON[api.Routes](t, gateway.Ready["admin"]+"/api/v1/routes").Routes {
		offered += float64(r.Offered)
		if r.Offered != r.Met+r.Missed+r.Unmeasured+r.Shed+r.Failed {
			t.Errorf("route counts %+v do not add up", r)
		}
	}
	if slo := proctest.Sum(page, "pacer_slo_total{"); slo != offered || slo > total || slo < total-float64(s.left.Load()) {
		t.Errorf("pacer_slo_total is %.0f, the routes say %.0f were offered, of %.0f requests; want the same, and all but who hung up before the first token", slo, offered, total)
	}
	for i, e := range engines {
		if left := running(t, e); left != 0 {
			t.Errorf("engine %d has %d sequences left", i, left)
		}
	}
}

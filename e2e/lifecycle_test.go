package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// many returns a client that keeps a connection for each of n streams.
func many(p *proctest.Process, n int) *loadgen.Client {
	return &loadgen.Client{BaseURL: p.Ready["data"] + "/v1", HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}}
}

// begin opens n streams that have their first token, and returns what they send
// from there on.
func begin(t *testing.T, c *loadgen.Client, n, tokens int) []*bufio.Reader {
	t.Helper()
	streams := make([]*bufio.Reader, n)
	var opening sync.WaitGroup
	for i := range streams {
		opening.Go(func() {
			resp, err := c.HTTP.Post(c.BaseURL+"/chat/completions", "application/json",
				strings.NewReader(fmt.Sprintf(`{"model":"chat","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":"hello"}]}`, tokens)))
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { resp.Body.Close() })
			answer := bufio.NewReader(resp.Body)
			if _, err := answer.ReadString('\n'); err != nil {
				t.Error(err)
				return
			}
			streams[i] = answer
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return streams
}

// rest reads the streams to their ends and returns how many were whole, and how
// many ended in an error event and an aborted connection.
func rest(streams []*bufio.Reader) (whole, told int) {
	var reading sync.WaitGroup
	var mu sync.Mutex
	for _, s := range streams {
		reading.Go(func() {
			text, err := io.ReadAll(s)
			mu.Lock()
			defer mu.Unlock()
			_, after, broken := strings.Cut(string(text), `data: {"error":`)
			switch {
			case err == nil && strings.HasSuffix(string(text), "data: [DONE]\n\n"):
				whole++
			case errors.Is(err, io.ErrUnexpectedEOF) && broken && strings.HasSuffix(after, "\n\n"):
				told++
			}
		})
	}
	reading.Wait()
	return whole, told
}

// 200 streams run when SIGTERM comes. Within the deadline all of them finish.
func TestSIGTERMWith200Streams(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "3")
	gateway := proctest.Start(t, nil, "serve", "-c", proctest.Write(t, fmt.Sprintf(
		"listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nlog: { level: warn }\ntimeouts: { drain: 50s, linger: 200ms }\nbackends: [ { name: a, url: %q, kind: vllm } ]\n"+
			"routes: [ { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] } ]\n", engine.Ready["url"]+"/v1")))
	streams := begin(t, many(gateway, 200), 200, 300)
	exit := make(chan int)
	go func() { exit <- gateway.Stop(syscall.SIGTERM) }()
	begun := time.Now()
	whole, told := rest(streams)
	code := <-exit
	t.Logf("%d of 200 streams whole, the gateway ended %v after SIGTERM", whole, time.Since(begun).Round(10*time.Millisecond))
	if whole != 200 || code != 0 {
		t.Errorf("%d of 200 whole, %d broken off, exit code %d; want all and 0\n%s", whole, told, code, gateway.Log())
	}
}

// Beyond the deadline each of them is told so, and cut.
func TestSIGTERMBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm")
	gateway := proctest.Start(t, nil, "serve", "-c", proctest.Write(t, fmt.Sprintf(
		"listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\ntimeouts: { drain: 1s }\nbackends: [ { name: a, url: %q, kind: vllm } ]\n"+
			"routes: [ { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] } ]\n", engine.Ready["url"]+"/v1")))
	streams := begin(t, many(gateway, 100), 100, 20_000)
	exit := make(chan int)
	go func() { exit <- gateway.Stop(syscall.SIGTERM) }()
	whole, told := rest(streams)
	if code := <-exit; told != 100 || code != 0 {
		t.Errorf("%d of 100 were told by an error event and cut, %d whole, exit code %d; want all told, and 0", told, whole, code)
	}
	if n := strings.Count(gateway.Log(), `"outcome":"cut"`); n != 100 {
		t.Errorf("%d lines of the log say cut, want 100", n)
	}
}

// fleet is replicas behind a balancer that asks each for /readyz, goes round
// those that say yes, and turns elsewhere when one cannot be reached or is
// leaving.
type fleet struct {
	mu    sync.Mutex
	ready []*proctest.Process // in the order that requests go
	next  int

	retried atomic.Int64
}

// look keeps asking p until ctx ends.
func (f *fleet) look(ctx context.Context, p *proctest.Process) {
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		resp, err := http.Get(p.Ready["data"] + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		f.set(p, err == nil && resp.StatusCode == http.StatusOK)
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

func (f *fleet) set(p *proctest.Process, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := []*proctest.Process{}
	for _, q := range f.ready {
		if q != p {
			others = append(others, q)
		} else if ready {
			return
		}
	}
	if ready {
		others = append(others, p)
	}
	f.ready = others
}

func (f *fleet) pick() *proctest.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ready) == 0 {
		return nil
	}
	f.next++
	return f.ready[f.next%len(f.ready)]
}

// stream sends one request, at most three times.
func (f *fleet) stream(c *http.Client, tokens int) (r loadgen.Result) {
	for range 3 {
		p := f.pick()
		if p == nil {
			return loadgen.Result{Outcome: loadgen.Failed, Err: errors.New("no replica is ready")}
		}
		at := &loadgen.Client{BaseURL: p.Ready["data"] + "/v1", HTTP: c}
		if r = at.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: tokens}); r.Outcome == loadgen.Done || r.Tokens > 0 {
			return r
		}
		f.retried.Add(1)
	}
	return r
}

// Three replicas are restarted one after the other under load: no request
// fails, and no stream breaks off.
func TestARollingRestartFailsNothing(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	file := proctest.Write(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nlog: { level: error }\nreplicas: 3\ntimeouts: { linger: 500ms }\n"+
		"backends: [ { name: a, url: %q, kind: vllm } ]\nroutes: [ { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] } ]\n", engine.Ready["url"]+"/v1"))
	f := &fleet{}
	looking, stopLooking := context.WithCancel(context.Background())
	var lookers, clients sync.WaitGroup
	defer lookers.Wait()
	defer stopLooking()
	start := func() *proctest.Process {
		p := proctest.Start(t, nil, "serve", "-c", file)
		f.set(p, true)
		lookers.Go(func() { f.look(looking, p) })
		return p
	}
	replicas := []*proctest.Process{start(), start(), start()}

	ctx, stop := context.WithCancel(context.Background())
	http := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	var done, failed atomic.Int64
	for i := range 16 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if r := f.stream(http, 20+(7*i+n)%100); r.Outcome == loadgen.Done {
					done.Add(1)
				} else {
					failed.Add(1)
					t.Errorf("%v after %d tokens: %v", r.Outcome, r.Tokens, r.Err)
				}
			}
		})
	}
	for i, old := range replicas {
		before := done.Load()
		replicas[i] = start()
		if code := old.Stop(syscall.SIGTERM); code != 0 {
			t.Errorf("replica %d ended with %d:\n%s", i, code, old.Log())
		}
		proctest.Until(t, "the others serve on", func() bool { return done.Load() > before+20 || t.Failed() })
	}
	stop()
	clients.Wait()
	t.Logf("%d requests served, %d failed, %d sent again", done.Load(), failed.Load(), f.retried.Load())
}

// systemd hears of a start, a reload and the end.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("no sockets of datagrams here: ", err)
	}
	defer socket.Close()
	next := func(want string) {
		t.Helper()
		buf := make([]byte, 4096)
		_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := socket.Read(buf)
		if err != nil || !strings.HasPrefix(string(buf[:n]), want) {
			t.Fatalf("heard %q (%v), want %s", buf[:n], err, want)
		}
	}
	gateway := proctest.Start(t, []string{"NOTIFY_SOCKET=" + path}, "serve", "-c", gatewayConfig(t, "http://127.0.0.1:1", ""))
	next("READY=1")
	gateway.Signal(syscall.SIGHUP)
	next("RELOADING=1\nMONOTONIC_USEC=")
	next("READY=1")
	ended := make(chan int)
	go func() { ended <- gateway.Stop(syscall.SIGINT) }()
	next("STOPPING=1")
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

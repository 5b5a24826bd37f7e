package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// unread is a client that is patient for long, and not for ever: what hangs is
// a failure and not the end of the test.
var unread = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// refusals asks for n paths that are not served, each a line of the log, and
// returns how many were refused as they should be.
func refusals(data string, n int) (got int) {
	var mu sync.Mutex
	var users sync.WaitGroup
	for range 16 {
		users.Go(func() {
			for range n / 16 {
				resp, err := unread.Get(data + "/nothing/" + strings.Repeat("x", 200))
				if err != nil {
					return // one that hangs is enough
				}
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if mu.Lock(); err == nil && resp.StatusCode == http.StatusNotFound {
					got++
				}
				mu.Unlock()
			}
		})
	}
	users.Wait()
	return got
}

// servesOn fails unless refusals come and streams end, whatever the log does.
func servesOn(t *testing.T, data string) {
	t.Helper()
	const asked = 6400
	if got := refusals(data, asked); got != asked {
		t.Fatalf("%d of %d refusals came", got, asked)
	}
	c := &loadgen.Client{BaseURL: data + "/v1", HTTP: unread}
	for range 3 {
		if r := c.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: perStream}); r.Outcome != loadgen.Done || r.Tokens != perStream {
			t.Fatalf("got %v with %d tokens (%v), want done with %d", r.Outcome, r.Tokens, r.Err, perStream)
		}
	}
}

// A reader of the log that stands still (a full disk behind it, a frozen
// terminal, a collector that hangs) costs lines, and nobody's request.
func TestALogReaderThatStandsStill(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--speed", "50")
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], "timeouts: { linger: 0s }\n"))
	data, admin := gateway.Ready["data"], gateway.Ready["admin"]
	metric := func(name string) float64 { return proctest.Sum(string(proctest.Get(t, admin+"/metrics")), name+" ") }
	if got := refusals(data, 1600); got != 1600 {
		t.Fatalf("%d of 1600 refusals came", got)
	}
	unread.CloseIdleConnections()
	fresh := metric("go_goroutines")
	if lost := metric("pacer_log_dropped_total"); lost != 0 {
		t.Errorf("%.0f lines are lost although all were read", lost)
	}

	readOn := gateway.HoldLog()
	for end := time.Now().Add(time.Minute); metric("pacer_log_dropped_total") == 0; {
		if servesOn(t, data); time.Now().After(end) {
			t.Fatal("no line is lost although none is read")
		}
	}
	unread.CloseIdleConnections()
	proctest.Until(t, "goroutines return", func() bool { return metric("go_goroutines") <= fresh+5 })

	readOn()
	proctest.Until(t, "what was lost is said", func() bool { return strings.Contains(gateway.Log(), "log lines were lost") })
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if !strings.Contains(gateway.Log(), "stopping") {
		t.Error("the last lines of a log that is read again are missing")
	}
}

// Nor does it keep the program from ending.
func TestSIGTERMWithALogThatNobodyReads(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--speed", "50")
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], "timeouts: { linger: 0s }\n"))
	gateway.HoldLog()
	servesOn(t, gateway.Ready["data"])
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A reader that dies takes nobody with it: neither the program nor its streams.
func TestALogReaderThatDies(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t)
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], "timeouts: { linger: 0s }\n"))
	running := make(chan loadgen.Result, 1)
	go func() {
		running <- client(gateway).Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: perStream})
	}()
	proctest.Until(t, "a stream runs", func() bool {
		return proctest.Sum(string(proctest.Get(t, gateway.Ready["admin"]+"/metrics")), "pacer_inflight{") > 0
	})
	gateway.CloseLog()
	servesOn(t, gateway.Ready["data"])
	if r := <-running; r.Outcome != loadgen.Done {
		t.Errorf("the stream that ran: %v (%v)", r.Outcome, r.Err)
	}
	if code := gateway.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// A log on a disk that is full, or behind a descriptor that is closed, is lost.
func TestALogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("a system without /dev/full: ", err)
	}
	engine := proctest.Engine(t, "--speed", "50")
	for _, stderr := range []string{">/dev/full", ">&-"} {
		t.Run(stderr, func(t *testing.T) {
			l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // nobody can read where the program listens
			addr := l.Addr().String()
			l.Close()
			file := gatewayConfig(t, engine.Ready["url"], "timeouts: { linger: 0s }\n")
			gateway := exec.Command("/bin/sh", "-c", `exec "$0" serve -c "$1" --listen "$2" 2`+stderr, proctest.Binary(t), file, addr)
			must.Do(t, gateway.Start())
			t.Cleanup(func() { gateway.Process.Kill() })
			proctest.Until(t, "it listens", func() bool {
				resp, err := unread.Get("http://" + addr + "/healthz")
				if err == nil {
					resp.Body.Close()
				}
				return err == nil
			})
			servesOn(t, "http://"+addr)
			gateway.Process.Signal(syscall.SIGTERM)
			if err := gateway.Wait(); err != nil {
				t.Errorf("%v, want exit code 0", err)
			}
		})
	}
}

// Each line of a request says who sent it: who is connected, and behind a
// trusted proxy who is connected to that.
func TestTheLogSaysWhoAsked(t *testing.T) {
	t.Parallel()
	engine := proctest.Engine(t, "--speed", "50")
	file := gatewayConfig(t, engine.Ready["url"], "trusted_proxies: [ 127.0.0.0/8 ]\n")
	gateway := proctest.Start(t, nil, "serve", "-c", file)
	ask := func(method, path, body string) {
		t.Helper()
		r := must.Get(http.NewRequest(method, gateway.Ready["data"]+path, strings.NewReader(body)))(t)
		r.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.9")
		resp := must.Get(unread.Do(r))(t)
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	says := func(client, path string) {
		t.Helper()
		proctest.Until(t, client+" asked for "+path, func() bool {
			return strings.Contains(gateway.Log(), `"client":"`+client+`","method":"POST","path":"`+path+`"`)
		})
	}
	ask("POST", "/v1/chat/completions", `{"model":"chat","max_tokens":1}`)
	says("203.0.113.9", "/v1/chat/completions")
	ask("POST", "/nothing", "")
	says("203.0.113.9", "/nothing")
	text := must.Get(os.ReadFile(file))(t)
	must.Do(t, os.WriteFile(file, []byte(strings.Replace(string(text), "127.0.0.0/8", "192.0.2.0/24", 1)), 0o600))
	proctest.Until(t, "the configuration is reloaded", func() bool { return strings.Contains(gateway.Log(), "configuration reloaded") })
	ask("POST", "/v1/chat/completions", `{"model":"chat","max_tokens":1}`)
	says("127.0.0.1", "/v1/chat/completions")
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/sim"
)

// What still runs at the end of timeouts.drain is cut, and when run returns
// all of it has been settled: its leases are back, what it learned was folded.
func TestRunEndsWithNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 5}}, oneRoute+"timeouts: { drain: 1s }\n", options{})
		var clients sync.WaitGroup
		var got results
		for range 40 {
			clients.Go(func() {
				got.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 5000}))
			})
		}
		sleep(5 * time.Second)
		if m := h.program.router.Loads()[0].M; m != 40 {
			t.Fatalf("%d streams, want 40", m)
		}
		h.stopGateway()
		h.idle()
		clients.Wait()
		if cut := got.count(func(r loadgen.Result) bool { return r.Outcome == loadgen.Failed }); cut != 40 {
			t.Errorf("%d streams were cut, want 40", cut)
		}
	})
}

// After SIGTERM a load balancer that asks hears at once that it should turn
// elsewhere, and until it does its requests are served, each on a connection
// that is closed behind it. Then no connection is taken any more, streams under
// way finish, and the program ends with the last of them.
func TestWhatStillComesWhileTheGatewayStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 5}}, oneRoute+"timeouts: { drain: 60s, linger: 4s }\n", options{})
		var clients sync.WaitGroup
		var long, late results
		for range 20 {
			clients.Go(func() {
				long.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 1000}))
			})
		}
		get := func(path string) (status int, closes bool) {
			resp, err := h.client.HTTP.Get("http://127.0.0.1:8080" + path)
			if err != nil {
				return 0, false
			}
			defer resp.Body.Close()
			io.Copy(io.Discard, resp.Body)
			return resp.StatusCode, resp.Close
		}
		sleep(2 * time.Second)
		if status, closes := get("/readyz"); status != 200 || closes {
			t.Errorf("before: /readyz is %d, closes the connection: %v; want 200 and a kept one", status, closes)
		}
		h.terminate()
		for range 3 {
			sleep(time.Second)
			if status, closes := get("/readyz"); status != 503 || !closes {
				t.Errorf("lingering: /readyz is %d, closes the connection: %v; want 503 and closed", status, closes)
			}
			late.add(h.client.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 10}))
		}
		sleep(2 * time.Second)
		if status, _ := get("/readyz"); status != 0 {
			t.Errorf("after timeouts.linger: %d, want no connection", status)
		}
		clients.Wait()
		h.stopGateway()
		h.idle()
		for name, r := range map[string]*results{"that ran": &long, "that came while it lingered": &late} {
			if broken := r.count(func(r loadgen.Result) bool { return r.Outcome != loadgen.Done }); broken > 0 {
				t.Errorf("%d of %d streams %s were broken off", broken, len(r.list), name)
			}
		}
	})
}

// At the end of timeouts.drain each client is told that its answer is not whole:
// by an error event where a stream has begun, by a 503 where nothing has come.
func TestWhatIsBrokenOffSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64, seed: 5, conf: ", max_concurrency: 2", opts: sim.Options{MaxNumSeqs: 1, Behaviours: []string{"headers-after-queue"}}}},
			"routes:\n  - { model: chat, targets: [ { backend: a, model: m } ], on_infeasible: [ { queue: 1m }, shed ] }\ntimeouts: { drain: 3s }\n", options{})
		ask := func(path, body string) (status int, retry, text string, err error) {
			resp, err := h.client.HTTP.Post("http://127.0.0.1:8080"+path, "application/json", strings.NewReader(body))
			if err != nil {
				return 0, "", "", err
			}
			defer resp.Body.Close()
			all, err := io.ReadAll(resp.Body)
			return resp.StatusCode, resp.Header.Get("Retry-After"), string(all), err
		}
		const messages = `"max_tokens":100000,"messages":[{"role":"user","content":"hello"}]}`
		var clients sync.WaitGroup
		clients.Go(func() { // has its tokens
			_, _, text, err := ask("/v1/chat/completions", `{"model":"chat","stream":true,`+messages)
			_, event, _ := strings.Cut(text, `data: {"error":`)
			if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(event, `"message":"This gateway is shutting down."`) || strings.Contains(text, "[DONE]") {
				t.Errorf("the stream ends with %q (%v), want an error event and an aborted connection", text[max(0, len(text)-200):], err)
			}
		})
		sleep(100 * time.Millisecond)
		for name, stream := range map[string]string{"in the engine's queue": "true", "in line": "false"} {
			clients.Go(func() {
				status, retry, text, err := ask("/v1/chat/completions", `{"model":"chat","stream":`+stream+`,`+messages)
				if status != 503 || retry != "1" || !strings.Contains(text, `"code":"draining"`) || err != nil {
					t.Errorf("%s: %d %s, Retry-After %q (%v), want 503 draining, and to come back in a second", name, status, text, retry, err)
				}
			})
			sleep(100 * time.Millisecond)
		}
		begun := time.Now()
		h.stopGateway()
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("it took %v, want the 3s of timeouts.drain", took)
		}
		clients.Wait()
		h.idle()
		if s := h.program.metrics.Route("chat"); s.Failed != 3 {
			t.Errorf("route counts %+v, want 3 failed", s)
		}
	})
}

// The page is told where the data port really is.
func TestThePageKnowsTheDataPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := parsed(t, "relay: goroutines\nlisten: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n  - { name: a, url: http://a.test/v1 }\n"+oneRoute)
		var network memnet.Network
		p := must.Get(wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{dial: network.Dial, listen: network.Listen}))(t)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		ports := make(chan [2]string, 1)
		go func() { ended <- p.run(ctx, func(data, admin string) { ports <- [2]string{data, admin} }) }()
		at := <-ports

		transport := &http.Transport{DialContext: network.Dial}
		resp := must.Get((&http.Client{Transport: transport}).Get(at[1] + "/api/v1/events"))(t)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		var event struct {
			DataURL string `json:"data_url"`
		}
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
				must.Do(t, json.Unmarshal([]byte(data), &event))
				break
			}
		}
		if event.DataURL != at[0] || at[0] == "" {
			t.Errorf("the page is told %q, the data port is %q", event.DataURL, at[0])
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestFromHere(t *testing.T) {
	for listening, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		"0.0.0.0:8080":   "http://127.0.0.1:8080",
		"[::]:8080":      "http://127.0.0.1:8080",
		"[fe80::1]:8080": "http://[fe80::1]:8080",
	} {
		a := must.Get(net.ResolveTCPAddr("tcp", listening))(t)
		if got := fromHere("http://", a); got != want {
			t.Errorf("%s: got %s, want %s", listening, got, want)
		}
	}
}

// In a log for machines a duration has its unit.
func TestTheLogTellsTheTimeToDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries64}}, oneRoute, options{})
		var said bytes.Buffer
		h.program.log = slog.New(slog.NewJSONHandler(&said, nil))
		h.stop()
		if !strings.Contains(said.String(), `"drain":"30s"`) {
			t.Errorf("the log has %s", said.String())
		}
	})
}

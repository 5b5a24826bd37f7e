package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/memnet"
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

// The page is told where the data port really is.
func TestThePageKnowsTheDataPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := config.Parse("test.yaml", []byte("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n  - { name: a, url: http://a.test/v1 }\n"+oneRoute),
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		var network memnet.Network
		p, err := wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{dial: network.Dial, listen: network.Listen})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		ports := make(chan [2]string, 1)
		go func() { ended <- p.run(ctx, func(data, admin string) { ports <- [2]string{data, admin} }) }()
		at := <-ports

		transport := &http.Transport{DialContext: network.Dial}
		resp, err := (&http.Client{Transport: transport}).Get(at[1] + "/api/v1/events")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		var event struct {
			DataURL string `json:"data_url"`
		}
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
				if err := json.Unmarshal([]byte(data), &event); err != nil {
					t.Fatal(err)
				}
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
		a, err := net.ResolveTCPAddr("tcp", listening)
		if err != nil {
			t.Fatal(err)
		}
		if got := fromHere("http://", a); got != want {
			t.Errorf("%s: got %s, want %s", listening, got, want)
		}
	}
}

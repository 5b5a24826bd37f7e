package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// A backend that sends more than it announced is told of in the log, in the
// log's own format and without the text it sent, whatever speaks to it.
func TestTheLogDoesNotQuoteABackend(t *testing.T) {
	for client, tells := range map[string]string{
		"own":      "a backend sent what no request asked for; the connection was closed",
		"net/http": "Unsolicited response",
	} {
		t.Run(client, func(t *testing.T) { sendsMore(t, client, tells) })
	}
}

func sendsMore(t *testing.T, client, tells string) {
	t.Helper()
	defer func(flags int) {
		stdlog.SetOutput(os.Stderr)
		stdlog.SetFlags(flags)
	}(stdlog.Flags())
	backend := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer backend.Close()
	go func() {
		for {
			conn, err := backend.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				const body = `{"choices":[]}`
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%sa confidential word", len(body), body)
			}
		}
	}()
	cfg := parsed(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n  - { name: a, url: \"http://%s/v1\", client: %s }\nroutes:\n  - { model: chat, targets: [ { backend: a } ] }\n", backend.Addr(), client))
	out, stderr := io.Pipe()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, cfg, nil, stderr, false)
		stderr.Close()
	}()
	told := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if _, addresses, ok := strings.Cut(line, "ready data="); ok {
			data, _, _ := strings.Cut(addresses, " ")
			go func() {
				if r, err := http.Post(data+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"chat"}`)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			}()
			continue
		}
		if strings.Contains(line, "confidential") || !strings.HasPrefix(line, "{") {
			t.Errorf("the log says %s", line)
		}
		if strings.Contains(line, tells) {
			told = true
			stop()
		}
	}
	stop()
	if err := <-ended; err != nil || !told {
		t.Errorf("serve ended with %v, told %v", err, told)
	}
}

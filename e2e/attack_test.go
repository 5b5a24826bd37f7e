package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// victim is a gateway with two tenants, of whom one streams without pause while
// the other, or somebody without a key, attacks.
type victim struct {
	t       *testing.T
	gateway *proctest.Process
	engine  *proctest.Process
	addr    string // of the data port
	client  *http.Client

	mu      sync.Mutex
	streams []loadgen.Result
	stop    context.CancelFunc
	served  sync.WaitGroup
}

const tenants = `keys:
  - { name: served, key_sha256: %q, routes: [ chat ] }
  - { name: other, key_sha256: %q, routes: [ other ] }
`

// attack starts a victim; more is added to its configuration, and trusted are
// the authorities of its certificate, if it has one. At the end of the
// test the streams of the tenant who is served are looked at.
func attack(t *testing.T, more string, trusted *x509.CertPool) *victim {
	t.Helper()
	digest := func(key string) string { d := sha256.Sum256([]byte(key)); return hex.EncodeToString(d[:]) }
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "2")
	v := &victim{t: t, engine: engine}
	v.gateway = proctest.Gateway(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
log: { level: error }
timeouts: { write: 3s }
limits: { body: 1MiB }
backends: [ { name: a, url: %q, kind: vllm } ]
routes:
  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] }
  - { model: other, targets: [ { backend: a, model: llama-3.1-70b } ] }
`+tenants+more, engine.Ready["url"]+"/v1", digest("served"), digest("other")))
	_, v.addr, _ = strings.Cut(v.gateway.Ready["data"], "://")
	ctx, cancel := context.WithCancel(context.Background())
	v.stop = cancel
	v.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	c := &loadgen.Client{BaseURL: v.gateway.Ready["data"] + "/v1", Key: "served", HTTP: v.client}
	for range 8 {
		v.served.Go(func() {
			for ctx.Err() == nil {
				r := c.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: 40})
				v.mu.Lock()
				v.streams = append(v.streams, r)
				v.mu.Unlock()
			}
		})
	}
	until(t, "the tenant is served", func() bool { return v.count() >= 16 })
	t.Cleanup(v.judge)
	return v
}

func (v *victim) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.streams)
}

// judge ends the load: all of it must have been served, and it says how fast.
func (v *victim) judge() {
	during := v.count()
	until(v.t, "the tenant is served on", func() bool { return v.count() >= during+16 })
	v.stop()
	v.served.Wait()
	failed := 0
	var tps [2]struct{ tokens, seconds float64 } // before the attack, and since
	for i, r := range v.streams {
		if r.Outcome != loadgen.Done || r.Tokens != 40 {
			failed++
			v.t.Errorf("a stream of the tenant who is served: %v after %d tokens: %v", r.Outcome, r.Tokens, r.Err)
		}
		if _, ok := r.TPS(); ok {
			when := min(i/16, 1)
			tps[when].tokens += float64(r.Tokens - r.First)
			tps[when].seconds += r.Decode.Seconds()
		}
	}
	v.t.Logf("%d streams of the tenant who is served, %d failed; tokens/s under attack: %.2f of those before",
		len(v.streams), failed, tps[1].tokens/tps[1].seconds/(tps[0].tokens/tps[0].seconds))
}

// dial opens a connection to the data port, which is closed with the test.
func (v *victim) dial() net.Conn {
	v.t.Helper()
	c, err := net.Dial("tcp", v.addr)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { c.Close() })
	return c
}

// raw sends text and returns all that comes back until the connection is closed
// or nothing has come for two seconds.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go io.WriteString(c, text)
	var all bytes.Buffer
	buf := make([]byte, 32<<10)
	for {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
		if all.Len() > 1<<20 {
			t.Fatal("more than 1 MiB came back")
		}
	}
}

// status is the first status of an answer; 0 = none.
func status(answer string) (n int) {
	fmt.Sscanf(answer, "HTTP/1.1 %d", &n)
	return n
}

func post(key, headers, body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n%s", key, len(body), headers, body)
}

const hello = `{"model":"other","max_tokens":2,"messages":[{"role":"user","content":"hello"}]}`

// 2,000 connections that say nothing, and 200 that send the head, or the body,
// of a request a byte at a time.
func TestAttackOfTheIdleAndTheSlow(t *testing.T) {
	t.Parallel() // waits for 10 s to pass
	v := attack(t, "", nil)
	for range 2000 {
		v.dial()
	}
	begun := time.Now()
	var slow sync.WaitGroup
	ends := make(chan string, 200)
	for i := range 200 {
		c := v.dial()
		text := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("s", 4096)
		if i%2 == 1 {
			io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\nContent-Length: 100000\r\n\r\n")
			text = strings.Repeat(" ", 4096)
		}
		slow.Go(func() { // until it is closed
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for j := 0; j < len(text); j++ {
				if _, err := io.WriteString(c, text[j:j+1]); err != nil {
					return
				}
				<-tick.C
			}
		})
		slow.Go(func() {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(c)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a slow client is still connected after a minute")
			}
			ends <- string(answer)
			c.Close()
		})
	}
	slow.Wait()
	close(ends)
	told := 0
	for answer := range ends {
		if strings.Contains(answer, "408 Request Timeout") {
			told++
		}
	}
	t.Logf("2,000 idle and 200 slow connections: the last slow one was closed after %v; %d were told 408", time.Since(begun).Round(time.Second), told)
	if told < 90 {
		t.Errorf("%d of 100 slow bodies were answered 408", told)
	}
	until(t, "the idle connections are gone", func() bool { return descriptors(t, v.gateway.PID()) < 200 })
}

// descriptors is how many files a process has open.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	return len(list)
}

// resident is how much memory a process has, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	var size, pages int64
	fmt.Sscan(string(text), &size, &pages)
	return pages * int64(os.Getpagesize())
}

// Requests that are too large in one way or another are refused, and cost no
// memory to speak of.
func TestAttackOfTheLarge(t *testing.T) {
	v := attack(t, "", nil)
	var member bytes.Buffer // of a file of many, as zcat reads them
	z := gzip.NewWriter(&member)
	z.Write(make([]byte, 4<<20))
	z.Close()
	bomb := strings.Repeat(member.String(), 64)
	before := resident(t, v.gateway.PID())
	var all sync.WaitGroup
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"1 MB in a header":          {post("other", "X-Large: "+strings.Repeat("l", 1<<20)+"\r\n", hello), 431},
		"1 MB of a path":            {"GET /" + strings.Repeat("p", 1<<20) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"100,000 headers":           {post("other", strings.Repeat("X: y\r\n", 100_000), hello), 431},
		"5,000 headers":             {post("other", strings.Repeat("X: y\r\n", 5_000), hello), 200},
		"a body that claims 100 GB": {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\nContent-Length: 100000000000\r\n\r\n" + strings.Repeat(" ", 2<<20), 413},
		"a gzip bomb":               {post("other", "Content-Encoding: gzip\r\n", bomb), 413},
		"JSON 100,000 deep":         {post("other", "", `{"model":"other","messages":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"}"), 400},
		"JSON 100,000 objects deep": {post("other", "", strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)), 400},
		"1 MB of a model's name":    {post("other", "", `{"model":"`+strings.Repeat("m", 1<<19)+`","messages":[]}`), 404},
	} {
		for range 8 {
			all.Go(func() {
				if got := raw(t, v.addr, c.text); status(got) != c.want || len(got) > 4096 {
					t.Errorf("%s: %d bytes that begin with %.300q, want a short %d", name, len(got), got, c.want)
				}
			})
		}
	}
	for _, key := range []string{"other", "wrong"} { // an endless body
		all.Go(func() {
			c := v.dial()
			defer c.Close()
			sent := 0
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n", key)
			chunk := "10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n"
			_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
			for ; sent < 1<<30; sent += len(chunk) {
				if _, err := io.WriteString(c, chunk); err != nil {
					break
				}
			}
			t.Logf("an endless body (key %s) ended after %d MiB", key, sent>>20)
			if sent > 64<<20 {
				t.Errorf("%d MiB of an endless body were taken (key %s)", sent>>20, key)
			}
		})
	}
	all.Wait()
	grown := resident(t, v.gateway.PID()) - before
	t.Logf("memory grew by %d MiB", grown>>20)
	if grown > 256<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// Requests that are to be understood otherwise than they look.
func TestAttackOfTheCrooked(t *testing.T) {
	v := attack(t, "", nil)
	_, admin, _ := strings.Cut(v.gateway.Ready["admin"], "://")
	line := func(request, host string) string {
		return request + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer other\r\nConnection: close\r\n\r\n"
	}

	// Nothing of the admin port can be reached by the data port, nor another path
	// than the one that is written.
	for _, path := range []string{
		"/metrics", "/api/v1/profiles", "/api/v1/backends/a/drain", "//metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/healthz/../metrics",
		"/v1/models/../../metrics", "/v1//models", "//v1/models", "/v1%2fmodels", "/./metrics", "/metrics?x=/healthz", "/metrics/", "http://127.0.0.1/metrics", "http://" + admin + "/api/v1/routes", "/debug/pprof/",
	} {
		for _, method := range []string{"GET", "POST"} {
			if got := raw(t, v.addr, line(method+" "+path, "x")); status(got) != 404 && status(got) != 400 && status(got) != 405 || strings.Contains(got, "pacer_") {
				t.Errorf("%s %s: %.200q, want 404, 400 or 405", method, path, got)
			}
		}
	}
	for _, request := range []string{"CONNECT " + admin, "CONNECT /metrics", "TRACE /healthz", "OPTIONS *", "PROPFIND /v1/models", "GET *"} {
		if got := raw(t, v.addr, line(request, admin)); status(got) < 400 || status(got) >= 500 || strings.Contains(got, "pacer_") {
			t.Errorf("%s: %.200q, want a refusal", request, got)
		}
	}

	// The admin port answers to its own names alone.
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:9090", "[::1].evil.example", "evil.example#127.0.0.1", "0x7f.1", ""} {
		if got := raw(t, admin, line("GET /metrics", host)); status(got) < 400 || strings.Contains(got, "pacer_requests_total") {
			t.Errorf("admin port as %q: %.200q, want a refusal", host, got)
		}
	}
	if got := raw(t, admin, line("GET http://evil.example/metrics", admin)); status(got) < 400 {
		t.Errorf("admin port in absolute form: %.200q, want a refusal", got)
	}
	if got := raw(t, admin, line("POST /api/v1/backends/a/drain", admin)); status(got) != 403 && status(got) != 401 {
		t.Errorf("drain without a token: %.200q, want a refusal", got)
	}

	// What another tenant has looks like what nobody has.
	body := func(answer string) string { _, b, _ := strings.Cut(answer, "\r\n\r\n"); return b }
	hidden := raw(t, v.addr, post("other", "", strings.ReplaceAll(hello, "other", "chat")))
	unknown := raw(t, v.addr, post("other", "", strings.ReplaceAll(hello, "other", "none")))
	if status(hidden) != 404 || strings.ReplaceAll(body(hidden), "chat", "none") != body(unknown) {
		t.Errorf("another tenant's model: %q; one that nobody has: %q; want the same", hidden, unknown)
	}

	// Nothing of a client becomes a header.
	for name, text := range map[string]string{
		"model":         post("other", "", `{"model":"x\r\nX-Evil: 1\r\n\r\nevil","messages":[]}`),
		"x-request-id":  post("other", "X-Request-Id: a b\tX-Evil: 1\r\n", hello),
		"folded header": post("other", "X-Request-Id: a\r\n X-Evil: 1\r\n", hello),
		"bare return":   post("other", "X-Request-Id: a\rX-Evil: 1\r\n", hello),
		"null":          post("other", "X-Request-Id: a\x00X-Evil\r\n", hello),
	} {
		got := raw(t, v.addr, text)
		head, _, _ := strings.Cut(got, "\r\n\r\n")
		if status(got) == 0 || strings.Contains(head, "Evil") || strings.Contains(head, "\x00") {
			t.Errorf("%s: %.300q", name, got)
		}
	}
	v.smuggle()
}

// smuggle hides a second request in the body of a first one. Whoever reads it
// finds a request without a key, and the engine gets no more than one.
func (v *victim) smuggle() {
	const second = "GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Smuggled: yes\r\n\r\n"
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hello), hello)
	for name, text := range map[string]string{
		"length and chunked":         head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n", len(chunked)+len(second)) + chunked + second,
		"chunked and length":         head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked + second,
		"two lengths":                head + fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d\r\n\r\n", len(hello), len(hello)+len(second)) + hello + second,
		"a list of lengths":          head + fmt.Sprintf("Content-Length: %d, %d\r\n\r\n", len(hello), len(hello)+1) + hello + second,
		"a length with a sign":       head + fmt.Sprintf("Content-Length: +%d\r\n\r\n", len(hello)) + hello + second,
		"identity":                   head + "Transfer-Encoding: identity\r\n\r\n" + second,
		"two encodings":              head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked + second,
		"a space before the colon":   head + "Transfer-Encoding : chunked\r\n\r\n" + chunked + second,
		"a chunk of a negative size": head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + second,
		"a chunk of a huge size":     head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + second,
		"chunks that end in LF":      head + "Transfer-Encoding: chunked\r\n\r\n" + strings.ReplaceAll(chunked, "\r\n", "\n") + second,
	} {
		got := raw(v.t, v.addr, text)
		answers := strings.Split(got, "HTTP/1.1 ")[1:]
		if len(answers) == 0 || len(answers) > 2 {
			v.t.Errorf("%s: %d answers, want one, or one for each", name, len(answers))
			continue
		}
		if len(answers) == 2 && !strings.HasPrefix(answers[1], "401 ") && !strings.HasPrefix(answers[1], "400 ") {
			v.t.Errorf("%s: the second request was answered %.100q, want 401: it has no key", name, answers[1])
		}
		if strings.Contains(got, `"object":"list"`) {
			v.t.Errorf("%s: the second request was served with the first one's key", name)
		}
	}
}

// A client of HTTP/2 that opens streams and resets them at once.
func TestAttackOfRapidResets(t *testing.T) {
	cert, key := certificate(t)
	authority, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	v := attack(t, fmt.Sprintf("tls: { cert: %q, key: %q }\n", cert, key), trusted)
	c, err := tls.Dial("tcp", v.addr, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var frames bytes.Buffer
	frame := func(kind, flags byte, stream uint32, payload []byte) {
		frames.Write([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)})
		frames.Write(payload)
	}
	frames.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	frame(4, 0, 0, nil)                                                                   // SETTINGS
	head := append([]byte{0x83, 0x87, 0x01, 1, 'x', 0x04, 20}, "/v1/chat/completions"...) // POST, https, :authority, :path
	const resets = 20_000
	for i := range uint32(resets) {
		frame(1, 4, 2*i+1, head)               // HEADERS, without END_STREAM
		frame(3, 0, 2*i+1, []byte{0, 0, 0, 8}) // RST_STREAM: CANCEL
	}
	go io.Copy(io.Discard, c)
	_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
	begun := time.Now()
	sent, err := c.Write(frames.Bytes())
	t.Logf("%d of %d bytes of resets taken within %v: %v", sent, frames.Len(), time.Since(begun).Round(time.Millisecond), err)
	resp, err := v.client.Get("https://" + v.addr + "/healthz")
	if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Fatalf("afterwards: %v (%v), want 200 over HTTP/2", resp, err)
	}
	resp.Body.Close()
	until(t, "nothing of it is left", func() bool {
		return sum(string(get(t, v.gateway.Ready["admin"]+"/metrics")), "pacer_inflight{") <= 8 // the tenant who is served
	})
}

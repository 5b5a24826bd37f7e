package gateway

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/must"
)

// front serves h's gateway at gateway:443, as the program does: with TLS if
// there is a certificate.
func (h *house) front(cert *Certificate) {
	h.t.Helper()
	h.frontOf(cert, 0)
}

// frontOf has most connections at once; 0 = any number.
func (h *house) frontOf(cert *Certificate, most int) {
	h.t.Helper()
	l := must.Get(h.net.Listen("gateway:443"))(h.t)
	s := &http.Server{
		Handler: h.gateway.Handler(), DisableGeneralOptionsHandler: true, MaxHeaderBytes: 8 << 10, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	var wrapped net.Listener = h.gateway.Listen(s, l, most)
	if cert != nil {
		wrapped = tls.NewListener(wrapped, cert.Config())
		must.Do(h.t, clientconn.ServeH2(s))
	}
	served := testServer(s)
	if cert == nil {
		served = serverOf(h.t, s)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = served.Serve(wrapped) }()
	h.t.Cleanup(func() { _ = served.Close(); <-done })
}

// raw sends text over a connection of its own and returns the first answer.
func (h *house) raw(addr, text string) reply {
	h.t.Helper()
	c := must.Get(h.net.Dial(context.Background(), "tcp", addr))(h.t)
	defer c.Close()
	go func() { _, _ = io.WriteString(c, text) }()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return reply{err: err}
	}
	body, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

// What net/http refuses before any handler sees it has the shape of all errors.
func TestAnswersOfTheHTTPServerItself(t *testing.T) {
	const head = "POST " + chat + " HTTP/1.1\r\nHost: gateway\r\n"
	for name, c := range map[string]struct {
		text   string
		status int
		code   string
	}{
		"no HTTP":            {"hello\r\n\r\n", 400, "malformed_request"},
		"no host":            {"GET / HTTP/1.1\r\n\r\n", 400, "malformed_request"},
		"broken header":      {head + "no colon\r\n\r\n", 400, "malformed_request"},
		"two lengths":        {head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "malformed_request"},
		"header too large":   {head + "X: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, "headers_too_large"},
		"transfer encoding":  {head + "Transfer-Encoding: gzip\r\n\r\n", 501, "unsupported_transfer_encoding"},
		"version":            {"GET / HTTP/3.0\r\nHost: gateway\r\n\r\n", 505, "unsupported_http_version"},
		"expectation":        {head + "Expect: the-moon\r\nContent-Length: 2\r\n\r\n{}", 417, "expectation_failed"},
		"no length, no body": {head + "\r\n", 400, ""}, // ours, for comparison
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), nil)
			h.front(nil)
			r := h.raw("gateway:443", c.text)
			if code := r.code(t); r.status != c.status || code != c.code {
				t.Errorf("got %d %s, want %d %s", r.status, code, c.status, c.code)
			}
			if line := h.last(); line.Status != c.status || line.Request != r.header.Get("X-Request-Id") {
				t.Errorf("log line %+v, want status %d of %q", line, c.status, r.header.Get("X-Request-Id"))
			}
			<-time.After(time.Second)
		})
	}
}

// A byte of an answer is never taken for the server's own, whatever it says.
func TestAnAnswerThatLooksLikeOneOfTheServer(t *testing.T) {
	const trap = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", fmt.Sprint(100*len(trap)))
			for range 100 {
				say(w, trap)
			}
		}}})
		h.front(nil)
		transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return h.net.Dial(ctx, network, "gateway:443")
		}}
		defer transport.CloseIdleConnections()
		for range 2 { // on one connection
			req := h.request("POST", "/v1/audio/speech", `{"model":"chat"}`)
			resp := must.Get(transport.RoundTrip(req))(t)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != strings.Repeat(trap, 100) {
				t.Errorf("%d bytes came (%v), want %d as they were", len(body), err, 100*len(trap))
			}
		}
	})
}

// A client that waits to be asked for its body is asked, unless it is refused
// before; one that is refused is not asked.
func TestExpectContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed()
		h := open(t, c, map[string]http.Handler{"a": asker()})
		h.front(nil)
		for _, c := range []struct {
			key, length string
			want        []int
		}{
			{"sk-right", fmt.Sprint(len(streamBody)), []int{100, 200}},
			{"sk-wrong", fmt.Sprint(len(streamBody)), []int{401}},
			{"sk-right", "5000", []int{413}},
		} {
			conn := must.Get(h.net.Dial(context.Background(), "tcp", "gateway:443"))(t)
			go func() {
				_, _ = io.WriteString(conn, "POST "+chat+" HTTP/1.1\r\nHost: gateway\r\nExpect: 100-continue\r\nx-api-key: "+c.key+"\r\nContent-Length: "+c.length+"\r\n\r\n")
			}()
			r := bufio.NewReader(conn)
			for i, want := range c.want {
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.StatusCode != want {
					t.Fatalf("%s: answer %d is %v (%v), want %d", c.key, i, resp, err, want)
				}
				if want == 100 {
					_, _ = io.WriteString(conn, streamBody)
				}
			}
			_ = conn.Close()
		}
		<-time.After(time.Second)
	})
}

// writeCertificate makes a certificate for the host gateway, with a serial
// number, and returns its files.
func writeCertificate(tb testing.TB, dir string, serial int64) (cert, key string) {
	tb.Helper()
	k := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "gateway"}, DNSNames: []string{"gateway"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(50, 0, 0),
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k))(tb)
	pkcs := must.Get(x509.MarshalPKCS8PrivateKey(k))(tb)
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(dir, name)
		must.Do(tb, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return name
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", pkcs)
}

func TestACertificateIsReadAgainWhenItsFilesChange(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := writeCertificate(t, dir, 1)
	log := &logLines{}
	c := must.Get(LoadCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(log, nil))))(t)
	serial := func(now time.Time) int64 {
		c.look(now)
		leaf := must.Get(x509.ParseCertificate(c.current.Load().Certificate[0]))(t)
		return leaf.SerialNumber.Int64()
	}
	later := func(name string, n int) {
		must.Do(t, os.Chtimes(name, time.Time{}, time.Now().Add(time.Duration(n)*time.Hour)))
	}
	now := time.Now()
	if got := serial(now); got != 1 {
		t.Fatalf("certificate %d, want 1", got)
	}
	writeCertificate(t, dir, 2)
	later(certFile, 1)
	later(keyFile, 1)
	if got := serial(now.Add(certificateAge / 2)); got != 1 {
		t.Errorf("certificate %d, want 1: the files are looked at once a second", got)
	}
	if got := serial(now.Add(certificateAge)); got != 2 {
		t.Errorf("certificate %d, want 2", got)
	}
	other := t.TempDir()
	newCert, newKey := writeCertificate(t, other, 3)
	must.Do(t, os.Rename(newCert, certFile)) // and not yet its key
	for i := range 3 {
		if got := serial(now.Add(time.Duration(2+i) * certificateAge)); got != 2 {
			t.Errorf("certificate %d, want 2 while the new files do not go together", got)
		}
	}
	if n := strings.Count(log.String(), "cannot be read"); n != 1 {
		t.Errorf("said %d times, want once:\n%s", n, log)
	}
	must.Do(t, os.Rename(newKey, keyFile))
	later(keyFile, 2)
	if got := serial(now.Add(10 * certificateAge)); got != 3 {
		t.Errorf("certificate %d, want 3", got)
	}
	must.Do(t, os.Remove(certFile))
	if got := serial(now.Add(20 * certificateAge)); got != 3 {
		t.Errorf("certificate %d, want 3 while there is no file", got)
	}
	if strings.Contains(log.String(), "PRIVATE") {
		t.Error("a key is in the log")
	}
}

// secure is a client over TLS, of HTTP/2 unless said.
func (h *house) secure(protocol string) *http.Client {
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return h.net.Dial(ctx, network, "gateway:443")
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}},
		ForceAttemptHTTP2: protocol == "h2", DisableCompression: true,
	}
	h.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// withTLS opens a gateway with a certificate.
func withTLS(t *testing.T, engine http.Handler) *house {
	h := open(t, settings("a"), map[string]http.Handler{"a": engine})
	certFile, keyFile := writeCertificate(t, t.TempDir(), 1)
	cert := must.Get(LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler)))(t)
	h.front(cert)
	return h
}

func (h *house) securely(c *http.Client, path, body string) (*http.Response, error) {
	req := must.Get(http.NewRequest("POST", "https://gateway"+path, strings.NewReader(body)))(h.t)
	return c.Do(req)
}

// A backend that thinks for longer than a write may take, before and within its
// answer, is waited for on both protocols: nobody is keeping a write waiting.
func TestSlowBackendsOverTLS(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		bubble(t, protocol, func(t *testing.T) {
			h := withTLS(t, &script{answer: talk(3, 50*time.Second)})
			resp := must.Get(h.securely(h.secure(protocol), chat, streamBody))(t)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if want := map[string]int{"http/1.1": 1, "h2": 2}[protocol]; resp.ProtoMajor != want {
				t.Errorf("HTTP/%d was spoken, want %d", resp.ProtoMajor, want)
			}
			if err != nil || strings.Count(string(body), delta) != 3 || !strings.HasSuffix(string(body), doneEvent) {
				t.Errorf("got %q (%v), want the whole stream", body, err)
			}
			if line := h.last(); line.Outcome != outcomeOK {
				t.Errorf("log line %+v, want ok", line)
			}
		})
	}
}

// A client of HTTP/2 that takes nothing is given up after as long as one write
// may take, and its stream alone.
func TestAClientOfHTTP2ThatTakesNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withTLS(t, &script{answer: talk(100_000, 10*time.Microsecond)})
		client := h.secure("h2")
		stuck := must.Get(h.securely(client, chat, streamBody))(t)
		<-time.After(40 * time.Second)
		if line := h.last(); line.Outcome != outcomeGone || line.Bytes == 0 {
			t.Errorf("log line %+v, want client_gone within 40 s", line)
		}
		if _, err := io.ReadAll(stuck.Body); err == nil {
			t.Error("the stream that was given up ended well")
		}
		stuck.Body.Close()
		h.idle()
		resp, err := client.Get("https://gateway/v1/models")
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("on the same connection: %v, %v", resp, err)
		}
		resp.Body.Close()
	})
}

// Over HTTP/2 a broken answer is a broken stream, not a clean end.
func TestABrokenStreamOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withTLS(t, &script{answer: func(w http.ResponseWriter, _ *http.Request) {
			eventStream(w)
			say(w, delta)
			cutOff(w)
		}})
		resp := must.Get(h.securely(h.secure("h2"), chat, streamBody))(t)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil || !strings.Contains(string(body), "upstream_disconnected") {
			t.Errorf("got %q (%v), want an error event and a broken stream", body, err)
		}
	})
}

// Plain HTTP on the port for HTTPS is told so in the shape of all errors.
func TestPlainHTTPOnThePortForHTTPS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withTLS(t, asker())
		r := h.raw("gateway:443", "GET /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n")
		if code := r.code(t); r.status != 400 || code != "malformed_request" {
			t.Errorf("got %d %s, want 400 malformed_request", r.status, code)
		}
	})
}

package e2e

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// hosted is a fake of a hosted API. handle may write headers and an error; else the
// answer is a chat.
type hosted struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string // that requests came with, in their order
}

func newHosted(t *testing.T, secure bool, handle func(w http.ResponseWriter, r *http.Request, key string) (done bool)) *hosted {
	h := &hosted{}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		h.mu.Lock()
		h.keys = append(h.keys, key)
		h.mu.Unlock()
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"object":"list","data":[{"id":"llama-3.3-70b"},{"id":"llama-3.1-8b"}]}`)
			return
		}
		if handle != nil && handle(w, r, key) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
	})
	if h.Server = httptest.NewUnstartedServer(serve); secure {
		h.StartTLS()
	} else {
		h.Start()
	}
	t.Cleanup(h.Close)
	return h
}

// seen are the keys since the last call.
func (h *hosted) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.keys
	h.keys = nil
	return seen
}

// chat asks a gateway once.
func chat(t *testing.T, gateway *proctest.Process, model string) (status int, body string, head http.Header) {
	t.Helper()
	resp := must.Get(http.Post(gateway.Ready["data"]+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hello"}]}`)))(t)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, string(text), resp.Header
}

const hostedHead = "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\n"

// A pool of keys out of the configuration, a file and a command: one that is full
// rests alone, and a file that changes is read again. No key is in the log.
func TestAPoolOfKeys(t *testing.T) {
	t.Parallel()
	full := true
	var mu sync.Mutex
	api := newHosted(t, false, func(w http.ResponseWriter, _ *http.Request, key string) bool {
		mu.Lock()
		defer mu.Unlock()
		if key == "sk-configured" && full {
			w.Header().Set("Retry-After", "30")
			http.Error(w, `{"error":{"message":"slow down, sk-configured"}}`, http.StatusTooManyRequests)
			return true
		}
		return false
	})
	file := filepath.Join(t.TempDir(), "key.txt")
	must.Do(t, os.WriteFile(file, []byte("sk-of-the-file\n"), 0o600))
	gateway := proctest.Gateway(t, hostedHead+`backends:
  - name: pool
    kind: groq
    url: `+api.URL+`/openai/v1
    models: separate
    api_keys: [ sk-configured, { file: `+file+` }, { command: [ echo, '{"token":"sk-of-the-command","expires_in":3600}' ] } ]
routes: [ { model: chat, targets: [ { backend: pool, model: llama-3.3-70b } ] } ]
`)
	for range 9 {
		if status, body, _ := chat(t, gateway, "chat"); status != 200 {
			t.Fatalf("%d: %s", status, body)
		}
	}
	count := map[string]int{}
	for _, key := range api.seen() {
		count[key]++
	}
	if count["sk-configured"] != 1 || count["sk-of-the-file"] < 3 || count["sk-of-the-command"] < 3 || len(count) != 3 {
		t.Errorf("sent with %v, want the full one once and the others in turns", count)
	}
	must.Do(t, os.WriteFile(file, []byte("sk-changed"), 0o600))
	proctest.Until(t, "the new key is used", func() bool {
		chat(t, gateway, "chat")
		return slices.Contains(api.seen(), "sk-changed")
	})
	log := gateway.Log()
	for _, secret := range []string{"sk-configured", "sk-of-the-file", "sk-of-the-command", "sk-changed"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// What an API tells of its limits keeps requests off it before it refuses one: they
// go to the next target, and the decision says why.
func TestRateLimitsAreACap(t *testing.T) {
	t.Parallel()
	left := 4
	var mu sync.Mutex
	api := newHosted(t, false, func(w http.ResponseWriter, _ *http.Request, _ string) bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		w.Header().Set("x-ratelimit-limit-requests", "60")
		w.Header().Set("x-ratelimit-remaining-requests", fmt.Sprint(max(left, 0)))
		w.Header().Set("x-ratelimit-reset-requests", "59s")
		if left < 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	})
	own := newHosted(t, false, nil)
	gateway := proctest.Gateway(t, hostedHead+`backends:
  - { name: hosted, kind: groq, url: "`+api.URL+`/openai/v1", api_key: sk-hosted, models: separate }
  - { name: own, url: "`+own.URL+`/v1" }
routes: [ { model: chat, prefer: order, targets: [ { backend: hosted, model: m }, { backend: own, model: m } ] } ]
`)
	by := map[string]int{}
	for range 8 {
		status, body, head := chat(t, gateway, "chat")
		if status != 200 {
			t.Fatalf("%d: %s", status, body)
		}
		by[head.Get("x-pacer-backend")]++
	}
	mu.Lock()
	defer mu.Unlock()
	// About one a second is paid back: a slow machine may get a fifth one in.
	if left < -1 || left > 0 || by["own"] < 3 {
		t.Errorf("the API counts %d left, and %v served, want none left, none refused and the others by the own engine", left, by)
	}
	if page := string(proctest.Get(t, gateway.Ready["admin"]+"/api/v1/decisions")); !strings.Contains(page, `"basis":"quota"`) || !strings.Contains(page, `"reason":"cap"`) {
		t.Errorf("no decision says cap: %.600s", page)
	}
}

// connectProxy is a proxy that connects wherever it is asked to by addresses.
type connectProxy struct {
	net.Listener
	mu    sync.Mutex
	asked []string // "METHOD target auth"
}

func newConnectProxy(t *testing.T, to string) *connectProxy {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &connectProxy{Listener: l}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(conn, to) })
		}
	})
	return p
}

// serve answers CONNECT by a tunnel and anything else by passing it on.
func (p *connectProxy) serve(conn net.Conn, to string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	if r.Method == http.MethodConnect {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	} else {
		r.Close = true
		r.Write(up)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(conn, up)
		conn.Close()
	}()
	io.Copy(up, in)
	up.Close()
	<-done
}

func (p *connectProxy) first() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		return ""
	}
	return p.asked[0]
}

// Requests go up through the proxy of the backend, or of the environment, and
// through none where it says so.
func TestEgressProxy(t *testing.T) {
	t.Parallel()
	secure, plain := newHosted(t, true, nil), newHosted(t, false, nil)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
	tunnel := newConnectProxy(t, secure.Listener.Addr().String())
	environment := newConnectProxy(t, plain.Listener.Addr().String())
	encrypted := newConnectProxy(t, secure.Listener.Addr().String())
	file := proctest.Write(t, hostedHead+`backends:
  - { name: own, url: "https://example.com/v1", ca_file: `+ca+`, egress_proxy: "http://user:proxy-secret@`+tunnel.Addr().String()+`" }
  - { name: environment, url: "http://nowhere.invalid/v1" }
  - { name: encrypted, url: "https://example.com:444/v1", ca_file: `+ca+` }
  - { name: none, url: "http://nowhere.invalid:81/v1", egress_proxy: "off" }
routes:
  - { model: encrypted, targets: [ { backend: encrypted } ] }
  - { model: own, targets: [ { backend: own } ] }
  - { model: environment, targets: [ { backend: environment } ] }
  - { model: none, targets: [ { backend: none } ] }
`)
	gateway := proctest.Start(t, []string{"HTTP_PROXY=http://" + environment.Addr().String(), "HTTPS_PROXY=http://" + encrypted.Addr().String(), "NO_PROXY="}, "serve", "-c", file)
	for model, want := range map[string]int{"own": 200, "environment": 200, "encrypted": 200, "none": 502} {
		if status, body, _ := chat(t, gateway, model); status != want {
			t.Errorf("%s: %d, want %d: %s", model, status, want, body)
		}
	}
	if got, want := tunnel.first(), "CONNECT example.com:443 Basic dXNlcjpwcm94eS1zZWNyZXQ="; got != want {
		t.Errorf("the backend's proxy was asked %q, want %q", got, want)
	}
	if got := environment.first(); !strings.HasPrefix(got, "POST http://nowhere.invalid/v1/chat/completions") {
		t.Errorf("the environment's proxy was asked %q", got)
	}
	if got, want := encrypted.first(), "CONNECT example.com:444 "; got != want {
		t.Errorf("the environment's proxy for https was asked %q, want %q", got, want)
	}
	if strings.Contains(gateway.Log(), "proxy-secret") {
		t.Error("the log holds the password of the proxy")
	}
}

// signature is AWS's signature of a request, version 4, as its documentation
// describes it.
func signature(r *http.Request, body []byte, secret, region string) (string, error) {
	auth := strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	parts := map[string]string{}
	for part := range strings.SplitSeq(auth, ", ") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	scope := strings.Split(parts["Credential"], "/")
	if len(scope) != 5 || scope[2] != region || scope[3] != "bedrock" || scope[4] != "aws4_request" {
		return "", fmt.Errorf("credential %q", parts["Credential"])
	}
	sum := func(data []byte) string { h := sha256.Sum256(data); return hex.EncodeToString(h[:]) }
	mac := func(key []byte, data string) []byte {
		h := hmac.New(sha256.New, key)
		io.WriteString(h, data)
		return h.Sum(nil)
	}
	var steps []string // each encoded once more than it was sent
	for step := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
		steps = append(steps, strings.ReplaceAll(url.QueryEscape(step), "+", "%20"))
	}
	var canonical strings.Builder
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", r.Method, strings.Join(steps, "/"), r.URL.Query().Encode())
	for name := range strings.SplitSeq(parts["SignedHeaders"], ";") {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&canonical, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	fmt.Fprintf(&canonical, "\n%s\n%s", parts["SignedHeaders"], sum(body))
	toSign := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n" + sum([]byte(canonical.String()))
	key := []byte("AWS4" + secret)
	for _, part := range scope[1:] {
		key = mac(key, part)
	}
	if got, want := parts["Signature"], hex.EncodeToString(mac(key, toSign)); got != want {
		return "", fmt.Errorf("signature %s, want %s of\n%s", got, want, canonical.String())
	}
	return parts["SignedHeaders"], nil
}

// What goes to Bedrock is signed, with the keys of the environment or of a command,
// body and headers included.
func TestBedrockIsSigned(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var wrong []error
	signed := ""
	check := func(secret string) *hosted {
		return newHosted(t, false, func(_ http.ResponseWriter, r *http.Request, _ string) bool {
			body, _ := io.ReadAll(r.Body)
			headers, err := signature(r, body, secret, "eu-west-1")
			mu.Lock()
			defer mu.Unlock()
			if signed = headers; err != nil {
				wrong = append(wrong, err)
			}
			return false
		})
	}
	one, two := check("env-secret-key"), check("command-secret-key")
	file := proctest.Write(t, hostedHead+`backends:
  - { name: env, kind: bedrock, url: "`+one.URL+`/openai/v1", region: eu-west-1, egress_proxy: "off" }
  - { name: command, kind: bedrock, url: "`+two.URL+`/openai/v1", region: eu-west-1, api_key_command: [ echo, '{"Version":1,"AccessKeyId":"AKIDCOMMAND","SecretAccessKey":"command-secret-key","SessionToken":"session"}' ] }
routes:
  - { model: env, targets: [ { backend: env, model: openai.gpt-oss-20b-1 } ] }
  - { model: command, targets: [ { backend: command, model: openai.gpt-oss-20b-1 } ] }
`)
	gateway := proctest.Start(t, []string{"AWS_ACCESS_KEY_ID=AKIDENV", "AWS_SECRET_ACCESS_KEY=env-secret-key", "AWS_EC2_METADATA_DISABLED=true"}, "serve", "-c", file)
	for _, model := range []string{"env", "command"} {
		if status, body, _ := chat(t, gateway, model); status != 200 {
			t.Errorf("%s: %d: %s", model, status, body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, err := range wrong {
		t.Error(err)
	}
	if !strings.Contains(signed, "host;") || !strings.Contains(signed, "x-amz-security-token") {
		t.Errorf("signed are %q, want the host and the token of the session among them", signed)
	}
	if log := gateway.Log(); strings.Contains(log, "secret-key") {
		t.Error("the log holds a secret")
	}
}

// A command that fails, hangs or prints rubbish costs its own backend, for as long as
// it may take: the answer says so, the log why, and neither what it printed.
func TestCommandsThatGiveNoKey(t *testing.T) {
	t.Parallel()
	api := newHosted(t, false, nil)
	backends, routes := "backends:\n", "routes:\n"
	scripts := map[string]string{
		"fails": "echo printed-secret; exit 3", "hangs": "echo printed-secret; exec sleep 100",
		"rubbish": "printf 'printed-secret \\033[31m and more'", "floods": "exec cat /dev/zero", "json": `echo '{"printed-secret":1}'`,
	}
	for name, script := range scripts {
		backends += fmt.Sprintf("  - { name: %s, url: %q, api_key_command: { run: [ /bin/sh, -c, %q ], timeout: 1s } }\n", name, api.URL+"/"+name+"/v1", script)
		routes += fmt.Sprintf("  - { model: %s, targets: [ { backend: %s } ] }\n", name, name)
	}
	backends += fmt.Sprintf("  - { name: good, url: %q, api_key: k }\n", api.URL+"/v1")
	routes += "  - { model: good, targets: [ { backend: good } ] }\n  - { model: both, prefer: order, targets: [ { backend: fails }, { backend: good } ] }\n"
	gateway := proctest.Gateway(t, hostedHead+backends+routes)
	for name := range scripts {
		status, body, _ := chat(t, gateway, name)
		if status != 502 || !strings.Contains(body, "credentials cannot be had") || strings.Contains(body, "printed-secret") {
			t.Errorf("%s: %d: %s", name, status, body)
		}
	}
	for _, model := range []string{"good", "both"} {
		if status, body, _ := chat(t, gateway, model); status != 200 {
			t.Errorf("%s: %d: %s", model, status, body)
		}
	}
	log := gateway.Log()
	if strings.Contains(log, "printed-secret") || !strings.Contains(log, "ends with exit status 3") {
		t.Errorf("the log does not say why, or says too much:\n%s", tail(log))
	}
}

// check --probe says which names are wrong, and which key.
func TestCheckProbe(t *testing.T) {
	t.Parallel()
	api := newHosted(t, false, func(w http.ResponseWriter, _ *http.Request, key string) bool {
		if key != "sk-right" {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		w.WriteHeader(http.StatusBadRequest)
		return true
	})
	file := proctest.Write(t, hostedHead+`backends:
  - { name: right, kind: groq, url: "`+api.URL+`/openai/v1", api_key: sk-right, models: separate }
  - { name: wrong, kind: groq, url: "`+api.URL+`/openai/v1", api_key: sk-wrong, models: separate }
routes:
  - { model: big, targets: [ { backend: right, model: llama-3.3-70b } ] }
  - { model: small, targets: [ { backend: right, model: llama-3.1-8 } ] }
  - { model: other, targets: [ { backend: wrong, model: llama-3.1-8b } ] }
`)
	var out bytes.Buffer
	cmd := exec.Command(proctest.Binary(t), "check", "--probe", file)
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if exit, _ = err.(*exec.ExitError); exit == nil || exit.ExitCode() != 1 {
		t.Errorf("after %v: %v, want exit 1", time.Since(begin), err)
	}
	for _, want := range []string{`it does not know the model "llama-3.1-8" of route small; write "llama-3.1-8b"`, "backend right: its key is taken", "backend wrong: its key is refused (status 401); correct its api_key"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said:\n%s", want, out.String())
		}
	}
}

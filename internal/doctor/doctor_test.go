package doctor

import (
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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/redistest"
	"github.com/pacer-dev/pacer/sim"
)

// secret is the key of every backend here: no finding may show it.
const secret = "sk-very-secret-4711"

// engine is a simulated engine that serves "llama-3.1-70b" to those with the key,
// and its list of models to all, as llama.cpp does.
func engine(t *testing.T) http.Handler {
	t.Helper()
	s := must.Get(sim.NewServer(sim.Options{Names: []string{"llama-3.1-70b"}, Model: sim.Model{B: 0.01}, Seed: 1}))(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" && r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, `{"error":"Unauthorized"}`, http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, r)
	})
}

// certified writes a certificate of its own authority, for host, that ends at end.
func certified(t *testing.T, host string, end time.Time) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: end.Add(-1000 * time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must.Do(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	must.Do(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		must.Do(t, os.WriteFile(file, text, 0o600))
	}
	pair = must.Get(tls.X509KeyPair(certPEM, keyPEM))(t)
	return pair, certFile, keyFile
}

// listen serves h in the clear, or with a certificate, and returns its URL.
func listen(t *testing.T, h http.Handler, pair *tls.Certificate) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	if pair == nil {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*pair}}
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// examine looks at one backend with these fields, and one route to this model.
func examine(t *testing.T, fields, model string, change func(*config.Config)) []Finding {
	t.Helper()
	text := fmt.Sprintf("backends: [ { name: gpu, %s } ]\nroutes: [ { model: chat, targets: [ { backend: gpu, model: %q } ] } ]\n", fields, model)
	return examineText(t, text, change)
}

func examineText(t *testing.T, text string, change func(*config.Config)) []Finding {
	t.Helper()
	cfg := must.Get(config.Parse("pacer.yaml", []byte(text), func(string) (string, bool) { return "", false }))(t)
	if change != nil {
		change(cfg)
	}
	found := Examine(context.Background(), Options{Config: cfg, Patience: 3 * time.Second})
	for _, f := range found {
		if line := f.String(); strings.Contains(line, secret) || strings.Contains(line, "\n") {
			t.Errorf("a finding shows a secret, or is no line: %q", line)
		}
		if (f.Severity == OK) != (f.Mend == "") {
			t.Errorf("%s: what is ok has no mend, and everything else has one", f)
		}
	}
	return found
}

// has fails the test unless a finding is the line, in which * stands for anything.
func has(t *testing.T, found []Finding, line string) {
	t.Helper()
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), `\*`, ".*") + "$")
	for _, f := range found {
		if pattern.MatchString(f.String()) {
			return
		}
	}
	var all strings.Builder
	for _, f := range found {
		fmt.Fprintln(&all, f)
	}
	t.Errorf("no finding %q in\n%s", line, all.String())
}

// A fleet in which nothing is wrong: not one warning.
func TestEverythingIsWell(t *testing.T) {
	pair, file, _ := certified(t, "127.0.0.1", time.Now().Add(400*time.Hour))
	redis := redistest.Start(t)
	url := listen(t, engine(t), &pair)
	found := examine(t, fmt.Sprintf("url: %q, api_key: %s, ca_file: %q, prior: { 1: 50, 8: 40 }", url, secret, file), "llama-3.1-70b", func(c *config.Config) {
		c.Store = config.Store{Addrs: []string{redis.Addr}, Prefix: "pacer"}
		c.Routes[0].SLO.MinTPS = 30
	})
	for _, f := range found {
		if f.Severity != OK {
			t.Errorf("%s", f)
		}
	}
	for _, line := range []string{
		"ok: backend gpu: its certificate is valid until *",
		"ok: backend gpu: its key is taken",
		"ok: backend gpu: it knows the models of its routes",
		"ok: store * answers",
		"ok: store *: nothing is evicted, maxmemory is not set",
		"ok: store *: its clock agrees with ours within 1s",
		"ok: route chat: min_tps 30 is within reach: a single user gets 50.0",
	} {
		has(t, found, line)
	}
}

func TestBackends(t *testing.T) {
	good, goodFile, _ := certified(t, "127.0.0.1", time.Now().Add(400*time.Hour))
	expired, expiredFile, _ := certified(t, "127.0.0.1", time.Now().Add(-time.Hour))
	ending, endingFile, _ := certified(t, "127.0.0.1", time.Now().Add(50*time.Hour))
	other, otherFile, _ := certified(t, "gpu.example", time.Now().Add(400*time.Hour))
	plain := listen(t, engine(t), nil)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	answer := func(status int, body string) string {
		return listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.invalid/")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}), nil)
	}
	over := make(chan struct{})
	silent := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over: // a server that has not seen its client go ends with the test
		}
	}), nil)
	t.Cleanup(func() { close(over) })
	late := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
	}), nil)
	const key = ", api_key: " + secret
	for name, c := range map[string]struct{ fields, model, want string }{
		"wrong key":       {"url: " + plain + ", api_key: " + secret + "x", "llama-3.1-70b", "fail: backend gpu: its key is refused (status 401); correct its api_key"},
		"no key":          {"url: " + plain, "llama-3.1-70b", "fail: backend gpu: it wants a key (status 401), and none is configured; give the backend an api_key"},
		"wrong model":     {"url: " + plain + key, "llama-3.1-7b", `fail: backend gpu: it does not know the model "llama-3.1-7b" of route chat; write "llama-3.1-70b"`},
		"vendor in front": {"url: " + plain + key, "meta-llama/Llama-3.1-70B", `fail: backend gpu: it does not know the model "meta-llama/Llama-3.1-70B" of route chat; write "llama-3.1-70b"`},
		"other model":     {"url: " + plain + key, "gpt-4o", `fail: backend gpu: it does not know the model "gpt-4o" of route chat; write one of ["llama-3.1-70b"]`},
		"no models":       {"url: " + answer(200, `{"data":[]}`), "m", `fail: backend gpu: it does not know the model "m" of route chat; have it load one: its list is empty`},
		"expired":         {"url: " + listen(t, engine(t), &expired) + key + ", ca_file: " + expiredFile, "llama-3.1-70b", "fail: backend gpu: its certificate expired on *; renew it there"},
		"ends soon":       {"url: " + listen(t, engine(t), &ending) + key + ", ca_file: " + endingFile, "llama-3.1-70b", "warn: backend gpu: its certificate expires on *, in 2 days; renew it there"},
		"unknown CA":      {"url: " + listen(t, engine(t), &good) + key, "llama-3.1-70b", "fail: backend gpu: its certificate is of an authority that this machine does not trust; name the authority's PEM file with ca_file"},
		"another CA":      {"url: " + listen(t, engine(t), &good) + key + ", ca_file: " + otherFile, "llama-3.1-70b", "fail: backend gpu: its certificate is of an authority*"},
		"another name":    {"url: " + listen(t, engine(t), &other) + key + ", ca_file: " + otherFile, "llama-3.1-70b", "fail: backend gpu: its certificate is not for 127.0.0.1;*"},
		"no TLS":          {"url: " + strings.Replace(plain, "http:", "https:", 1) + key + ", ca_file: " + goodFile, "llama-3.1-70b", "fail: backend gpu: 127.0.0.1:* does not speak TLS; write http:// in the url"},
		"not there":       {"url: " + closed.URL + "/v1", "m", "fail: backend gpu: no connection to 127.0.0.1:*: connection refused; start the engine, correct the url, or open the way there"},
		"no such name":    {"url: http://gpu.invalid/v1", "m", "fail: backend gpu: the name gpu.invalid cannot be resolved: *; correct the url, or the resolver of this machine"},
		"a page":          {"url: " + answer(200, "<html>hello"), "m", "fail: backend gpu: asked for its models it answers with something that is not JSON; correct the url; mostly it ends in /v1"},
		"elsewhere":       {"url: " + answer(301, ""), "m", "fail: backend gpu: it leads elsewhere (status 301)*"},
		"no list":         {"url: " + answer(404, ""), "m", "warn: backend gpu: it answers and has no list of models (status 404), so the url may be wrong; see whether an engine is there: curl http://127.0.0.1:*/v1/models"},
		"no version":      {"url: " + strings.TrimSuffix(answer(404, ""), "/v1"), "m", "warn: backend gpu: it answers and has no list of models (status 404), so the url may be wrong; end the url in the version, mostly /v1"},
		"ill":             {"url: " + answer(500, ""), "m", "warn: backend gpu: asked for its models it answers with status 500; look at the engine's log"},
		"silent":          {"url: " + silent, "m", "fail: backend gpu: no answer: none within 3s; look at the engine's log"},
		"an hour late":    {"url: " + late, "m", "warn: backend gpu: its clock is * behind of ours; run NTP on both machines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			has(t, examine(t, c.fields, c.model, nil), c.want)
		})
	}
}

// A backend behind a proxy: it is the proxy that is looked for, and what it refuses is
// not put down to the engine.
func TestProxies(t *testing.T) {
	good, goodFile, _ := certified(t, "127.0.0.1", time.Now().Add(400*time.Hour))
	plain, secure := listen(t, engine(t), nil), listen(t, engine(t), &good)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	proxy := func(status int) string { // of CONNECT and of plain requests; 200 = it carries them
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status != http.StatusOK {
				w.WriteHeader(status)
				return
			}
			to, err := net.Dial("tcp", r.Host)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer to.Close()
			if r.Method != http.MethodConnect {
				r.Close = true
				_ = r.Write(to)
			}
			from, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer from.Close()
			if r.Method == http.MethodConnect {
				fmt.Fprint(from, "HTTP/1.1 200 OK\r\n\r\n")
				go func() { _, _ = io.Copy(to, from) }()
			}
			_, _ = io.Copy(from, to)
		}))
		t.Cleanup(s.Close)
		return strings.Replace(s.URL, "http://", "http://me:"+secret+"@", 1)
	}
	for name, c := range map[string]struct{ url, proxy, want string }{
		"plain":           {plain, proxy(http.StatusOK), "ok: backend gpu: it knows the models of its routes"},
		"TLS":             {secure + ", ca_file: " + goodFile, proxy(http.StatusOK), "ok: backend gpu: it knows the models of its routes"},
		"way":             {plain, proxy(http.StatusOK), "ok: backend gpu: is reached by way of the proxy 127.0.0.1:*"},
		"not there":       {plain, closed.URL, "fail: backend gpu: no connection to the proxy 127.0.0.1:*: connection refused; start it, or correct egress_proxy"},
		"credentials":     {plain, proxy(http.StatusProxyAuthRequired), "fail: backend gpu: the proxy 127.0.0.1:* wants other credentials (status 407); write http://USER:PASSWORD@127.0.0.1:* into egress_proxy"},
		"credentials TLS": {secure + ", ca_file: " + goodFile, proxy(http.StatusProxyAuthRequired), "fail: backend gpu: the proxy 127.0.0.1:* wants other credentials (status 407)*"},
		"forbidden TLS":   {secure + ", ca_file: " + goodFile, proxy(http.StatusForbidden), "fail: backend gpu: the proxy 127.0.0.1:* refuses the way to 127.0.0.1:*; let 127.0.0.1:* pass there, or set egress_proxy: off"},
		"lost TLS":        {secure + ", ca_file: " + goodFile, proxy(http.StatusBadGateway), "fail: backend gpu: no answer by way of the proxy 127.0.0.1:*: *; look at the log of the proxy, and whether it reaches 127.0.0.1:*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			has(t, examine(t, "url: "+c.url+", api_key: "+secret+", egress_proxy: "+strconv.Quote(c.proxy), "llama-3.1-70b", nil), c.want)
		})
	}
}

func TestStores(t *testing.T) {
	redis := func(s config.Store) []Finding {
		s.Prefix = "pacer"
		return examine(t, "url: http://127.0.0.1:1/v1", "m", func(c *config.Config) { c.Store = s })
	}
	locked := redistest.Start(t, "--requirepass", secret)
	has(t, redis(config.Store{Addrs: []string{locked.Addr}, Password: secret + "x"}), "fail: store *: the password is refused; correct username and password in store:")
	has(t, redis(config.Store{Addrs: []string{locked.Addr}}), "fail: store *: the password is refused;*")
	has(t, redis(config.Store{Addrs: []string{locked.Addr}, Password: secret}), "ok: store * answers")

	evicting := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	has(t, redis(config.Store{Addrs: []string{evicting.Addr}}), "warn: store *: when its memory is full it evicts keys (allkeys-lru), and curves and limits of keys with them; set maxmemory-policy noeviction")
	keeping := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
	has(t, redis(config.Store{Addrs: []string{keeping.Addr}}), "ok: store *: nothing is evicted (noeviction)")

	both := redis(config.Store{Addrs: []string{keeping.Addr}, Global: &config.Store{Addrs: []string{evicting.Addr}, Prefix: "pacer"}})
	has(t, both, "ok: store *: nothing is evicted (noeviction)")
	has(t, both, "warn: store.global *: when its memory is full it evicts keys (allkeys-lru), and budgets, usage and keys that were handed out with them;*")

	keeping.Kill()
	has(t, redis(config.Store{Addrs: []string{keeping.Addr}}), "fail: store * cannot be reached: *; start Redis, or correct store:; without it every gateway learns alone")
}

func TestOldStoresAndClocks(t *testing.T) {
	var f findings
	describeStore(ofRegion(config.Store{Addrs: []string{"redis:6379"}}), map[string]string{"redis_version": "6.0.16", "maxmemory": "0"}, &f)
	has(t, f, "fail: store redis:6379: Redis 6.0.16 is older than 6.2; update it")
	describeStore(ofRegion(config.Store{Addrs: []string{"redis:6379"}}), map[string]string{"redis_version": "7.2.4", "valkey_version": "8.1.0", "maxmemory": "0"}, &f)
	has(t, f, "ok: store redis:6379: Valkey 8.1.0 answers")
	clock("store a", -3*time.Second, time.Millisecond, &f)
	has(t, f, "warn: store a: its clock is 3s behind of ours; run NTP on both machines")
	clock("store b", 1500*time.Millisecond, time.Second, &f)
	has(t, f, "ok: store b: its clock agrees with ours within 1s")
}

func TestFloors(t *testing.T) {
	found := examineText(t, `
backends:
  - { name: slow, url: http://127.0.0.1:1/v1, prior: { 1: 16.5, 8: 10 } }
  - { name: fast, url: http://127.0.0.1:2/v1, prior: { 1: 90, 8: 70 } }
  - { name: new, url: http://127.0.0.1:3/v1 }
routes:
  - { model: steep, slo: { min_tps: 60 }, targets: [ { backend: slow, model: m } ] }
  - { model: mixed, slo: { min_tps: 60 }, targets: [ { backend: slow, model: m }, { backend: fast, model: m } ] }
  - { model: fine, slo: { min_tps: 60 }, targets: [ { backend: fast, model: m } ] }
  - { model: learns, slo: { min_tps: 60 }, targets: [ { backend: new, model: other } ] }
`, nil)
	has(t, found, "fail: route steep: min_tps 60 is out of reach: a single user gets 16.5 at most; lower min_tps, or add a faster target")
	has(t, found, "warn: route mixed: min_tps 60 is out of reach of slow, which gives a single user 16.5; take the target out, or lower min_tps")
	has(t, found, "ok: route mixed: min_tps 60 is within reach: a single user gets 90.0")
	has(t, found, "ok: route fine: *")
	has(t, found, "ok: route learns: min_tps 60; no target has a prior*")
}

func TestTheMachine(t *testing.T) {
	_, certFile, keyFile := certified(t, "127.0.0.1", time.Now().Add(-time.Hour))
	found := examine(t, "url: http://127.0.0.1:1/v1", "m", func(c *config.Config) { c.TLS = config.TLS{Cert: certFile, Key: keyFile} })
	has(t, found, "fail: tls: the certificate of the data port expired on *; renew it; new files are read by themselves")
	found = examine(t, "url: http://127.0.0.1:1/v1", "m", func(c *config.Config) { c.TLS = config.TLS{Cert: certFile, Key: certFile} })
	has(t, found, "fail: tls: certificate and key cannot be read: *; name a PEM file each that belong together")
	found = examineText(t, "admin: { listen: 0.0.0.0:9090 }\nbackends: [ { name: gpu, url: http://127.0.0.1:1/v1 } ]\nroutes: [ { model: chat, targets: [ { backend: gpu, model: m } ] } ]\n", nil)
	has(t, found, "warn: pacer.yaml:1:*admin.listen 0.0.0.0:9090 is reachable from other machines and has no token: changing calls are refused; add token:, or listen on 127.0.0.1")

	for _, c := range []struct{ dir, want string }{
		{t.TempDir(), "*: state_dir * can be written*"},
		{filepath.Join(t.TempDir(), "none", "yet"), "*: state_dir */none/yet can be written*"}, // pacer makes it
		{certFile, "fail: state_dir * cannot be written: not a directory; make the directory, and give it to the user that pacer runs as"},
	} {
		has(t, examine(t, "url: http://127.0.0.1:1/v1", "m", func(cfg *config.Config) { cfg.StateDir = c.dir }), c.want)
	}
}

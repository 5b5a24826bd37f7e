package attack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// tableMu guards the table of TestAttacks.
var tableMu sync.Mutex

// site is what an attack finds. The zero value is a gateway with the tenants
// "served" and "other" (their keys are their names, and their routes chat and
// other), before one engine that is faster than any floor.
type site struct {
	open  bool   // no keys; both routes are everybody's
	tls   bool   // on the data port
	files int    // descriptors that the gateway may have; 0 = as many as the machine gives
	limit string // what limits: has, as "body: 1MiB, streams: 100"; "" = "body: 1MiB"
	log   string // what log: has; "" = "level: error"
	more  string // more of the configuration
	other string // limits: of the key "other", as "concurrency: 1"; "" = none

	// fleet returns backends: and routes:, given the URL of the engine (without
	// /v1). nil = one backend, "a", with both routes.
	fleet func(t *testing.T, engine string) string

	// start runs the gateway otherwise than with proctest.Run, given its file.
	start func(t *testing.T, file string) *proctest.Process
}

// victim is a gateway under attack, and those who are served meanwhile: eight
// streams at any time, on connections that are kept, and a user who comes anew
// ten times a second.
type victim struct {
	*testing.T
	gateway *proctest.Process
	engine  *proctest.Process
	addr    string // of the data port
	trusted *x509.CertPool
	client  *http.Client // that keeps its connections

	end    context.CancelFunc
	served sync.WaitGroup

	mu       sync.Mutex
	attacked bool // the attack has begun
	streams  [2][]loadgen.Result
	visits   [2][]visit // index 1: since the attack began
}

// visit is one short request on a connection of its own.
type visit struct {
	took time.Duration // from dialing to the end of the answer
	err  error
}

const (
	perStream = 40 // tokens of the victim's streams
	before    = 16 // of its streams, and of its visits, come before the attack
)

// newVictim starts a site and returns when its tenant is served.
func newVictim(t *testing.T, s site) *victim {
	t.Helper()
	v := &victim{T: t, engine: proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "2")}
	file := proctest.Write(t, v.configuration(s))
	if s.start != nil {
		v.gateway = s.start(t, file)
	} else {
		v.gateway = proctest.Run(t, proctest.Options{Files: s.files}, "serve", "-c", file)
	}
	_, v.addr, _ = strings.Cut(v.gateway.Ready["data"], "://")
	config := &tls.Config{RootCAs: v.trusted}
	v.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, ForceAttemptHTTP2: true, TLSClientConfig: config.Clone()}}
	ctx, cancel := context.WithCancel(context.Background())
	v.end = cancel
	for range 8 {
		v.served.Go(func() { v.stream(ctx) })
	}
	v.served.Go(func() { v.visit(ctx, config) })
	t.Cleanup(func() { cancel(); v.served.Wait() })
	proctest.Until(t, "the tenant is served", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.attacked = len(v.streams[0]) >= before && len(v.visits[0]) >= before
		return v.attacked
	})
	return v
}

func (v *victim) configuration(s site) string {
	fleet := `backends: [ { name: a, url: "` + v.engine.Ready["url"] + `/v1", kind: vllm } ]
routes:
  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] }
  - { model: other, targets: [ { backend: a, model: llama-3.1-70b } ] }
`
	if s.fleet != nil {
		fleet = s.fleet(v.T, v.engine.Ready["url"])
	}
	fleet = strings.ReplaceAll(fleet, "url: \"", "client: "+*client+", url: \"")
	if s.limit == "" {
		s.limit = "body: 1MiB"
	}
	text := "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nrelay: " + *relay + "\nlog: { " + cmp.Or(s.log, "level: error") + " }\ntimeouts: { write: 3s }\nlimits: { " + s.limit + " }\n" + fleet + s.more
	if !s.open {
		text += fmt.Sprintf("keys:\n  - { name: served, key_sha256: %q, routes: [ chat ] }\n  - { name: other, key_sha256: %q, routes: [ other ], limits: { %s } }\n", digest("served"), digest("other"), s.other)
	}
	if s.tls {
		cert, key := proctest.Certificate(v)
		authority := must.Get(os.ReadFile(cert))(v)
		v.trusted = x509.NewCertPool()
		v.trusted.AppendCertsFromPEM(authority)
		text += fmt.Sprintf("tls: { cert: %q, key: %q }\n", cert, key)
	}
	return text
}

// digest is what a configuration has of a key.
func digest(key string) string { d := sha256.Sum256([]byte(key)); return hex.EncodeToString(d[:]) }

// stream sends one stream after the other until ctx ends.
func (v *victim) stream(ctx context.Context) {
	c := &loadgen.Client{BaseURL: v.gateway.Ready["data"] + "/v1", Key: "served", HTTP: v.client}
	for ctx.Err() == nil {
		r := c.Stream(context.Background(), loadgen.Request{Model: "chat", MaxTokens: perStream})
		v.mu.Lock()
		v.streams[index(v.attacked)] = append(v.streams[index(v.attacked)], r)
		v.mu.Unlock()
	}
}

// visit sends a request of one token on a connection of its own, ten times a
// second at most.
func (v *victim) visit(ctx context.Context, config *tls.Config) {
	newcomer := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: config.Clone()}}
	c := &loadgen.Client{BaseURL: v.gateway.Ready["data"] + "/v1", Key: "served", HTTP: newcomer}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		v.mu.Lock()
		when := index(v.attacked)
		v.mu.Unlock()
		patience, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		begun := time.Now()
		r := c.Stream(patience, loadgen.Request{Model: "chat", MaxTokens: 1})
		cancel()
		seen := visit{took: time.Since(begun)}
		if r.Outcome != loadgen.Done {
			seen.err = fmt.Errorf("%v, status %d: %w", r.Outcome, r.Status, r.Err)
		}
		v.mu.Lock()
		v.visits[when] = append(v.visits[when], seen)
		v.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func index(attacked bool) int {
	if attacked {
		return 1
	}
	return 0
}

// saw is what the victim saw while it was attacked.
type saw struct {
	streams, visits int           // of the attack's time
	served          float64       // share of both
	speed           float64       // tokens/s of its streams, as a share of those before
	added, longest  time.Duration // p99 of a visit more than before; the longest one
}

// String returns the cells of a row: served, speed, added p99, longest visit.
func (s saw) String() string {
	return fmt.Sprintf("%d streams, %d visits | %.1f %% served | speed × %.2f | p99 %+d ms | longest %d ms",
		s.streams, s.visits, 100*s.served, s.speed, s.added.Milliseconds(), s.longest.Milliseconds())
}

// judge ends the load: all of it must have been served.
func (v *victim) judge() saw {
	v.Helper()
	v.mu.Lock()
	streams, visits := len(v.streams[1]), len(v.visits[1])
	v.mu.Unlock()
	proctest.Until(v, "the tenant is served on", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return len(v.streams[1]) >= streams+before && len(v.visits[1]) >= visits+3
	})
	v.end()
	v.served.Wait()
	failed := 0
	var tps [2]float64
	for i, list := range v.streams {
		var tokens, seconds float64
		for _, r := range list {
			if r.Outcome != loadgen.Done || r.Tokens != perStream {
				failed++
				v.Errorf("a stream of the tenant who is served: %v after %d tokens, status %d: %v", r.Outcome, r.Tokens, r.Status, r.Err)
			}
			if _, ok := r.TPS(); ok {
				tokens += float64(r.Tokens - r.First)
				seconds += r.Decode.Seconds()
			}
		}
		tps[i] = tokens / seconds
	}
	var took [2][]time.Duration
	for i, list := range v.visits {
		for _, one := range list {
			took[i] = append(took[i], one.took)
			if one.err != nil {
				failed++
				v.Errorf("a user who came anew: %v", one.err)
			}
		}
		slices.Sort(took[i])
	}
	all := len(v.streams[0]) + len(v.streams[1]) + len(v.visits[0]) + len(v.visits[1])
	return saw{
		streams: len(v.streams[1]), visits: len(v.visits[1]),
		served: 1 - float64(failed)/float64(all), speed: tps[1] / tps[0],
		added: p99(took[1]) - p99(took[0]), longest: took[1][len(took[1])-1],
	}
}

// p99 is the 99th percentile of a sorted list.
func p99(sorted []time.Duration) time.Duration { return sorted[(len(sorted)-1)*99/100] }

// dial opens a connection to the data port, which is closed with the test.
func (v *victim) dial() net.Conn {
	v.Helper()
	c := must.Get(net.Dial("tcp", v.addr))(v)
	v.Cleanup(func() { c.Close() })
	return c
}

// metric adds up the series of the gateway's /metrics that begin with prefix.
func (v *victim) metric(prefix string) float64 {
	v.Helper()
	return proctest.Sum(string(proctest.Get(v, v.gateway.Ready["admin"]+"/metrics")), prefix)
}

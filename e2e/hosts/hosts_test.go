//go:build linux

package hosts

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

var (
	hostsFlag = flag.Bool("hosts", false, "run what takes minutes and root: make hosts")
	length    = flag.Duration("length", 45*time.Second, "of the load in each case")
	program   = flag.String("program", "", "a program whose clock PACER_TEST_CLOCK moves; without it one is built")
)

func TestMain(m *testing.M) { proctest.Main(m) }

const (
	floor  = 40 // tokens/s
	grace  = time.Second
	users  = 40
	secret = "sk-hosts-1234567890"
	preset = "llama-3.1-70b/h200/vllm"

	latency, loss = 30 * time.Millisecond, 0.01 // one way; of the packets
	hour          = 3600                        // seconds
)

// seen is what clients were given.
type seen struct {
	mu                 sync.Mutex
	kept, missed, shed int
	tokens             int
	bad                []string
}

func (s *seen) share() float64 { return float64(s.kept) / float64(max(s.kept+s.missed, 1)) }

// play has users ask in turns, over all gateways, until the time is over.
func play(ctx context.Context, gateways []string) *seen {
	s := &seen{}
	var wg sync.WaitGroup
	for i := range users {
		c := &loadgen.Client{BaseURL: gateways[i%len(gateways)] + "/v1", Key: secret, HTTP: &http.Client{Transport: &http.Transport{}}}
		random := rand.New(rand.NewPCG(uint64(i), 5))
		wg.Go(func() {
			for ctx.Err() == nil {
				tokens := 40 + random.IntN(80)
				s.note(c.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: tokens}), tokens)
				<-time.After(time.Duration(100+random.IntN(400)) * time.Millisecond)
			}
		})
	}
	wg.Wait()
	return s
}

func (s *seen) note(r loadgen.Result, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Outcome == loadgen.Shed:
		s.shed++
		return
	case r.Outcome != loadgen.Done || r.Tokens != tokens:
		s.bad = append(s.bad, fmt.Sprintf("%v with %d of %d tokens (%v)", r.Outcome, r.Tokens, tokens, r.Err))
	case r.Kept(floor, grace):
		s.kept++
	default:
		s.missed++
	}
	s.tokens += r.Tokens
}

// conf is that of every gateway.
func conf(listen, admin, store string, engines []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nadmin: { listen: %q }\nlog: { level: warn }\nreplicas: 2\nstore: %s\nkeys: [ { name: k, key: %s } ]\nbackends:\n", listen, admin, store, secret)
	var targets []string
	for i, at := range engines {
		fmt.Fprintf(&b, "  - { name: e%d, url: \"http://%s/v1\", kind: vllm }\n", i, at)
		targets = append(targets, fmt.Sprintf("{ backend: e%d, model: llama-3.1-70b }", i))
	}
	fmt.Fprintf(&b, "routes: [ { model: chat, slo: { min_tps: %d }, targets: [ %s ] } ]\n", floor, strings.Join(targets, ", "))
	return b.String()
}

// settled waits until every gateway tells of all replicas just what clients were given:
// each answer and each token once. What is on its way to the store is told twice for as
// long as the answer of the store takes.
func settled(t *testing.T, s *seen, gateways []*proctest.Process) {
	t.Helper()
	answers, last := int64(s.kept+s.missed), ""
	deadline := time.Now().Add(time.Minute)
	for _, p := range gateways {
		for {
			// Hours of three clocks.
			from, to := time.Now().Add(-6*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(6*time.Hour).UTC().Format(time.RFC3339)
			u := proctest.JSON[api.Usage](t, p.Ready["admin"]+"/api/v1/usage?from="+from+"&to="+to)
			last = fmt.Sprintf("%d answers and %d tokens (%s)", u.Total.Requests, u.Total.OutputTokens, u.Replica)
			if u.Total.Requests == answers && u.Total.OutputTokens == int64(s.tokens) && u.Replica == "all" {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("counted: %s of %d and %d", last, answers, s.tokens)
				for i, p := range gateways {
					log := p.Log()
					t.Logf("gateway %d: %s\n%s", i, proctest.Get(t, p.Ready["admin"]+"/api/v1/usage?from="+from+"&to="+to), log[max(0, len(log)-3000):])
				}
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	}
	t.Logf("each gateway counts %s: as clients do", last)
}

// Two gateways, a Redis and two engines on hosts of their own, with wires that are late
// and lossy, clocks two hours apart, and a Redis that is cut off for a third of the time:
// floors are kept as on one host, and nothing is counted twice.
func TestHostsApart(t *testing.T) {
	if !*hostsFlag {
		t.Skip("make hosts runs it")
	}
	var together float64
	for _, c := range []struct {
		name   string
		delay  time.Duration
		loss   float64
		clocks [2]int // seconds
		cut    bool
	}{
		{name: "together"},
		{name: "30 ms and 1 % loss", delay: latency, loss: loss},
		{name: "clocks an hour ahead and behind", clocks: [2]int{hour, -hour}},
		{name: "the store is cut off for a third", cut: true},
		{name: "all of it", delay: latency, loss: loss, clocks: [2]int{hour, -hour}, cut: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newNetwork(t, 5)
			store, engines, gateways := w.hosts[1], w.hosts[2:4], w.hosts[4:6]
			redistest.Run(t, redistest.Options{Program: "redis-server", Within: store.command("env")}, "--port", "6379", "--bind", store.address, "--protected-mode", "no")
			var at, urls []string
			for i, h := range engines {
				run(t, h, "", "sim", "--listen", h.at("8000"), "--preset", preset, "--speed", "0.4", "--seed", fmt.Sprint(i+1), "--max-num-seqs", "256")
				at = append(at, h.at("8000"))
			}
			w.set(c.delay, c.loss)
			var fleet []*proctest.Process
			for i, h := range gateways {
				clock := ""
				if c.clocks[i] != 0 {
					clock = fmt.Sprint(c.clocks[i])
				}
				file := proctest.Write(t, conf(h.at("8080"), h.at("9090"), "\"redis://"+store.at("6379")+"/0\"", at))
				p := run(t, h, clock, "serve", "-c", file)
				fleet, urls = append(fleet, p), append(urls, p.Ready["data"])
			}
			ctx, cancel := context.WithTimeout(t.Context(), *length)
			defer cancel()
			if c.cut {
				cutOff := time.AfterFunc(*length/3, func() { w.cut(store) })
				back := time.AfterFunc(2**length/3, func() { w.cut() })
				defer cutOff.Stop()
				defer back.Stop()
			}
			s := play(ctx, urls)
			w.mu.RLock()
			t.Logf("%d kept, %d missed (%.2f %% kept), %d shed; %d packets carried, %d lost", s.kept, s.missed, 100*s.share(), s.shed, w.carried, w.lost)
			w.mu.RUnlock()
			if len(s.bad) > 0 {
				t.Errorf("%d streams: %s", len(s.bad), strings.Join(s.bad[:min(5, len(s.bad))], "; "))
			}
			settled(t, s, fleet)
			if s.shed == 0 {
				t.Error("nobody was refused: this has shown nothing")
			}
			if c.name == "together" {
				together = s.share()
			} else if s.share() < together-0.01 {
				t.Errorf("%.2f %% kept their floor, together %.2f %%", 100*s.share(), 100*together)
			}
		})
	}
}

// run runs the program on a host, with a clock that is so many seconds ahead.
func run(t *testing.T, h *host, clock string, args ...string) *proctest.Process {
	t.Helper()
	file, env := proctest.Binary(t), []string(nil)
	if clock != "" {
		if file = *program; file == "" {
			file = clockProgram(t)
		}
		env = []string{"PACER_TEST_CLOCK=" + clock}
	}
	command := h.command(file)
	return proctest.Run(t, proctest.Options{Program: command[0], Env: env}, append(command[1:], args...)...)
}

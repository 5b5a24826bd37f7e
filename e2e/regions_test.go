package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// kept are the kinds of what a Redis holds: the parts of its keys behind the tag.
func kept(t *testing.T, redis *redistest.Server) []string {
	t.Helper()
	var kinds []string
	for _, key := range redis.Do("KEYS", "*").([]any) {
		_, kind, _ := strings.Cut(key.(string), "{")
		tag, kind, _ := strings.Cut(kind, "}")
		kind, _, _ = strings.Cut(strings.TrimPrefix(kind, ":"), ":")
		if slices.Contains([]string{"alive", "load", "usage", "keys"}, tag) {
			kind = tag
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Two regions have a Redis each, and one that is global and 200 ms away. Curves and load stay in the region;
// a budget is one for both, also when the global Redis loses all it had; a key that one
// region hands out is taken by the other.
func TestABudgetOverTwoRegions(t *testing.T) {
	if racetest.On {
		t.Skip("half a minute of real processes: make numbers runs it")
	}
	t.Parallel()
	const (
		secret         = "sk-the-mobile-app"
		limit          = 20.0 // USD
		clients        = 8
		tokens         = 10
		price          = 1.0 / 1e3 // USD per token
		running        = price * clients * tokens
		regions, other = 2, "sk-of-the-file"
	)
	global, ocean := redistest.Start(t), &wire{}
	ocean.delay.Store(int64(200 * time.Millisecond))
	far := redisThrough(t, global, ocean)
	var stores [regions]*redistest.Server
	var gateways [regions]*proctest.Process
	for i := range regions {
		stores[i] = redistest.Start(t)
		near, _ := strings.CutPrefix(strings.TrimSuffix(redisURL(t, stores[i]), "/0"), "redis://")
		engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "20")
		gateways[i] = proctest.Start(t, nil, "serve", "-c", proctest.Write(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0, token: root-token }
store: { addrs: [ "%s" ], global: "%s" }
backends: [ { name: a, url: %s/v1, price: { output: 1000 } } ]
routes: [ { model: chat, targets: [ { backend: a, model: %s } ] } ]
keys: [ { name: mobile, key: %s, team: apps, budget: { usd: %v } }, { name: of-file, key: %s } ]
`, near, far, engine.Ready["url"], engine.Ready["model"], secret, limit, other)))
	}
	for _, g := range gateways { // on a busy machine Redis may not have been asked in time
		proctest.Until(t, "the stores are there", func() bool { return metrics(t, g)["pacer_store_up"] == 1 })
	}
	var b buyer
	issued := keysCommand(t, gateways[0], "create", "tablet", "--routes", "chat")
	proctest.Until(t, "the other region takes the key", func() bool {
		status, _ := b.buy(gateways[1].Ready["data"], issued, tokens)
		return status == http.StatusOK
	})
	b.spent = 0

	var users sync.WaitGroup
	for user := range clients {
		users.Go(func() {
			for refusals := 0; refusals < 30; {
				switch status, code := b.buy(gateways[user%regions].Ready["data"], secret, tokens); {
				case status == http.StatusOK:
					refusals = 0
				case code == "insufficient_quota":
					refusals++
					<-time.After(10 * time.Millisecond) // a client that is refused does not spin
				case status == http.StatusTooManyRequests:
					<-time.After(50 * time.Millisecond) // sooner than it is told
				}
			}
		})
	}
	proctest.Until(t, "half is spent", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.spent >= limit/2
	})
	global.Restart() // empty
	users.Wait()

	var known [regions]float64
	proctest.Until(t, "the regions agree", func() bool {
		for i, g := range gateways {
			known[i] = usageOf(t, g, "").Budgets[0].SpentUSD
		}
		return known[0] == known[1] && metrics(t, gateways[0])["pacer_store_up"] == 1 && metrics(t, gateways[1])["pacer_store_up"] == 1
	})
	t.Logf("served for %.2f USD of %.0f, known %.2f", b.spent, limit, known[0])
	if off := known[0]/b.spent - 1; off > 1e-6 || off < -1e-6 {
		t.Errorf("the regions know of %.4f USD, clients were served for %.4f", known[0], b.spent)
	}
	if over := known[0] - limit; over > running+1e-6 || over < 0 {
		t.Errorf("%.2f USD of %.0f are spent; want all, and no more than the %.2f beyond it that were running", known[0], limit, running)
	}
	for i, want := range map[*redistest.Server][]string{
		global: {"alive", "budget", "keys", "usage"}, stores[0]: {"load"}, stores[1]: {"load"},
	} {
		have := kept(t, i)
		t.Logf("kept: %v", have)
		for _, kind := range want {
			if !slices.Contains(have, kind) {
				t.Errorf("a store has %v, and no %s", have, kind)
			}
		}
		for _, kind := range []string{"budget", "keys", "usage"} {
			if i != global && slices.Contains(have, kind) {
				t.Errorf("the store of a region has %s", kind)
			}
		}
	}
	if n := global.Do("HLEN", "pacer:{alive}").(int64); n != regions {
		t.Errorf("%d gateways are alive in the global store, want %d", n, regions)
	}
}

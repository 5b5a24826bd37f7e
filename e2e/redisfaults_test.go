package e2e

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// long makes phases long enough for a 99th percentile, holds bounds of time
// that a busy machine cannot keep, and lets one case run after the other.
var long = flag.Bool("long", false, "long phases, one case at a time")

// redisFault is a way in which a Redis fails.
type redisFault struct {
	name      string
	args      []string // of the server
	fail      func(*faultyRedis)
	mend      func(*faultyRedis)
	forgetful bool // comes back empty
}

// faultyRedis is what a fault acts on.
type faultyRedis struct {
	*redistest.Server
	wire wire
}

var redisFaults = []redisFault{
	{
		name: "killed, back empty", forgetful: true,
		fail: func(r *faultyRedis) { r.Kill() },
		mend: func(r *faultyRedis) { r.Restart() },
	},
	{
		name: "killed, back with its data",
		args: []string{"--appendonly", "yes", "--appendfsync", "always"},
		fail: func(r *faultyRedis) { r.Kill() },
		mend: func(r *faultyRedis) { r.Restart() },
	},
	{
		name: "frozen",
		fail: func(r *faultyRedis) { r.Freeze() },
		mend: func(r *faultyRedis) { r.Thaw() },
	},
	{
		name: "slow by 2 s",
		fail: func(r *faultyRedis) { r.wire.delay.Store(int64(2 * time.Second)) },
		mend: func(r *faultyRedis) { r.wire.delay.Store(0) },
	},
	{
		name: "answers lost",
		fail: func(r *faultyRedis) { r.wire.armed.Store(true) },
		mend: func(r *faultyRedis) { r.wire.armed.Store(false); r.wire.deaf.Store(false) },
	},
	{
		name: "full",
		args: []string{"--maxmemory-policy", "noeviction"},
		fail: func(r *faultyRedis) { r.Do("CONFIG", "SET", "maxmemory", "1") },
		mend: func(r *faultyRedis) { r.Do("CONFIG", "SET", "maxmemory", "0") },
	},
	{
		name: "password changed",
		fail: func(r *faultyRedis) {
			r.Do("ACL", "SETUSER", "pacer", "resetpass", ">"+otherPassword)
			r.Do("CLIENT", "KILL", "USER", "pacer")
		},
		mend: func(r *faultyRedis) { r.Do("ACL", "SETUSER", "pacer", "resetpass", ">"+faultPassword) },
	},
}

const (
	faultUsers  = 3
	faultTokens = 20
	faultKey    = "sk-fault"

	faultPassword = "open-sesame"
	otherPassword = "open-barley"
)

// phase is what clients saw for a while.
type phase struct {
	answers int
	slowest time.Duration // a whole stream
	own     float64       // time of the gateway per request, in seconds: p99 of long phases, else the median
}

// Redis fails in every way it can while streams run. They run on as before,
// what they teach arrives once when it is back, and an outage is said once.
func TestRedisFaults(t *testing.T) {
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "3", "--max-num-seqs", "64")
	// All at once where t.Parallel would run as many as there are cores: what
	// they do is wait.
	var cases sync.WaitGroup
	for _, f := range redisFaults {
		cases.Go(func() { t.Run(f.name, func(t *testing.T) { f.run(t, engine.Ready["url"]) }) })
		if *long {
			cases.Wait()
		}
	}
	cases.Wait()
}

func (f redisFault) run(t *testing.T, engine string) {
	redis := &faultyRedis{Server: redistest.Start(t, append([]string{"--user", "pacer", "on", ">" + faultPassword, "~pacer:*", "+@all"}, f.args...)...)}
	host := strings.TrimPrefix(strings.TrimSuffix(redisThrough(t, redis.Server, &redis.wire), "/0"), "redis://")
	gateway := proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine, fmt.Sprintf(`
store: { addrs: [ %q ], username: pacer, password: %s }
keys: [ { name: mobile, key: %s, limits: { requests_per_minute: 1000000, tokens_per_minute: 1000000000, concurrency: 50 } } ]
`, host, faultPassword, faultKey)))
	calmFor, faultFor := 2*time.Second, 3*time.Second
	if *long {
		calmFor, faultFor = 15*time.Second, 30*time.Second
	}
	calm := runPhase(t, gateway, calmFor, nil)
	proctest.Until(t, "the calm streams are in Redis", func() bool { return f.stored(redis) > 0 })
	// On a busy machine an exchange of the calm time may have come too late.
	proctest.Until(t, "pacer_store_up 1 before the fault", func() bool { return metrics(t, gateway)["pacer_store_up"] == 1 })
	said := len(warnings(gateway)) // that it was shared again may come after this
	f.fail(redis)
	faulty := runPhase(t, gateway, faultFor, func() {
		if resp, err := http.Get(gateway.Ready["data"] + "/readyz"); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("/readyz during the fault: %v, %v; want 200: it serves", resp, err)
		} else {
			resp.Body.Close()
		}
	})
	proctest.Until(t, "pacer_store_up 0 with a lag", func() bool {
		m := metrics(t, gateway)
		return m["pacer_store_up"] == 0 && m["pacer_store_lag_seconds"] > 0
	})
	lines := warnings(gateway)[said:]
	f.mend(redis)
	if n := outages(lines); n == 0 || len(lines) > 2*n+1 || *long && len(lines) != 1 {
		t.Errorf("the outage is said in %d lines, want 1:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	proctest.Until(t, "pacer_store_up 1", func() bool { return metrics(t, gateway)["pacer_store_up"] == 1 })
	after := runPhase(t, gateway, calmFor/2, nil)
	f.check(t, redis, calm.answers+faulty.answers+after.answers)
	lines = warnings(gateway)[said:]
	if n := outages(lines); len(lines) > 2*n+1 {
		t.Errorf("%d outages and returns are said in %d lines, want 2 for each, and the end of one before:\n%s", n, len(lines), strings.Join(lines, "\n"))
	}
	if text := gateway.Log(); strings.Contains(text, faultPassword) || strings.Contains(text, otherPassword) {
		t.Error("a password is in the log")
	}

	t.Logf("own time of most: calm %.2f ms, faulty %.2f ms; slowest stream: calm %v, faulty %v; %d and %d answers",
		1e3*calm.own, 1e3*faulty.own, calm.slowest.Round(time.Millisecond), faulty.slowest.Round(time.Millisecond), calm.answers, faulty.answers)
	// Bounds for requests that wait: an exchange with Redis is given up after
	// 250 to 400 ms, which would be the own time of requests that wait for one.
	most, slowest := max(3*calm.own, 0.1), calm.slowest+20*time.Second
	if *long {
		most, slowest = calm.own+0.001, calm.slowest+3*time.Second
	}
	if faulty.own > most {
		t.Errorf("own time %.2f ms while Redis fails, %.2f before", 1e3*faulty.own, 1e3*calm.own)
	}
	if faulty.slowest > slowest {
		t.Errorf("the slowest stream took %v while Redis failed, %v before", faulty.slowest, calm.slowest)
	}
}

// outages is how many of those lines begin one. An exchange that a busy machine
// delays is one more.
func outages(lines []string) int {
	return strings.Count(strings.Join(lines, "\n"), `"alone: `)
}

// stored is how many answers Redis knows of.
func (f redisFault) stored(r *faultyRedis) float64 {
	text, _ := r.Do("HGET", "pacer:{a}:sums:llama-3.1-70b", "t.answers").(string)
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// check waits until Redis has all answers, and sees that it has none twice.
// They fade by half in 600 s of occupied time, so a little is missing.
func (f redisFault) check(t *testing.T, r *faultyRedis, answers int) {
	t.Helper()
	kept := func() float64 {
		text, _ := r.Do("HGET", "pacer:{a}:sums:llama-3.1-70b", "t.t").(string)
		occupied, _ := strconv.ParseFloat(text, 64)
		return math.Exp2(-1.1 * occupied / 600)
	}
	var got float64
	proctest.Until(t, "all answers in Redis", func() bool {
		got = f.stored(r)
		return got >= float64(answers)*kept()-0.01
	})
	t.Logf("%d answers, %.2f in Redis, of which at least %.2f must be", answers, got, float64(answers)*kept())
	if got > float64(answers)+0.01 {
		t.Errorf("Redis has %.2f answers of %d: some were added twice", got, answers)
	}
	if seeded := r.Do("HEXISTS", "pacer:{a}:sums:llama-3.1-70b", "@seed") == int64(1); seeded != f.forgetful {
		t.Errorf("sums put back: %v, want %v", seeded, f.forgetful)
	}
}

// runPhase streams for a while and calls look twice a second.
func runPhase(t *testing.T, p *proctest.Process, d time.Duration, look func()) phase {
	t.Helper()
	before := overhead(t, p)
	c := client(p)
	c.Key = faultKey
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var ph phase
	var mu sync.Mutex
	var users sync.WaitGroup
	for range faultUsers {
		users.Go(func() {
			for ctx.Err() == nil {
				r := c.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 10, MaxTokens: faultTokens})
				if r.Outcome != loadgen.Done || r.Tokens != faultTokens {
					t.Errorf("got %v with %d tokens (%v), want done with %d", r.Outcome, r.Tokens, r.Err, faultTokens)
					return
				}
				mu.Lock()
				ph.answers++
				ph.slowest = max(ph.slowest, r.TTFT+r.Decode)
				mu.Unlock()
			}
		})
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			if look != nil {
				look()
			}
		case <-ctx.Done():
		}
	}
	users.Wait()
	q := 0.5 // the slowest of a hundred are the machine's on a busy one
	if *long {
		q = 0.99
	}
	ph.own = quantile(before, overhead(t, p), q)
	return ph
}

// warnings are the lines of the log above info, and those of info that say
// that something is shared again.
func warnings(p *proctest.Process) []string {
	var lines []string
	for line := range strings.Lines(p.Log()) {
		if strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) ||
			strings.Contains(line, `"shared: `) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// metrics are the series of /metrics.
func metrics(t *testing.T, p *proctest.Process) map[string]float64 {
	t.Helper()
	series := map[string]float64{}
	for line := range strings.Lines(string(proctest.Get(t, p.Ready["admin"]+"/metrics"))) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			series[name] = v
		}
	}
	return series
}

// overhead is the histogram of the gateway's own time: upper edge in seconds →
// requests at most that slow.
func overhead(t *testing.T, p *proctest.Process) map[float64]float64 {
	t.Helper()
	buckets := map[float64]float64{}
	for name, v := range metrics(t, p) {
		if rest, ok := strings.CutPrefix(name, `pacer_overhead_seconds_bucket{le="`); ok {
			edge, err := strconv.ParseFloat(strings.TrimSuffix(rest, `"}`), 64)
			if err != nil {
				t.Fatal(name)
			}
			buckets[edge] = v
		}
	}
	return buckets
}

// quantile is read off the requests between two histograms, interpolated
// within a bucket; beyond the last edge it is twice that.
func quantile(before, after map[float64]float64, q float64) float64 {
	var edges []float64
	for edge := range after {
		edges = append(edges, edge)
	}
	slices.Sort(edges)
	count := func(edge float64) float64 { return after[edge] - before[edge] }
	want := q * count(math.Inf(1))
	low := 0.0
	for _, edge := range edges {
		if count(edge) >= want {
			if math.IsInf(edge, 1) {
				return 2 * low
			}
			below := 0.0
			if low > 0 {
				below = count(low)
			}
			return low + (edge-low)*(want-below)/max(count(edge)-below, 1)
		}
		low = edge
	}
	return low
}

package attack

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// poisoned returns an attack by somebody who may write to the Redis of a gateway
// whose routes have a floor. run is told where.
func poisoned(name string, run func(*victim, *redistest.Server)) attack {
	var redis *redistest.Server
	return attack{
		name: name, by: writer, waits: true,
		site: site{
			other: "requests_per_minute: 120",
			log:   "level: warn",
			fleet: func(t *testing.T, engine string) string {
				free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
				_, port, _ := net.SplitHostPort(free.Addr().String())
				free.Close()
				redis = redistest.Start(t, "--bind", "127.0.0.1", "--port", port)
				return fmt.Sprintf(`store: %q
backends: [ { name: a, url: "%s/v1", kind: vllm } ]
routes:
  - { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ], slo: { min_tps: 5 } }
  - { model: other, targets: [ { backend: a, model: llama-3.1-70b } ] }
`, "redis://127.0.0.1:"+port+"/0", engine)
			},
		},
		run: func(v *victim) { run(v, redis) },
	}
}

// rounds is how often somebody writes, ten times a second.
func rounds() int {
	if *full {
		return 300
	}
	return 30
}

// tpsOfEight is what the gateway says that each of eight users gets.
func tpsOfEight(v *victim) float64 {
	answer := proctest.JSON[api.Profiles](v, v.gateway.Ready["admin"]+"/api/v1/profiles?n=8")
	if len(answer.Targets) != 1 || len(answer.Targets[0].Points) != 1 {
		v.Fatalf("profiles: %+v", answer)
	}
	if tps := answer.Targets[0].Points[0].TPS; tps.Known() {
		return float64(tps)
	}
	return 0
}

// Sums that nobody measured, written over those of the gateway again and again:
// its curve stays that of the engine, users with a floor are served by it, and
// one line says what was found.
func poisonedSums(v *victim, redis *redistest.Server) {
	const key = "pacer:{a}:sums:llama-3.1-70b"
	proctest.Until(v, "a curve is learned and shared", func() bool {
		return tpsOfEight(v) > 0 && redis.Do("HEXISTS", key, "b7.y") == int64(1)
	})
	want := tpsOfEight(v)
	poisons := [][]any{
		{"b7.y", "-1e6"},
		{"b7.y", "1e12"},
		{"b7.s", "1e9"},
		{"b7.t", "nan"},
		{"f.b0", "-5"},
		{"f.a00", "inf"},
		{"f.k", "many"},
		{"f.a02", "1e20"},
		{"s3.b0", "1e25"},
		{"t.counted", "-1"},
		{"ft.y", "1e15"},
		{"@updated", "x"},
		{"@slow", "x"},
		{"d.0", "-9"},
		{"b7.s", "0", "b7.t", "0"},
	}
	writes := time.Tick(100 * time.Millisecond)
	for i := range rounds() {
		redis.Do(append([]any{"HSET", key}, poisons[i%len(poisons)]...)...)
		<-writes
		if tps := tpsOfEight(v); tps < want/2 || tps > 2*want {
			v.Errorf("round %d: the curve says %v tokens/s for eight users, %v before", i, tps, want)
		}
	}
	redis.Do("HSET", key, "b7.y", "-1e6")
	proctest.Until(v, "the last poison is dropped", func() bool {
		text, _ := redis.Do("HGETALL", key).(map[any]any)["b7.y"].(string)
		tokens, _ := strconv.ParseFloat(text, 64)
		return tokens > 0
	})
	if n := strings.Count(v.gateway.Log(), "no gateway can have measured"); n != 1 {
		v.Errorf("the log says it %d times, want once:\n%.2000s", n, v.gateway.Log())
	}
}

// A limit key that says that everything is used up for a century, and worse: its
// tenant is served on, and one line says what was found.
func poisonedLimits(v *victim, redis *redistest.Server) {
	const key = "pacer:{other}:limits:1:120-0"
	if got := raw(v, v.addr, post("other", "", hello)); status(got) != 200 {
		v.Fatalf("before: %.200q", got)
	}
	proctest.Until(v, "the limits are shared", func() bool { return redis.Do("EXISTS", key) == int64(1) })
	future := strconv.FormatInt(time.Now().Add(100*365*24*time.Hour).UnixMicro(), 10)
	writes := time.Tick(100 * time.Millisecond)
	for i := range rounds() {
		redis.Do("DEL", key)
		if i%6 == 5 {
			redis.Do("SET", key, "x")
		} else {
			redis.Do("HSET", key, "requests", []string{future, "1e300", "nan", "-5", "many"}[i%6])
		}
		<-writes
		if i%3 != 0 {
			continue // within what the key may have
		}
		if got := raw(v, v.addr, post("other", "", hello)); status(got) != 200 {
			v.Errorf("round %d: %.300q, want an answer", i, got)
		}
	}
	if n := strings.Count(v.gateway.Log(), "limits of a key in Redis that no gateway"); n != 1 {
		v.Errorf("the log says it %d times, want once:\n%.2000s", n, v.gateway.Log())
	}
}

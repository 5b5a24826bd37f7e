package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

var scaleFlag = flag.String("scale", "", "file for the table of what gateways and backends cost a Redis")

// redisCost is what a Redis did in a second, on average.
type redisCost struct {
	replicas, backends    int
	commands, in, out, us float64 // commands, bytes in, bytes out, microseconds of its CPU; each per second
	byName                map[string]float64
}

// What a Redis is asked, counted by itself, of real gateways with a stream on each
// backend at all times; and a plane through it. make scale.
func TestWhatARedisIsAsked(t *testing.T) {
	if *scaleFlag == "" {
		t.Skip("make scale")
	}
	var rows []redisCost
	for _, replicas := range []int{1, 2, 4, 6} {
		for _, backends := range []int{1, 8, 24} {
			t.Run(fmt.Sprint(replicas, " gateways, ", backends, " backends"), func(t *testing.T) {
				rows = append(rows, askedOf(t, replicas, backends))
			})
		}
	}
	var b strings.Builder
	b.WriteString("| gateways | backends | commands/s | KB/s in | KB/s out | CPU of Redis |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %d | %.0f | %.1f | %.1f | %.2f %% |\n", r.replicas, r.backends, r.commands, r.in/1e3, r.out/1e3, r.us/1e4)
	}
	b.WriteString("\n| per second | each gateway | each gateway × backend | each gateway² × backend | largest error | 100 gateways × 1,000 backends |\n|---|---|---|---|---|---|\n")
	for name, of := range map[string]func(redisCost) float64{
		"commands": func(r redisCost) float64 { return r.commands }, "KB in": func(r redisCost) float64 { return r.in / 1e3 },
		"KB out": func(r redisCost) float64 { return r.out / 1e3 }, "ms of its CPU": func(r redisCost) float64 { return r.us / 1e3 },
	} {
		c, worst := plane(rows, of)
		fmt.Fprintf(&b, "| %s | %.3g | %.3g | %.3g | %.0f %% | %.3g |\n", name, c[0], c[1], c[2], 100*worst, 100*c[0]+1e5*c[1]+1e7*c[2])
	}
	last := rows[len(rows)-1]
	b.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(last.byName)) {
		fmt.Fprintf(&b, "* %s: %.1f/s\n", name, last.byName[name])
	}
	t.Log("\n" + b.String())
	must.Do(t, os.WriteFile(*scaleFlag, []byte(b.String()), 0o644))
}

// plane fits y = a·replicas + b·replicas·backends + c·replicas²·backends by least
// squares of the relative error, none of them below 0, and returns the largest one.
func plane(rows []redisCost, y func(redisCost) float64) (best [3]float64, worst float64) {
	least := math.Inf(1)
	for mask := 1; mask < 8; mask++ {
		var cols []int
		for i := range 3 {
			if mask>>i&1 == 1 {
				cols = append(cols, i)
			}
		}
		a, rhs := mat.NewDense(len(rows), len(cols), nil), mat.NewVecDense(len(rows), nil)
		term := func(r redisCost, i int) float64 {
			n, m := float64(r.replicas), float64(r.backends)
			return [3]float64{n, n * m, n * n * m}[i]
		}
		for k, r := range rows {
			rhs.SetVec(k, 1)
			for j, i := range cols {
				a.Set(k, j, term(r, i)/y(r))
			}
		}
		var x mat.VecDense
		if x.SolveVec(a, rhs) != nil {
			continue
		}
		var c [3]float64
		negative := false
		for j, i := range cols {
			c[i] = x.AtVec(j)
			negative = negative || c[i] < 0
		}
		sum, most := 0.0, 0.0
		for _, r := range rows {
			e := (c[0]*term(r, 0)+c[1]*term(r, 1)+c[2]*term(r, 2))/y(r) - 1
			sum, most = sum+e*e, max(most, math.Abs(e))
		}
		if !negative && sum < least {
			least, best, worst = sum, c, most
		}
	}
	return best, worst
}

var commandCalls = regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+),usec=(\d+)`)

func askedOf(t *testing.T, replicas, backends int) redisCost {
	redis := redistest.Start(t)
	var conf strings.Builder
	fmt.Fprintf(&conf, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nlog: { level: error }\nreplicas: %d\nstore: \"%s\"\nbackends:\n", replicas, redisURL(t, redis))
	var targets []string
	for i := range backends {
		engine := httptest.NewServer(http.HandlerFunc(drip))
		t.Cleanup(engine.Close)
		fmt.Fprintf(&conf, "  - { name: engine-%d, url: \"%s/v1\" }\n", i, engine.URL)
		targets = append(targets, fmt.Sprintf("{ backend: engine-%d, model: m }", i))
	}
	conf.WriteString("routes:\n  - { model: chat, targets: [ " + strings.Join(targets, ", ") + " ] }\n")
	for i, target := range targets { // so that each engine is sure to be asked
		fmt.Fprintf(&conf, "  - { model: m%d, targets: [ %s ] }\n", i, target)
	}
	var fleet []*proctest.Process
	for range replicas {
		fleet = append(fleet, proctest.Gateway(t, conf.String()))
	}
	ctx, stop := context.WithCancel(t.Context())
	var streams sync.WaitGroup
	for _, p := range fleet {
		c := client(p)
		for i := range backends {
			streams.Go(func() {
				for ctx.Err() == nil {
					c.Stream(ctx, loadgen.Request{Model: fmt.Sprint("m", i), PromptTokens: 10, MaxTokens: 1000})
				}
			})
		}
	}
	<-time.After(4 * time.Second)
	before := counted(t, redis)
	const length = 6 * time.Second
	<-time.After(length)
	after := counted(t, redis)
	stop()
	streams.Wait()
	for _, p := range fleet {
		p.Stop(syscall.SIGTERM)
	}
	out := redisCost{replicas: replicas, backends: backends, byName: map[string]float64{}}
	for name, v := range after {
		each := (v - before[name]) / length.Seconds()
		switch kind, of, _ := strings.Cut(name, " "); kind {
		case "in":
			out.in = each
		case "out":
			out.out = each
		case "us":
			out.us += each
		case "calls":
			if of != "info" && each > 0.05 {
				out.byName[of] = each
				out.commands += each
			}
		}
	}
	return out
}

// counted is what the server has counted so far.
func counted(t *testing.T, s *redistest.Server) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, m := range commandCalls.FindAllStringSubmatch(fmt.Sprint(s.Do("info", "commandstats")), -1) {
		calls, _ := strconv.ParseFloat(m[2], 64)
		us, _ := strconv.ParseFloat(m[3], 64)
		out["calls "+m[1]], out["us "+m[1]] = calls, us
	}
	stats := fmt.Sprint(s.Do("info", "stats"))
	for name, field := range map[string]string{"in": "total_net_input_bytes:", "out": "total_net_output_bytes:"} {
		_, rest, _ := strings.Cut(stats, field)
		text, _, _ := strings.Cut(rest, "\r")
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s%q: %v", field, text, err)
		}
		out[name] = v
	}
	return out
}

// drip is an engine of few tokens: what passes through gateways is not what is
// measured.
func drip(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for ; n < 60; n++ {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n")
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n", n, n+10)
}

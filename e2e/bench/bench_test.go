package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
)

var (
	paired  = flag.Bool("paired", false, "measure at full length")
	rounds  = flag.Int("rounds", 5, "rounds of a paired run")
	length  = flag.Duration("length", 3*time.Second, "length of each leg of a paired run")
	only    = flag.String("only", "", "measure these loads alone, by a pattern that matches all of their names; many is measured when it is asked for")
	who     = flag.String("who", "", "measure the proxies alone whose names match this pattern; F is always there")
	against = flag.String("against", "", "another build of Pacer, measured beside this one")
	setting = flag.String("setting", "", "a line of configuration for that one")
	streams = flag.Int("streams", 9_700, "streams of the load many, which each take two of the descriptors that a proxy may have")
	shared  = flag.Int("shared", 10_000, "streams of the load h2-many, whose clients share connections")
	profile = flag.String("profiles", "", "folder that gets a profile of the CPU of each leg of Pacer")
	table   = flag.String("table", "", "file that the table is written to")
	report  = flag.String("json", "", "file that the figures of every leg are written to")
)

// loads are what is measured.
func loads(small bool) []load {
	if small {
		return []load{
			{name: "request", clients: 4},
			{name: "paced", clients: 10, chunks: 1 << 20, every: 50 * time.Millisecond},
			{name: "full", clients: 4, chunks: 100},
			{name: "held", clients: 10, chunks: 1 << 20, every: 200 * time.Millisecond, hold: true},
			{name: "tls-request", clients: 4, over: wiring{front: frontTLS}},
			{name: "h2-paced", clients: 10, chunks: 1 << 20, every: 50 * time.Millisecond, over: wiring{front: frontH2}},
			{name: "backtls-full", clients: 4, chunks: 100, over: wiring{back: true}},
		}
	}
	all := []load{
		{name: "request", clients: 64},
		{name: "paced", clients: 1000, chunks: 1 << 20, every: 50 * time.Millisecond},
		{name: "full", clients: 64, chunks: 500},
		{name: "held", clients: 4000, chunks: 1 << 20, every: 2 * time.Second, hold: true, slowly: true},
		{name: "many", clients: *streams, chunks: 1 << 20, every: time.Second, slowly: true, targets: 2}, // curves end at 8,192 streams
	}
	for prefix, over := range map[string]wiring{"tls-": {front: frontTLS}, "h2-": {front: frontH2}, "backtls-": {back: true}} {
		for _, l := range all[:3] {
			l.name, l.over = prefix+l.name, over
			all = append(all, l)
		}
	}
	all = append(all, load{name: "h2-many", clients: *shared, chunks: 1 << 20, every: time.Second, slowly: true, targets: 2, over: wiring{front: frontH2}})
	wanted := regexp.MustCompile("^(?:" + *only + ")$")
	return slices.DeleteFunc(all, func(l load) bool {
		return *only == "" && strings.HasSuffix(l.name, "many") || *only != "" && !wanted.MatchString(l.name) // too many for a run of all
	})
}

// units say what a load's figure is, by its name without what it goes over.
var units = map[string]string{
	"request": "µs of CPU for a request, 64 at once, not streamed",
	"paced":   "µs of CPU for a chunk, 1,000 streams of 20 tokens/s",
	"full":    "µs of CPU for a chunk, 64 streams at full speed",
	"many":    "µs of CPU for a chunk, many streams of 1 token/s",
	"held":    "KiB for a stream of 4,000 that hardly say anything",
}

// outcome is all that was measured of one load and one proxy.
type outcome struct {
	Load, Proxy string
	Rounds      []figures
	Ratios      []float64 // to F, of the same round
	Calls       float64   // system calls for each request or chunk; 0 = they were not counted
}

func TestPaired(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU is read from /proc, which is Linux's")
	}
	n, long := 1, 150*time.Millisecond
	if *paired {
		if racetest.On {
			t.Fatal("the race detector is no part of what is measured")
		}
		n, long = *rounds, *length
	}
	var outcomes []*outcome
	said := ""
	started := map[wiring][]*proxy{}
	for _, l := range loads(!*paired) {
		if l.hold {
			outcomes = append(outcomes, measureHeld(t, newPlace(t, l.over, l.tps()), l, n, long)...)
			continue
		}
		all := started[l.over]
		if l.tps() != usualTPS {
			at := newPlace(t, l.over, l.tps())
			at.fleet.targets = l.targets
			all = at.proxies(t)
		} else if all == nil {
			all = newPlace(t, l.over, usualTPS).proxies(t)
			teach(t, all, long)
			started[l.over] = all
		}
		of := measure(t, all, l, n, long)
		outcomes = append(outcomes, of...)
		if l.name == "paced" && *paired {
			said = learned(t, all, of, l.clients) // before another load teaches another speed
		}
	}
	text := render(outcomes) + said
	if *only == "" || *only == "cancel" {
		plain := newPlace(t, wiring{}, usualTPS)
		clients, each := 4, 1
		if *paired {
			clients, each = 40, *rounds
		}
		all := plain.proxies(t)
		teach(t, all, long)
		of := measureCancels(t, all, plain.backend, clients, each)
		outcomes = append(outcomes, of...)
		text += renderCancels(of)
	}
	t.Log("\n" + text)
	if *table != "" {
		if err := os.WriteFile(*table, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	if *report != "" {
		b, err := json.MarshalIndent(outcomes, "", " ")
		if err == nil {
			err = os.WriteFile(*report, b, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// teach sends streams that end, by which Pacer learns what a chunk holds, at the speed
// that the paced ones have.
func teach(t *testing.T, all []*proxy, long time.Duration) {
	t.Helper()
	for _, p := range all {
		leg(t, p, &load{name: "taught", clients: 8, chunks: 20, every: 50 * time.Millisecond, over: p.over}, long)
	}
}

// measureHeld is measure with fresh proxies in each round: what a process has grown to
// it does not give back at once.
func measureHeld(t *testing.T, at *place, l load, n int, long time.Duration) (of []*outcome) {
	t.Helper()
	for round := range n {
		t.Run(fmt.Sprintf("%s-%d", l.name, round), func(t *testing.T) {
			one := measure(t, at.proxies(t), l, 1, long)
			if of == nil {
				of = one
				return
			}
			for i := range of {
				of[i].Rounds, of[i].Ratios = append(of[i].Rounds, one[i].Rounds...), append(of[i].Ratios, one[i].Ratios...)
			}
		})
	}
	return of
}

// measure puts l on all proxies in turns, n times, from another one each time.
func measure(t *testing.T, all []*proxy, l load, n int, long time.Duration) []*outcome {
	of := make([]*outcome, len(all))
	for i, p := range all {
		of[i] = &outcome{Load: l.name, Proxy: p.name}
	}
	for round := range n {
		now := make([]figures, len(all))
		control := math.NaN()
		for k := range all {
			i := (k + round) % len(all)
			if l.hold && len(all[i].pids) == 0 {
				continue
			}
			now[i] = leg(t, all[i], &l, long)
			if all[i].name == "F" {
				control = now[i].Each
			}
			if l.chunks == 0 && now[i].Requests == 0 || l.chunks > 0 && now[i].Chunks == 0 && !l.hold {
				t.Errorf("%s, %s: nothing came", all[i].name, l.name)
			}
		}
		for i := range all {
			of[i].Rounds = append(of[i].Rounds, now[i])
			of[i].Ratios = append(of[i].Ratios, now[i].Each/control)
		}
	}
	if l.calls = *paired && !l.hold && !l.slowly && countsCalls(); l.calls {
		for i, p := range all {
			if len(p.pids) > 0 {
				of[i].Calls = leg(t, p, &l, long).Calls
			}
		}
	}
	return of
}

// render is the table: medians, and of the ratios also the least and the most.
func render(all []*outcome) string {
	var b strings.Builder
	load := ""
	for _, o := range all {
		if o.Load != load {
			load = o.Load
			fmt.Fprintf(&b, "\n| %s: %s | median | of F | least–most | to the client p50, p99, ms | system calls |\n|---|---|---|---|---|---|\n", load, units[load[strings.LastIndexByte(load, '-')+1:]])
		}
		each := median(o.Rounds, func(f figures) float64 { return f.Each })
		ratios := slices.Sorted(slices.Values(o.Ratios))
		late := ""
		if p50 := median(o.Rounds, func(f figures) float64 { return f.P50 }); p50 > 0 {
			late = fmt.Sprintf("%.2f, %.1f", p50, median(o.Rounds, func(f figures) float64 { return f.P99 }))
		}
		if o.Proxy == "none" {
			if late != "" {
				fmt.Fprintf(&b, "| no proxy | | | | %s | |\n", late)
			}
			continue
		}
		made := ""
		if o.Calls > 0 {
			made = fmt.Sprintf("%.2f", o.Calls)
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.2f | %.2f–%.2f | %s | %s |\n", o.Proxy, each, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], late, made)
	}
	return b.String()
}

func median(of []figures, value func(figures) float64) float64 {
	var all []float64
	for _, f := range of {
		all = append(all, value(f))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// learned says how far the curve that Pacer learned under n streams lies from the
// speed that they had.
func learned(t *testing.T, all []*proxy, of []*outcome, n int) string {
	t.Helper()
	var b strings.Builder
	for i, p := range all {
		if p.admin == "" {
			continue
		}
		truth := median(of[i].Rounds, func(f figures) float64 { return float64(f.Chunks) / float64(n) / length.Seconds() })
		var answer api.Profiles
		must.Do(t, json.Unmarshal(p.ask(t, fmt.Sprintf("/api/v1/profiles?n=%d", n)), &answer))
		if len(answer.Targets) != 1 || len(answer.Targets[0].Points) != 1 || !answer.Targets[0].Points[0].TPS.Known() {
			t.Errorf("%s has learned nothing: %+v", p.name, answer)
			continue
		}
		at := answer.Targets[0].Points[0]
		fmt.Fprintf(&b, "\n%s's curve at n = %d says %.2f tokens/s (%s, after %.0f tokens), the streams had %.2f: %+.1f %%.\n", p.name, n, at.TPS, *at.Source, answer.Targets[0].TokensSeen, truth, 100*(float64(at.TPS)/truth-1))
	}
	return b.String()
}

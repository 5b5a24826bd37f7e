package demo

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/profiles"
)

// Report is what the demo says at its end.
type Report struct {
	Policy   string          `json:"policy"`
	Load     string          `json:"load"`
	Seconds  float64         `json:"seconds"`
	FloorTPS float64         `json:"floor_tps"`
	Routes   []RouteReport   `json:"routes"`
	Backends []BackendReport `json:"backends"`

	// Late is the share of timers that went off late: from a twentieth on the
	// machine was too busy to play engines.
	Late float64 `json:"late_timers"`
}

// RouteReport is what the clients of one route saw.
type RouteReport struct {
	Route      string  `json:"route"`
	Offered    int     `json:"offered"`
	Met        int     `json:"met"`
	Missed     int     `json:"missed"`
	Unmeasured int     `json:"unmeasured"`
	Shed       int     `json:"shed"`
	Failed     int     `json:"failed"`
	Kept       float64 `json:"kept"` // met of all that were offered and could be judged, shed and failed among the others
	TPSP10     float64 `json:"tps_p10"`
	TPSP50     float64 `json:"tps_p50"`
	TTFTP50    float64 `json:"ttft_s_p50"`
	TTFTP99    float64 `json:"ttft_s_p99"`
}

// BackendReport compares one learned curve with the true one, at the levels
// that hold at least 1 % of the exposure.
type BackendReport struct {
	Backend string       `json:"backend"`
	Preset  string       `json:"preset"`
	Tokens  float64      `json:"tokens"`
	Levels  []LevelError `json:"levels"`

	// Errors of the learned curve against what the engine does at the same n
	// and the same prompt load, and against what it recorded in this run, in
	// which every level saw its own few prompts.
	MedianError       float64 `json:"median_error"`
	P90Error          float64 `json:"p90_error"`
	RecordMedianError float64 `json:"record_median_error"`
	RecordP90Error    float64 `json:"record_p90_error"`

	// AtFloor is how many streams keep the floor by the learned curve; a lower
	// bound where no more than half as many were ever seen.
	AtFloor             int  `json:"streams_at_floor"`
	AtFloorIsLowerBound bool `json:"streams_at_floor_is_lower_bound"`
}

// LevelError is one level of n, in tokens/s for one stream.
type LevelError struct {
	N        int     `json:"n"`
	P        float64 `json:"p"` // prompt tokens per decode step that Learned and True hold for
	Learned  float64 `json:"learned_tps"`
	True     float64 `json:"true_tps"`
	Recorded float64 `json:"recorded_tps"`
}

// report says how the demo went; stopped, that it was ended before its time.
func (d *demo) report(stopped bool) Report {
	r := Report{
		Policy: d.options.Policy, Load: d.load.describe(time.Since(d.started)),
		Seconds: time.Since(d.started).Seconds(), FloorTPS: floorTPS, Late: d.lateness.share(),
	}
	if d.options.Replay == "" {
		r.Load = "ramp to 50, spike to 200, one backend killed and back"
	}
	if stopped {
		r.Load += " (stopped before its end)"
	}
	for _, name := range []string{"chat", "nightly"} {
		if route := d.tally.report(name); route.Offered > 0 {
			r.Routes = append(r.Routes, route)
		}
	}
	for _, s := range d.fleet {
		curve := d.gateway.Book.Curve(profiles.Target{Backend: s.name, Model: s.preset.Model})
		r.Backends = append(r.Backends, compare(s, curve))
	}
	return r
}

func (t *tally) report(route string) RouteReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	rt := t.routes[route]
	r := RouteReport{
		Route: route, Offered: rt.offered, Met: rt.met, Missed: rt.missed, Unmeasured: rt.unmeasured, Shed: rt.shed, Failed: rt.failed,
		TPSP10: quantile(rt.tps, 0.10), TPSP50: quantile(rt.tps, 0.50),
		TTFTP50: quantile(rt.ttft, 0.50), TTFTP99: quantile(rt.ttft, 0.99),
	}
	if n := rt.offered - rt.unmeasured; n > 0 {
		r.Kept = float64(rt.met) / float64(n)
	}
	return r
}

// compare sets the learned curve against what the engine recorded itself.
func compare(s *simulated, curve *profiles.Curve) BackendReport {
	truth := s.engine.Truth()
	r := BackendReport{Backend: s.name, Preset: s.preset.Name, AtFloor: curve.MaxConcurrency(floorTPS)}
	_, visited := curve.Support()
	r.AtFloorIsLowerBound = r.AtFloor >= 2*visited
	var seconds float64
	for _, p := range truth.Points {
		seconds += p.StreamSeconds
		r.Tokens += p.Tokens
	}
	var truthErrors, recordErrors []float64
	model := arena.Published(s.preset)
	for _, p := range truth.Points {
		if p.StreamSeconds < 0.01*seconds || p.TPS == 0 {
			continue
		}
		at := curve.At(p.N)
		l := LevelError{N: p.N, P: at.P, Learned: at.TPS, Recorded: p.TPS, True: 1 / model.StepSeconds(p.N, at.P)}
		if math.IsNaN(l.Learned) {
			continue // nothing learned yet
		}
		r.Levels = append(r.Levels, l)
		truthErrors = append(truthErrors, math.Abs(l.Learned/l.True-1))
		recordErrors = append(recordErrors, math.Abs(l.Learned/l.Recorded-1))
	}
	r.MedianError, r.P90Error = quantile(truthErrors, 0.5), quantile(truthErrors, 0.9)
	r.RecordMedianError, r.RecordP90Error = quantile(recordErrors, 0.5), quantile(recordErrors, 0.9)
	return r
}

// print writes the report for a terminal of width columns.
func (r Report) print(out io.Writer, width int) {
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "\n%s\n", strings.Join(report.Wrap(fmt.Sprintf(format, args...), width), "\n"))
	}
	say("after %.0f s, policy %s, %s; what the clients saw:", r.Seconds, r.Policy, r.Load)
	t := report.Table{
		Head: []string{"route", "offered", "met", "missed", "unmeasured", "shed", "failed", "kept", "TPS p10", "TPS p50", "TTFT p50", "TTFT p99"},
		Left: 1, Drop: []string{"unmeasured", "TTFT p50", "TPS p50"},
	}
	for _, x := range r.Routes {
		kept := fmt.Sprintf("%.1f %%", 100*x.Kept)
		if x.Route != "chat" {
			kept = "no floor"
		}
		t.Add(x.Route, fmt.Sprint(x.Offered), fmt.Sprint(x.Met), fmt.Sprint(x.Missed), fmt.Sprint(x.Unmeasured), fmt.Sprint(x.Shed), fmt.Sprint(x.Failed),
			kept, fmt.Sprintf("%.1f", x.TPSP10), fmt.Sprintf("%.1f", x.TPSP50), fmt.Sprintf("%.2f s", x.TTFTP50), fmt.Sprintf("%.2f s", x.TTFTP99))
	}
	fmt.Fprintln(out)
	t.Print(out, width)
	say("chat promises %g tokens/s; kept: met of all that were offered and could be judged; shed: told to come back later; failed: the backend died mid-stream", r.FloorTPS)
	if r.Late > tooBusy {
		say("This machine was too busy: %.0f %% of its timers went off more than %v late, and engines that are late are slower than their curves. The figures above are not to be trusted; end other programs, or run it elsewhere.", 100*r.Late, lateBy)
	}
	say("learned against true curve (tokens/s for one of n streams, at the same n and prompt load; levels with ≥ 1 %% of the exposure):")
	t = report.Table{
		Head: []string{"backend", "tokens", "median error", "p90", "against this run's record", "streams at floor", "n: true → learned"},
		Left: 1, Drop: []string{"n: true → learned", "against this run's record"},
	}
	for _, b := range r.Backends {
		cells := []string{b.Backend, fmt.Sprintf("%.0f", b.Tokens), "–", "–", "–", "–", "nothing learned yet"}
		if len(b.Levels) > 0 {
			cells = append(cells[:2], fmt.Sprintf("%.1f %%", 100*b.MedianError), fmt.Sprintf("%.1f %%", 100*b.P90Error),
				fmt.Sprintf("%.1f / %.1f %%", 100*b.RecordMedianError, 100*b.RecordP90Error), b.carries(), b.sample())
		}
		t.Add(cells...)
	}
	fmt.Fprintln(out)
	t.Print(out, width)
}

func (b BackendReport) carries() string {
	if b.AtFloorIsLowerBound {
		return fmt.Sprintf("≥ %d", b.AtFloor)
	}
	return fmt.Sprint(b.AtFloor)
}

// sample shows four levels, spread over those seen.
func (b BackendReport) sample() string {
	var levels []string
	last := -1
	for i := range 4 {
		k := i * (len(b.Levels) - 1) / 3
		if k < 0 || k == last || len(b.Levels) == 0 {
			continue
		}
		last = k
		l := b.Levels[k]
		levels = append(levels, fmt.Sprintf("%d: %.1f → %.1f", l.N, l.True, l.Learned))
	}
	return strings.Join(levels, "  ")
}

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/plan"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/internal/report"
)

// smallFleet is quick to play: both machines together carry about five
// requests/s.
const smallFleet = `
backends:
  - { name: a, url: "http://a:1/v1", prior: { 1: 60, 4: 50, 16: 25 }, usd_per_hour: 2 }
  - { name: b, url: "http://b:1/v1", prior: { 1: 60, 4: 50, 16: 25 }, usd_per_hour: 1 }
routes:
  - { model: chat, targets: [ { backend: a }, { backend: b } ], slo: { min_tps: 30, max_ttft: 3s } }
`

func TestPlanGivesTheSameAnswerTwice(t *testing.T) {
	fleet := inFile(t, "pacer.yaml", smallFleet)
	length := "30s"
	if racetest.On {
		length = "3s" // of one goroutine each: the race detector finds no more in a longer one
	}
	args := []string{"-c", fleet, "--rate", "5/s", "--prompt", "200", "--output", "100", "--duration", length, "--policy", "all", "--seed", "7"}
	first, second := planned(t, args...), planned(t, args...)
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(plan.Answer{}), cmp.Comparer(sameFigure)); diff != "" {
		t.Errorf("the second answer differs:\n%s", diff)
	}
	if len(first.Runs) != len(arena.Policies()) {
		t.Errorf("%d runs for all policies, want %d", len(first.Runs), len(arena.Policies()))
	}
	other := planned(t, append(args, "--seed", "8")...)
	if cmp.Equal(first.Runs, other.Runs, cmp.Comparer(sameFigure)) {
		t.Error("another seed gives the same api.Numbers")
	}
}

func sameFigure(a, b api.Number) bool { return a == b || !a.Known() && !b.Known() }

func TestPlanOfATrace(t *testing.T) {
	var trace strings.Builder
	trace.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for i := range 120 { // one a second
		fmt.Fprintf(&trace, "2023-11-16 18:%02d:%02d.5000000,%d,60\n", 15+i/60, i%60, 100+i)
	}
	fleet, file := inFile(t, "pacer.yaml", smallFleet), inFile(t, "azure.csv", trace.String())
	for _, tt := range []struct {
		args     []string
		factor   float64
		measured float64 // seconds
		offered  int
	}{
		{nil, 1, 108, 108}, // 120 s less a tenth; the request at 12 s counts
		{[]string{"--scale", "2"}, 2, 54, 108},
		{[]string{"--duration", "30s"}, 1, 27, 27},
		{[]string{"--duration", "5m", "--warmup", "10s"}, 1, 290, 290}, // it starts again
	} {
		a := planned(t, append([]string{"-c", fleet, "--trace", file}, tt.args...)...)
		r := a.Runs[0]
		if r.Factor != tt.factor || math.Abs(r.MeasuredS-tt.measured) > 0.6 || r.Routes[0].Offered < tt.offered-1 || r.Routes[0].Offered > tt.offered+1 {
			t.Errorf("%q: factor %v, %d requests in %.1f s; want %v, about %d in %v s", tt.args, r.Factor, r.Routes[0].Offered, r.MeasuredS, tt.factor, tt.offered, tt.measured)
		}
		if !r.Holds || r.Kept < 0.99 || !strings.HasPrefix(a.Verdict, "Yes: ") {
			t.Errorf("%q: %s of this light load is kept (%s), want all", tt.args, report.Percent(r.Kept), a.Verdict)
		}
	}
	a := planned(t, "-c", fleet, "--trace", file)
	if l := a.Load; l.Requests != 120 || l.DurationS != 120 || l.OutputTokens != 60 || math.Abs(l.PromptTokens-159.5) > 1e-9 {
		t.Errorf("the load is %+v, want 120 requests in 120 s of 159.5 and 60 tokens", l)
	}
}

// Two points up to n = 2 say little about what runs here.
func TestPlanSaysYesWithCare(t *testing.T) {
	fleet := inFile(t, "pacer.yaml", strings.ReplaceAll(smallFleet, "4: 50, 16: 25", "2: 59"))
	a := planned(t, "-c", fleet, "--rate", "6/s", "--prompt", "200", "--output", "200", "--duration", "1m")
	if !a.Runs[0].Holds || a.Runs[0].Backends[0].Peak <= 4 || !strings.HasPrefix(a.Verdict, "Yes, if curves go on as they are extrapolated: ") {
		t.Errorf("%s with up to %d at once where the curve ends at 2: %q", report.Percent(a.Runs[0].Kept), a.Runs[0].Backends[0].Peak, a.Verdict)
	}
	if !strings.Contains(strings.Join(a.Notes, "; "), fmt.Sprintf("a %d (known up to 2)", a.Runs[0].Backends[0].Peak)) {
		t.Errorf("notes %q do not say how far the curve is known", a.Notes)
	}
}

// More replicas are never worse by more than chance, each of them works, and a
// search finds what trying all of them finds.
func TestPlanReplicas(t *testing.T) {
	if racetest.On {
		t.Skip("seven minutes of traffic on one goroutine: make numbers runs it")
	}
	fleet := inFile(t, "pacer.yaml", smallFleet)
	args := []string{"-c", fleet, "--rate", "16/s", "--prompt", "200", "--output", "100", "--duration", "1m", "--warmup", "10s", "--attainment", "0.97"}
	least := 0
	before := 0.0
	for n := 1; n <= 6; n++ {
		r := planned(t, append(args, "--replicas-of", fmt.Sprintf("b=%d", n))...).Runs[0]
		if got := float64(r.Kept); got < before-0.02 {
			t.Errorf("with %d of b %s are kept, with one less %.1f %%", n, report.Percent(r.Kept), 100*before)
		}
		if len(r.Backends) != n+1 || r.USDPerHour != api.Number(2+n) {
			t.Errorf("with %d of b: %d machines at %v USD an hour, want %d at %d", n, len(r.Backends), r.USDPerHour, n+1, 2+n)
		}
		for _, b := range r.Backends {
			if b.OutputTokens == 0 {
				t.Errorf("with %d of b: %s did nothing", n, b.Backend)
			}
		}
		if before = float64(r.Kept); r.Holds && least == 0 {
			least = n
		}
	}
	if least < 2 || least > 6 {
		t.Fatalf("%d of b are enough; the test wants from 2 to 6 to be", least)
	}
	a := planned(t, append(args, "--replicas-of", "b=1..6")...)
	if got := a.Least[0]; got.Replicas == nil || *got.Replicas != least || got.Backend != "b" || len(a.Runs) > 4 {
		t.Errorf("the search says %v in %d runs, want %d in at most 4", got.Replicas, len(a.Runs), least)
	}
	if !strings.HasPrefix(a.Verdict, fmt.Sprintf("%d of b keep what is promised", least)) {
		t.Errorf("verdict %q", a.Verdict)
	}
	a = planned(t, append(args, "--replicas-of", fmt.Sprintf("b=1..%d", least-1))...)
	if a.Least[0].Replicas != nil || !strings.HasPrefix(a.Verdict, "No number of b from 1") {
		t.Errorf("with one less as the most: %+v, %q", a.Least[0], a.Verdict)
	}
}

func TestPlanSweep(t *testing.T) {
	fleet := inFile(t, "pacer.yaml", smallFleet)
	a := planned(t, "-c", fleet, "--rate", "4/s", "--prompt", "200", "--output", "100", "--duration", "1m", "--sweep", "0.5..5/4", "--policy", "pacer,round-robin")
	if len(a.Runs) != 8 || a.Runs[0].Factor != 0.5 || a.Runs[7].Factor != 5 || a.Runs[7].Policy != "round_robin" {
		t.Fatalf("%d runs, want four factors from 0.5 to 5 of two policies", len(a.Runs))
	}
	if !a.Runs[0].Holds || a.Runs[6].Holds || a.Highest[0].Factor == nil || *a.Highest[0].Factor >= 5 {
		t.Errorf("half the load holds: %v; five times: %v; the highest that does: %v", a.Runs[0].Holds, a.Runs[6].Holds, a.Highest[0].Factor)
	}
	if few, many := a.Runs[0].Routes[0].Offered, a.Runs[6].Routes[0].Offered; many < 8*few || many > 12*few {
		t.Errorf("%d requests at half the load and %d at five times; want ten times as many", few, many)
	}
}

func TestPlanFaults(t *testing.T) {
	fleet := inFile(t, "pacer.yaml", smallFleet)
	args := []string{"-c", fleet, "--rate", "5/s", "--prompt", "200", "--output", "100", "--duration", "1m", "--warmup", "0s"}
	healthy := planned(t, args...).Runs[0]
	killed := planned(t, append(args, "--fault", "kill:a@20s+20s")...).Runs[0]
	if healthy.Routes[0].Failed != 0 || killed.Routes[0].Failed == 0 || killed.Kept >= healthy.Kept {
		t.Errorf("%d failed and %s kept; with a killed %d and %s; want some to fail", healthy.Routes[0].Failed, report.Percent(healthy.Kept), killed.Routes[0].Failed, report.Percent(killed.Kept))
	}
	slowed := planned(t, append(args, "--fault", "drift:a:3@20s")...).Runs[0]
	if slowed.Backends[0].OutputTokens >= healthy.Backends[0].OutputTokens {
		t.Errorf("slowed by 3, a put out %d tokens instead of %d", slowed.Backends[0].OutputTokens, healthy.Backends[0].OutputTokens)
	}
}

func TestPlanEndsWhenTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut strings.Builder
	if code := run(ctx, []string{"plan", "--duration", "10h"}, &out, &errOut); code != 0 || out.String() != "" {
		t.Errorf("exit code %d, output %q, %q; want 0 and nothing", code, out.String(), errOut.String())
	}
}

// docs/PLAN.md shows what the command says. Its api.Numbers may move a little with
// the router; -update writes them anew.
func TestPlanIsDocumented(t *testing.T) {
	if racetest.On {
		t.Skip("the same api.Numbers, ten times slower")
	}
	const page, asked, end = "../../docs/PLAN.md", "$ pacer plan --rate 11/s --policy pacer,least_requests\n", "```"
	t.Setenv("COLUMNS", "120")
	code, got, stderr := command(t, "plan", "--rate", "11/s", "--policy", "pacer,least_requests")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	got, _, _ = strings.Cut(got, "\nThis is an example.")
	data := must.Get(os.ReadFile(page))(t)
	before, rest, ok := strings.Cut(string(data), asked)
	want, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s does not show %s", page, asked)
	}
	if golden.Update() {
		must.Do(t, os.WriteFile(page, []byte(before+asked+got+end+after), 0o644))
		return
	}
	if !similar(got, want) {
		t.Errorf("%s shows\n%s\nbut the command says (go test -update rewrites it)\n%s", page, want, got)
	}
	if !strings.Contains(string(data), string(plan.Example)) {
		t.Errorf("%s does not show its example", page)
	}
}

// similar compares the words of two reports; numbers may differ by a fifth, or
// by 5 where they are small.
func similar(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		var m, n float64
		var unitM, unitN string
		_, errM := fmt.Sscanf(x[i]+" .", "%g%s", &m, &unitM)
		_, errN := fmt.Sscanf(y[i]+" .", "%g%s", &n, &unitN)
		number := errM == nil && errN == nil && unitM == unitN
		if !number && x[i] != y[i] || number && math.Abs(m-n) > max(0.2*max(m, n), 5) {
			return false
		}
	}
	return true
}

// Models that are separate do not slow each other down in a plan either: each is
// a machine of its own.
func TestPlanOfSeparateModels(t *testing.T) {
	fleet := func(models string) string {
		return inFile(t, "pacer.yaml", `
backends:
  - { name: a, url: "http://a:1/v1", prior: { 1: 60, 4: 50, 16: 25 }, usd_per_hour: 2, models: `+models+` }
routes:
  - { models: [ big, small ], targets: [ { backend: a } ], slo: { min_tps: 30, max_ttft: 3s } }
  - { model: draft, targets: [ { backend: a, model: small } ] }
`)
	}
	args := []string{"--rate", "4/s", "--share", "big=0.5,draft=0.5", "--prompt", "200", "--output", "200", "--duration", "1m"}
	shared := planned(t, append(args, "-c", fleet("shared"))...).Runs[0]
	separate := planned(t, append(args, "-c", fleet("separate"))...).Runs[0]
	var names []string
	for _, b := range separate.Backends {
		names = append(names, b.Backend)
		if b.OutputTokens == 0 {
			t.Errorf("%s did nothing", b.Backend)
		}
	}
	if len(shared.Backends) != 1 || !slices.Equal(names, []string{"a:big", "a:small"}) {
		t.Errorf("machines %v, want a:big and a:small", names)
	}
	if !separate.USDPerMillionOutputTokens.Known() {
		t.Error("the cost of all is not known, though the backend states what it costs by the hour")
	}
	for _, fault := range []string{"kill:a:big@20s", "drift:a:big:30@20s+20s"} {
		if run := planned(t, append(args, "-c", fleet("separate"), "--fault", fault)...).Runs[0]; run.Kept > separate.Kept-0.1 {
			t.Errorf("%s: %s kept, want fewer than the %s without it", fault, report.Percent(run.Kept), report.Percent(separate.Kept))
		}
	}
	if separate.USDPerHour != 2 || shared.Kept > 0.95 || separate.Kept < shared.Kept+0.04 {
		t.Errorf("%s kept apart and %s together, at %v USD an hour; want more apart, at 2", report.Percent(separate.Kept), report.Percent(shared.Kept), separate.USDPerHour)
	}
}

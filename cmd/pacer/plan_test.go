package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/presets"
)

// planning runs pacer plan and returns its exit code and output.
func planning(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"plan"}, args...), &out, &errOut)
	return code, out.String(), errOut.String()
}

// planned runs pacer plan --json.
func planned(t *testing.T, args ...string) planAnswer {
	t.Helper()
	code, stdout, stderr := planning(t, append(args, "--json")...)
	var answer planAnswer
	if err := json.Unmarshal([]byte(stdout), &answer); code != 0 || stderr != "" || err != nil {
		t.Fatalf("plan %q: exit code %d, stderr %q, %v\n%s", args, code, stderr, err, stdout)
	}
	return answer
}

// inFile writes text to a file of the test and returns its path.
func inFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The report of results that were made up, so that it does not change with what
// the router does.
func TestPlanReport(t *testing.T) {
	result := func(policy arena.Policy, met, missed int, backends ...string) arena.Result {
		r := arena.Result{Policy: policy, Measured: 9 * time.Minute}
		r.Routes = []arena.RouteResult{
			{
				Route: "chat", Counts: arena.Counts{Offered: met + missed + 25, Met: met, Missed: missed, Shed: 20, Failed: 3, Unmeasured: 2},
				Goodput: 1443.4, TPSP10: 42.36, TPSP50: 50.4, TTFTP50: 70 * time.Millisecond, TTFTP99: 1460 * time.Millisecond, WaitedP99: 1040 * time.Millisecond,
			},
			{Route: "nightly", Counts: arena.Counts{Offered: 100, Met: 80, Shed: 20}, Goodput: 90, TPSP10: math.NaN(), TPSP50: math.NaN()},
			{Route: "idle"},
		}
		for i, b := range backends {
			r.Backends = append(r.Backends, arena.BackendResult{
				Backend: b, Utilisation: 0.9987, PeakM: 60 + 10*i, OutputTokens: 926_763 / (i + 1), TokensUSD: 0.5 / float64(i+1),
			})
		}
		return r
	}
	const fleet = `
backends:
  - { name: big, url: "http://a:1/v1", prior: llama-3.1-70b/h200/vllm, usd_per_hour: 3.5, price: { output: 0.6 } }
  - { name: small, url: "http://b:1/v1", prior: { 1: 60, 64: 30 } }
routes:
  - { model: chat, targets: [ { backend: big }, { backend: small } ], slo: { min_tps: 40, max_ttft: 2s } }
  - { model: nightly, class: batch, targets: [ { backend: small } ] }
  - { model: idle, targets: [ { backend: small } ], slo: { min_tps: 20 } }
`
	for name, tt := range map[string]struct {
		flags []string
		cases func(p *plan) []played
	}{
		"plan_policies.txt": {[]string{"--policy", "pacer,least_requests"}, func(p *plan) []played {
			return []played{
				{planCase: planCase{arena.Pacer, 1, 0}, result: result(arena.Pacer, 5800, 8, "big", "small")},
				{planCase: planCase{arena.LeastRequests, 1, 0}, result: result(arena.LeastRequests, 5000, 808, "big", "small")},
			}
		}},
		"plan_sweep.txt": {[]string{"--sweep", "0.5..2/4", "--policy", "pacer,p2c"}, func(p *plan) (list []played) {
			for i, f := range p.factors {
				list = append(list,
					played{planCase: planCase{arena.Pacer, f, 0}, result: result(arena.Pacer, 10_000, 40*i, "big", "small")},
					played{planCase: planCase{arena.P2C, f, 0}, result: result(arena.P2C, 6000, 1200*i, "big", "small")})
			}
			return list
		}},
		"plan_replicas.txt": {[]string{"--replicas-of", "small=1..4"}, func(p *plan) []played {
			return []played{
				{planCase: planCase{arena.Pacer, 1, 2}, result: result(arena.Pacer, 9000, 800, "big", "small", "small.2")},
				{planCase: planCase{arena.Pacer, 1, 3}, result: result(arena.Pacer, 9800, 8, "big", "small", "small.2", "small.3")},
			}
		}},
	} {
		o := planOptions{
			config: inFile(t, "pacer.yaml", fleet), rate: "5/s", shape: "spike:2", prompt: "bimodal:200:4000:0.2", output: "fixed:300", scale: 1, seed: 1,
			policies: []string{"pacer"}, shares: []string{"chat=0.8", "nightly=0.2"}, prefill: 10_000,
		}
		for i := 0; i < len(tt.flags); i += 2 {
			switch value := tt.flags[i+1]; tt.flags[i] {
			case "--policy":
				o.policies = strings.Split(value, ",")
			case "--sweep":
				o.sweep = value
			case "--replicas-of":
				o.replicas = []string{value}
			}
		}
		p, err := o.read(func(flag string) bool { return flag == "rate" })
		if err == nil {
			err = p.learnCurves(t.Context(), &o)
		}
		if err == nil {
			err = p.measureLoad()
		}
		if err != nil {
			t.Fatal(err)
		}
		p.from = "pacer.yaml"
		runs := tt.cases(p)
		for i := range runs {
			runs[i].fleet, runs[i].rho, runs[i].warmup = p.fleet(runs[i].planCase), p.load.rho(), time.Minute
		}
		answer := p.answer(runs)
		var all bytes.Buffer
		for _, width := range []int{130, 70} {
			if err := answer.print(&all, width); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&all, "\n---")
		}
		if err := answer.csv(&all); err != nil {
			t.Fatal(err)
		}
		wantGolden(t, name, all.String())
	}
}

func TestPlanSaysWhatIsWrong(t *testing.T) {
	const twoRoutes = `
backends: [ { name: a, url: "http://a:1/v1", prior: { 1: 50 } }, { name: b, url: "http://b:1/v1" } ]
routes:
  - { model: chat, targets: [ { backend: a } ] }
  - { models: [ nightly, late ], class: batch, targets: [ { backend: b } ] }
`
	two := inFile(t, "two.yaml", twoRoutes)
	bare := inFile(t, "bare.yaml", "backends: [ { name: a, url: \"http://a:1/v1\" } ]\nroutes: [ { model: m, targets: [ { backend: a } ] } ]\n")
	broken := inFile(t, "broken.yaml", "backends: [ { nom: a } ]\n")
	trace := inFile(t, "t.csv", "arrival_s,prompt_tokens,output_tokens\n0,1,2\n1,1\n")
	brief := inFile(t, "brief.csv", "arrival_s,prompt_tokens,output_tokens\n0,1,2\n20,1,2\n")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-c", bare}, "pacer: no load is given; write --trace FILE"},
		{[]string{"-c", bare, "--rate", "5/s"}, "pacer: no curve is known of a; give each a prior: in " + bare},
		{[]string{"-c", two, "--rate", "5/s"}, "pacer: there are 2 routes; say how the load is split, such as --share chat=0.5,nightly=0.5"},
		{[]string{"-c", two, "--rate", "5/s", "--share", "chat"}, `pacer: --share "chat" says no share`},
		{[]string{"-c", two, "--rate", "5/s", "--share", "chat=x"}, `pacer: --share "chat=x": "x" is no share`},
		{[]string{"-c", two, "--rate", "5/s", "--share", "chat=0"}, "pacer: --share leaves nothing"},
		{[]string{"-c", two, "--rate", "5/s", "--share", "talk=1"}, `pacer: --share: no route "talk"; known are chat, nightly, late`},
		{[]string{"-c", two, "--rate", "5/s", "--share", "late=1,late=2"}, "pacer: --share has late twice"},
		{[]string{"-c", two, "--rate", "5/s", "--share", "late=1"}, "pacer: no curve is known of b"},
		{[]string{"-c", broken, "--rate", "5/s"}, broken + ":1:"},
		{[]string{"-c", "none.yaml", "--rate", "5/s"}, "pacer: config: open none.yaml: "},
		{[]string{"--rate", "5/d"}, `pacer: --rate "5/d" is no rate`},
		{[]string{"--rate", "-1"}, `pacer: --rate "-1" is no rate`},
		{[]string{"--rate", "1e6/s", "--duration", "100h", "--scale", "1000", "--output", "fixed:1"}, "pacer: the load is more than 10000000 requests"},
		{[]string{"--rate", "0.0001/s"}, "pacer: no request comes within 10m0s"},
		{[]string{"--shape", "wave"}, `pacer: --shape: no shape "wave"`},
		{[]string{"--prompt", "many"}, `pacer: --prompt: "many" is no number`},
		{[]string{"--output", "0"}, "pacer: --output: a length is less than 1 token"},
		{[]string{"--trace", "none.csv"}, "pacer: stat none.csv: no such file"},
		{[]string{"--trace", "/dev/null"}, "pacer: /dev/null is no regular file"},
		{[]string{"--trace", ""}, "pacer: --trace names no file"},
		{[]string{"--trace", trace}, "pacer: " + trace + ":3: 2 columns, and the header has 3"},
		{[]string{"--trace", trace, "--rate", "5/s"}, "pacer: --trace and --rate are given; keep one"},
		{[]string{"--trace", trace, "--prompt", "5"}, "pacer: a trace has its own prompts"},
		{[]string{"--scale", "0"}, "pacer: --scale is 0"},
		{[]string{"--scale", "NaN"}, "pacer: --scale is NaN"},
		{[]string{"--duration", "1ms"}, "pacer: --duration is 1ms"},
		{[]string{"--duration", "1m", "--warmup", "1m"}, "pacer: --warmup is 1m0s; write less than the duration"},
		{[]string{"--warmup", "11m"}, "pacer: --warmup is 11m0s, and the load is over after 10m0s"},
		{[]string{"--policy", "fastest"}, `pacer: --policy: no policy "fastest"; known are pacer, `},
		{[]string{"--policy", ""}, "pacer: --policy"},
		{[]string{"--attainment", "99"}, "pacer: --attainment is 99"},
		{[]string{"--prefill", "-1"}, "pacer: --prefill is -1"},
		{[]string{"--sweep", "2..1"}, `pacer: --sweep "2..1" is no range`},
		{[]string{"--sweep", "1..2/1"}, `pacer: --sweep "1..2/1": "1" is no number of factors`},
		{[]string{"--sweep", "1..2", "--scale", "2"}, "pacer: --sweep and --scale are given; keep one"},
		{[]string{"--sweep", "1..2", "--replicas-of", "h200-a=1..2"}, "pacer: --sweep and a range of --replicas-of"},
		{[]string{"--replicas-of", "h200-a"}, `pacer: --replicas-of "h200-a" says no number`},
		{[]string{"--replicas-of", "x=1..2"}, `pacer: --replicas-of: no backend "x"; known are h200-a, h100-a`},
		{[]string{"--replicas-of", "h200-a=2..1"}, `pacer: --replicas-of "h200-a=2..1": "2..1" is no number`},
		{[]string{"--replicas-of", "h200-a=0"}, `pacer: --replicas-of "h200-a=0"`},
		{[]string{"--replicas-of", "h200-a=2", "--replicas-of", "h200-a=3"}, "pacer: --replicas-of h200-a is given twice"},
		{[]string{"--replicas-of", "h200-a=1..2", "--replicas-of", "h100-a=1..2"}, "pacer: --replicas-of has two ranges"},
		{[]string{"--fault", "kill:h200-a"}, `pacer: --fault "kill:h200-a" does not say when`},
		{[]string{"--fault", "kill@1m"}, `pacer: --fault "kill@1m" is no fault`},
		{[]string{"--fault", "kill:x@1m"}, `pacer: --fault "kill:x@1m": no backend "x"; known are h200-a, h100-a`},
		{[]string{"--fault", "drift:h200-a:0@1m"}, `pacer: --fault "drift:h200-a:0@1m": "0" is no factor`},
		{[]string{"--fault", "kill:h200-a@1m+x"}, `pacer: --fault "kill:h200-a@1m+x": "x" is no length of time`},
		{[]string{"--fault", "kill:h200-a@20m", "--fault", "redis_lost@1m"}, `pacer: --fault "kill:h200-a@20m": the load is over after 10m0s`},
		{[]string{"--trace", brief, "--scale", "2", "--fault", "kill:h200-a@25s+1m"}, `pacer: --fault "kill:h200-a@25s+1m": the load is over after 20s`},
		{[]string{"--admin", "ftp://x"}, "pacer: --admin is no address of an admin port"},
		{[]string{"--store", "redis://:s3cret@h:1"}, "pacer: --store needs -c FILE"},
		{[]string{"-c", bare, "--rate", "1", "--store", "redis://:s3cret@h:99999"}, "pacer: --store: the store's URL has no valid host"},
		{[]string{"--admin", "http://x", "--store", "redis://h"}, "pacer: --admin and --store are given; keep one"},
		{[]string{"--json", "--csv"}, "pacer: --json and --csv are given; keep one"},
		{[]string{"fleet.yaml"}, "pacer: unknown command"},
	} {
		code, stdout, stderr := planning(t, tt.args...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, tt.want) || strings.Contains(stderr, "s3cret") {
			t.Errorf("plan %q: exit code %d, stdout %q, stderr\n%swant 2, nothing, and\n%s", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestPlanWritesFastFloorsOut(t *testing.T) {
	for tps, want := range map[float64]string{30: "≥ 30 tok/s", 12.5: "≥ 12.5 tok/s", 1200: "≥ 1200 tok/s", 0.5: "≥ 0.5 tok/s"} {
		if got := (&planRoute{MinTPS: tps}).promise(); got != want {
			t.Errorf("a floor of %v reads %q, want %q", tps, got, want)
		}
	}
}

// gatewayOf answers as an admin port that has learned.
func gatewayOf(t *testing.T, profiles string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/v1/routes":
			w.Write([]byte(`{"routes":[]}`))
		case r.URL.Path != "/api/v1/profiles" || r.URL.Query().Get("rho") != "0":
			t.Errorf("asked for %s; want the profiles at no prompt load", r.URL)
		default:
			w.Write([]byte(profiles))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestPlanTakesWhatAGatewayHasLearned(t *testing.T) {
	updated := time.Now().Add(-3 * time.Minute).UTC().Format(time.RFC3339)
	url := gatewayOf(t, `{"targets":[
		{"backend":"a","model":"m","scale":0.5,"margin":0.1,"support":[2,40],"fit":{"a":0.01,"b":0,"c":0.001,"d":0.0001},"ttft":{"base_s":0.05,"prefill_tokens_per_s":9000,"slots":48},
		 "tokens_seen":1200000,"mean_output_tokens":300,"updated_at":"`+updated+`","points":[{"n":1,"tps":90},{"n":2,"tps":80},{"n":8,"tps":60},{"n":40,"tps":20},{"n":80,"tps":1}]},
		{"backend":"a","model":"other","scale":1,"support":[2,8],"fit":null,"ttft":null,"tokens_seen":50000,"updated_at":"`+updated+`","points":[{"n":2,"tps":70},{"n":8,"tps":65}]},
		{"backend":"b","model":"","scale":1,"support":[1,64],"fit":null,"ttft":null,"tokens_seen":0,"updated_at":null,"points":[{"n":1,"tps":999}]}]}`)
	o := planOptions{
		config: inFile(t, "pacer.yaml", `
backends: [ { name: a, url: "http://a:1/v1", prior: { 1: 5 } }, { name: b, url: "http://b:1/v1", prior: llama-3.1-70b/h100/vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: m }, { backend: a, model: other }, { backend: b } ] } ]
`),
		admin: url, rate: "5/s", shape: "poisson", prompt: "fixed:299", output: "fixed:300", scale: 1, policies: []string{"all"},
	}
	p, err := o.read(func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if err := p.learnCurves(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	a := p.curves["a"]
	var speeds []string
	for _, point := range a.model.Table {
		speeds = append(speeds, fmt.Sprintf("%d: %g", point.N, point.TPS))
	}
	// The slower model counts at each n, within the support of each.
	if got, want := strings.Join(speeds, ", "), "2: 70, 8: 60, 40: 20"; got != want || a.lo != 2 || a.hi != 40 || a.slots != 48 {
		t.Errorf("a: %s, n = %d to %d, %d slots; want %s, 2 to 40, 48", got, a.lo, a.hi, a.slots, want)
	}
	if math.Abs(a.model.D-0.0002) > 1e-12 {
		t.Errorf("a: a prompt token takes %v s, want 0.0001 at half speed", a.model.D)
	}
	if want := "learned from 1.2 M tokens at " + url + ", n = 2 to 40, the newest 3 min old; the slowest of its 2 models"; a.rests != want {
		t.Errorf("a rests on %q, want %q", a.rests, want)
	}
	// A warm gateway knows the speed with the prompts: at n = 8 and one prompt
	// token per output token, 1/60 + 0.0002·8 s.
	if got := a.believed(1)[1]; got.N != 8 || math.Abs(got.TPS-1/(1.0/60+0.0016)) > 1e-9 {
		t.Errorf("the gateway believes %+v, want %.3f tokens/s at 8", got, 1/(1.0/60+0.0016))
	}
	// A backend that nobody knows anything of.
	o.config = inFile(t, "other.yaml", "backends: [ { name: x, url: \"http://a:1/v1\" } ]\nroutes: [ { model: m, targets: [ { backend: x } ] } ]\n")
	if p, err := o.read(func(string) bool { return false }); err != nil {
		t.Error(err)
	} else if err := p.learnCurves(t.Context(), &o); err == nil || !strings.Contains(err.Error(), "no curve is known of x ("+url+" has learned none; it knows a, b)") {
		t.Errorf("got %v, want that the gateway does not know x", err)
	}
	// Of b nothing was learned.
	if b := p.curves["b"]; !strings.Contains(b.rests, "llama-3.1-70b/h100/vllm") || b.told[0].N != 4 {
		t.Errorf("b rests on %q and is told %v, want its prior", b.rests, b.told)
	}
}

func TestPlanWithoutAGateway(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	if code, _, stderr := planning(t, "--admin", s.URL); code != 1 || !strings.Contains(stderr, "no gateway at ") {
		t.Errorf("exit code %d, stderr %q; want 1 and that nobody is there", code, stderr)
	}
}

func TestPlanUsersAtAFloor(t *testing.T) {
	preset, _ := presets.Lookup("llama-3.1-70b/h200/vllm")
	c := planCurve{model: simModel(preset), slots: 256}
	// Published: 64 users at 73.622 tokens/s.
	if got := c.users(73.622, 0); got != 64 {
		t.Errorf("%d users at 73.622 tokens/s, want 64", got)
	}
	c.slots = 50
	if got := c.users(1, 0); got != 50 {
		t.Errorf("%d users at 1 token/s, want as many as have a slot, 50", got)
	}
	if got := c.users(1e6, 0); got != 0 {
		t.Errorf("%d users at a million tokens/s", got)
	}
	if with, without := c.users(80, 3), c.users(80, 0); with >= without {
		t.Errorf("%d users with prompts, %d without; want fewer", with, without)
	}
}

// Points without a prompt cost get one, as a preset of that speed has it.
func TestPlanAssumesAPromptCost(t *testing.T) {
	list := presets.List()
	dearer, cheaper := 0, 0
	for _, preset := range list {
		c := planCurve{model: simModel(preset)}
		published := c.model.D
		c.model.D = 0
		(&plan{}).complete(&c)
		if c.model.D > published {
			dearer++
		} else {
			cheaper++
		}
	}
	if dearer < len(list)/3 || cheaper < len(list)/3 {
		t.Errorf("dearer than published for %d presets, cheaper for %d; want about the middle", dearer, cheaper)
	}
	c := planCurve{model: simModel(list[0])}
	c.model.D = 0
	(&plan{prefill: 8000}).complete(&c)
	if c.model.D != 1.0/8000 {
		t.Errorf("with --prefill 8000 a prompt token takes %v s", c.model.D)
	}
}

func TestPlanReadsRatesAndDurations(t *testing.T) {
	for text, want := range map[string]float64{"5": 5, "5/s": 5, "300/min": 5, "300/m": 5, "18000/h": 5, "0.5/s": 0.5} {
		if got, err := readRate(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("rate %q: %v, %v; want %v", text, got, err, want)
		}
	}
	for d, want := range map[time.Duration]string{
		10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Second: "1m30s", 58*time.Minute + 22*time.Second: "58m22s", 2*time.Hour + 5*time.Minute: "2h5m", 3 * time.Second: "3s",
	} {
		if got := spell(d); got != want {
			t.Errorf("%v is spelt %q, want %q", d, got, want)
		}
	}
}

package plan

import (
	"bytes"
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
	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/router"
)

// inFile writes text to a file of the test and returns its path.
func inFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// answered plays q, with what the command would fill in.
func answered(t *testing.T, q Question) *Answer {
	t.Helper()
	q.Shape, q.Prompt, q.Output, q.Scale, q.Seed = "poisson", "1000", "300", 1, 1
	q.Given = func(string) bool { return false }
	a := must.Get(q.Answer(t.Context(), func(string) {}))(t)
	return a
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
				Backend: b, MeanM: 45.5, Floor: 40, TrueUsers: 50 - 10*i, PeakM: 60 + 10*i, OutputTokens: 926_763 / (i + 1), TokensUSD: 0.5 / float64(i+1),
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
		"policies.txt": {[]string{"--policy", "pacer,least_requests"}, func(p *plan) []played {
			return []played{
				{runCase: runCase{arena.Pacer, 1, 0}, result: result(arena.Pacer, 5800, 8, "big", "small")},
				{runCase: runCase{arena.LeastRequests, 1, 0}, result: result(arena.LeastRequests, 5000, 808, "big", "small")},
			}
		}},
		"sweep.txt": {[]string{"--sweep", "0.5..2/4", "--policy", "pacer,p2c"}, func(p *plan) (list []played) {
			for i, f := range p.factors {
				list = append(list,
					played{runCase: runCase{arena.Pacer, f, 0}, result: result(arena.Pacer, 10_000, 40*i, "big", "small")},
					played{runCase: runCase{arena.P2C, f, 0}, result: result(arena.P2C, 6000, 1200*i, "big", "small")})
			}
			return list
		}},
		"replicas.txt": {[]string{"--replicas-of", "small=1..4"}, func(p *plan) []played {
			return []played{
				{runCase: runCase{arena.Pacer, 1, 2}, result: result(arena.Pacer, 9000, 800, "big", "small", "small.2")},
				{runCase: runCase{arena.Pacer, 1, 3}, result: result(arena.Pacer, 9800, 8, "big", "small", "small.2", "small.3")},
			}
		}},
	} {
		q := Question{
			Config: inFile(t, "pacer.yaml", fleet), Rate: "5/s", Shape: "spike:2", Prompt: "bimodal:200:4000:0.2", Output: "fixed:300", Scale: 1, Seed: 1,
			Policies: []string{"pacer"}, Shares: []string{"chat=0.8", "nightly=0.2"}, Prefill: 10_000, Given: func(flag string) bool { return flag == "rate" },
		}
		for i := 0; i < len(tt.flags); i += 2 {
			switch value := tt.flags[i+1]; tt.flags[i] {
			case "--policy":
				q.Policies = strings.Split(value, ",")
			case "--sweep":
				q.Sweep = value
			case "--replicas-of":
				q.Replicas = []string{value}
			}
		}
		p, err := q.read()
		if err == nil {
			err = p.learnCurves(t.Context(), &q)
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
			runs[i].fleet, runs[i].warmup = p.fleet(runs[i].runCase), time.Minute
			runs[i].routes = p.routes(runs[i].fleet)
			if runs[i].policy == arena.Pacer {
				runs[i].room()
			}
		}
		answer := p.answer(runs)
		var all bytes.Buffer
		for _, width := range []int{130, 70} {
			must.Do(t, answer.Print(&all, width))
			fmt.Fprintln(&all, "\n---")
		}
		must.Do(t, answer.CSV(&all))
		golden.Want(t, name, all.String())
	}
}

// room is what a router may say: five places are kept for idle, which has a floor of
// 20, on the first of its targets.
func (r *played) room() {
	for k := range r.result.Routes {
		route := &r.result.Routes[k]
		for i, t := range r.routes[k].Targets {
			with := router.TargetRoom{Admits: 46 - 10*k - i, Capacity: 48 - 10*k - i, CapacityLowerBound: t.Backend != "big"}
			without := with
			without.Admits += 20
			without.Unlimited = r.routes[k].Class == router.Batch
			if r.routes[k].Name == "idle" && i == 0 {
				with.Held = 5
			}
			route.Room, route.Unkept = append(route.Room, with), append(route.Unkept, without)
		}
	}
}

func TestPlanWritesFastFloorsOut(t *testing.T) {
	for tps, want := range map[float64]string{30: "≥ 30 tok/s", 12.5: "≥ 12.5 tok/s", 1200: "≥ 1200 tok/s", 0.5: "≥ 0.5 tok/s"} {
		if got := promise(&Route{MinTPS: tps}); got != want {
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
	q := Question{
		Config: inFile(t, "pacer.yaml", `
backends: [ { name: a, url: "http://a:1/v1", prior: { 1: 5 } }, { name: b, url: "http://b:1/v1", prior: llama-3.1-70b/h100/vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: m }, { backend: a, model: other }, { backend: b } ] } ]
`),
		Admin: url, Rate: "5/s", Shape: "poisson", Prompt: "fixed:299", Output: "fixed:300", Scale: 1, Policies: []string{"all"}, Given: func(string) bool { return false },
	}
	p := must.Get(q.read())(t)
	must.Do(t, p.learnCurves(t.Context(), &q))
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
	q.Config = inFile(t, "other.yaml", "backends: [ { name: x, url: \"http://a:1/v1\" } ]\nroutes: [ { model: m, targets: [ { backend: x } ] } ]\n")
	if p, err := q.read(); err != nil {
		t.Error(err)
	} else if err := p.learnCurves(t.Context(), &q); err == nil || !strings.Contains(err.Error(), "no curve is known of x ("+url+" has learned none; it knows a, b)") {
		t.Errorf("got %v, want that the gateway does not know x", err)
	}
	// Of b nothing was learned.
	if b := p.curves["b"]; !strings.Contains(b.rests, "llama-3.1-70b/h100/vllm") || b.told[0].N != 4 {
		t.Errorf("b rests on %q and is told %v, want its prior", b.rests, b.told)
	}
}

// Users at a floor are those that the router lets in, which knows what the load has
// taught it: about as many as the curve carries at the prompts of the load, and never
// more than ran at once where nobody missed. Nothing says how many sequences these
// engines run at once.
func TestPlanUsersAtAFloor(t *testing.T) {
	a := answered(t, Question{Rate: "11/s", Policies: []string{"pacer", "least_requests"}})
	for i, b := range a.Runs[0].Backends {
		if len(b.Users) != 1 || b.Users[0].MinTPS != 40 || b.Users[0].Users > b.Peak+2 || b.Users[0].Users < b.Peak*8/10 {
			t.Errorf("%s: %+v, while %d ran there at most under load", b.Backend, b.Users, b.Peak)
		}
		if slots := a.Curves[i].Slots; slots < usualSlots || b.Users[0].Users <= 4 {
			t.Errorf("%s has %d slots, and %d users at the floor", b.Backend, slots, b.Users[0].Users)
		}
		if other := a.Runs[1].Backends[i]; a.Runs[1].Policy != "least_requests" || len(other.Users) != 0 {
			t.Errorf("%s goes by no curve, and says %+v", a.Runs[1].Policy, other.Users)
		}
	}
}

// An engine of which no gateway has learned how many sequences it runs at once has as many
// as the question says: no more users than that have their floor.
func TestPlanTakesSlots(t *testing.T) {
	a := answered(t, Question{Rate: "11/s", Slots: 4, Policies: []string{"pacer"}})
	for i, c := range a.Curves {
		if users := a.Runs[0].Backends[i].Users[0].Users; c.Slots != 4 || users > 4 {
			t.Errorf("--slots 4: %s has %d, and %d users at the floor", c.Backend, c.Slots, users)
		}
	}
}

// What a guarantee costs is what the others lose while nobody uses it.
func TestPlanPricesAGuarantee(t *testing.T) {
	const file = "backends: [ { name: a, url: \"http://a:1/v1\", prior: llama-3.1-70b/h200/vllm } ]\n" +
		"routes:\n" +
		"  - { model: fast, targets: [ { backend: a } ], slo: { min_tps: 60, guarantee: 10 } }\n" +
		"  - { model: slow, targets: [ { backend: a } ], slo: { min_tps: 30 } }\n"
	a := answered(t, Question{Config: inFile(t, "pacer.yaml", file), Rate: "4/s", Shares: []string{"fast=0.1", "slow=0.9"}, Policies: []string{"pacer"}})
	if len(a.Guarantees) != 1 {
		t.Fatalf("%d prices, want one: %+v", len(a.Guarantees), a.Guarantees)
	}
	g := a.Guarantees[0]
	if g.Route != "fast" || g.Backend != "a" || g.Held != 10 || len(g.Costs) != 1 {
		t.Fatalf("%+v", g)
	}
	fast := 0
	for _, u := range a.Runs[0].Backends[0].Users {
		if u.MinTPS == 60 {
			fast = u.Users
		}
	}
	cost := g.Costs[0]
	if cost.Route != "slow" || cost.Users != fast-10 || cost.Without == nil || *cost.Without <= fast {
		t.Errorf("slow has room for %d, %v without; want %d, and more than %d", cost.Users, cost.Without, fast-10, fast)
	}
	var out strings.Builder
	if err := a.Print(&out, 200); err != nil || !strings.Contains(out.String(), "10 places for fast on a: while nobody uses them, slow has room for ") {
		t.Errorf("%v, printed:\n%s", err, out.String())
	}
}

// Points without a prompt cost get one, as a preset of that speed has it.
func TestPlanAssumesAPromptCost(t *testing.T) {
	list := presets.List()
	dearer, cheaper := 0, 0
	for _, preset := range list {
		c := truth{model: arena.Published(preset)}
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
	c := truth{model: arena.Published(list[0])}
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

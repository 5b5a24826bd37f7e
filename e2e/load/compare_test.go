package load

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

var (
	vllm   = flag.String("vllm", "", "virtual environment of vLLM, as make engines keeps it, for vllm bench serve")
	rounds = flag.Int("rounds", 2, "how often the tools are compared, each time with another seed")
	runs   = flag.Int("runs", 2, "how often each tool runs in a round")
	table  = flag.String("table", "", "file that the table of the comparison is written to")
)

const (
	// Requests come at even distances whatever becomes of those before, so that the
	// engine sees the same from every tool. In a closed loop with answers of one
	// length users wait for each other: TTFT is then about how close together a tool
	// sends the prompts of one round, not about the engine.
	// Prompts are long, so that TTFT is about reading them: beside short ones it is for a
	// third about when within a step of the engine a request happens to come.
	// The engine is slow, so that what a tool or the machine holds up for a moment is a
	// small share of each figure.
	arrivals  = 0.4  // per second: one or two at once
	warmup    = 6    // requests of a tool written in Python that are left out: it sends its first ones late, and several at once
	compared  = 101  // requests of one run: then a 99th percentile is the same request by rank and by interpolation
	ofPrompts = 4000 // bytes, and tokens of the tools' tokenizer; 1,000 of the engine's
	ofAnswers = 16   // tokens
	slowness  = "0.06"
)

// measures are what one tool says, by the names of shared.
type measures map[string]float64

// shared are the figures that the tools have in common.
var shared = []string{
	"TTFT, mean (ms)", "TTFT, p50 (ms)", "TTFT, p99 (ms)",
	"TPOT, mean (ms)", "TPOT, p50 (ms)", "TPOT, p99 (ms)",
	"E2E, mean (s)", "E2E, p50 (s)", "E2E, p99 (s)",
	"output tokens/s", "requests/s", "tokens/s each",
}

// bench is a tool that measures an engine.
type bench struct {
	name    string
	program func(t *testing.T) string // "" = it is not here
	args    func(url, tokenizer, dir string, seed int) []string
	report  string
	read    func(report []byte) (m measures, requests int, err error)
}

var pacerBench = bench{
	name:    "pacer bench",
	program: func(t *testing.T) string { return proctest.Binary(t) },
	args: func(url, _, dir string, seed int) []string {
		return []string{"bench", url + "/v1", "--model", "chat", "--trace", filepath.Join(dir, "trace.csv"), "--seed", strconv.Itoa(seed), "--json"}
	},
	read: readPacerBench,
}

var benches = []bench{
	{
		name:    "guidellm",
		program: func(t *testing.T) string { return all[0].install(t) },
		args: func(url, tokenizer, dir string, seed int) []string {
			return []string{
				"run", "--disable-console-interactive", "--backend", "kind=openai_http,model=chat,target=" + url,
				"--profile", fmt.Sprintf("kind=constant,rate=%g,warmup=%d", arrivals, warmup), "--constraint", fmt.Sprintf("kind=max_requests,count=%d", warmup+compared),
				"--tokenizer", "kind=huggingface_auto,model=" + tokenizer, "--seed", fmt.Sprintf("kind=static,value=%d", seed),
				"--data", "kind=json_file,path=" + filepath.Join(dir, "prompts.jsonl"), // made before, not beside the load
				"--output", "kind=json,path=" + filepath.Join(dir, "guidellm.json"),
			}
		},
		report: "guidellm.json",
		read:   compareGuideLLM,
	},
	{
		name:    "AIPerf",
		program: func(t *testing.T) string { return all[1].install(t) },
		args: func(url, tokenizer, dir string, seed int) []string {
			return []string{
				"profile", "--model", "chat", "--endpoint-type", "chat", "--streaming", "--url", url, "--tokenizer", tokenizer, "--use-server-token-count",
				"--request-rate", fmt.Sprint(arrivals), "--request-rate-mode", "constant", "--request-count", strconv.Itoa(compared), "--warmup-request-count", strconv.Itoa(warmup),
				"--prompt-input-tokens-mean", strconv.Itoa(ofPrompts), "--prompt-output-tokens-mean", strconv.Itoa(ofAnswers),
				"--random-seed", strconv.Itoa(seed), "--ui-type", "none", "--no-gpu-telemetry", "--no-server-metrics", "--output-artifact-dir", dir,
			}
		},
		report: "profile_export_aiperf.json",
		read:   compareAIPerf,
	},
	{
		name: "vllm bench serve",
		program: func(*testing.T) string {
			if program := filepath.Join(*vllm, "bin", "vllm"); *vllm != "" && exists(program) {
				return program
			}
			return ""
		},
		args: func(url, tokenizer, dir string, seed int) []string {
			return []string{
				"bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--base-url", url, "--model", "chat", "--tokenizer", tokenizer,
				"--dataset-name", "custom", "--dataset-path", filepath.Join(dir, "prompts.jsonl"), "--custom-output-len", strconv.Itoa(ofAnswers),
				"--skip-chat-template", "--disable-shuffle", "--ignore-eos", "--num-prompts", strconv.Itoa(compared), "--num-warmups", strconv.Itoa(warmup),
				"--request-rate", fmt.Sprint(arrivals), "--burstiness", "1000000", "--seed", strconv.Itoa(seed),
				"--percentile-metrics", "ttft,tpot,e2el", "--metric-percentiles", "50,99",
				"--save-result", "--result-dir", dir, "--result-filename", "vllm.json",
			}
		},
		report: "vllm.json",
		read:   compareVLLM,
	},
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func readPacerBench(report []byte) (measures, int, error) {
	type spread struct{ Mean, P50, P99 float64 }
	var r struct {
		Points []struct {
			Streams         int
			TTFT, TPOT, E2E spread
			Output          float64 `json:"output_tokens_per_s"`
			Requests        float64 `json:"requests_per_s"`
			TPS             float64
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, 0, err
	}
	if len(r.Points) != 1 || r.Points[0].Streams != compared {
		return nil, 0, fmt.Errorf("%d levels, want 1 with %d streams", len(r.Points), compared)
	}
	p := r.Points[0]
	return measures{
		"TTFT, mean (ms)": 1e3 * p.TTFT.Mean, "TTFT, p50 (ms)": 1e3 * p.TTFT.P50, "TTFT, p99 (ms)": 1e3 * p.TTFT.P99,
		"TPOT, mean (ms)": 1e3 * p.TPOT.Mean, "TPOT, p50 (ms)": 1e3 * p.TPOT.P50, "TPOT, p99 (ms)": 1e3 * p.TPOT.P99,
		"E2E, mean (s)": p.E2E.Mean, "E2E, p50 (s)": p.E2E.P50, "E2E, p99 (s)": p.E2E.P99,
		"output tokens/s": p.Output, "requests/s": p.Requests, "tokens/s each": p.TPS,
	}, compared, nil
}

// compareGuideLLM reads its summary; tokens/s each is of each request.
func compareGuideLLM(report []byte) (measures, int, error) {
	f, err := readGuideLLM(report, warmup)
	if err != nil {
		return nil, 0, err
	}
	type summary struct {
		Successful struct {
			Mean        float64
			Percentiles struct{ P50, P99 float64 }
		}
	}
	var r struct {
		Benchmarks []struct {
			Metrics struct {
				TTFT     summary `json:"time_to_first_token_ms"`
				ITL      summary `json:"inter_token_latency_ms"`
				E2E      summary `json:"request_latency"`
				Output   summary `json:"output_tokens_per_second"`
				Requests summary `json:"requests_per_second"`
			}
		}
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, 0, err
	}
	if f.Requests < compared*95/100 { // on a busy machine one was missing in its report
		return nil, 0, fmt.Errorf("%d requests, want %d", f.Requests, compared)
	}
	m := r.Benchmarks[0].Metrics
	of := func(s summary) (mean, p50, p99 float64) {
		return s.Successful.Mean, s.Successful.Percentiles.P50, s.Successful.Percentiles.P99
	}
	out := measures{"output tokens/s": m.Output.Successful.Mean, "requests/s": m.Requests.Successful.Mean, "tokens/s each": f.TPS}
	out["TTFT, mean (ms)"], out["TTFT, p50 (ms)"], out["TTFT, p99 (ms)"] = of(m.TTFT)
	out["TPOT, mean (ms)"], out["TPOT, p50 (ms)"], out["TPOT, p99 (ms)"] = of(m.ITL)
	out["E2E, mean (s)"], out["E2E, p50 (s)"], out["E2E, p99 (s)"] = of(m.E2E)
	return out, f.Requests, nil
}

func compareAIPerf(report []byte) (measures, int, error) {
	type summary struct{ Avg, P50, P99 float64 }
	var r struct {
		Count    summary `json:"request_count"`
		TTFT     summary `json:"time_to_first_token"`
		ITL      summary `json:"inter_token_latency"`
		E2E      summary `json:"request_latency"`
		Output   summary `json:"output_token_throughput"`
		Requests summary `json:"request_throughput"`
		Each     summary `json:"output_token_throughput_per_user"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, 0, err
	}
	if r.Count.Avg != compared {
		return nil, 0, fmt.Errorf("%g requests, want %d", r.Count.Avg, compared)
	}
	return measures{
		"TTFT, mean (ms)": r.TTFT.Avg, "TTFT, p50 (ms)": r.TTFT.P50, "TTFT, p99 (ms)": r.TTFT.P99,
		"TPOT, mean (ms)": r.ITL.Avg, "TPOT, p50 (ms)": r.ITL.P50, "TPOT, p99 (ms)": r.ITL.P99,
		"E2E, mean (s)": r.E2E.Avg / 1e3, "E2E, p50 (s)": r.E2E.P50 / 1e3, "E2E, p99 (s)": r.E2E.P99 / 1e3,
		"output tokens/s": r.Output.Avg, "requests/s": r.Requests.Avg, "tokens/s each": r.Each.Avg,
	}, compared, nil
}

// compareVLLM has no tokens/s of each user: vLLM tells none.
func compareVLLM(report []byte) (measures, int, error) {
	var r map[string]any
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, 0, err
	}
	number := func(name string) float64 { v, _ := r[name].(float64); return v } // a missing one is 0, and agrees with nothing
	if n := number("completed"); n != compared {
		return nil, 0, fmt.Errorf("%g requests, want %d", n, compared)
	}
	return measures{
		"TTFT, mean (ms)": number("mean_ttft_ms"), "TTFT, p50 (ms)": number("median_ttft_ms"), "TTFT, p99 (ms)": number("p99_ttft_ms"),
		"TPOT, mean (ms)": number("mean_tpot_ms"), "TPOT, p50 (ms)": number("median_tpot_ms"), "TPOT, p99 (ms)": number("p99_tpot_ms"),
		"E2E, mean (s)": number("mean_e2el_ms") / 1e3, "E2E, p50 (s)": number("median_e2el_ms") / 1e3, "E2E, p99 (s)": number("p99_e2el_ms") / 1e3,
		"output tokens/s": number("output_throughput"), "requests/s": number("request_throughput"),
	}, compared, nil
}

// A sight is what was seen of one run: by the tool, and by the gateway that stood
// between it and the engine.
type sight struct{ tool, gateway measures }

// measure puts b in front of a gateway and an engine of its own, with that seed.
func (b *bench) measure(t *testing.T, program, tokenizer string, seed int) sight {
	t.Helper()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--model", "chat", "--speed", slowness, "--seed", strconv.Itoa(seed))
	defer engine.Stop(syscall.SIGKILL)
	gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: a, url: %s/v1, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: chat } ] } ]
`, engine.Ready["url"]))
	defer gateway.Stop(syscall.SIGKILL)
	dir := t.TempDir()
	var trace, prompts strings.Builder
	trace.WriteString("arrival_s,prompt_tokens,output_tokens\n")
	for i := range warmup + compared {
		if i < compared {
			fmt.Fprintf(&trace, "%.4f,%d,%d\n", float64(i)/arrivals, ofPrompts/4, ofAnswers)
		}
		fmt.Fprintf(&prompts, "{\"prompt\":%q,\"output_tokens_count\":%d}\n", (fmt.Sprintf("%08d%08d", seed, i) + strings.Repeat("word", ofPrompts/4))[:ofPrompts], ofAnswers)
	}
	for name, text := range map[string]string{"trace.csv": trace.String(), "prompts.jsonl": prompts.String()} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	report := command(t, measureDeadline, program, b.args(gateway.Ready["data"], tokenizer, dir, seed)...)
	if b.report != "" {
		var err error
		if report, err = os.ReadFile(filepath.Join(dir, b.report)); err != nil {
			t.Fatal(err)
		}
	}
	m, requests, err := b.read(report)
	if err != nil {
		t.Fatalf("%s: %v", b.name, err)
	}
	var seen measures
	proctest.Until(t, "the gateway's log of all requests", func() bool {
		seen, err = readLog(gateway.Log(), requests)
		return err == nil
	})
	return sight{tool: m, gateway: seen}
}

// readLog has the figures of the last requests in a gateway's log, as many as the tool
// counted: it leaves out those that warm an engine up, and some ask whether it is there.
func readLog(log string, requests int) (measures, error) {
	type request struct {
		TTFT     float64 `json:"ttft_ms"`
		Duration float64 `json:"duration_ms"`
		Tokens   float64
	}
	var all []request
	for line := range strings.Lines(log) {
		var r request
		if json.Unmarshal([]byte(line), &r) == nil && r.Tokens > 1 && r.TTFT > 0 {
			all = append(all, r)
		}
	}
	if len(all) < requests {
		return nil, fmt.Errorf("%d requests, want %d", len(all), requests)
	}
	last, count := all[len(all)-requests:], float64(requests)
	out := measures{}
	of := func(name, unit string, figure func(r request) float64) {
		var xs []float64
		sum := 0.0
		for _, r := range last {
			xs = append(xs, figure(r))
			sum += xs[len(xs)-1]
		}
		slices.Sort(xs)
		out[name+", mean "+unit], out[name+", p50 "+unit], out[name+", p99 "+unit] = sum/count, xs[requests/2], xs[requests-2]
	}
	of("TTFT", "(ms)", func(r request) float64 { return r.TTFT })
	of("TPOT", "(ms)", func(r request) float64 { return (r.Duration - r.TTFT) / (r.Tokens - 1) })
	of("E2E", "(s)", func(r request) float64 { return r.Duration / 1e3 })
	for _, r := range last {
		out["tokens/s each"] += (r.Tokens - 1) / (r.Duration - r.TTFT) * 1e3 / count
	}
	return out, nil
}

// pacer bench agrees with the tools of the field, on the same engine under the same
// load, within 3 % on every figure that they share: the median of some rounds, each
// with another seed, and the tools one after the other, so many times.
//
// The gateway before each tool sees what its engine did in that very run: a tool that
// sends late sends several at once, and its slowest requests are slower in truth. So what
// the gateway sees, too, is compared as a share of that.
func TestPacerBenchAgreesWithTheTools(t *testing.T) {
	if *tools == "" {
		t.Skip("make loadtools runs this: it installs 7 GB")
	}
	tokenizer := must.Get(filepath.Abs(filepath.Join("testdata", "tokenizer")))(t)
	var here []bench
	programs := map[string]string{}
	for _, b := range append([]bench{pacerBench}, benches...) {
		if programs[b.name] = b.program(t); programs[b.name] == "" {
			t.Logf("%s is not here: make engines installs it", b.name)
			continue
		}
		here = append(here, b)
	}
	seeds := int(time.Now().Unix())
	said := map[string][]sight{} // by tool
	for round := range *rounds {
		for range *runs {
			for _, b := range here {
				said[b.name] = append(said[b.name], b.measure(t, programs[b.name], tokenizer, seeds+round))
			}
		}
	}
	var text strings.Builder
	text.WriteString("| figure | pacer bench (off what the gateway saw) |")
	for _, b := range here[1:] {
		fmt.Fprintf(&text, " %s (by what the gateway saw) |", b.name)
	}
	fmt.Fprintf(&text, "\n|---|---|%s\n", strings.Repeat("---|", len(here)-1))
	own := said[pacerBench.name]
	for _, figure := range shared {
		_, seen := own[0].gateway[figure]
		fmt.Fprintf(&text, "| %s | %.4g", figure, middle(each(own, func(s sight) float64 { return s.tool[figure] })))
		if seen {
			d := middle(each(own, func(s sight) float64 { return s.tool[figure]/s.gateway[figure] - 1 }))
			fmt.Fprintf(&text, " (%+.1f %%)", 100*d)
			if !(math.Abs(d) <= tolerance) { // NaN is no agreement
				t.Errorf("%s: pacer bench is %+.1f %% off what the gateway saw, want at most %.0f %%", figure, 100*d, 100*tolerance)
			}
		}
		text.WriteString(" |")
		for _, b := range here[1:] {
			theirs := said[b.name]
			if _, ok := theirs[0].tool[figure]; !ok {
				text.WriteString(" |")
				continue
			}
			d := off(own, theirs, func(s sight) float64 { return s.tool[figure] })
			fmt.Fprintf(&text, " %+.1f %%", 100*d)
			if seen {
				d = off(own, theirs, func(s sight) float64 { return s.tool[figure] / s.gateway[figure] })
				fmt.Fprintf(&text, " (%+.1f %%)", 100*d)
			}
			text.WriteString(" |")
			if !(math.Abs(d) <= tolerance) {
				t.Errorf("%s: %s is %+.1f %% off pacer bench, want at most %.0f %%", figure, b.name, 100*d, 100*tolerance)
			}
		}
		text.WriteString("\n")
	}
	t.Logf("seeds %d to %d\n%s", seeds, seeds+*rounds-1, text.String())
	if *table != "" {
		if err := os.WriteFile(*table, []byte(text.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

func each(all []sight, figure func(sight) float64) []float64 {
	var xs []float64
	for _, s := range all {
		xs = append(xs, figure(s))
	}
	return xs
}

// off is by how much theirs is above ours, as a share: the median over the rounds, of
// the means of each round's runs.
func off(ours, theirs []sight, figure func(sight) float64) float64 {
	var xs []float64
	for i := 0; i < len(ours); i += *runs {
		var t, o float64
		for k := range *runs {
			t, o = t+figure(theirs[i+k]), o+figure(ours[i+k])
		}
		xs = append(xs, t/o-1)
	}
	return middle(xs)
}

// middle is the median.
func middle(xs []float64) float64 {
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return (xs[len(xs)/2] + xs[(len(xs)-1)/2]) / 2
}

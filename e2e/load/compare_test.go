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
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
)

var (
	vllm   = flag.String("vllm", "", "virtual environment of vLLM, as make engines keeps it, for vllm bench serve")
	rounds = flag.Int("rounds", 2, "how often the tools are compared, each time with another seed")
	table  = flag.String("table", "", "file that the table of the comparison is written to")
)

const (
	// Requests come at even distances whatever becomes of those before, so that the
	// engine sees the same from every tool. In a closed loop with answers of one
	// length users wait for each other: TTFT is then about how close together a tool
	// sends the prompts of one round, not about the engine.
	// Prompts are long, so that TTFT is about reading them: beside short ones it is for a
	// third about when within a step of the engine a request happens to come.
	arrivals  = 0.93 // per second: one or two at once
	compared  = 101  // requests of one run: then a 99th percentile is the same request by rank and by interpolation
	ofPrompts = 4000 // bytes, and tokens of the tools' tokenizer; 1,000 of the engine's
	ofAnswers = 32   // tokens
	slowness  = "0.2"
)

// measures are what one tool says, by the names of shared.
type measures map[string]float64

// shared are the figures that the tools have in common. Where a figure hangs on its
// slowest requests, it is judged only if two runs of pacer bench agree on it, and two of
// the other tool: else it is about what the machine did meanwhile, to the engine or to
// the tool.
var shared = []struct {
	name string
	tail bool
}{
	{"TTFT, mean (ms)", true},
	{"TTFT, p50 (ms)", false},
	{"TTFT, p99 (ms)", true},
	{"TPOT, mean (ms)", true},
	{"TPOT, p50 (ms)", false},
	{"TPOT, p99 (ms)", true},
	{"E2E, mean (s)", true},
	{"E2E, p50 (s)", false},
	{"E2E, p99 (s)", true},
	{"output tokens/s", false},
	{"requests/s", false},
	{"tokens/s each", false},
}

// bench is a tool that measures an engine.
type bench struct {
	name    string
	program func(t *testing.T) string // "" = it is not here
	args    func(url, tokenizer, dir string, seed int) []string
	report  string
	read    func(report []byte) (measures, error)
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
				"--profile", fmt.Sprintf("kind=constant,rate=%g", arrivals), "--constraint", fmt.Sprintf("kind=max_requests,count=%d", compared),
				"--tokenizer", "kind=huggingface_auto,model=" + tokenizer, "--seed", fmt.Sprintf("kind=static,value=%d", seed),
				"--data", fmt.Sprintf("kind=synthetic_text,prompt_tokens=%d,output_tokens=%d", ofPrompts, ofAnswers),
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
				"--request-rate", fmt.Sprint(arrivals), "--request-rate-mode", "constant", "--request-count", strconv.Itoa(compared),
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
				"--skip-chat-template", "--disable-shuffle", "--ignore-eos", "--num-prompts", strconv.Itoa(compared),
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

func readPacerBench(report []byte) (measures, error) {
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
		return nil, err
	}
	if len(r.Points) != 1 || r.Points[0].Streams != compared {
		return nil, fmt.Errorf("%d levels, want 1 with %d streams", len(r.Points), compared)
	}
	p := r.Points[0]
	return measures{
		"TTFT, mean (ms)": 1e3 * p.TTFT.Mean, "TTFT, p50 (ms)": 1e3 * p.TTFT.P50, "TTFT, p99 (ms)": 1e3 * p.TTFT.P99,
		"TPOT, mean (ms)": 1e3 * p.TPOT.Mean, "TPOT, p50 (ms)": 1e3 * p.TPOT.P50, "TPOT, p99 (ms)": 1e3 * p.TPOT.P99,
		"E2E, mean (s)": p.E2E.Mean, "E2E, p50 (s)": p.E2E.P50, "E2E, p99 (s)": p.E2E.P99,
		"output tokens/s": p.Output, "requests/s": p.Requests, "tokens/s each": p.TPS,
	}, nil
}

// compareGuideLLM reads its summary; tokens/s each is of each request.
func compareGuideLLM(report []byte) (measures, error) {
	f, err := readGuideLLM(report)
	if err != nil {
		return nil, err
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
		return nil, err
	}
	if f.Requests < compared*95/100 { // on a busy machine one was missing in its report
		return nil, fmt.Errorf("%d requests, want %d", f.Requests, compared)
	}
	m := r.Benchmarks[0].Metrics
	of := func(s summary) (mean, p50, p99 float64) {
		return s.Successful.Mean, s.Successful.Percentiles.P50, s.Successful.Percentiles.P99
	}
	out := measures{"output tokens/s": m.Output.Successful.Mean, "requests/s": m.Requests.Successful.Mean, "tokens/s each": f.TPS}
	out["TTFT, mean (ms)"], out["TTFT, p50 (ms)"], out["TTFT, p99 (ms)"] = of(m.TTFT)
	out["TPOT, mean (ms)"], out["TPOT, p50 (ms)"], out["TPOT, p99 (ms)"] = of(m.ITL)
	out["E2E, mean (s)"], out["E2E, p50 (s)"], out["E2E, p99 (s)"] = of(m.E2E)
	return out, nil
}

func compareAIPerf(report []byte) (measures, error) {
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
		return nil, err
	}
	if r.Count.Avg != compared {
		return nil, fmt.Errorf("%g requests, want %d", r.Count.Avg, compared)
	}
	return measures{
		"TTFT, mean (ms)": r.TTFT.Avg, "TTFT, p50 (ms)": r.TTFT.P50, "TTFT, p99 (ms)": r.TTFT.P99,
		"TPOT, mean (ms)": r.ITL.Avg, "TPOT, p50 (ms)": r.ITL.P50, "TPOT, p99 (ms)": r.ITL.P99,
		"E2E, mean (s)": r.E2E.Avg / 1e3, "E2E, p50 (s)": r.E2E.P50 / 1e3, "E2E, p99 (s)": r.E2E.P99 / 1e3,
		"output tokens/s": r.Output.Avg, "requests/s": r.Requests.Avg, "tokens/s each": r.Each.Avg,
	}, nil
}

// compareVLLM has no tokens/s of each user: vLLM tells none.
func compareVLLM(report []byte) (measures, error) {
	var r map[string]any
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, err
	}
	number := func(name string) float64 { v, _ := r[name].(float64); return v } // a missing one is 0, and agrees with nothing
	if n := number("completed"); n != compared {
		return nil, fmt.Errorf("%g requests, want %d", n, compared)
	}
	return measures{
		"TTFT, mean (ms)": number("mean_ttft_ms"), "TTFT, p50 (ms)": number("median_ttft_ms"), "TTFT, p99 (ms)": number("p99_ttft_ms"),
		"TPOT, mean (ms)": number("mean_tpot_ms"), "TPOT, p50 (ms)": number("median_tpot_ms"), "TPOT, p99 (ms)": number("p99_tpot_ms"),
		"E2E, mean (s)": number("mean_e2el_ms") / 1e3, "E2E, p50 (s)": number("median_e2el_ms") / 1e3, "E2E, p99 (s)": number("p99_e2el_ms") / 1e3,
		"output tokens/s": number("output_throughput"), "requests/s": number("request_throughput"),
	}, nil
}

// measure puts b in front of an engine of its own, with that seed.
func (b *bench) measure(t *testing.T, program, tokenizer string, seed int) measures {
	t.Helper()
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--model", "chat", "--speed", slowness, "--seed", strconv.Itoa(seed))
	defer engine.Stop(9)
	dir := t.TempDir()
	var trace, prompts strings.Builder
	trace.WriteString("arrival_s,prompt_tokens,output_tokens\n")
	for i := range compared {
		fmt.Fprintf(&trace, "%.4f,%d,%d\n", float64(i)/arrivals, ofPrompts/4, ofAnswers)
		fmt.Fprintf(&prompts, "{\"prompt\":%q}\n", (fmt.Sprintf("%08d%08d", seed, i) + strings.Repeat("word", ofPrompts/4))[:ofPrompts])
	}
	for name, text := range map[string]string{"trace.csv": trace.String(), "prompts.jsonl": prompts.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report := command(t, measureDeadline, program, b.args(engine.Ready["url"], tokenizer, dir, seed)...)
	if b.report != "" {
		var err error
		if report, err = os.ReadFile(filepath.Join(dir, b.report)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := b.read(report)
	if err != nil {
		t.Fatalf("%s: %v", b.name, err)
	}
	return m
}

// pacer bench agrees with the tools of the field, on the same engine under the same
// load, within 3 % on every figure that they share: the median of some rounds, each
// with another seed, and the tools one after the other, twice.
func TestPacerBenchAgreesWithTheTools(t *testing.T) {
	if *tools == "" {
		t.Skip("make loadtools runs this: it installs 7 GB")
	}
	tokenizer, err := filepath.Abs(filepath.Join("testdata", "tokenizer"))
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{}
	programs[pacerBench.name] = pacerBench.program(t)
	for _, b := range benches {
		programs[b.name] = b.program(t)
		if programs[b.name] == "" {
			t.Logf("%s is not here: make engines installs it", b.name)
		}
	}
	seeds := int(time.Now().Unix())
	off := map[string][]float64{}   // by figure and tool: theirs over ours, less 1
	noise := map[string][]float64{} // by figure and tool: its second run over its first, less 1
	ours := map[string][]float64{}
	for round := range *rounds {
		seed := seeds + round
		said := map[string][]measures{}
		for range 2 {
			for _, b := range append([]bench{pacerBench}, benches...) {
				if program := programs[b.name]; program != "" {
					said[b.name] = append(said[b.name], b.measure(t, program, tokenizer, seed))
				}
			}
		}
		for _, f := range shared {
			mean := (said[pacerBench.name][0][f.name] + said[pacerBench.name][1][f.name]) / 2
			ours[f.name] = append(ours[f.name], mean)
			for name, m := range said {
				if theirs, ok := m[0][f.name]; ok {
					off[f.name+name] = append(off[f.name+name], (theirs+m[1][f.name])/2/mean-1)
					noise[f.name+name] = append(noise[f.name+name], math.Abs(m[1][f.name]/theirs-1))
				}
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "| figure | pacer bench (its two runs) |")
	for _, b := range benches {
		fmt.Fprintf(&text, " %s |", b.name)
	}
	fmt.Fprintf(&text, "\n|---|---|%s\n", strings.Repeat("---|", len(benches)))
	for _, f := range shared {
		own := middle(noise[f.name+pacerBench.name])
		fmt.Fprintf(&text, "| %s | %.4g (%.1f %%) |", f.name, middle(ours[f.name]), 100*own)
		for _, b := range benches {
			all, ok := off[f.name+b.name]
			if !ok {
				text.WriteString(" |")
				continue
			}
			d, theirs := middle(all), middle(noise[f.name+b.name])
			fmt.Fprintf(&text, " %+.1f %% (%.1f %%) |", 100*d, 100*theirs)
			switch {
			case math.Abs(d) <= tolerance: // NaN is no agreement
			case f.tail && !(max(own, theirs) <= tolerance):
				t.Logf("%s: %s is %+.1f %% off; two runs of pacer bench are %.1f %% apart, two of its own %.1f %%, so it says nothing", f.name, b.name, 100*d, 100*own, 100*theirs)
			default:
				t.Errorf("%s: %s is %+.1f %% off pacer bench (%+.1f %% by round), want at most %.0f %%", f.name, b.name, 100*d, percent(all), 100*tolerance)
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

// middle is the median.
func middle(xs []float64) float64 {
	xs = slices.Clone(xs)
	slices.Sort(xs)
	return (xs[len(xs)/2] + xs[(len(xs)-1)/2]) / 2
}

func percent(xs []float64) []float64 {
	xs = slices.Clone(xs)
	for i := range xs {
		xs[i] *= 100
	}
	return xs
}

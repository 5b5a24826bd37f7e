package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
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

var tools = flag.String("tools", "", "folder where the installed tools are kept between runs; without it nothing is tested")

func TestMain(m *testing.M) { proctest.Main(m) }

const (
	// requests are sent by users at a time, with prompts of about promptTokens
	// (of the tools' tokenizer, a byte each) and answers of about outputTokens.
	requests, users                 = 96, 16
	promptTokens, promptDeviation   = 400, 100
	outputTokens, outputDeviation   = 150, 30
	tolerance                       = 0.03 // between their TPS per user and Pacer's
	installTimeout, measureDeadline = 30 * time.Minute, 10 * time.Minute
)

// figures are what one side says about a run.
type figures struct {
	Requests int     // that ended well
	Tokens   int     // of their answers
	TPS      float64 // mean over the requests of (tokens − 1) / (last token − first token)
}

// tool is one load tool: how it is called, and where its report says what.
type tool struct {
	name, version string // on PyPI
	args          func(url, tokenizer, dir string) []string
	report        string // file in dir
	read          func(report []byte) (figures, error)
}

var all = []tool{
	{
		name: "guidellm", version: "0.8.1",
		args: func(url, tokenizer, dir string) []string {
			return []string{
				"run", "--disable-console-interactive",
				"--backend", "kind=openai_http,model=chat,target=" + url,
				"--profile", fmt.Sprintf("kind=concurrent,streams=%d", users),
				"--constraint", fmt.Sprintf("kind=max_requests,count=%d", requests),
				"--tokenizer", "kind=huggingface_auto,model=" + tokenizer,
				"--data", fmt.Sprintf("kind=synthetic_text,prompt_tokens=%d,prompt_tokens_stdev=%d,output_tokens=%d,output_tokens_stdev=%d",
					promptTokens, promptDeviation, outputTokens, outputDeviation),
				"--output", "kind=json,path=" + filepath.Join(dir, "guidellm.json"),
			}
		},
		report: "guidellm.json",
		read:   func(report []byte) (figures, error) { return readGuideLLM(report, 0) },
	},
	{
		name: "aiperf", version: "0.13.0",
		args: func(url, tokenizer, dir string) []string {
			return []string{
				"profile", "--model", "chat", "--endpoint-type", "chat", "--streaming", "--url", url,
				"--tokenizer", tokenizer, "--use-server-token-count",
				"--concurrency", strconv.Itoa(users), "--request-count", strconv.Itoa(requests),
				"--prompt-input-tokens-mean", strconv.Itoa(promptTokens), "--prompt-input-tokens-stddev", strconv.Itoa(promptDeviation),
				"--prompt-output-tokens-mean", strconv.Itoa(outputTokens), "--prompt-output-tokens-stddev", strconv.Itoa(outputDeviation),
				"--random-seed", "1", "--ui-type", "none", "--no-gpu-telemetry", "--no-server-metrics",
				"--output-artifact-dir", dir,
			}
		},
		report: "profile_export_aiperf.json",
		read:   readAIPerf,
	},
}

// readGuideLLM takes 1 / inter_token_latency_ms of each request, which rests on
// its first and its last token. (The mean in the report's summary weighs a
// request with its tokens, Pacer's histogram does not.)
func readGuideLLM(report []byte, warmup int) (f figures, err error) {
	type request struct {
		Start             float64 `json:"request_start_time"`
		OutputTokens      int     `json:"output_tokens"`
		InterTokenLatency float64 `json:"inter_token_latency_ms"`
	}
	var r struct {
		Benchmarks []struct {
			Requests struct{ Successful []request }
		}
	}
	if err := json.Unmarshal(report, &r); err != nil || len(r.Benchmarks) != 1 {
		return f, cmp.Or(err, fmt.Errorf("%d benchmarks in the report, want 1", len(r.Benchmarks)))
	}
	sent := r.Benchmarks[0].Requests.Successful
	slices.SortFunc(sent, func(a, b request) int { return cmp.Compare(a.Start, b.Start) })
	for _, q := range sent[min(warmup, len(sent)):] {
		f.Requests++
		f.Tokens += q.OutputTokens
		f.TPS += 1000 / q.InterTokenLatency
	}
	f.TPS /= float64(f.Requests)
	return f, nil
}

// readAIPerf takes the average of "Output Token Throughput Per User", which is
// 1 / ITL of each request, from its first token to the end of its answer.
func readAIPerf(report []byte) (figures, error) {
	type average struct{ Avg float64 }
	var r struct {
		Requests average `json:"request_count"`
		Tokens   average `json:"total_osl"`
		TPS      average `json:"output_token_throughput_per_user"`
	}
	err := json.Unmarshal(report, &r)
	return figures{int(r.Requests.Avg), int(r.Tokens.Avg), r.TPS.Avg}, err
}

// readPacer takes the mean of pacer_decode_tps, and what was counted with it.
func readPacer(admin string) (f figures, err error) {
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	sums := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, labels, _ := strings.Cut(name, "{")
		if (name == "pacer_requests_total" && !strings.Contains(labels, `outcome="ok"`)) ||
			(name == "pacer_tokens_total" && !strings.Contains(labels, `direction="output"`)) {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sums[name] += v
		}
	}
	return figures{
		int(sums["pacer_requests_total"]), int(sums["pacer_tokens_total"]),
		sums["pacer_decode_tps_sum"] / sums["pacer_decode_tps_count"],
	}, nil
}

// command runs a program to its end, or kills it with all it has started when
// it takes longer than limit. What it leaves in its folder for temporary files
// goes, too; the folder's path is short, since sockets may be there. It returns what
// the program printed for programs.
func command(t *testing.T, limit time.Duration, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tmp := must.Get(os.MkdirTemp("", "load-"))(t)
	defer os.RemoveAll(tmp)
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "PIP_DISABLE_PIP_VERSION_CHECK=1", "DO_NOT_TRACK=1", "HF_HUB_DISABLE_TELEMETRY=1",
		"VLLM_NO_USAGE_STATS=1", "GUIDELLM__MAX_WORKER_PROCESSES=1", "VLLM_TARGET_DEVICE=cpu", "CUDA_VISIBLE_DEVICES=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q within %v: %v\n%s%s", name, args, limit, err, out.Bytes(), errOut.Bytes())
	}
	return out.Bytes()
}

// install puts the tool into a virtual environment of its own and returns its
// program.
func (l *tool) install(t *testing.T) string {
	t.Helper()
	venv := must.Get(filepath.Abs(filepath.Join(*tools, l.name)))(t)
	python := filepath.Join(venv, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		command(t, installTimeout, "python3", "-m", "venv", venv)
	}
	command(t, installTimeout, python, "-m", "pip", "install", "-q", "--no-cache-dir", l.name+"=="+l.version)
	return filepath.Join(venv, "bin", l.name)
}

// A run of each tool ends without an error, has as many tokens as Pacer has
// counted, and says the same about the speed per user.
func TestTheToolsSeeWhatPacerSees(t *testing.T) {
	if *tools == "" {
		t.Skip("make loadtools runs this: it installs 7 GB")
	}
	tokenizer := must.Get(filepath.Abs(filepath.Join("testdata", "tokenizer")))(t)
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			program := l.install(t)
			engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm")
			gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends: [ { name: a, url: %s/v1, kind: vllm } ]
routes: [ { model: chat, targets: [ { backend: a, model: llama-3.1-70b } ] } ]
`, engine.Ready["url"]))
			dir := t.TempDir()
			command(t, measureDeadline, program, l.args(gateway.Ready["data"], tokenizer, dir)...)
			report := must.Get(os.ReadFile(filepath.Join(dir, l.report)))(t)
			theirs := must.Get(l.read(report))(t)
			ours := must.Get(readPacer(gateway.Ready["admin"]))(t)
			t.Logf("%s %s: %d requests, %d tokens, %.2f tokens/s per user; Pacer: %d, %d, %.2f (%+.2f %%)", l.name, l.version,
				theirs.Requests, theirs.Tokens, theirs.TPS, ours.Requests, ours.Tokens, ours.TPS, 100*(ours.TPS/theirs.TPS-1))
			if theirs.Requests != requests || theirs.Requests != ours.Requests || theirs.Tokens != ours.Tokens {
				t.Errorf("%d requests and %d tokens by the tool, %d and %d by Pacer; want %d requests and equal tokens",
					theirs.Requests, theirs.Tokens, ours.Requests, ours.Tokens, requests)
			}
			if d := math.Abs(ours.TPS/theirs.TPS - 1); !(d <= tolerance) { // NaN is no agreement
				t.Errorf("%.2f tokens/s per user by the tool, %.2f by Pacer: %.1f %% apart, want at most %.0f %%", theirs.TPS, ours.TPS, 100*d, 100*tolerance)
			}
		})
	}
}

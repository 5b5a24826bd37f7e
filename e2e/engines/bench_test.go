package engines

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

const benchPrompts = 48

// bench is what the report of vllm bench serve says.
type bench struct {
	Completed int     `json:"completed"`
	Failed    int     `json:"failed"`
	Tokens    int     `json:"total_output_tokens"`
	TPOT      float64 `json:"median_tpot_ms"`
}

// benchServe runs vLLM's own benchmark, eight users at a time.
func (r *running) benchServe(t *testing.T, url string) (b bench) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(r.dir, "bin", "vllm"), "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions",
		"--base-url", url, "--model", r.name, "--tokenizer", filepath.Join(r.dir, "model"), "--dataset-name", "random",
		"--random-input-len", "64", "--random-output-len", "64", "--ignore-eos", "--num-prompts", strconv.Itoa(benchPrompts), "--max-concurrency", "8",
		"--save-result", "--result-dir", dir, "--result-filename", "result.json")
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "VLLM_TARGET_DEVICE=cpu", "CUDA_VISIBLE_DEVICES=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("vllm bench serve: %v\n%s", err, out)
	}
	text := must.Get(os.ReadFile(filepath.Join(dir, "result.json")))(t)
	must.Do(t, json.Unmarshal(text, &b))
	return b
}

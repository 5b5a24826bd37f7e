package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// spelledOut is what a command within a sentence of the documentation leaves out: each
// line is run for it, with the variables of TestTheCommandsWithinSentences. What is not
// listed runs as it stands.
var spelledOut = map[string][]string{
	"bench":                              {"bench $ENGINE --n 1 --duration 300ms"},
	"bench URL":                          {}, // as bench
	"bench --trace":                      {"bench $ENGINE --trace trace.csv"},
	"bench URL --json":                   {"bench $ENGINE --json --n 1 --duration 300ms"},
	"check":                              {"check pacer.yaml"},
	"check FILE":                         {"check pacer.yaml"},
	"check --schema > pacer.schema.json": {"check --schema"},
	"curves":                             {"curves --admin $ADMIN"},
	"curves --csv":                       {"curves --admin $ADMIN --csv"},
	"demo":                               {}, // in a block of README.md
	"demo --policy round-robin":          {"demo --policy round-robin --duration 10s"},
	"explain":                            {"explain chat --admin $ADMIN"},
	"explain MODEL":                      {"explain chat --admin $ADMIN"},
	"explain chat --min-tps 40":          {"explain chat --min-tps 40 --admin $ADMIN"},
	"explain --last 20":                  {"explain --last 20 --admin $ADMIN"},
	"health [URL]":                       {"health $DATA"},
	"import":                             {"import"},
	"import litellm FILE":                {"import litellm config.yaml"},
	"keys create|list|rotate|revoke|audit": {
		"keys create mobile --admin $ADMIN", "keys list --admin $ADMIN", "keys rotate mobile --admin $ADMIN",
		"keys revoke mobile --admin $ADMIN", "keys audit --admin $ADMIN",
	},
	"picker":                 {"picker -c picker.yaml"},
	"scorecard":              {"scorecard --admin $ADMIN"},
	"scorecard --model chat": {"scorecard --model chat --admin $ADMIN"},
	"serve":                  {"serve"},
	"top":                    {"top --once --admin $ADMIN"},
}

// serving are the commands that run until they are ended.
var serving = []string{"serve", "picker", "sim --preset"}

// withinSentences returns the commands between backquotes in the pages of the
// documentation, without the word pacer; and where each was found first.
func withinSentences(t *testing.T) map[string]string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("pages: %q, %v", pages, err)
	}
	found := map[string]string{}
	span := regexp.MustCompile("`(?:bin/)?pacer ([a-z][^`]*)`")
	for _, page := range append(pages, "../README.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		text := must.Get(os.ReadFile(page))(t)
		for _, m := range span.FindAllSubmatch(text, -1) {
			command := strings.ReplaceAll(string(m[1]), `\|`, "|") // in a table
			if found[command] == "" {
				found[command] = strings.TrimPrefix(page, "../")
			}
		}
	}
	return found
}

// Every command within a sentence of the documentation runs, too.
func TestTheCommandsWithinSentences(t *testing.T) {
	t.Parallel()
	found := withinSentences(t)
	for command := range spelledOut {
		if found[command] == "" {
			t.Errorf("pacer %s is in no sentence any more", command)
		}
	}
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm")
	const token = "of-the-test"
	conf := fmt.Sprintf(`listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0, token: %s }
state_dir: state
keys: [ { name: of-file, key: sk-of-the-file } ]
backends: [ { name: gpu, url: %s/v1, kind: vllm, prior: llama-3.1-70b/h200/vllm } ]
routes: [ { model: chat, targets: [ { backend: gpu, model: llama-3.1-70b } ], slo: { min_tps: 30 } } ]
`, token, engine.Ready["url"])
	gateway := proctest.Gateway(t, strings.Replace(conf, "state_dir: state", fmt.Sprintf("state_dir: %q", filepath.Join(t.TempDir(), "state")), 1))
	c := client(gateway)
	c.Key = "sk-of-the-file"
	if r := c.Stream(t.Context(), loadgen.Request{Model: "chat", PromptTokens: 100, MaxTokens: 80}); r.Outcome != loadgen.Done {
		t.Fatalf("a stream, so that there is something to show: %v (%v)", r.Outcome, r.Err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pacer.yaml":  conf,
		"picker.yaml": conf + "picker: { listen: 127.0.0.1:0 }\n",
		"trace.csv":   "arrival_s,prompt_tokens,output_tokens\n0,50,20\n0.2,50,20\n",
		"config.yaml": "model_list: [ { model_name: chat, litellm_params: { model: hosted_vllm/llama, api_base: \"http://10.0.0.11:8000/v1\" } } ]\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	variables := strings.NewReplacer("$ENGINE", engine.Ready["url"], "$ADMIN", gateway.Ready["admin"], "$DATA", gateway.Ready["data"])
	program := proctest.Binary(t)
	for _, command := range slices.Sorted(maps.Keys(found)) {
		if strings.HasPrefix(command, "demo --policy") && !*long {
			continue // ten seconds of two cores; make faults runs it
		}
		lines := spelledOut[command]
		if lines == nil {
			lines = []string{command}
		}
		for _, line := range lines {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			cmd := exec.CommandContext(ctx, program, strings.Fields(variables.Replace(line))...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PACER_ADMIN_TOKEN="+token)
			began := time.Now()
			said, err := ended(cmd, slices.ContainsFunc(serving, func(s string) bool { return strings.HasPrefix(line, s) }))
			t.Logf("%s: %v", line, time.Since(began).Round(time.Millisecond))
			if cancel(); err != nil {
				t.Errorf("%s: pacer %s, as pacer %s: %v\n%.2000s", found[command], command, line, err, said)
			}
		}
	}
}

// ended runs cmd to its end, and ends it once it serves where it serves.
func ended(cmd *exec.Cmd, serves bool) (string, error) {
	var said bytes.Buffer
	if !serves {
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		return said.String(), err
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ready := false
	for buf := make([]byte, 64<<10); ; {
		n, err := log.Read(buf)
		said.Write(buf[:n])
		if !ready && bytes.Contains(said.Bytes(), []byte(": ready ")) {
			ready = true
			cmd.Process.Signal(syscall.SIGTERM)
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return said.String(), err
	}
	if !ready {
		return said.String(), fmt.Errorf("it ended before it served")
	}
	return said.String(), nil
}

package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// installNode makes a folder of bin/sdk with the packages of a folder here.
func installNode(t *testing.T, from, name string) string {
	t.Helper()
	dir := scratch(t, name)
	files := must.Get(os.ReadDir(from))(t)
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".json" && ext != ".mjs" && f.Name() != ".npmrc" {
			continue
		}
		data := must.Get(os.ReadFile(filepath.Join(from, f.Name())))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, f.Name()), data, 0o644))
	}
	var w world
	w.install(t, dir, "node", "-e", "process.exit(process.versions.node.split('.')[0] < 20 ? 1 : 0)") // the SDKs ask for 20
	w.install(t, dir, "npm", "ci", "--no-progress", "--loglevel=error")
	return dir
}

// TestAgents runs Claude Code, Codex and Copilot before an engine that has chat alone: each
// is told to look into a file, calls its tool for that, and tells what it read.
func TestAgents(t *testing.T) {
	t.Parallel() // it mostly waits for npm
	python := pairsPython(t)
	dir := installNode(t, "agents", "agents")
	fakes := fakeServers(t, python)
	gateway := proctest.Gateway(t, fmt.Sprintf(`
listen: 127.0.0.1:0
admin: { listen: 127.0.0.1:0 }
backends:
  - { name: engine, url: %s/engine/v1, kind: vllm, health_url: off, drop_params: true }
routes:
  - { model: "*", targets: [ { backend: engine, model: llama } ] }
`, fakes))
	url := gateway.Ready["data"]
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", tail(gateway.Log()))
		}
	})
	home, work := t.TempDir(), t.TempDir()
	note := filepath.Join(work, "note.txt")
	const secret = "the secret is 42"
	must.Do(t, os.WriteFile(note, []byte(secret+"\n"), 0o644))
	config := fmt.Sprintf(`model = "llama"
model_provider = "pacer"
[model_providers.pacer]
name = "Pacer"
base_url = "%s/v1"
env_key = "PACER_KEY"
wire_api = "responses"
`, url)
	must.Do(t, os.MkdirAll(filepath.Join(home, ".codex"), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(config), 0o644))
	bin := filepath.Join(dir, "node_modules", ".bin")
	for _, c := range []struct {
		name, tool string
		arguments  map[string]string
		command    []string // before the prompt
		behind     []string
	}{
		{"claude", "Read", map[string]string{"file_path": note}, []string{"claude", "-p"}, []string{"--allowedTools", "Read", "--model", "claude-sonnet-4-5"}},
		{"codex", "exec_command", map[string]string{"cmd": "cat note.txt"}, []string{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}, nil},
		{"copilot", "view", map[string]string{"path": note}, []string{"copilot", "-p"}, []string{"--allow-all-tools", "--allow-all-paths"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, _ := json.Marshal(map[string]any{"name": c.tool, "arguments": c.arguments})
			args := append(append(c.command[1:], "agent "+string(call)), c.behind...)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(bin, c.command[0]), args...)
			cmd.Dir = work
			// Nothing of whoever runs the test: no login, no settings.
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PACER_KEY=sk-none", "ANTHROPIC_API_KEY=sk-none", "ANTHROPIC_BASE_URL=" + url,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
				"COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=sk-none", "COPILOT_MODEL=llama", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
			}
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "the tool says: ") || !strings.Contains(string(out), secret) {
				t.Errorf("%v: %s", err, out)
			}
			told := seenBy(t, fakes)
			if wrong := told.Get("wrong"); len(wrong.Array()) > 0 || told.Get("n").Int() < 2 {
				t.Errorf("%d requests, of which are wrong: %.2000s", told.Get("n").Int(), wrong)
			}
			if n := len(told.Get("last.body.tools").Array()); n < 5 {
				t.Errorf("%d tools came", n)
			}
		})
	}
}

// seenBy is what the fakes have seen since they were asked last.
func seenBy(t *testing.T, fakes string) gjson.Result {
	t.Helper()
	resp := must.Get(http.Get(fakes + "/seen"))(t)
	defer resp.Body.Close()
	var told json.RawMessage
	must.Do(t, json.NewDecoder(resp.Body).Decode(&told))
	return gjson.ParseBytes(told)
}

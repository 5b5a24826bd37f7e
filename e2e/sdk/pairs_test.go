package sdk

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// pair is what a suite tells of one client before one API.
type pair struct {
	Client  string   `json:"client"`
	Version string   `json:"version"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Cases   int      `json:"cases"`
	Failed  []string `json:"failed,omitempty"`
}

// fakeServers starts pairs/fakes.py, which ends with the test, and returns its URL.
func fakeServers(t *testing.T, python string) string {
	t.Helper()
	cmd := exec.Command(python, "fakes.py")
	cmd.Dir, cmd.Stderr = "pairs", os.Stderr
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("the fakes do not start: %v, %s", err, line)
	}
	return ready.URL
}

// pairsGateway is a gateway before the fakes: of each API a backend that refuses
// what it cannot be told, and one that drops it.
func pairsGateway(t *testing.T, fakes string) string {
	t.Helper()
	var backends, routes strings.Builder
	for _, b := range []struct{ name, path, kind, model string }{
		{"anthropic", "/anthropic/v1", "anthropic", "claude-sonnet-4-5"},
		{"gemini", "/gemini/v1beta", "gemini", "gemini-2.5-flash"},
		{"bedrock", "/bedrock", "bedrock", "us.anthropic.claude-sonnet-4-5-v1:0"},
		{"claude-5", "/anthropic/v1", "anthropic", "claude-opus-5"},
		{"engine", "/engine/v1", "vllm", "llama"},
		{"cohere", "/cohere/v2", "cohere", "command-a"},
		{"mistral", "/mistral/v1", "mistral", "magistral"},
	} {
		fmt.Fprintf(&backends, "  - { name: %s, url: %s%s, kind: %s, api_key: k, models: separate, health_url: off }\n", b.name, fakes, b.path, b.kind)
		fmt.Fprintf(&backends, "  - { name: %s-lenient, url: %s%s, kind: %s, api_key: l, models: separate, health_url: off, drop_params: true }\n",
			b.name, strings.Replace(fakes, "127.0.0.1", "localhost", 1), b.path, b.kind)
		for _, name := range []string{b.name, b.name + "-lenient"} {
			fmt.Fprintf(&routes, "  - { model: %s, targets: [ { backend: %s, model: %q } ] }\n", name, name, b.model)
		}
	}
	gateway := proctest.Gateway(t, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n"+backends.String()+"routes:\n"+routes.String())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", tail(gateway.Log()))
		}
	})
	return gateway.Ready["data"]
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-16<<10):] }

// pairsPython is a Python with what the fakes and the suites need.
func pairsPython(t *testing.T) string {
	t.Helper()
	venv := scratch(t, "pairs")
	python := filepath.Join(venv, "bin", "python")
	var w world
	if _, err := os.Stat(python); err != nil {
		w.install(t, ".", "python3", "-m", "venv", venv)
	}
	w.install(t, "pairs", python, "-m", "pip", "install", "-q", "-r", "requirements.txt")
	return python
}

// TestPairs runs the official SDKs before backends of other dialects.
func TestPairs(t *testing.T) {
	python := pairsPython(t)
	cases := filepath.Join(t.TempDir(), "cases.json")
	list := exec.Command(python, "cases.py")
	list.Dir = "pairs"
	text := must.Get(list.Output())(t)
	must.Do(t, os.WriteFile(cases, text, 0o644))
	dir := installNode(t, "pairs", "pairs-node")
	clients := []struct {
		name, dir string
		command   []string
	}{{"python", "pairs", []string{python, "pairs.py", cases}}, {"node", dir, []string{"node", "pairs.mjs", cases}}}
	got := make([][]pair, len(clients)*len(sides)+1)
	t.Run("clients", func(t *testing.T) { // each with fakes and a gateway of its own
		t.Run("go generate", func(t *testing.T) {
			t.Parallel()
			got[len(got)-1] = googlePairs(t, python, cases)
		})
		for i, c := range clients {
			for k, side := range sides {
				t.Run(c.name+" "+side, func(t *testing.T) {
					t.Parallel()
					got[i*len(sides)+k] = runPairs(t, python, c.dir, append(slices.Clone(c.command), side)...)
				})
			}
		}
	})
	if !t.Failed() {
		keepPairs(t, slices.Concat(got...))
	}
}

// sides are the dialects of clients, as the suites call them.
var sides = []string{"chat", "messages", "responses", "generate", "groq", "mistral", "cohere"}

// pairsFile has what became of the last run, for docs/COMPAT.md.
var pairsFile = filepath.Join("testdata", "pairs.json")

// keepPairs holds the file to what ran.
func keepPairs(t *testing.T, got []pair) {
	t.Helper()
	text := must.Get(json.MarshalIndent(got, "", " "))(t)
	if *update {
		_ = os.MkdirAll(filepath.Dir(pairsFile), 0o755)
		must.Do(t, os.WriteFile(pairsFile, append(text, '\n'), 0o644))
		writeCompat(t)
	}
	if kept, err := os.ReadFile(pairsFile); err != nil || string(kept) != string(text)+"\n" {
		t.Errorf("%s is not of this run (%v); go test -run TestPairs -update writes it", pairsFile, err)
	}
}

// runPairs runs a suite, which prints what became of each pair.
func runPairs(t *testing.T, python, dir string, command ...string) (all []pair) {
	t.Helper()
	fakes := fakeServers(t, python)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "PACER_URL="+pairsGateway(t, fakes), "FAKES_URL="+fakes, "PYTHONDONTWRITEBYTECODE=1")
	timer := time.AfterFunc(suiteTimeout, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v", command, err)
	}
	for line := range strings.Lines(string(out)) {
		var p pair
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		p.tell(t)
		all = append(all, p)
	}
	return all
}

// tell says what became of p.
func (p *pair) tell(t *testing.T) {
	t.Helper()
	for _, f := range p.Failed {
		t.Errorf("%s on %s: %s", p.Client, p.To, f)
	}
	if p.Cases < 40 {
		t.Errorf("%s on %s: %d cases, want 40 at least", p.Client, p.To, p.Cases)
	}
	t.Logf("%s %s on %s: %d cases", p.Client, p.Version, p.To, p.Cases)
}

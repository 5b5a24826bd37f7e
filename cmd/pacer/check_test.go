package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pacer.yaml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestCheckPrintsWhatAFileSetsUp(t *testing.T) {
	path := writeConfig(t, `listen: 0.0.0.0:8080
backends:
  - { name: gpu, url: "http://gpu:8000/v1", kind: vllm, prior: { 1: 50, 8: 40 }, usage: continuous, metrics_url: "/metrics?token=s3cret" }
  - { name: claude, url: "https://api.anthropic.com/v1", kind: anthropic }
routes: [ { models: [ chat, gpt-4o ], targets: [ { backend: gpu, model: llama } ], slo: { preset: llama3.1-8b-interactive } } ]
`)
	code, stdout, stderr := command(t, "check", path)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q; want 0 and nothing", code, stderr)
	}
	want := path + `: ok
warning: ` + path + `:1:9: listen 0.0.0.0:8080 is reachable from other machines and no keys are configured: anyone there may use the backends; add keys:, or listen on 127.0.0.1
warning: ` + path + `:4:13: no route has a target on the backend "claude": it serves nobody

BACKEND  KIND       URL                           USAGE       METRICS                  PRIOR
gpu      vllm       http://gpu:8000/v1            continuous  http://gpu:8000/metrics  2 points
claude   anthropic  https://api.anthropic.com/v1  unasked     none                     none

ROUTE         CLASS        MIN TPS  MAX TTFT  TARGETS
chat, gpt-4o  interactive  33.33    500ms     gpu:llama

data port 0.0.0.0:8080 (0 keys), admin port 127.0.0.1:9090
`
	if stdout != want {
		t.Errorf("stdout:\n%s\nwant:\n%s", stdout, want)
	}
}

func TestCheckPrintsEveryProblem(t *testing.T) {
	path := writeConfig(t, "backends: [ { name: gpu, url: \"ftp://gpu\" } ]\nroutes: [ { model: chat, targets: [ { backend: gpv } ] } ]\n")
	want := path + ":1:31: the url must start with http:// or https://; write one such as http://10.0.0.11:8000/v1\n" +
		path + ":2:48: unknown backend \"gpv\"; did you mean \"gpu\"?\n"
	code, stdout, stderr := command(t, "check", path)
	if code != 2 || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s\nwant 2, nothing, and:\n%s", code, stdout, stderr, want)
	}

	code, stdout, stderr = command(t, "check", "--json", path)
	var got checked
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("--json: %v in %q", err, stdout)
	}
	if code != 2 || got.OK || stderr != want || len(got.Problems) != 2 {
		t.Errorf("--json: exit code %d, stderr %q, %+v; want 2, the same, 2 problems", code, stderr, got)
	} else if p := got.Problems[1]; p.File != path || p.Line != 2 || p.Col != 48 || p.Message != `unknown backend "gpv"; did you mean "gpu"?` {
		t.Errorf("--json: second problem %+v", p)
	}
	if strings.Contains(stdout, "null") {
		t.Errorf("--json has a null list: %s", stdout)
	}
}

func TestCheckJSONOfAValidFile(t *testing.T) {
	path := writeConfig(t, "backends: [ { name: gpu, url: \"http://gpu/v1\", api_key: s3cret } ]\nroutes: [ { model: chat, targets: [ { backend: gpu } ], slo: { min_tps: 30, max_ttft: 2s } } ]\n")
	code, stdout, stderr := command(t, "check", "--json", path)
	want := `{"file":"` + path + `","ok":true,"problems":[],"warnings":[],"backends":[{"name":"gpu","url":"http://gpu/v1","kind":"openai","usage":"inject","metrics_url":""}],` +
		`"routes":[{"models":["chat"],"class":"interactive","min_tps":30,"max_ttft_s":2,"targets":["gpu"]}]}` + "\n"
	if code != 0 || stdout != want || stderr != "" {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s\nwant:\n%s", code, stderr, stdout, want)
	}
}

// Models that are counted by themselves are said to be.
func TestCheckShowsSeparateModels(t *testing.T) {
	path := writeConfig(t, "backends: [ { name: api, url: \"http://api/v1\", models: separate } ]\nroutes: [ { model: chat, targets: [ { backend: api } ] } ]\n")
	if _, stdout, _ := command(t, "check", path); !strings.Contains(stdout, "\napi: each model is counted by itself\n") {
		t.Errorf("printed:\n%s", stdout)
	}
	if _, stdout, _ := command(t, "check", "--json", path); !strings.Contains(stdout, `"kind":"openai","models":"separate",`) {
		t.Errorf("--json printed:\n%s", stdout)
	}
}

// What a backend stands for that discovers its engines is shown; a file that
// cannot be read is no reason not to start, and is said.
func TestCheckShowsWhatIsDiscovered(t *testing.T) {
	path := writeConfig(t, `backends:
  - { name: pool, url: "http://pool:8000/v1", discover: dns }
  - { name: rack, url: "http://rack:8000/v1", discover: { file: fleet.json } }
  - { name: lost, url: "http://lost:8000/v1", discover: { file: nowhere.json } }
routes: [ { model: chat, targets: [ { backend: pool }, { backend: rack }, { backend: lost } ] } ]
`)
	must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "fleet.json"), []byte(`[ { "targets": [ "10.0.0.8:9000", "10.0.0.7" ] } ]`), 0o600))
	code, stdout, _ := command(t, "check", path)
	for _, want := range []string{
		"warning: backend lost has no engine until its file can be read: ",
		"pool stands for every address of pool, looked up while Pacer runs\n",
		"rack stands for the 2 engines of ", "fleet.json: 10.0.0.7:8000, 10.0.0.8:9000\n",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is not in:\n%s", code, want, stdout)
		}
	}
	code, stdout, _ = command(t, "check", "--json", path)
	var got checked
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 {
		t.Fatalf("--json: %d, %v", code, err)
	}
	if len(got.Warnings) != 1 || got.Backends[0].Engines.Source != "pool" || len(got.Backends[1].Engines.Found) != 2 || got.Backends[2].Engines.Problem == "" {
		t.Errorf("--json: %s", stdout)
	}
}

func TestCheckUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "no.yaml")
	for _, args := range [][]string{{}, {"a", "b"}, {"--nope", "a"}, {missing}, {"--json", missing}} {
		if code, _, stderr := command(t, append([]string{"check"}, args...)...); code != 2 || !strings.HasPrefix(stderr, "pacer: ") {
			t.Errorf("check %q: exit code %d, stderr %q; want 2 and a message that begins with pacer:", args, code, stderr)
		}
	}
}

// The schema is JSON, and the one that describes the file.
func TestCheckPrintsTheSchema(t *testing.T) {
	code, stdout, stderr := command(t, "check", "--schema")
	var schema struct {
		Schema     string         `json:"$schema"`
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal([]byte(stdout), &schema); code != 0 || stderr != "" || err != nil {
		t.Fatalf("exit code %d, stderr %q, %v; want 0, nothing and JSON", code, stderr, err)
	}
	if schema.Schema == "" || schema.Properties["backends"] == nil {
		t.Errorf("the schema names no draft (%q), or has no backends", schema.Schema)
	}
}

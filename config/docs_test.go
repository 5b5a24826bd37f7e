package config

import (
	"os"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// TestDocumentedFilesAreValid parses the YAML in docs/CONFIG.md; a part of a
// file is completed by the shortest fleet.
func TestDocumentedFilesAreValid(t *testing.T) {
	for _, text := range documented(t) {
		cfg := mustParse(t, text, nothing)
		if len(cfg.Source().Warnings) > 0 {
			t.Errorf("warnings %q of:\n%s", cfg.Source().Warnings, text)
		}
	}
	data := must.Get(os.ReadFile("../docs/CONFIG.md"))(t)
	// A floor in the table of presets for each preset there is.
	for name := range sloPresets {
		if !strings.Contains(string(data), "| `"+name+"` |") {
			t.Errorf("docs/CONFIG.md does not list the preset %s", name)
		}
	}
}

// documented returns the files in docs/CONFIG.md.
func documented(t *testing.T) []string {
	t.Helper()
	data := must.Get(os.ReadFile("../docs/CONFIG.md"))(t)
	blocks := strings.Split(string(data), "```yaml\n")[1:]
	if len(blocks) < 4 {
		t.Fatalf("docs/CONFIG.md has %d blocks of YAML, want at least 4", len(blocks))
	}
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if !strings.Contains(text, "backends:") {
			text = strings.Replace(fleet, "model: m,", "model: chat,", 1) + text
		}
		blocks[i] = text
	}
	return blocks
}

// TestEveryFieldIsDocumented asks Parse for the fields that it knows and
// looks for each in docs/CONFIG.md.
func TestEveryFieldIsDocumented(t *testing.T) {
	data := must.Get(os.ReadFile("../docs/CONFIG.md"))(t)
	seen := 0
	for _, outer := range []string{
		"%", "admin: { % }", "store: { % }", "log: { % }", "tls: { % }", "cors: { % }", "timeouts: { % }", "limits: { % }", "batches: { % }", "realtime: { % }", "picker: { % }", "picker: { objectives: [ { % } ] }",
		"backends: [ { % } ]", "backends: [ { price: { % } } ]", "backends: [ { discover: { kubernetes: { % } } } ]", "routes: [ { % } ]", "routes: [ { targets: [ { % } ] } ]",
		"routes: [ { slo: { % } } ]", "routes: [ { shadow: { % } } ]", "routes: [ { on_infeasible: [ { % } ] } ]",
		"keys: [ { % } ]", "keys: [ { allow: { % } } ]", "keys: [ { limits: { % } } ]",
		"keys: [ { budget: { % } } ]", "teams: [ { % } ]", "webhooks: [ { % } ]", "usage: { % }", "admin: { tokens: [ { % } ] }", "admin: { oidc: { % } }", "admin: { oidc: { roles: { % } } }",
	} {
		_, err := Parse("f", []byte(strings.Replace(outer, "%", "zzzzzzzz: 1", 1)+"\n"), nothing)
		if err == nil {
			t.Fatalf("%s: an unknown field is accepted", outer)
		}
		_, list, ok := strings.Cut(err.Error(), `unknown field "zzzzzzzz"; known are `)
		if !ok {
			t.Errorf("%s: no list of known fields in: %v", outer, err)
			continue
		}
		list, _, _ = strings.Cut(list, "\n")
		for _, field := range strings.Split(list, ", ") {
			seen++
			if !strings.Contains(string(data), "`"+field+"`") && !strings.Contains(string(data), "{ "+field+":") {
				t.Errorf("docs/CONFIG.md does not mention %s of %s", field, outer)
			}
		}
	}
	if seen < 60 {
		t.Errorf("found %d fields, want at least 60", seen)
	}
}

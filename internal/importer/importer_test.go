package importer

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// TestImports reads testdata: configurations of other gateways, and what comes out
// of each: a pacer.yaml that Pacer takes, and what has no counterpart.
func TestImports(t *testing.T) {
	for name, read := range map[string]func([]byte) (Result, error){"litellm": LiteLLM, "flags": Flags, "nginx": Nginx} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/" + name + ".txt"
			data := must.Get(os.ReadFile(path))(t)
			var out bytes.Buffer
			for part := range strings.SplitSeq(string(data), "=== ") {
				if part == "" {
					continue
				}
				title, rest, _ := strings.Cut(part, "\n")
				text, want, _ := strings.Cut(rest, ">>>\n")
				got := show(t, title, read, text)
				fmt.Fprintf(&out, "=== %s\n%s>>>\n%s", title, text, got)
				if !golden.Update() && got != want {
					t.Errorf("%s:\n%s\ngot:\n%s\nwant:\n%s", title, text, got, want)
				}
			}
			if golden.Update() {
				must.Do(t, os.WriteFile(path, out.Bytes(), 0o644))
			}
		})
	}
}

func show(t *testing.T, title string, read func([]byte) (Result, error), text string) string {
	result, err := read([]byte(text))
	var b strings.Builder
	b.Write(result.YAML)
	for _, f := range result.Findings {
		fmt.Fprintf(&b, "%d: %s; %s\n", f.Line, f.What, f.Do)
		if f.What == "" || f.Do == "" {
			t.Errorf("%s: a finding says nothing: %+v", title, f)
		}
	}
	switch {
	case err != nil:
		fmt.Fprintf(&b, "error: %v\n", err)
		if result.YAML != nil {
			t.Errorf("%s: there is a file beside the error", title)
		}
	case config.Errors(nil) == nil:
		if _, err := config.Parse("f", result.YAML, stand); err != nil {
			t.Errorf("%s: Pacer does not take it: %v", title, err)
		}
	}
	return b.String()
}

func FuzzLiteLLM(f *testing.F) {
	f.Add("model_list:\n  - { model_name: a, litellm_params: { model: gpt-4o } }\n")
	f.Add("model_list: [ { litellm_params: [] } ]\nrouter_settings: { fallbacks: { a: b }, model_group_alias: [] }\n")
	f.Fuzz(func(t *testing.T, text string) {
		if result, err := LiteLLM([]byte(text)); err == nil && result.YAML == nil {
			t.Error("neither a file nor an error")
		}
	})
}

func FuzzNginx(f *testing.F) {
	f.Add("upstream a { server x:1 weight=2; server y; }")
	f.Add("upstream a { server")
	f.Fuzz(func(t *testing.T, text string) {
		if result, err := Nginx([]byte(text)); err == nil && result.YAML == nil {
			t.Error("neither a file nor an error")
		}
	})
}

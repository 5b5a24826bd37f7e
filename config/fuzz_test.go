package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/internal/must"
)

// FuzzParse holds that every text gives either a complete configuration or
// problems, each at a place within the text, and never shows what a variable
// holds.
func FuzzParse(f *testing.F) {
	const secret = "zq9-secret"
	getenv := func(name string) (string, bool) { return secret, name != "UNSET" }
	paths, err := filepath.Glob(filepath.Join(examples, "*.yaml"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no examples to start from (%v)", err)
	}
	for _, path := range paths {
		data := must.Get(os.ReadFile(path))(f)
		f.Add(data)
	}
	data, err := os.ReadFile("testdata/bad.txt")
	must.Do(f, err)
	for part := range strings.SplitSeq(string(data), "=== ") {
		_, rest, _ := strings.Cut(part, "\n")
		text, _, _ := strings.Cut(rest, ">>>\n")
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse("f", data, getenv)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("Parse = %v, %v; want exactly one", cfg, err)
		}
		if err == nil {
			if len(cfg.Backends) == 0 || len(cfg.Routes) == 0 || len(cfg.Routes[0].OnInfeasible) == 0 {
				t.Errorf("an incomplete configuration is valid: %+v", cfg)
			}
			return
		}
		var problems Errors
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("error %T %v, want Errors", err, err)
		}
		if strings.Contains(err.Error(), secret) && !strings.Contains(string(data), secret) {
			t.Errorf("the variable is shown: %v", err)
		}
		lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
		for _, p := range problems {
			if p.Line < 0 || p.Line > lines+1 || (p.Line > 0) != (p.Col > 0) || p.Message == "" || !utf8.ValidString(p.Message) || strings.ContainsAny(p.Message, "\n\r") {
				t.Errorf("problem %+v of a text with %d lines", p, lines)
			}
		}
	})
}

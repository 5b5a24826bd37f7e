package config

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// variables looks names up in a map.
func variables(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := m[name]
		return value, ok
	}
}

// TestBadFiles reads testdata/bad.txt: files, and what Parse says of each,
// with its place.
func TestBadFiles(t *testing.T) {
	const path = "testdata/bad.txt"
	data := must.Get(os.ReadFile(path))(t)
	getenv := variables(map[string]string{"WORD": "many", "NUMBER": "7", "A": "1"})
	var out bytes.Buffer
	cases := 0
	for part := range strings.SplitSeq(string(data), "=== ") {
		if part == "" {
			continue
		}
		cases++
		name, rest, _ := strings.Cut(part, "\n")
		text, want, ok := strings.Cut(rest, ">>>\n")
		if !ok {
			t.Fatalf("%s: case %q has no >>>", path, name)
		}
		cfg, err := Parse("f", []byte(text), getenv)
		var problems Errors
		if cfg != nil || !errors.As(err, &problems) {
			t.Errorf("%s: Parse returned %v, %v; want Errors alone", name, cfg, err)
			continue
		}
		got := problems.Error() + "\n"
		out.WriteString("=== " + name + "\n" + text + ">>>\n" + got + "\n")
		if want = strings.TrimSuffix(want, "\n"); !golden.Update() && got != want {
			t.Errorf("%s:\n%s\ngot:\n%swant:\n%s", name, text, got, want)
		}
		for _, problem := range problems {
			if wrong, instead, ok := strings.Cut(problem.Message, "; "); !ok || wrong == "" || instead == "" {
				t.Errorf("%s: %q does not say what to write instead", name, problem.Message)
			}
		}
		if strings.Contains(got, "s3") || strings.Contains(got, "cret") {
			t.Errorf("%s: a secret is in the message:\n%s", name, got)
		}
	}
	if cases < 40 {
		t.Errorf("%s has %d cases, want at least 40", path, cases)
	}
	if golden.Update() {
		must.Do(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
}

package upstream

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// A row is complete enough to be used, and people can read of it.
func TestTable(t *testing.T) {
	read := func(name string) string {
		text := must.Get(os.ReadFile("../../docs/" + name))(t)
		return string(text)
	}
	run, hosted := read("CONFIG.md"), read("HOSTED.md")
	seen := map[string]bool{}
	for _, k := range All() {
		if seen[k.Word] || !regexp.MustCompile(`^[a-z0-9]+$`).MatchString(k.Word) || k.Name == "" {
			t.Errorf("the kind %q stands twice, or cannot be written", k.Word)
		}
		seen[k.Word] = true
		if Of(k.Word) != k {
			t.Errorf("kind %s is not found by its word", k.Word)
		}
		if k.Home == "" && !strings.Contains(run, "`"+k.Word+"`") {
			t.Errorf("docs/CONFIG.md does not name the kind %s", k.Word)
		}
		if k.Home != "" && !strings.Contains(hosted, "kind: "+k.Word+",") {
			t.Errorf("docs/HOSTED.md has no backend of kind %s", k.Word)
		}
		if g := k.Gauges; g != nil && (g.Prefix == "" || !strings.HasPrefix(g.Running, g.Prefix) || !strings.HasPrefix(g.Waiting, g.Prefix)) {
			t.Errorf("kind %s: its gauges %+v do not begin with their prefix", k.Word, g)
		}
		for name := range k.Headers {
			if !HeaderName(name) || OwnHeader(name) {
				t.Errorf("kind %s sends %s, which no backend may be sent", k.Word, name)
			}
		}
	}
	if Of("") != Of(Default) || Of("gopher") != nil {
		t.Error("a kind of no name is not the default, or one that is unknown is a kind")
	}
}

func TestDeploymentName(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-4o": true, "a.b_c-1": true, strings.Repeat("a", 64): true,
		"": false, ".": false, "..": false, "...": false, "a/b": false, "a b": false, "a%2Fb": false, strings.Repeat("a", 65): false,
	} {
		if got := DeploymentName(name); got != want {
			t.Errorf("DeploymentName(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	for name, want := range map[string]bool{"X-Team": true, "x_1!": true, "": false, "X A": false, "X:": false, "Ü": false, strings.Repeat("x", 129): false} {
		if got := HeaderName(name); got != want {
			t.Errorf("HeaderName(%.20q) = %v, want %v", name, got, want)
		}
	}
	for value, want := range map[string]bool{"": true, "a b": true, "a\tb": true, "ü": true, " a": false, "a ": false, "a\n": false, "a\r\nb": false, "a\x7fb": false} {
		if got := HeaderValue(value); got != want {
			t.Errorf("HeaderValue(%q) = %v, want %v", value, got, want)
		}
	}
}

package chromium

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/checkout"
	"github.com/pacer-dev/pacer/internal/must"
)

// installing guards bin/axe against tests of one process. npm replaces what it
// finds, so tests of several do no harm but to the time.
var installing sync.Mutex

// axe returns the source of axe-core, which npm fetches once into bin/axe. It is
// a tool of the tests and no part of the program.
func axe(t testing.TB) string {
	t.Helper()
	root := must.Get(checkout.Root())(t)
	from := filepath.Join(root, "internal", "chromium", "testdata", "axe")
	dir := filepath.Join(root, "bin", "axe")
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")

	installing.Lock()
	defer installing.Unlock()
	if current(t, from, dir) {
		if data, err := os.ReadFile(file); err == nil {
			return string(data)
		}
	}
	must.Do(t, os.MkdirAll(dir, 0o755))
	for _, name := range files {
		data := must.Get(os.ReadFile(filepath.Join(from, name)))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-progress", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("axe-core cannot be installed here, so nobody looks for what keeps readers out: npm ci: %v\n%s", err, out)
	}
	data := must.Get(os.ReadFile(file))(t)
	return string(data)
}

// files say which axe-core is meant.
var files = []string{".npmrc", "package.json", "package-lock.json"}

// current reports whether dir was installed from the files as they are.
func current(t testing.TB, from, dir string) bool {
	t.Helper()
	for _, name := range files {
		want := must.Get(os.ReadFile(filepath.Join(from, name)))(t)
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(want) {
			return false
		}
	}
	return true
}

// Barriers asks axe-core what in the page keeps readers out who cannot see it
// well, or use no pointer. Each is one line: the rule, and the elements.
func (c *Browser) Barriers() []string {
	c.t.Helper()
	var there bool
	c.Eval("typeof axe === 'object'", &there)
	if !there {
		c.Load(axe(c.t))
	}
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	c.Eval(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations)`, &found)
	var lines []string
	for _, f := range found {
		for _, n := range f.Nodes {
			lines = append(lines, fmt.Sprintf("%s (%s): %.200s\n\t%s", f.ID, f.Help, n.HTML, n.FailureSummary))
		}
	}
	return lines
}

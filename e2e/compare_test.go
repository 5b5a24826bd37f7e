package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
)

// Each cell about Pacer in the comparison has a command that shows it, and each such
// command finds what it names: a test that the test run has too, or a command of the
// program. Each cell about others has its source.
func TestTheCellsOfTheComparison(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/COMPARE.md"))(t)
	ours, others, _ := strings.Cut(string(text), "## Beside other gateways")
	code := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.SplitSeq(ours, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 || cells[1] != "yes" && cells[1] != "no" {
			continue
		}
		rows++
		if !strings.Contains(cells[2], "`go test ") && !strings.Contains(cells[2], "`pacer ") && cells[1] == "yes" {
			t.Errorf("%s: no command shows it", cells[0])
		}
	}
	if rows < 10 {
		t.Errorf("%d rows about Pacer were found, want 10 or more", rows)
	}
	for _, m := range code.FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(m[1])
		switch {
		case len(words) > 2 && words[0] == "go" && words[1] == "test":
			if names := testsOf(t, words[2:]); len(names) == 0 {
				t.Errorf("%s runs no test", m[1])
			}
		case len(words) > 1 && words[0] == "pacer":
			if out, err := exec.Command(proctest.Binary(t), words[1], "--help").CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", m[1], err, out)
			}
		}
	}
	for line := range strings.SplitSeq(others, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) < 6 || strings.Contains(line, "---") {
			continue
		}
		for _, cell := range cells[1:] {
			if cell = strings.TrimSpace(cell); cell != "" && !strings.Contains(cell, "](https://") {
				t.Errorf("%s: %q has no source", cells[0], cell)
			}
		}
	}
}

// testsOf are the tests that go test with these words runs.
func testsOf(t *testing.T, words []string) (names []string) {
	t.Helper()
	run, dir := regexp.MustCompile(""), ""
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "./"):
			dir = filepath.Join("..", word)
		case word == "-run" && i+1 < len(words):
			run = regexp.MustCompile(strings.Trim(words[i+1], "'"))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || dir == "" {
		t.Fatalf("%v: %q, %v", words, dir, err)
	}
	for _, name := range files {
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && run.MatchString(fn.Name.Name) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

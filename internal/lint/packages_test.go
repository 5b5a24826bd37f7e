package lint

import (
	"fmt"
	"go/doc"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// docs/PACKAGES.md is the house floor by floor, with the table of arrows beside the
// first sentence of each package comment, so that neither can say what is not so.
func TestPackagesAreListed(t *testing.T) {
	rows := map[string]string{}
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 {
			rows[short(p.ImportPath)] = row(p)
		}
	}
	var b strings.Builder
	b.WriteString("# Packages\n\nThe house from the roof down: a package imports only packages that stand below it on this page. A folder is no floor.\n" +
		"Each row says what the package is, in the first sentence of its own comment, and which packages of Pacer it may import.\n" +
		"`go test ./internal/lint -update` writes this page; a test fails where the page, a place or an import is otherwise.\n\n" +
		"A *pure* package reads no clock, starts no goroutine and does no I/O.\n")
	write := func(title, what string, names []string) {
		b.WriteString("\n## " + title + "\n\n" + what + ".\n\n| package | what it is | imports of ours |\n|---|---|---|\n")
		for _, name := range names {
			b.WriteString(rows[name])
		}
	}
	for _, f := range floors {
		write(f.name, strings.ToUpper(f.what[:1])+f.what[1:], f.packages)
	}
	write("For tests", "What tests alone import; packages that hold tests alone are not listed", tests)
	golden.Want(t, filepath.Join("..", "..", "..", "docs", "PACKAGES.md"), b.String())
}

// docs/HOWTO.md sends its readers to files that are there.
func TestHowtoNamesFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	text := must.Get(os.ReadFile(filepath.Join(root, "docs", "HOWTO.md")))(t)
	found := 0
	for _, m := range regexp.MustCompile("`((?:[a-z]+/)+[a-z_]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		found++
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("docs/HOWTO.md names %s: %v", m[1], err)
		}
	}
	if found < 6 {
		t.Errorf("docs/HOWTO.md names %d files, want those of its recipes", found)
	}
}

// Each go.sum stands in the order that go mod tidy -diff wants. Two branches that
// add a module each are merged in any order, and tidy alone does not write it anew.
func TestSumsAreInOrder(t *testing.T) {
	found := 0
	must.Do(t, filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.Name() != "go.sum":
			return nil
		}
		found++
		before := ""
		for line := range strings.Lines(string(must.Get(os.ReadFile(path))(t))) {
			name, _, _ := strings.Cut(line, " ")
			if name < before {
				t.Errorf("%s: %s stands behind %s", path, name, before)
			}
			before = name
		}
		return nil
	}))
	if found < 5 {
		t.Errorf("%d go.sum are found", found)
	}
}

// row is that of p.
func row(p goPackage) string {
	name := short(p.ImportPath)
	imports := "none"
	switch allowed := slices.Sorted(slices.Values(arrows[name])); {
	case slices.Contains(allowed, "*"):
		imports = "any"
	case len(allowed) > 0:
		imports = "`" + strings.Join(allowed, "`, `") + "`"
	}
	if slices.Contains(pure, name) {
		imports += "; *pure*"
	}
	what := new(doc.Package).Synopsis(p.Doc)
	what = strings.TrimPrefix(strings.TrimPrefix(what, "Package "+filepath.Base(name)+" "), "Command pacer ")
	return fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.ReplaceAll(what, "|", `\|`), imports)
}

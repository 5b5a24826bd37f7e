package lint

import (
	"fmt"
	"go/doc"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
)

// docs/PACKAGES.md is the table of arrows beside the first sentence of each package
// comment, so that neither can say what is not so.
func TestPackagesAreListed(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Packages\n\nWhat each package is, in the first sentence of its own comment, and which packages of Pacer it may import.\n" +
		"`go test ./internal/lint -update` writes this page; a test fails where the page or an import is otherwise.\n\n" +
		"A *pure* package reads no clock, starts no goroutine and does no I/O. Packages that hold tests alone are not listed.\n\n" +
		"| package | what it is | imports of ours |\n|---|---|---|\n")
	for _, p := range packages(t) {
		name := short(p.ImportPath)
		if len(p.GoFiles) == 0 {
			continue
		}
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
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.ReplaceAll(what, "|", `\|`), imports)
	}
	golden.Want(t, filepath.Join("..", "..", "..", "docs", "PACKAGES.md"), b.String())
}

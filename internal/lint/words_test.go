package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// mostHomes is how many packages may have a type of one name before docs/GLOSSARY.md
// has to say what the name means in each.
const mostHomes = 4

// private are words that only those know who wrote them; each had a meaning of its own
// in names and comments once.
var private = regexp.MustCompile(`(?i)\b(newborns?|pins|wish(es|ed)?)\b`)

// sources are the files of the house and of its commands, without tests.
func sources(t *testing.T, each func(pkg, path string, f *ast.File)) {
	t.Helper()
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			path := filepath.Join(p.Dir, file)
			each(short(p.ImportPath), path, must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution))(t))
		}
	}
}

// A name that many packages have for a type is explained, since it may mean several things.
func TestWordsOfManyPackagesAreExplained(t *testing.T) {
	homes := map[string][]string{}
	sources(t, func(pkg, _ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if word := strings.ToLower(s.Name.Name); !slices.Contains(homes[word], pkg) {
					homes[word] = append(homes[word], pkg)
				}
			}
			return true
		})
	})
	if len(homes["backend"]) <= mostHomes {
		t.Fatalf("backend is found in %q alone", homes["backend"])
	}
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "GLOSSARY.md")))(t)
	_, table, _ := strings.Cut(string(page), "## Words that several packages have")
	table, _, _ = strings.Cut(table, "\n## ")
	for word, where := range homes {
		if len(where) > mostHomes && !strings.Contains(table, "\n| `"+word+"` |") {
			t.Errorf("%d packages have a type %s (%s): explain the word in docs/GLOSSARY.md, or rename one", len(where), word, strings.Join(where, ", "))
		}
	}
}

func TestNoPrivateWords(t *testing.T) {
	sources(t, func(_, path string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && private.MatchString(id.Name) {
				t.Errorf("%s: the name %s is known to its author only", path, id.Name)
			}
			return true
		})
		for _, c := range f.Comments {
			if word := private.FindString(c.Text()); word != "" {
				t.Errorf("%s: a comment says %q, a word that is known to its author only", path, word)
			}
		}
	})
	if !private.MatchString("a newborn waits") || private.MatchString("a pinned backend") {
		t.Error("private words are not told from others")
	}
}

// What differs between kinds of backends is asked of their row, not of their word.
func TestKindsAreAskedOfTheirRow(t *testing.T) {
	own := []string{"internal/upstream", "internal/importer", "sim", "internal/presets"} // the table; words of others' files; what is simulated
	sources(t, func(pkg, path string, f *ast.File) {
		if slices.Contains(own, pkg) {
			return
		}
		asks := func(e ast.Expr) bool {
			lit, ok := e.(*ast.BasicLit)
			return ok && lit.Kind == token.STRING && slices.Contains(upstream.Words(), strings.Trim(lit.Value, `"`))
		}
		ast.Inspect(f, func(n ast.Node) bool {
			found := false
			switch n := n.(type) {
			case *ast.BinaryExpr:
				found = (n.Op == token.EQL || n.Op == token.NEQ) && (asks(n.X) || asks(n.Y))
			case *ast.CaseClause:
				found = slices.ContainsFunc(n.List, asks)
			}
			if found {
				t.Errorf("%s compares with the word of a kind: let internal/upstream's row say what differs", path)
			}
			return true
		})
	})
}

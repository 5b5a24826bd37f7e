package config

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// comments are those of the fields of this package's types, by Type.Field.
type comments map[string]string

func commentsOf(t *testing.T) comments {
	t.Helper()
	c := comments{}
	paths := must.Get(filepath.Glob("*.go"))(t)
	for _, path := range paths {
		file := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						c[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return c
}

// of is the comment of a field, with the words that may stand there.
func (c comments) of(t reflect.Type, f *field) string {
	text := c[t.Name()+"."+f.Name]
	if !f.has("enum") || f.tag("enum") == "@kind" {
		return text
	}
	var missing []string
	for _, word := range f.words() {
		if !strings.Contains(text, "`"+word+"`") {
			missing = append(missing, "`"+word+"`")
		}
	}
	if len(missing) == 0 {
		return text
	}
	return text + ": " + series(missing, "or")
}

// table is the fields of t as docs/CONFIG.md shows them.
func (c comments) table(t reflect.Type) string {
	var b strings.Builder
	b.WriteString("| field | meaning | default |\n|---|---|---|\n")
	for _, f := range shapeOf(t).fields {
		names := make([]string, len(f.names))
		for i, name := range f.names {
			names[i] = "`" + name + "`"
		}
		if f.has("single") {
			slices.Reverse(names)
		}
		what := names[0]
		if len(names) > 1 {
			what = series(names, "or")
		}
		value := f.tag("unset")
		switch {
		case f.has("required"):
			value = "required"
		case f.has("default"):
			value = "`" + f.tag("default") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", what, strings.ReplaceAll(c.of(t, f), "|", `\|`), value)
	}
	return b.String()
}

// marked is a table of fields in docs/CONFIG.md, and the type that it shows.
var marked = regexp.MustCompile(`(?m)^<!-- fields of ([A-Za-z]+), written by go test \./config -update -->\n(?:\|.*\n)*`)

// TestReference holds the tables of docs/CONFIG.md against the types.
func TestReference(t *testing.T) {
	const path = "../docs/CONFIG.md"
	data := must.Get(os.ReadFile(path))(t)
	c := commentsOf(t)
	missing := map[string]reflect.Type{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[Config](), reflect.TypeFor[Admin](), reflect.TypeFor[Store](), reflect.TypeFor[Log](), reflect.TypeFor[TLS](),
		reflect.TypeFor[CORS](), reflect.TypeFor[Timeouts](), reflect.TypeFor[Limits](), reflect.TypeFor[Batches](), reflect.TypeFor[Realtime](), reflect.TypeFor[Picker](), reflect.TypeFor[Objective](), reflect.TypeFor[Backend](), reflect.TypeFor[Kubernetes](), reflect.TypeFor[Route](),
		reflect.TypeFor[Target](), reflect.TypeFor[Shadow](), reflect.TypeFor[SLO](), reflect.TypeFor[Key](), reflect.TypeFor[Allow](), reflect.TypeFor[KeyLimits](),
		reflect.TypeFor[Price](), reflect.TypeFor[AdminToken](), reflect.TypeFor[OIDC](), reflect.TypeFor[OIDCRoles](), reflect.TypeFor[Team](), reflect.TypeFor[Budget](), reflect.TypeFor[Webhook](), reflect.TypeFor[Usage](),
	} {
		missing[t.Name()] = t
		for _, f := range shapeOf(t).fields {
			if c.of(t, f) == "" {
				panic(t.Name() + "." + f.Name + " has no comment: it is the row of docs/CONFIG.md")
			}
		}
	}
	got := marked.ReplaceAllStringFunc(string(data), func(old string) string {
		name := marked.FindStringSubmatch(old)[1]
		of := missing[name]
		if of == nil {
			t.Fatalf("docs/CONFIG.md has a table of %s twice, or there is no such type", name)
		}
		delete(missing, name)
		return old[:strings.Index(old, "\n")+1] + c.table(of)
	})
	for name := range missing {
		t.Errorf("docs/CONFIG.md has no table of %s", name)
	}
	if golden.Update() {
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
	} else if got != string(data) {
		t.Error("the tables of docs/CONFIG.md are not those of the types; go test ./config -update writes them")
	}
}

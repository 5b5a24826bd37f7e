package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// mostFields is how many fields a struct may have. One with more has too many reasons
// to exist: what belongs together in it is a type of its own.
const mostFields = 25

// wide are the structs with more, and how many they have. It only falls: who splits one
// lowers its number.
var wide = map[string]int{
	"api.Route":      28, // flat in JSON: a field for each figure of /api/v1/routes
	"config.Backend": 26, // flat in YAML: a field for each setting
	"config.Config":  26, // flat in YAML: a field for each part of the file
}

// fields counts those of s; a struct within it counts with its own.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		each := 1
		if inner, ok := f.Type.(*ast.StructType); ok {
			each = fields(inner)
		}
		n += each * max(1, len(f.Names))
	}
	return n
}

// Structs stay narrow. TestWidths -v prints the widest of each package.
func TestWidths(t *testing.T) {
	for _, p := range packages(t) {
		widest, most := "", 0
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(node ast.Node) bool {
				spec, ok := node.(*ast.TypeSpec)
				if !ok {
					return true
				}
				s, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				name, n := short(p.ImportPath)+"."+spec.Name.Name, fields(s)
				if n > most {
					widest, most = name, n
				}
				if ceiling := max(mostFields, wide[name]); n > ceiling {
					t.Errorf("%s has %d fields, at most %d are allowed: make what belongs together a type of its own", name, n, ceiling)
				}
				return true
			})
		}
		if widest != "" {
			t.Logf("%3d %s", most, widest)
		}
	}
}

func TestFieldsAreCounted(t *testing.T) {
	const source = "package p\ntype s struct {\n a, b int\n *T\n in struct{ c, d, e int }\n}"
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", strings.NewReader(source), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := f.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
	if n := fields(s); n != 6 {
		t.Errorf("%d fields are counted, want 6", n)
	}
}

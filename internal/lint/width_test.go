package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// mostFields is how many fields a struct may have. One with more has too many reasons
// to exist: what belongs together in it is a type of its own.
const mostFields = 25

// wide are the structs with more, and how many they have. It only falls: who splits one
// lowers its number.
var wide = map[string]int{
	"config.Backend": 26, // flat in YAML: a field for each setting
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

// Structs stay narrow. TestWidths -v prints the widest.
func TestWidths(t *testing.T) {
	sources(t, func(pkg, _ string, f *ast.File) {
		ast.Inspect(f, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			name, n := pkg+"."+spec.Name.Name, fields(s)
			if ceiling := max(mostFields, wide[name]); n > ceiling {
				t.Errorf("%s has %d fields, at most %d are allowed: make what belongs together a type of its own", name, n, ceiling)
			}
			if n > mostFields/2 {
				t.Logf("%3d %s", n, name)
			}
			return true
		})
	})
}

func TestFieldsAreCounted(t *testing.T) {
	const source = "package p\ntype s struct {\n a, b int\n *T\n in struct{ c, d, e int }\n}"
	f := must.Get(parser.ParseFile(token.NewFileSet(), "p.go", strings.NewReader(source), 0))(t)
	s := f.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
	if n := fields(s); n != 6 {
		t.Errorf("%d fields are counted, want 6", n)
	}
}

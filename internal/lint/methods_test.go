package lint

import (
	"go/ast"
	"testing"
)

// mostMethods is how many methods a type may have. One with more does the work of the
// types that it is made of: a method belongs to the type whose fields it uses.
const mostMethods = 60

// busy are the types with more, and how many they have at most. It only falls.
var busy = map[string]int{
	"config.reader": 73, // a method for each rule that spans several fields
	"router.ask":    75, // one request's questions about every target
}

// methods counts those that the packages declare, by type.
func methods(t *testing.T) map[string]int {
	t.Helper()
	n := map[string]int{}
	sources(t, func(pkg, _ string, f *ast.File) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			of := fn.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if generic, ok := of.(*ast.IndexExpr); ok {
				of = generic.X
			}
			if name, ok := of.(*ast.Ident); ok {
				n[pkg+"."+name.Name]++
			}
		}
	})
	return n
}

// No type does everything. TestMethods -v prints the busiest.
func TestMethods(t *testing.T) {
	seen := methods(t)
	for name, n := range seen {
		if ceiling := max(mostMethods, busy[name]); n > ceiling {
			t.Errorf("%s has %d methods, at most %d are allowed: give those that use other types' fields to these", name, n, ceiling)
		}
		if n > mostMethods/2 {
			t.Logf("%3d %s", n, name)
		}
	}
	for name := range busy {
		if seen[name] == 0 {
			t.Errorf("%s has no methods, or is not there: take it out of the table", name)
		}
	}
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// declared is what the test files of one folder declare at their top.
type declared struct {
	uses  map[string]map[string]bool // by the name of a function, method, variable: the names in it
	short map[string]bool            // those that do less under the race detector
}

// testsOf returns the tests of a folder that ask racetest.On, or name a function,
// method, variable or type of their test files that does. A name is taken for all
// that bear it: a test too many is run rather than one too few.
func testsOf(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	d := declared{uses: map[string]map[string]bool{}, short: map[string]bool{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			d.add(decl)
		}
	}
	for grown := true; grown; {
		grown = false
		for name, uses := range d.uses {
			if !d.short[name] && slices.ContainsFunc(slices.Collect(maps.Keys(uses)), func(used string) bool { return d.short[used] }) {
				d.short[name], grown = true, true
			}
		}
	}
	var tests []string
	for name := range d.short {
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	slices.Sort(tests)
	return tests, nil
}

// add notes what a declaration names.
func (d *declared) add(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		d.names(decl.Name.Name, decl)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					d.names(name.Name, spec)
				}
			case *ast.TypeSpec:
				d.names(spec.Name.Name, spec)
			}
		}
	}
}

func (d *declared) names(declares string, in ast.Node) {
	if d.uses[declares] == nil {
		d.uses[declares] = map[string]bool{}
	}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "racetest" {
				d.short[declares] = true
			}
		case *ast.Ident:
			d.uses[declares][n.Name] = true
		}
		return true
	})
}

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
)

// tree writes files into a folder of its own.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return root
}

// Each way for a test to ask is found, over files and over callers of callers; who
// asks nothing is not; and modules of their own and what is no package are left out.
func TestShortened(t *testing.T) {
	root := tree(t, map[string]string{
		"go.mod": "module x\n",
		"a/a_test.go": `package a
func TestItself(t *testing.T) { t.Run("case", func(t *testing.T) { if racetest.On { t.Skip() } }) }
func TestByHelper(t *testing.T) { skipUnderRace(t) }
func TestByMethod(t *testing.T) { new(house).fill() }
func TestByTable(t *testing.T) { for _, f := range table { f(t) } }
func TestByType(t *testing.T) { var w wrapped; w.go2() }
func TestWhole(t *testing.T) { other(t) }
func TestMain(m *testing.M) { _ = racetest.On }
func BenchmarkIt(b *testing.B) { _ = racetest.On }
`,
		"a/helpers_test.go": `package a
var table = []func(*testing.T){ deeper }
type house struct{}
type wrapped struct{ house2 }
type house2 struct{ n [often]int }
const often = 1 + less
func (h *house) fill() { h.half() }
func (h *house) half() { if racetest.On { return } }
func deeper(t *testing.T) { skipUnderRace(t) }
func skipUnderRace(t *testing.T) { if racetest.On { t.Skip() } }
func other(t *testing.T) { racing.On() }
var less = func() int { if racetest.On { return 1 }; return 9 }()
`,
		"b/b_test.go":          "package b\nfunc TestB(t *testing.T) { other(t) }\n",
		"c/go.mod":             "module c\n",
		"c/c_test.go":          "package c\nfunc TestC(t *testing.T) { _ = racetest.On }\n",
		"a/testdata/d_test.go": "package d\nfunc TestD(t *testing.T) { _ = racetest.On }\n",
		"e/f/f_test.go":        "package f_test\nfunc TestF(t *testing.T) { _ = racetest.On }\n",
	})
	got := must.Get(shortened(root))(t)
	want := map[string][]string{
		"./a":   {"TestByHelper", "TestByMethod", "TestByTable", "TestByType", "TestItself"},
		"./e/f": {"TestF"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("otherwise than wanted:\n%s", diff)
	}
}

// Of the repository's own tests it finds those of the packages that it is for.
func TestShortenedHere(t *testing.T) {
	got := must.Get(shortened("../../.."))(t)
	if len(got) < 10 {
		t.Errorf("packages %q, want ten at least", slices.Sorted(maps.Keys(got)))
	}
	for dir, test := range map[string]string{"./profiles": "TestAccuracy", "./internal/arena": "TestGrades", "./cmd/pacer": "TestNoStreamOf10000IsTruncated"} {
		if !slices.Contains(got[dir], test) {
			t.Errorf("%s is not among those of %s: %q", test, dir, got[dir])
		}
	}
}

// What cannot be parsed is an error, and no empty list.
func TestShortenedOfABrokenFile(t *testing.T) {
	if got, err := shortened(tree(t, map[string]string{"a/a_test.go": "package a\nfunc {"})); err == nil {
		t.Errorf("no error, and %v", got)
	}
}

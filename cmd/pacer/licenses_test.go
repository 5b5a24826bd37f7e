package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/must"
)

// noticeFiles are the names, in capitals and without what follows a dot, under
// which modules keep their terms.
var noticeFiles = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS", "UNLICENSE"}

// termsIn returns the files of terms that lie in dir.
func termsIn(t *testing.T, dir string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var all strings.Builder
	for _, e := range entries {
		name, _, _ := strings.Cut(strings.ToUpper(e.Name()), ".")
		if e.IsDir() || !slices.Contains(noticeFiles, name) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text := must.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		fmt.Fprintf(&all, "%s\n", bytes.TrimSpace(text))
	}
	return all.String()
}

// modulesIn returns the modules that the program has on any of the platforms it
// is built for, with their folders.
func modulesIn(t *testing.T) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for _, platform := range []string{"linux", "darwin", "windows"} {
		list := exec.Command("go", "list", "-deps", "-json=Module", ".")
		list.Env = append(os.Environ(), "GOOS="+platform, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
			var p struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			must.Do(t, d.Decode(&p))
			if m := p.Module; m != nil && !m.Main {
				dirs[m.Path+" "+m.Version] = m.Dir
			}
		}
	}
	return dirs
}

// pacer version --licenses is complete and current: the terms of every module in
// the program, word for word, those that are the same once. make notices writes
// it.
func TestLicenses(t *testing.T) {
	dirs := modulesIn(t)
	root := must.Get(exec.Command("go", "env", "GOROOT").Output())(t)
	dirs["the Go standard library"] = strings.TrimSpace(string(root))
	of := map[string][]string{} // terms -> modules
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		terms := termsIn(t, dirs[name])
		if terms == "" {
			t.Errorf("%s has no file of terms", name)
		}
		of[terms] = append(of[terms], name)
	}
	var want strings.Builder
	rule := strings.Repeat("=", 78) + "\n"
	want.WriteString("Pacer\n\n" + termsIn(t, filepath.Join("..", "..")))
	groups := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return strings.Compare(of[a][0], of[b][0]) })
	for _, terms := range groups {
		want.WriteString("\n" + rule + strings.Join(of[terms], "\n") + "\n\n" + terms)
	}
	if golden.Update() {
		must.Do(t, os.WriteFile("licenses.txt", []byte(want.String()), 0o644))
		return
	}
	if licenses != want.String() {
		t.Error("licenses.txt is not what the modules of go.mod say: run make notices")
	}
	if len(dirs) < 20 {
		t.Errorf("%d modules: the test compares too little", len(dirs))
	}
}

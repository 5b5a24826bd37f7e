// Command shortened names the tests that do less, or nothing, where the race
// detector looks on. make numbers runs these whole, without it. They are found by
// what the sources say, so that none can be forgotten: a test is one of them when
// it asks package racetest, or calls by name what does.
//
//	shortened            the packages that have such tests, as go test takes them
//	shortened -names     their names, as the -run of go test takes them
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	names := flag.Bool("names", false, "print the names of the tests, not the packages")
	flag.Parse()
	found, err := shortened(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "shortened:", err)
		os.Exit(1)
	}
	if !*names {
		fmt.Println(strings.Join(slices.Sorted(maps.Keys(found)), " "))
		return
	}
	var all []string
	for _, tests := range found {
		all = append(all, tests...)
	}
	slices.Sort(all)
	fmt.Printf("^(%s)$\n", strings.Join(slices.Compact(all), "|"))
}

// shortened returns the tests in question by their package, as ./router, of the
// module whose root is given. Modules within it are not looked at.
func shortened(root string) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if dir != root {
			_, err := os.Stat(filepath.Join(dir, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" {
				return filepath.SkipDir
			}
		}
		tests, err := testsOf(dir)
		if len(tests) > 0 {
			rel, _ := filepath.Rel(root, dir) // both are relative, or both absolute
			found["./"+filepath.ToSlash(rel)] = tests
		}
		return err
	})
	return found, err
}

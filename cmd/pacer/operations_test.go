package main

import (
	"io"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/telemetry"
)

// What docs/OPERATIONS.md and SECURITY.md name is there: each metric, also those
// of the alerts, and each test.
func TestOperationsNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/OPERATIONS.md")
	must.Do(t, err)
	cfg := parsed(t, "backends:\n  - { name: a, url: http://a.test/v1, prior: { 1: 50, 8: 40 } }\n"+oneRoute)
	p, err := wire(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)), options{})
	must.Do(t, err)
	rec := httptest.NewRecorder()
	p.admin.ServeHTTP(rec, httptest.NewRequest("GET", "http://127.0.0.1:9090/metrics", nil))
	known := "\n" + rec.Body.String()
	for _, c := range p.close {
		c()
	}
	if known == "\n" {
		t.Fatal("no metrics")
	}
	for _, m := range telemetry.Catalog() { // those that have no series now are metrics, too
		known += "\n# TYPE " + m.Name + " "
	}
	metric := regexp.MustCompile(`\b(?:pacer|go|process)_[a-z_]+`)
	named := metric.FindAllString(string(text), -1)
	for _, name := range named {
		if !strings.Contains(known, "\n# TYPE "+name+" ") && !strings.Contains(known, "\n"+name+" ") && !strings.Contains(known, "\n"+name+"{") {
			t.Errorf("there is no metric %s", name)
		}
	}

	var tests strings.Builder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			code, err := os.ReadFile(path)
			tests.Write(code)
			return err
		}
		return err
	})
	must.Do(t, err)
	listed := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text)+fromRoot(t, "SECURITY.md"), -1)
	for _, name := range listed {
		if !strings.Contains(tests.String(), "func "+name+"(t *testing.T)") {
			t.Errorf("there is no test %s", name)
		}
	}
	if len(named) < 20 || len(listed) < 20 {
		t.Errorf("%d metrics and %d tests are named: this has not read them", len(named), len(listed))
	}
}

package proctest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// Write puts a configuration into a file of its own.
func Write(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pacer.yaml")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// Get returns the page at url, which must be answered with 200.
func Get(t testing.TB, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	must.Do(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return body
}

// JSON is what Get returns, as a T.
func JSON[T any](t testing.TB, url string) (got T) {
	t.Helper()
	must.Do(t, json.Unmarshal(Get(t, url), &got))
	return got
}

// Sum adds up the series of a page of metrics that begin with prefix.
func Sum(page, prefix string) (total float64) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, prefix) {
			x, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err == nil {
				total += x
			}
		}
	}
	return total
}

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/sim"
)

// What is printed for programs can be a prior, and it is of the model that the
// URL lists.
func TestBenchMeasuresAnEngine(t *testing.T) {
	engine := must.Get(sim.NewServer(sim.Options{Names: []string{"org/m"}, Model: sim.Model{A: 0.002}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- engine.Run(ctx) }()
	s := httptest.NewServer(engine)
	defer func() {
		cancel()
		<-ran
		s.Close()
	}()
	for _, format := range []string{"--json", "--csv"} {
		code, stdout, stderr := command(t, "bench", s.URL, "--n", "4, 1", "--duration", "300ms", "--output", "20", format)
		curve, err := benchfile.Parse("bench", []byte(stdout))
		if code != 0 || err != nil || len(curve.Points) != 2 || curve.Points[0].N != 1 || curve.Points[1].N != 4 {
			t.Fatalf("%s: exit code %d, %v, %+v\n%s%s", format, code, err, curve, stdout, stderr)
		}
		if format == "--json" && curve.Model != "org/m" {
			t.Errorf("the model is %q, want org/m", curve.Model)
		}
		if strings.Count(stderr, "\n") != 2 || !strings.HasPrefix(stderr, "n = 1: ") {
			t.Errorf("%s: stderr %q, want a line for each level", format, stderr)
		}
	}
	code, stdout, _ := command(t, "bench", s.URL+"/v1/", "--model", "org/m", "--n", "2", "--duration", "1s") // a busy machine has two tokens by then
	if code != 0 || !strings.Contains(stdout, "TOKENS/S EACH") {
		t.Errorf("exit code %d, the table is\n%s", code, stdout)
	}
	code, stdout, stderr := command(t, "bench", s.URL, "--model", "other", "--n", "2", "--duration", "200ms")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "404") {
		t.Errorf("an unknown model: exit code %d, %q %q", code, stdout, stderr)
	}
}

func TestBenchUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"http://a/v1", "http://b/v1"},
		{"127.0.0.1:8000"},
		{"ftp://a/v1"},
		{"http://a/v1?x=1"},
		{"http://a/v1", "--n", "0"},
		{"http://a/v1", "--n", "20000"},
		{"http://a/v1", "--duration", "1ms"},
		{"http://a/v1", "--prompt", "0"},
		{"http://a/v1", "--output", "1"},
		{"http://a/v1", "--json", "--csv"},
		{"http://a/v1", "--n", "1", "--rate", "2"},
		{"http://a/v1", "--rate", "x"},
		{"http://a/v1", "--rate", "0"},
		{"http://a/v1", "--trace", "nowhere.csv"},
		{"http://a/v1", "--dataset", "nowhere.jsonl"},
		{"http://a/v1", "--prompt", "normal:1:1"},
		{"http://a/v1", "--warmup", "long"},
		{"http://a/v1", "--repeats", "0"},
		{"--compare", "one.json"},
		{"--compare", "nowhere.json", "nowhere.json"},
	} {
		if code, stdout, stderr := command(t, append([]string{"bench"}, args...)...); code != 2 || stdout != "" || !strings.HasPrefix(stderr, "pacer: ") {
			t.Errorf("%v: exit code %d, %q %q; want 2 and a reason", args, code, stdout, stderr)
		}
	}
}

// A URL without models says so; the key goes along.
func TestBenchFindsNoModel(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-bench")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-bench" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string][]string{"data": {}})
	}))
	defer s.Close()
	if code, _, stderr := command(t, "bench", s.URL); code != 1 || !strings.Contains(stderr, "--model") || strings.Contains(stderr, "sk-bench") {
		t.Errorf("exit code %d, %q; want 1 and what to write", code, stderr)
	}
}

// Where a list of models is refused, the advice is for that refusal.
func TestBenchSaysWhyNoModelIsListed(t *testing.T) {
	for status, want := range map[int]string{401: "set OPENAI_API_KEY, or name", 404: "write the base URL, which ends in /v1 at most servers, or name", 500: "Error; name the model with --model"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if code, _, stderr := command(t, "bench", s.URL); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%d: exit code %d, %q; want 1 and %q", status, code, stderr, want)
		}
		s.Close()
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/sim"
)

func bench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), append([]string{"bench"}, args...), &out, &errOut)
	return code, out.String(), errOut.String()
}

// What is printed for programs can be a prior, and it is of the model that the
// URL lists.
func TestBenchMeasuresAnEngine(t *testing.T) {
	engine, err := sim.NewServer(sim.Options{Names: []string{"org/m"}, Model: sim.Model{A: 0.002}})
	if err != nil {
		t.Fatal(err)
	}
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
		code, stdout, stderr := bench(t, s.URL, "--n", "4, 1", "--duration", "300ms", "--output", "20", format)
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
	code, stdout, _ := bench(t, s.URL+"/v1/", "--model", "org/m", "--n", "2", "--duration", "1s") // a busy machine has two tokens by then
	if code != 0 || !strings.Contains(stdout, "TOKENS/S EACH") {
		t.Errorf("exit code %d, the table is\n%s", code, stdout)
	}
	code, stdout, stderr := bench(t, s.URL, "--model", "other", "--n", "2", "--duration", "200ms")
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
	} {
		if code, stdout, stderr := bench(t, args...); code != 2 || stdout != "" || !strings.HasPrefix(stderr, "pacer: ") {
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
	if code, _, stderr := bench(t, s.URL); code != 1 || !strings.Contains(stderr, "--model") || strings.Contains(stderr, "sk-bench") {
		t.Errorf("exit code %d, %q; want 1 and what to write", code, stderr)
	}
}

func TestBenchPoint(t *testing.T) {
	seconds := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	// Two tokens an event, as the first stream's usage says: (20 + 10)·2 tokens
	// in 3 + 1 stream-seconds.
	p, err := benchPointOf(2, []loadgen.Result{
		{Outcome: loadgen.Done, Tokens: 21, First: 1, Counted: 42, Decode: seconds(3), TTFT: seconds(0.1)},
		{Outcome: loadgen.Aborted, Tokens: 11, First: 1, Decode: seconds(1), TTFT: seconds(0.3)},
		{Outcome: loadgen.Shed},
		{Outcome: loadgen.Failed, Err: errors.New("x")},
	})
	want := benchPoint{N: 2, TPS: 15, AggregateTPS: 30, TTFT: 0.2, TTFTP99: 0.3, StreamS: 4, Tokens: 60, Streams: 1, Shed: 1, Failed: 1}
	p.TTFT = math.Round(p.TTFT*1e9) / 1e9
	if err != nil || p != want {
		t.Errorf("%+v, %v; want %+v", p, err, want)
	}
	for name, results := range map[string][]loadgen.Result{
		"429":    {{Outcome: loadgen.Shed}},
		"broken": {{Outcome: loadgen.Failed, Err: errors.New("broken")}},
		"raise":  {{Outcome: loadgen.Done, Tokens: 1, First: 1, TTFT: seconds(1)}},
	} {
		if _, err := benchPointOf(1, results); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

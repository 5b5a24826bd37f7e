package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestSimCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr, lines := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"sim", "--listen", "127.0.0.1:0", "--model", "chat", "--speed", "50"}, io.Discard, lines)
	}()
	line := make([]byte, 200)
	n := must.Get(stderr.Read(line))(t)
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // until lines is closed
	defer lines.Close()
	ready := regexp.MustCompile(`^sim: ready (http://127\.0\.0\.1:[0-9]+) model=chat\n$`).FindSubmatch(line[:n])
	if ready == nil {
		t.Fatalf("ready line is %q", line[:n])
	}
	for name, want := range map[string]int{"chat": http.StatusOK, "llama-3.1-70b": http.StatusOK, "other": http.StatusNotFound} {
		resp := must.Get(http.Post(string(ready[1])+"/v1/completions", "application/json", strings.NewReader(`{"model":"`+name+`","prompt":"x","max_tokens":2}`)))(t)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("model %s: status %d, want %d", name, resp.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d after the signal, want 0", got)
	}
}

func TestSimUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--preset", "nope"},
		{"--behave", "nope"},
		{"--fault", "drift:0"},
		{"--max-num-seqs", "0"},
		{"--speed", "-1"},
		{"--listen", "9101"},
		{"--json"},
		{"--nope"},
		{"extra"},
	} {
		var stderr bytes.Buffer
		if got := run(t.Context(), append([]string{"sim"}, args...), io.Discard, &stderr); got != 2 {
			t.Errorf("pacer sim %v: exit code %d, want 2; stderr %q", args, got, stderr.String())
		}
	}
	var stderr bytes.Buffer
	if got := run(t.Context(), []string{"sim", "--listen", "127.0.0.1:-1"}, io.Discard, &stderr); got != 1 {
		t.Errorf("a port that cannot be had: exit code %d, want 1; stderr %q", got, stderr.String())
	}
}

func TestSimList(t *testing.T) {
	var text, data bytes.Buffer
	must.Do(t, errors.Join(listPresets(&text, false), listPresets(&data, true)))
	if !regexp.MustCompile(`(?m)^glm-5/h200/sglang +4: 55\.72  8: 49\.15  16: 40\.67  32: 31\.97$`).MatchString(text.String()) {
		t.Errorf("the list lacks glm-5/h200/sglang as published:\n%s", text.String())
	}
	var list struct {
		Presets []struct {
			Name   string
			Points []struct{ N, TPS float64 }
		}
	}
	must.Do(t, json.Unmarshal(data.Bytes(), &list))
	if got, want := len(list.Presets), strings.Count(text.String(), "\n")-1; got != want || got == 0 || len(list.Presets[0].Points) == 0 {
		t.Errorf("the JSON has %d presets, the text %d: %s", got, want, data.String())
	}
}

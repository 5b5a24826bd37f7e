package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/doctor"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/sim"
)

// A line for each finding, and an exit code that a script can go by.
func TestDoctor(t *testing.T) {
	engine := must.Get(sim.NewServer(sim.Options{Names: []string{"llama-3.1-70b"}, Model: carries64, Seed: 1}))(t)
	server := httptest.NewServer(engine)
	defer server.Close()
	file := func(model string) string {
		return proctest.Write(t, fmt.Sprintf("limits: { streams: 10, buffered: 1MiB, body: 1MiB }\nbackends: [ { name: gpu, url: %s/v1 } ]\nroutes: [ { model: chat, targets: [ { backend: gpu, model: %s } ] } ]\n", server.URL, model))
	}
	for _, c := range []struct {
		args []string
		code int
		want string // on stdout
	}{
		{[]string{"doctor", "-c", file("llama-3.1-70b")}, 0, "ok: backend gpu: it knows the models of its routes\n"},
		{[]string{"doctor", "-c", file("llama-3-70b")}, 1, "fail: backend gpu: it does not know the model \"llama-3-70b\" of route chat; write \"llama-3.1-70b\"\n"},
		{[]string{"doctor", "-c", proctest.Write(t, "backends: []\n")}, 1, "fail: "},
		{[]string{"doctor", "-c", "/nowhere/pacer.yaml"}, 2, ""},
		{[]string{"doctor", "extra"}, 2, ""},
	} {
		var out, problems bytes.Buffer
		if code := run(context.Background(), c.args, &out, &problems); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: exit code %d, want %d, and %q in\n%s%s", c.args, code, c.code, c.want, &out, &problems)
		}
		for line := range strings.Lines(out.String()) {
			if level, _, ok := strings.Cut(line, ": "); !ok || level != "ok" && level != "warn" && level != "fail" {
				t.Errorf("%v: the line %q is no finding", c.args, line)
			}
		}
	}

	var out, problems bytes.Buffer
	code := run(context.Background(), []string{"doctor", "--json", "-c", file("llama")}, &out, &problems)
	var got examined
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != 1 || got.OK || len(got.Findings) < 4 || got.Findings[0].Severity != doctor.OK {
		t.Errorf("--json: exit code %d, %v, %+v", code, err, got)
	}
}

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

func TestImport(t *testing.T) {
	const one = "model_list:\n  - { model_name: chat, litellm_params: { model: hosted_vllm/m, api_base: \"http://10.0.0.11:8000/v1\", rpm: 5 } }\n"
	lite, router, nginx := proctest.Write(t, one), proctest.Write(t, "vllm-router --static-backends http://10.0.0.11:8000 --static-models m\n"), proctest.Write(t, "upstream a { server gpu-1:8000; }\n")
	for _, c := range []struct {
		args        []string
		code        int
		out, errors string
	}{
		{[]string{"import", "litellm", lite}, 0, "kind: vllm\n", ":2: rpm of \"chat\""},
		{[]string{"import", "litellm", lite, "--json"}, 0, `"findings":[{"line":2,"what":"rpm of`, ""},
		{[]string{"import", "vllm-router", router}, 0, "models: [m]\n", ""},
		{[]string{"import", "nginx", nginx}, 0, "url: http://gpu-1:8000/v1\n", ""},
		{[]string{"import", "litellm", nginx}, 1, "", "it is no"},
		{[]string{"import", "litellm", proctest.Write(t, " \n")}, 2, "", "is empty"},
		{[]string{"import", "litellm", lite + ".not"}, 2, "", "no such file"},
		{[]string{"import", "litelm", lite}, 2, "", "litellm"},
		{[]string{"check", lite}, 2, "", "this is a configuration of LiteLLM: pacer import litellm FILE"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), c.args, &stdout, &stderr); code != c.code || !strings.Contains(stdout.String(), c.out) || !strings.Contains(stderr.String(), c.errors) {
			t.Errorf("pacer %s: code %d, want %d\n%s\n%s", strings.Join(c.args, " "), code, c.code, stdout.String(), stderr.String())
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"import", "litellm", lite}, &stdout, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	made := proctest.Write(t, stdout.String())
	if code := run(context.Background(), []string{"check", made}, &stdout, &stderr); code != 0 {
		t.Errorf("what was made is not taken:\n%s", stderr.String())
	}
	if _, err := os.Stat("../../docs/MIGRATE.md"); err != nil {
		t.Error(err)
	}
}

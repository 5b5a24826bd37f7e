package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/proctest"
)

func TestSLOExport(t *testing.T) {
	file := proctest.Write(t, "backends: [ { name: gpu, url: http://127.0.0.1:1/v1 } ]\nroutes: [ { model: chat, targets: [ { backend: gpu, model: m } ], slo: { min_tps: 30 } } ]\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"slo", "export", "-c", file}, 0, "apiVersion: openslo/v1\nkind: SLO\nmetadata:\n  name: chat\n"},
		{[]string{"slo", "export", "-c", file, "--format", "sloth"}, 0, "objective: 99\n"},
		{[]string{"slo", "export", "-c", file, "--window", "30d"}, 0, "duration: 30d\n"},
		{[]string{"slo", "export", "-c", file, "--window", "month"}, 2, ""},
		{[]string{"slo", "export", "-c", file, "--format", "iso"}, 2, ""},
		{[]string{"slo", "export", "-c", proctest.Write(t, "routes: []\n")}, 2, ""},
	} {
		var out, problems bytes.Buffer
		if code := run(context.Background(), c.args, &out, &problems); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: exit code %d, want %d, and %q in\n%s%s", c.args, code, c.code, c.want, &out, &problems)
		}
	}
}

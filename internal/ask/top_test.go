package ask

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
)

func TestPrintTop(t *testing.T) {
	var routes []api.Route
	must.Do(t, json.Unmarshal([]byte(`[
		{"model":"chat","class":"interactive","min_tps":30,"attainment":0.9912,"offered_per_s":12.5,"shed_per_s":0.25,"tps":{"p10":31.2,"p50":44,"p90":50},
		 "ttft_s":{"p50":0.1,"p90":0.2,"p99":0.41},"waiting":3,"free":7,"free_is_lower_bound":true,"cause":"load above capacity\u001b[2J"},
		{"model":"nightly","class":"batch","min_tps":null,"attainment":null,"offered_per_s":null,"shed_per_s":null,"tps":{"p10":null,"p50":null,"p90":null},
		 "ttft_s":{"p50":null,"p90":null,"p99":null},"waiting":0,"free":null}]`), &routes))
	var b bytes.Buffer
	lines, err := PrintTop(&b, routes, 200)
	if err != nil || lines != 3 || strings.Count(b.String(), "\n") != 3 {
		t.Fatalf("%d lines, %v:\n%s", lines, err, b.String())
	}
	rows := strings.Split(b.String(), "\n")
	for _, want := range []string{"chat", "30", "99.1%", "12.5", "0.25", "31.2", "44", "0.41 s", "3", "7+", "load above capacity"} {
		if !strings.Contains(rows[1], want) {
			t.Errorf("no %s in %q", want, rows[1])
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("what a gateway says reaches the terminal as it is")
	}
	if strings.Count(rows[2], "–") != 7 || !strings.Contains(rows[2], "any") || strings.Contains(rows[2], "NaN") {
		t.Errorf("what is not known is %q", rows[2])
	}
	b.Reset()
	must.Get(PrintTop(&b, routes, 40))(t)
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 40 {
			t.Errorf("a line of %d columns where there are 40: %q", n, line)
		}
	}
}

package ask

import (
	"bytes"
	"encoding/json"
	"slices"
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
	slices.Reverse(routes) // what is wrong stands first all the same
	if err := PrintTop(&b, &api.Routes{Routes: routes}, 200, false); err != nil || strings.Count(b.String(), "\n") != 3 {
		t.Fatalf("%v:\n%s", err, b.String())
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
}

// What is wrong, and each figure, is there whole at any width: as pipes and 80 columns
// have no room for all, the cause has lines of its own, and a terminal loses columns.
func TestPrintTopLosesNoFigure(t *testing.T) {
	const cause = "slower than learned ×0.69 (b, 2 of 3 backends)"
	var routes []api.Route
	must.Do(t, json.Unmarshal([]byte(`[
		{"model":"assistants-of-the-house","class":"interactive","min_tps":30,"attainment":0.9912,"offered_per_s":1234.5,"shed_per_s":0.251,"tps":{"p10":31.2,"p50":44.4,"p90":50},
		 "ttft_s":{"p50":0.1,"p90":0.2,"p99":0.412},"waiting":123,"free":156,"free_is_lower_bound":true,"cause":"`+cause+`"},
		{"model":"nightly","class":"batch","min_tps":null,"attainment":null,"offered_per_s":null,"shed_per_s":null,"tps":{"p10":null,"p50":null,"p90":null},
		 "ttft_s":{"p50":null,"p90":null,"p99":null},"waiting":0,"free":null}]`), &routes))
	figures := []string{"assistants-of-the-house", "30", "99.1%", "1.23e+03", "0.251", "31.2", "44.4", "0.412", "s", "123", "156+"}
	whole := slices.Concat(figures, strings.Fields(cause))
	for _, terminal := range []bool{false, true} {
		for width := 10; width <= 200; width++ {
			var b bytes.Buffer
			must.Do(t, PrintTop(&b, &api.Routes{Routes: routes}, width, terminal))
			text := b.String()
			if !strings.Contains(strings.Join(strings.Fields(text), ""), strings.ReplaceAll(cause, " ", "")) {
				t.Errorf("%d columns, terminal %v: the cause is not whole:\n%s", width, terminal, text)
			}
			rows := strings.Split(text, "\n")
			for i, field := range strings.Fields(rows[1]) {
				if !slices.Contains(whole, field) && (i > 0 || !terminal) {
					t.Errorf("%d columns, terminal %v: %q is no figure of the route:\n%s", width, terminal, field, text)
				}
			}
			for _, figure := range figures {
				if !slices.Contains(strings.Fields(rows[1]), figure) && !terminal {
					t.Errorf("%d columns in a pipe: %s is not there:\n%s", width, figure, text)
				}
			}
			if terminal && width >= 30 && !slices.Contains(strings.Fields(rows[1]), "156+") {
				t.Errorf("%d columns: how much is free is not there:\n%s", width, text)
			}
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); terminal && n > width {
					t.Errorf("a line of %d columns where there are %d: %q", n, width, line)
				}
			}
		}
	}
}

// What is wrong with the gateway stands above the routes.
func TestPrintTopSaysWhatTheGatewayHas(t *testing.T) {
	var answer api.Routes
	must.Do(t, json.Unmarshal([]byte(`{"verdict":{"causes":[{"of":"route","name":"chat","cause":"x"},{"of":"gateway","name":"","cause":"store down: nothing is shared since 09:04 UTC"}]}}`), &answer))
	var b bytes.Buffer
	must.Do(t, PrintTop(&b, &answer, 40, true))
	if want := "GATEWAY\n  what is wrong: store down: nothing is\n  shared since 09:04 UTC\nROUTE"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("%q, want it to begin with %q", b.String(), want)
	}
}

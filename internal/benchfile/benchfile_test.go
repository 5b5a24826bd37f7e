package benchfile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
)

// brief is the points of a curve as n:tps, and its notes.
func brief(c Curve) (points string, notes []string) {
	for _, p := range c.Points {
		points += fmt.Sprintf(" %d:%.4g", p.N, p.TPS)
	}
	for _, n := range c.Notes {
		notes = append(notes, n.String())
	}
	return strings.TrimSpace(points), notes
}

func TestLoad(t *testing.T) {
	t.Chdir("testdata")
	const exported = "Qwen_Qwen3-8B-openai-chat-concurrency16/profile_export_aiperf.csv"
	for _, tt := range []struct {
		files         []string
		model, format string
		points        string
		notes         []string
	}{
		{
			[]string{"vllm-concurrency8.json"},
			"meta-llama/Llama-3.1-8B-Instruct", "vllm bench serve",
			"8:102.6", nil,
		},
		{
			[]string{"vllm-appended.jsonl"},
			"meta-llama/Llama-3.1-8B-Instruct", "vllm bench serve",
			"1:125 2:122.5 8:100 32:68.97 128:40",
			[]string{
				"vllm-appended.jsonl:6: n = 256 left out: the first token took 9.1 s on average, so the engine was full and fewer than 256 were decoding",
				"vllm-appended.jsonl:7: n = 64 left out: only 10.9 requests were running on average; send more requests, without a request rate",
				"vllm-appended.jsonl:8: n = 4 left out: no mean_tpot_ms above 0; the answers have to be streamed, and tpot has to be among --percentile-metrics",
				"vllm-appended.jsonl:9: a result without max_concurrency left out: it ran at a request rate, so nobody knows at which n; run with --max-concurrency",
			},
		},
		{[]string{"aiperf-0.10.json"}, "Qwen/Qwen3-8B", "AIPerf", "16:84.5", nil},
		{[]string{"aiperf-0.3.json", "aiperf-0.10.json"}, "Qwen/Qwen3-8B", "AIPerf", "4:121.2 16:84.5", nil},
		{[]string{exported}, "", "AIPerf", "16:84.5", nil},
		{[]string{"genai-perf-0.0.16.json", "genai-perf-0.0.8.json"}, "llama-3.1-8b", "AIPerf", "8:100 32:62.5", nil},
		{
			[]string{"pacer.csv"},
			"", "Pacer CSV", "1:125 2:122.5 8:100 32:69 128:40",
			[]string{"pacer.csv:8: n = 256 left out: the first token took 9.1 s on average, so the engine was full and fewer than 256 were decoding"},
		},
		{[]string{"pacer.json"}, "llama-3.1-8b", "Pacer JSON", "1:125 8:100 32:69", nil},
		{
			[]string{"profiles.json"},
			"llama-70b", "Pacer profiles", "1:61.5 4:52.25 8:44",
			[]string{
				"profiles.json:68: n = 16 left out: it was extrapolated, not measured",
				"profiles.json:80: n = 64 left out: its speed is unknown",
			},
		},
		{
			[]string{"vllm-appended.jsonl", "vllm-concurrency8.json"},
			"meta-llama/Llama-3.1-8B-Instruct", "vllm bench serve",
			"1:125 2:122.5 8:102.6 32:68.97 128:40",
			[]string{"", "", "", "", "vllm-appended.jsonl:3: n = 8 left out: vllm-concurrency8.json:1 states it again, and counts"},
		},
	} {
		c, err := Load(tt.files...)
		if err != nil {
			t.Errorf("%s: %v", tt.files, err)
			continue
		}
		points, notes := brief(c)
		if c.Model != tt.model || c.Format != tt.format || points != tt.points {
			t.Errorf("%s: %s of %q: %s; want %s of %q: %s", tt.files, c.Format, c.Model, points, tt.format, tt.model, tt.points)
		}
		for i := range tt.notes {
			if tt.notes[i] == "" && i < len(notes) {
				tt.notes[i] = notes[i] // looked at in another case
			}
		}
		if diff := cmp.Diff(tt.notes, notes); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", tt.files, diff)
		}
	}
}

func TestPointsSayWhereTheyStand(t *testing.T) {
	c := must.Get(Load("testdata/pacer.json", "testdata/pacer.csv"))(t)
	want := []Point{
		{1, 125, 0.031, "testdata/pacer.csv", 3},
		{2, 122.5, 0.033, "testdata/pacer.csv", 4},
		{8, 100, 0.062, "testdata/pacer.csv", 5},
		{32, 69, 0.18, "testdata/pacer.csv", 6},
		{128, 40, 0.7, "testdata/pacer.csv", 7},
	}
	if diff := cmp.Diff(want, c.Points); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if len(c.Notes) != 4 { // 256, and three levels of the JSON that the CSV replaces
		t.Errorf("notes %v, want 4", c.Notes)
	}
}

func TestParseForms(t *testing.T) {
	many := strings.Builder{}
	many.WriteString("n,tps\n")
	for n := range MaxPoints {
		fmt.Fprintf(&many, "%d,50\n", n+1)
	}
	for _, tt := range []struct{ name, text, points string }{
		{"f", "\ufeffn,tps\r\n1,50\r\n", "1:50"},
		{"f", "TPS; N\n50;1\n40; 8\n", "1:50 8:40"},
		{"f", "n\ttps\n4\t30.5\n", "4:30.5"},
		{"f", "# measured on Monday, alone\n\nn,tps,note\n1,50,first\n", "1:50"},
		{"f", "n,tps\n1,50\n1,51\n", "1:51"},
		{"f", "backend,model,n,tps,low,source\na,m,1,50,45,learned\na,m,2,48,43,extrapolated\na,m,4,,,\n", "1:50"},
		{"f", `[{"max_concurrency":4,"median_tpot_ms":20},{"max_concurrency":8,"mean_tpot_ms":25}]`, "4:50 8:40"},
		{"f", `{"max_concurrency":8,"mean_tpot_ms":25}{"max_concurrency":4,"mean_tpot_ms":20}`, "4:50 8:40"},
		{"f", `{"input_config":{"concurrency":[2]},"inter_token_latency":{"unit":"us","avg":20000}}`, "2:50"},
		{"m-concurrency4/a.json", `{"input_config":{},"output_token_throughput_per_user":{"avg":50}}`, "4:50"},
		{"a/concurrency_8/b-concurrency_16.csv", "Metric,avg,min\nInter Token Latency (ms),20.00,1\n", "16:50"},
		{"f", many.String(), ""},
	} {
		c, err := Parse(tt.name, []byte(tt.text))
		if err != nil {
			t.Errorf("%.80q: %v", tt.text, err)
			continue
		}
		if points, _ := brief(c); tt.points != "" && points != tt.points {
			t.Errorf("%.80q: %s, want %s", tt.text, points, tt.points)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	many := "n,tps\n"
	for n := range MaxPoints + 1 {
		many += fmt.Sprintf("%d,50\n", n+1)
	}
	for _, tt := range []struct{ text, want string }{
		{"", "f:1: the file is empty; expected CSV with the header n,tps,"},
		{" \n\n", "f:1: the file is empty;"},
		{"n,tps\n", "f:1: no points; expected CSV"},
		{"users,speed\n1,50\n", `f:1: the columns are "users,speed"; expected the header n,tps`},
		{"hello", `f:1: the columns are "hello"; expected the header n,tps`},
		{"n,tps\n1,50\nx,40\n", `f:3: n is "x"; expected a whole number from 1`},
		{"n,tps\n1.5,50\n", `f:2: n is "1.5"; expected a whole number from 1`},
		{"n,tps\n0,50\n", "f:2: n is 0; expected a whole number from 1"},
		{"n,tps\n\n1,50\n2\n", `f:4: tps is ""; expected the tokens/s of one stream`},
		{"n,tps\n1,fast\n", `f:2: tps is "fast"; expected the tokens/s of one stream`},
		{"n,tps\n1,-4\n", "f:2: the speed at n = 1 is -4 tokens/s; expected"},
		{"n,tps\n1,NaN\n", "f:2: the speed at n = 1 is NaN tokens/s; expected"},
		{"n,tps\n1,1e9\n", "f:2: the speed at n = 1 is 1e+09 tokens/s; expected"},
		{"n,tps,ttft_s\n1,50,-1\n", `f:2: ttft_s is "-1"; expected the mean seconds`},
		{"n,tps\n9000,50\n", "f:2: n = 9000 left out: a curve ends at 8192; nothing else is here"},
		{"n,tps\n\"1,50\n", "f:2: extraneous or missing \" in quoted-field; expected CSV"},
		{"backend,model,n,tps\na,m,1,50\nb,m,1,40\n", `f:3: a second target begins here, "b m" after "a m"; expected one`},
		{many, "f:258: more than 256 levels of concurrency"},
		{"Metric,avg\nInter Token Latency (ms),20\n", "f:1: this export does not say at which concurrency it ran; expected a path that does"},
		{"{\n\"points\": [\n{\"n\": 1, \"tps\": 50},\n{\"n\": 2 \"tps\": 40}]}", "f:4: invalid character '\"' after object key:value pair; expected JSON"},
		{"{\"a\": 1}\n\n{\"points\"", "f:1: no format that is known here;"},
		{"{\"max_concurrency\":4,\"mean_tpot_ms\":20}\n\n{\"max", "f:3: unexpected end of JSON input; expected JSON"},
		{"{\"max_concurrency\":4,\"mean_tpot_ms\":NaN}", "f:1: invalid character 'N'"},
		{"[1]", "f:1: a Number stands here; expected"},
		{"[\n{\"points\":[]},\n7]", "f:3: a Number stands here; expected"},
		{`{"points":[]}`, "f:1: no points; expected"},
		{`{"points":{}}`, "f:1: points is no list; expected"},
		{"{\"points\":[\n{\"n\":1,\"tps\":2},\n{\"tps\":2}]}", "f:3: the point has no number n; expected"},
		{`{"points":[{"n":"1","tps":2}]}`, "f:1: the point has no number n; expected"},
		{`{"points":[{"n":1}]}`, "f:1: the point has no number tps; expected"},
		{`{"points":[{"n":1.5,"tps":2}]}`, "f:1: n is 1.5; expected a whole number"},
		{`{"points":[{"n":1e300,"tps":2}]}`, "f:1: n is 1e+300; expected a whole number"},
		{`{"targets":[]}`, "f:1: targets holds 0 curves; expected one: pacer curves --json --backend NAME prints it"},
		{"{\n\"targets\":[{},{}]}", "f:2: targets holds 2 curves; expected one"},
		{`{"targets":[{"points":[{"n":1,"tps":null}]}]}`, "f:1: n = 1 left out: its speed is unknown; nothing else is here to rest a curve on"},
		{`{"metadata":{},"metrics":{}}`, "f:1: this is a single request of AIPerf; expected the summary of the run"},
		{`{"experiments":[]}`, "f:1: this is Perf Analyzer's list of requests; expected the summary"},
		{`{"input_config":{"request_rate":4},"inter_token_latency":{"avg":20}}`, "f:1: a result without concurrency"},
		{`{"input_config":{"concurrency":4}}`, "f:1: n = 4 left out: no output_token_throughput_per_user above 0; run with --streaming"},
		{`{"max_concurrency":4,"mean_tpot_ms":20,"completed":0}`, "f:1: n = 4 left out: no request was completed"},
		{"{\"max_concurrency\":4,\"mean_tpot_ms\":20,\"model_id\":\"a\"}\n{\"max_concurrency\":8,\"mean_tpot_ms\":20,\"model_id\":\"b\"}", `f:2: this is a result of "b", and those before it are of "a"; expected one model a file`},
	} {
		c, err := Parse("f", []byte(tt.text))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%.80q:\n %v, %v\nwant an error\n %s", tt.text, c.Points, err, tt.want)
		}
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a, b := write("a", `{"max_concurrency":4,"mean_tpot_ms":20,"model_id":"x"}`), write("b", "\n"+`{"max_concurrency":8,"mean_tpot_ms":20,"model_id":"y"}`)
	large := write("large", "")
	must.Do(t, os.Truncate(large, MaxBytes+1))
	for _, tt := range []struct {
		files []string
		want  string
	}{
		{[]string{a, filepath.Join(dir, "none")}, filepath.Join(dir, "none") + ": no such file or directory; expected a file with"},
		{[]string{dir}, dir + ": not a regular file; expected"},
		{[]string{large}, large + ": larger than 16 MiB; expected a summary"},
		{[]string{a, b}, b + `:2: this is the curve of "y", and ` + a + ` that of "x"; expected files of one model`},
	} {
		if _, err := Load(tt.files...); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %s", tt.files, err, tt.want)
		}
	}
}

func TestNotesAreBounded(t *testing.T) {
	text := "n,tps\n1,50\n" + strings.Repeat("9000,50\n", 10*maxNotes)
	c, err := Parse("f", []byte(text))
	if err != nil || len(c.Notes) != maxNotes {
		t.Errorf("%d notes, %v; want %d", len(c.Notes), err, maxNotes)
	}
}

// FuzzParse holds that every text gives a valid curve or an error at a line of
// the text.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.*")
	more, _ := filepath.Glob("testdata/*/*.csv")
	if err != nil || len(paths) < 9 || len(more) == 0 {
		f.Fatalf("%d and %d files to start from (%v)", len(paths), len(more), err)
	}
	for _, path := range append(paths, more...) {
		data := must.Get(os.ReadFile(path))(f)
		f.Add(data)
	}
	f.Add([]byte("n;tps\n1;50"))
	f.Add([]byte(`[{"max_concurrency":4,"mean_tpot_ms":20}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("m-concurrency16/f", data)
		lines := 2 + strings.Count(string(data), "\n")
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.Line < 0 || wrong.Line > lines || wrong.Message == "" {
				t.Errorf("error %#v of a text of %d lines", err, lines)
			}
			return
		}
		if len(c.Points) == 0 || len(c.Points) > MaxPoints || len(c.Notes) > maxNotes || c.Format == "" {
			t.Errorf("%d points, %d notes, format %q", len(c.Points), len(c.Notes), c.Format)
		}
		last := 0
		for _, p := range c.Points {
			if p.N <= last || p.N > MaxN || !(p.TPS >= minTPS && p.TPS <= maxTPS) || p.TTFT < 0 || math.IsNaN(p.TTFT) || p.Line < 1 || p.Line > lines {
				t.Errorf("point %+v after n = %d", p, last)
			}
			last = p.N
		}
	})
}

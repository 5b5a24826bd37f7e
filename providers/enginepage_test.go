package providers

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/upstream"
)

func enginePageOf(t testing.TB, name string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("testdata", "engines", name)))(t)
	return data
}

func TestEnginePages(t *testing.T) {
	for _, c := range []struct {
		file, kind       string
		running, waiting int
	}{
		{"vllm.txt", "vllm", 36, 2}, // the engines of one server add up
		{"vllm-v0.txt", "vllm", 11, 4},
		{"sglang.txt", "sglang", 12, 1}, // replicas add up, the ranks of one do not
		{"sglang-priority.txt", "sglang", 14, 2},
		{"tgi.txt", "tgi", 12, 3},
		{"llamacpp.txt", "llamacpp", 8, 5},
	} {
		for _, kind := range []string{c.kind, "openai", ""} { // which tell no engine
			got, err := newPageReader(upstream.Of(kind)).read(enginePageOf(t, c.file))
			if err != nil || got.running != c.running || got.waiting != c.waiting {
				t.Errorf("%s as %q: %d running, %d waiting, %v; want %d and %d", c.file, kind, got.running, got.waiting, err, c.running, c.waiting)
			}
		}
	}
	if _, err := newPageReader(upstream.Of("tgi")).read(enginePageOf(t, "vllm.txt")); err == nil || !strings.Contains(err.Error(), "tgi_batch_current_size") {
		t.Errorf("a page of vLLM's as TGI's: %v, want the name that is missing", err)
	}
}

func TestReadPage(t *testing.T) {
	const ok = "vllm:num_requests_running 3\n"
	for _, c := range []struct {
		name, page       string
		running, waiting int
		err              string
	}{
		{name: "no labels", page: ok, running: 3},
		{name: "no line end, a time", page: "vllm:num_requests_running 3 1700000000000", running: 3},
		{name: "carriage returns and spaces", page: "  vllm:num_requests_running{ a = \"b\" , } \t 3.0\r\n", running: 3},
		{name: "empty labels", page: "vllm:num_requests_running{} 3\n", running: 3},
		{name: "exponent", page: "vllm:num_requests_running 1.2e1\n", running: 12},
		{name: "escapes", page: `vllm:num_requests_running{model_name="a\"} 9,b=\\"} 3` + "\n", running: 3},
		{name: "models of one server", page: "vllm:num_requests_running{model_name=\"a\"} 3\nvllm:num_requests_running{model_name=\"b\"} 4\n", running: 7},
		{name: "order of labels", page: "vllm:num_requests_running{a=\"1\",tp_rank=\"0\",b=\"2\"} 3\nvllm:num_requests_running{b=\"2\",a=\"1\",tp_rank=\"1\"} 4\n", running: 4},
		{name: "labels that only look alike", page: "vllm:num_requests_running{a=\"bc\"} 3\nvllm:num_requests_running{ab=\"c\"} 4\n", running: 7},
		{name: "other names with the same beginning", page: ok + "vllm:num_requests_running_total 9\nvllm:num_requests_waiting_by_reason{reason=\"capacity\"} 5\n", running: 3},
		{name: "first engine known", page: "tgi_batch_current_size 4\n" + ok, running: 3},
		{name: "nonsense elsewhere", page: "}{ what\nfoo{ 1\nvllm:other{\"} x\n" + ok, running: 3},
		{name: "empty", err: "no vllm:num_requests_running or sglang:"},
		{name: "help alone", page: "# HELP vllm:num_requests_running 3\n# TYPE vllm:num_requests_running gauge\n", err: "the page has no"},
		{name: "waiting alone", page: "vllm:num_requests_waiting 3\n", err: "the page has no"},
		{name: "a priority without the sum", page: "sglang:num_running_reqs{priority=\"1\"} 3\n", err: "the page has no"},
		{name: "NaN", page: "vllm:num_requests_running NaN\n", err: "NaN is no number"},
		{name: "infinite", page: "vllm:num_requests_running +Inf\n", err: "+Inf is no number"},
		{name: "negative", page: ok + "vllm:num_requests_waiting -1\n", err: "vllm:num_requests_waiting: -1 is no number"},
		{name: "too many", page: "vllm:num_requests_running 2e6\n", err: "no number"},
		{name: "too many together", page: "vllm:num_requests_running{a=\"1\"} 9e5\nvllm:num_requests_running{a=\"2\"} 9e5\n", err: "more than any engine"},
		{name: "no value", page: "vllm:num_requests_running \n", err: "the page has no"},
		{name: "no number", page: "vllm:num_requests_running many\n", err: "cannot be read"},
		{name: "no quote", page: "vllm:num_requests_running{a=b} 3\n", err: "cannot be read"},
		{name: "no end of a label", page: "vllm:num_requests_running{a=\"b} 3\n", err: "cannot be read"},
		{name: "no end of labels", page: "vllm:num_requests_running{a=\"b\" 3\n", err: "cannot be read"},
	} {
		got, err := newPageReader(upstream.Of("openai")).read([]byte(c.page))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want an error with %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || got.running != c.running || got.waiting != c.waiting {
			t.Errorf("%s: %d running, %d waiting, %v; want %d and %d", c.name, got.running, got.waiting, err, c.running, c.waiting)
		}
	}
	var many strings.Builder
	for i := range mostGroups + 1 {
		fmt.Fprintf(&many, "vllm:num_requests_running{model_name=\"%d\"} 1\n", i)
	}
	if _, err := newPageReader(upstream.Of("vllm")).read([]byte(many.String())); err == nil {
		t.Error("any number of series is taken, want a bound")
	}
}

// The print changes with whatever the engine exports, and with nothing else.
func TestPrintOfAPage(t *testing.T) {
	r := newPageReader(upstream.Of("openai"))
	page := string(enginePageOf(t, "vllm.txt"))
	read := func(page string) uint64 {
		p := must.Get(r.read([]byte(page)))(t)
		return p.print
	}
	first := read(page)
	if read(page) != first {
		t.Error("the same page has another print")
	}
	if read(strings.ReplaceAll(page, "812.", "813.")) != first {
		t.Error("what the process says of itself changes the print")
	}
	if read(strings.Replace(page, "912331.0", "912332.0", 1)) == first {
		t.Error("a token more does not change the print")
	}
}

// sums adds up the series of a gauge as a library reads them.
func sums(families map[string]*dto.MetricFamily, name string) (sum float64, ok bool) {
	for _, m := range families[name].GetMetric() {
		sum += m.GetGauge().GetValue() + m.GetUntyped().GetValue() + m.GetCounter().GetValue()
		ok = true
	}
	return sum, ok
}

// Whatever the page, nothing breaks; and where the library of Prometheus reads
// one without ranks and priorities, the sums are its.
func FuzzReadPage(f *testing.F) {
	files, err := filepath.Glob("testdata/engines/*.txt")
	if err != nil || len(files) < 6 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		f.Add(enginePageOf(f, filepath.Base(file)))
	}
	f.Add([]byte("vllm:num_requests_running{a=\"\\\\\",b=\"}\\n\"} 3 1\nvllm:num_requests_waiting 1e0\n"))
	f.Add([]byte("vllm:num_requests_running{a=\"b\"} 0x1p3\nvllm:num_requests_running{a=\"c\"}2\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		got, err := newPageReader(upstream.Of("vllm")).read(page)
		if err == nil && (got.running < 0 || got.waiting < 0 || got.running > mostSequences || got.waiting > mostSequences) {
			t.Fatalf("%+v is no load", got)
		}
		if bytes.Contains(page, []byte("_rank")) || bytes.Contains(page, []byte("priority")) || bytes.ContainsAny(page, "\r\v\f\u0085\u00a0") {
			return
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, oracle := parser.TextToMetricFamilies(bytes.NewReader(page))
		if oracle != nil {
			return // it refuses a page for a line that is none of ours
		}
		running, ok := sums(families, "vllm:num_requests_running")
		waiting, _ := sums(families, "vllm:num_requests_waiting")
		if !ok || running > 1000 || waiting > 1000 || !(running >= 0) || !(waiting >= 0) {
			return
		}
		if err == nil && (got.running != int(math.Round(running)) || got.waiting != int(math.Round(waiting))) {
			t.Errorf("%d running, %d waiting; the library says %v and %v", got.running, got.waiting, running, waiting)
		}
	})
}

// bigPage is as large as vLLM's with two engines: 30 histograms.
func bigPage() []byte {
	var b bytes.Buffer
	for _, name := range []string{"running", "waiting"} {
		fmt.Fprintf(&b, "# TYPE vllm:num_requests_%s gauge\n", name)
		for engine := range 2 {
			fmt.Fprintf(&b, "vllm:num_requests_%s{engine=\"%d\",model_name=\"meta-llama/Llama-3.1-70B-Instruct\"} %d.0\n", name, engine, 17+engine)
		}
	}
	for h := range 30 {
		fmt.Fprintf(&b, "# HELP vllm:histogram_%d_seconds Histogram of something in seconds.\n# TYPE vllm:histogram_%d_seconds histogram\n", h, h)
		for engine := range 2 {
			for edge := range 22 {
				fmt.Fprintf(&b, "vllm:histogram_%d_seconds_bucket{engine=\"%d\",le=\"%d.0\",model_name=\"meta-llama/Llama-3.1-70B-Instruct\"} %d.0\n", h, engine, edge, 1000*edge)
			}
		}
	}
	return b.Bytes()
}

// Budget: under 1 ms and no allocation for a page of 140 KiB: once a second and
// backend. The library of Prometheus, below, takes 50 times as long and 48,628
// allocations.
func BenchmarkReadPage(b *testing.B) {
	page, r := bigPage(), newPageReader(upstream.Of("openai"))
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if p, err := r.read(page); err != nil || p.running != 35 {
			b.Fatal(p, err)
		}
	}
}

func BenchmarkReadPageByTheLibrary(b *testing.B) {
	page := bigPage()
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
		if running, _ := sums(families, "vllm:num_requests_running"); err != nil || running != 35 {
			b.Fatal(running, err)
		}
	}
}

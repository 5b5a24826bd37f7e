package benchfile

import (
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"
)

// aiperf reads the summary of one run of AIPerf or GenAI-Perf.
func (f *file) aiperf(d document, line int) error {
	f.format("AIPerf")
	for _, path := range []string{
		"input_config.models.items.0.name", "input_config.endpoint.model_names.0", // AIPerf, from 0.9 and before
		"input_config.model_names.0", "input_config.model.0", // GenAI-Perf, late and early
	} {
		if name := d.Get(path); name.Type == gjson.String {
			if err := f.model(line, name.Str); err != nil {
				return err
			}
			break
		}
	}
	n, ok := concurrency(d)
	if !ok {
		n, ok = namedConcurrency(f.name)
	}
	if !ok {
		f.skip(line, "a result without concurrency in its input_config left out: it ran at a request rate, so nobody knows at which n; run with --concurrency")
		return nil
	}
	tps, ok := d.number("output_token_throughput_per_user.avg")
	if itl, known := d.seconds("inter_token_latency"); (!ok || tps == 0) && known && itl > 0 {
		tps, ok = 1/itl, true // GenAI-Perf before 0.0.11 has no speed of one user
	}
	if !ok || tps == 0 {
		f.skip(line, "n = %v left out: no output_token_throughput_per_user above 0; run with --streaming", n)
		return nil
	}
	ttft, _ := d.seconds("time_to_first_token")
	if at := d.Get("output_token_throughput_per_user"); at.Index > 0 {
		line = f.at(d, at)
	}
	return f.add(line, n, tps, ttft)
}

// concurrency returns what the run was told to keep up.
func concurrency(d document) (float64, bool) {
	for _, path := range []string{
		"input_config.loadgen.concurrency",
		`input_config.phases.#(name=="profiling").concurrency`,
		"input_config.perf_analyzer.stimulus.concurrency",
		"input_config.concurrency",
	} {
		r := d.Get(path)
		if list := r.Array(); r.IsArray() && len(list) == 1 {
			r = list[0]
		}
		if r.Type == gjson.Number {
			return r.Num, true
		}
	}
	return 0, false
}

// seconds returns the average of a metric of time.
func (d document) seconds(metric string) (float64, bool) {
	avg, ok := d.number(metric + ".avg")
	switch d.Get(metric + ".unit").String() {
	case "s", "sec", "seconds":
		return avg, ok
	case "us":
		return avg / 1e6, ok
	case "ns":
		return avg / 1e9, ok
	}
	return avg / 1e3, ok // ms, which all versions write
}

var inName = regexp.MustCompile(`(?i)concurrency[-_=]?([0-9]{1,6})`)

// namedConcurrency finds the concurrency in a path: both tools name the folder
// of a run like m-openai-chat-concurrency16. The last mention counts.
func namedConcurrency(path string) (float64, bool) {
	all := inName.FindAllStringSubmatch(path, -1)
	if all == nil {
		return 0, false
	}
	n, err := strconv.Atoi(all[len(all)-1][1])
	return float64(n), err == nil && n > 0
}

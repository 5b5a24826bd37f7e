package benchfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/tidwall/gjson"
)

// document is one JSON object of a file.
type document struct {
	gjson.Result     // its Index counts from base
	base         int // offset in the file
}

// start is the document's offset in the file.
func (d document) start() int { return d.base + d.Index }

// json reads one document after the other: a file holds one, or JSON lines, or
// an array of them.
func (f *file) json() error {
	dec := json.NewDecoder(bytes.NewReader(f.data))
	end := 0
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.syntax(end)
		}
		end = int(dec.InputOffset())
		d := document{gjson.ParseBytes(raw), end - len(raw)}
		if !d.IsArray() {
			if err := f.document(d); err != nil {
				return err
			}
			continue
		}
		d.ForEach(func(_, element gjson.Result) bool {
			err = f.document(document{element, d.base})
			return err == nil
		})
		if err != nil {
			return err
		}
	}
}

// syntax says where the JSON after an offset goes wrong.
func (f *file) syntax(after int) error {
	var any json.RawMessage
	err := json.Unmarshal(f.data[after:], &any)
	var wrong *json.SyntaxError
	if errors.As(err, &wrong) {
		// The offset is behind the byte that is wrong.
		return f.fail(f.line(after+int(wrong.Offset)-1), "%s; expected JSON", wrong.Error())
	}
	return f.fail(f.line(after), "this is no JSON; %s", expected)
}

// document reads one object, by what it holds.
func (f *file) document(d document) error {
	line := f.line(d.start())
	switch {
	case !d.IsObject():
		return f.fail(line, "a %s stands here; %s", d.Type, expected)
	case d.has("targets"):
		return f.profiles(d)
	case d.has("points"):
		return f.points(d)
	case d.has("metadata") && d.has("metrics"):
		return f.fail(line, "this is a single request of AIPerf; expected the summary of the run, profile_export_aiperf.json")
	case d.has("experiments"):
		return f.fail(line, "this is Perf Analyzer's list of requests; expected the summary of the run, profile_export_genai_perf.json")
	case d.has("input_config") || d.has("output_token_throughput_per_user") || d.has("inter_token_latency"):
		return f.aiperf(d, line)
	case d.has("mean_tpot_ms") || d.has("median_tpot_ms") || d.has("max_concurrency"):
		return f.vllm(d, line)
	}
	return f.fail(line, "no format that is known here; %s", expected)
}

func (d document) has(path string) bool { return d.Get(path).Exists() }

// number returns a field, and whether it is a number.
func (d document) number(path string) (float64, bool) {
	r := d.Get(path)
	return r.Num, r.Type == gjson.Number
}

// at returns the line of a part of d.
func (f *file) at(d document, part gjson.Result) int { return f.line(d.base + part.Index) }

// profiles reads the answer of /api/v1/profiles, or what pacer curves --json
// prints of one backend.
func (f *file) profiles(d document) error {
	f.format("Pacer profiles")
	targets := d.Get("targets")
	list := targets.Array()
	if !targets.IsArray() || len(list) != 1 {
		return f.fail(f.at(d, targets), "targets holds %d curves; expected one: pacer curves --json --backend NAME prints it", len(list))
	}
	var err error
	targets.ForEach(func(_, t gjson.Result) bool {
		err = f.points(document{t, d.base})
		return false
	})
	return err
}

// points reads {"model": …, "points": [{"n": …, "tps": …, "ttft_s": …}]}.
func (f *file) points(d document) error {
	f.format("Pacer JSON")
	if err := f.model(f.line(d.start()), d.Get("model").String()); err != nil {
		return err
	}
	points := d.Get("points")
	if !points.IsArray() {
		return f.fail(f.at(d, points), "points is no list; expected [{\"n\": 8, \"tps\": 47.1}, …]")
	}
	var err error
	points.ForEach(func(_, r gjson.Result) bool {
		p := document{r, d.base}
		err = f.point(p, f.line(p.start()))
		return err == nil
	})
	return err
}

func (f *file) point(p document, line int) error {
	n, ok := p.number("n")
	if !ok {
		return f.fail(line, "the point has no number n; expected {\"n\": 8, \"tps\": 47.1}")
	}
	switch source := p.Get("source").String(); {
	case p.Get("tps").Type == gjson.Null && p.has("tps"):
		f.skip(line, "n = %v left out: its speed is unknown", n)
		return nil
	case source == "extrapolated":
		f.skip(line, "n = %v left out: it was extrapolated, not measured", n)
		return nil
	}
	tps, ok := p.number("tps")
	if !ok {
		return f.fail(line, "the point has no number tps; expected {\"n\": 8, \"tps\": 47.1}")
	}
	ttft, _ := p.number("ttft_s")
	return f.add(line, n, tps, ttft)
}

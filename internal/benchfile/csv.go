package benchfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-dev/pacer/internal/readfile"
)

// csv reads a table: one level a row, or one metric a row.
func (f *file) csv() error {
	r := csv.NewReader(bytes.NewReader(f.data))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord, r.Comment = -1, true, true, '#'
	r.Comma = f.separator()
	head, err := r.Read()
	if err != nil {
		return f.badRow(err)
	}
	line, _ := r.FieldPos(0)
	columns := make([]string, len(head))
	for i, name := range head {
		columns[i] = strings.ToLower(strings.TrimSpace(name))
	}
	n, tps := slices.Index(columns, "n"), slices.Index(columns, "tps")
	switch {
	case n >= 0 && tps >= 0:
		return f.levels(r, columns)
	case columns[0] == "metric" && slices.Contains(columns, "avg"):
		return f.metrics(r, slices.Index(columns, "avg"))
	}
	return f.fail(line, "the columns are %.100q; expected the header n,tps or n,tps,ttft_s, or an export of AIPerf or GenAI-Perf", strings.Join(columns, ","))
}

// separator is what the first line that is no comment separates its columns
// with.
func (f *file) separator() rune {
	for line := range bytes.Lines(f.data) {
		if line[0] == '#' || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		for _, c := range ",;\t" {
			if bytes.ContainsRune(line, c) {
				return c
			}
		}
		break
	}
	return ','
}

func (f *file) badRow(err error) error {
	var wrong *csv.ParseError
	if errors.As(err, &wrong) {
		return f.fail(wrong.Line, "%v; expected CSV", wrong.Err)
	}
	return f.fail(1, "%s; %s", readfile.Reason(err), expected)
}

// levels reads rows of n, tps and, where there is one, ttft_s. Other columns
// say more about a row: those of pacer curves --csv name the target, which has
// to be one, and where the figure comes from.
func (f *file) levels(r *csv.Reader, columns []string) error {
	f.format("Pacer CSV")
	index := func(name string) int { return slices.Index(columns, name) }
	n, tps, ttft, source := index("n"), index("tps"), index("ttft_s"), index("source")
	first := ""
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.badRow(err)
		}
		line, _ := r.FieldPos(0)
		field := func(i int) string {
			if i < 0 || i >= len(row) {
				return ""
			}
			return strings.TrimSpace(row[i])
		}
		if target := field(index("backend")) + " " + field(index("model")); first == "" {
			first = target
			f.curve.Model = field(index("model"))
		} else if target != first {
			return f.fail(line, "a second target begins here, %.80q after %.80q; expected one: pacer curves --csv --backend NAME prints it", target, first)
		}
		switch level, err := strconv.Atoi(field(n)); {
		case err != nil:
			return f.fail(line, "n is %.40q; expected a whole number from 1", field(n))
		case field(tps) == "" && source >= 0:
			f.skip(line, "n = %d left out: its speed is unknown", level)
		case field(source) == "extrapolated":
			f.skip(line, "n = %d left out: it was extrapolated, not measured", level)
		default:
			if err := f.level(line, level, field(tps), field(ttft)); err != nil {
				return err
			}
		}
	}
}

func (f *file) level(line, n int, tps, ttft string) error {
	speed, err := strconv.ParseFloat(tps, 64)
	if err != nil {
		return f.fail(line, "tps is %.40q; expected the tokens/s of one stream, such as 47.1", tps)
	}
	first := 0.0
	if ttft != "" {
		if first, err = strconv.ParseFloat(ttft, 64); err != nil || !(first >= 0) {
			return f.fail(line, "ttft_s is %.40q; expected the mean seconds to the first token, such as 0.35, or nothing", ttft)
		}
	}
	return f.add(line, float64(n), speed, first)
}

// metrics reads the CSV of AIPerf or GenAI-Perf: one run, one metric a row,
// averages in column avg. It does not say the concurrency; the path may.
func (f *file) metrics(r *csv.Reader, avg int) error {
	f.format("AIPerf")
	n, ok := namedConcurrency(f.name)
	if !ok {
		return f.fail(1, "this export does not say at which concurrency it ran; expected a path that does, such as …-concurrency16/profile_export_aiperf.csv, or profile_export_aiperf.json, which holds it")
	}
	var tps, itl, ttft float64
	line, itlLine := 0, 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) || err == nil && row[0] == "Metric" {
			break // the end, or the next table
		}
		if err != nil {
			return f.badRow(err)
		}
		if avg >= len(row) {
			continue
		}
		at, _ := r.FieldPos(0)
		value, err := strconv.ParseFloat(strings.ReplaceAll(row[avg], ",", ""), 64)
		known := true
		switch name := strings.ToLower(row[0]); {
		case strings.HasPrefix(name, "output token throughput per user"):
			tps, line = value, at
		case name == "inter token latency (ms)":
			itl, itlLine = value, at
		case name == "time to first token (ms)":
			ttft = value
		default:
			known = false
		}
		if known && err != nil {
			return f.fail(at, "the average of %q is %.40q; expected a number", row[0], row[avg])
		}
	}
	if line == 0 && itl > 0 {
		tps, line = 1000/itl, itlLine
	}
	if line == 0 {
		return f.fail(1, "no row Output Token Throughput Per User and none Inter Token Latency; expected the export of a run with --streaming")
	}
	return f.add(line, n, tps, ttft/1000)
}

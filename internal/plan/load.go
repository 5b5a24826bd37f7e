package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// workload is the load at factor 1.
type workload struct {
	file      string          // of a trace; "" = generated
	generator arena.Generator // its Duration is not set
	shares    []arena.Share
	duration  time.Duration // 0 = as long as the trace is
	warmup    time.Duration // 0 = not stated
	seed      uint64

	// What it comes to at factor 1; filled by measureLoad.
	summary arena.Summary
	took    time.Duration // how long it is
}

func (q *Question) readLoad(cfg *config.Config) (workload, error) {
	l := workload{file: q.Trace, duration: q.Duration, warmup: q.Warmup, seed: q.Seed}
	var err error
	if l.shares, err = readShares(q.Shares, cfg); err != nil {
		return l, err
	}
	if q.Given("trace") {
		if q.Trace == "" {
			return l, errors.New("--trace names no file")
		}
		return l, nil
	}
	if q.Rate == "" {
		return l, errors.New("no load is given; write --trace FILE (CSV: arrival_s,prompt_tokens,output_tokens), or --rate 5/s with --prompt 1000 --output 300")
	}
	l.duration = cmp.Or(l.duration, usualTime)
	l.generator.Seed = q.Seed
	if l.generator.Rate, err = readRate(q.Rate); err != nil {
		return l, err
	}
	if l.generator.Shape, err = arena.ParseShape(q.Shape); err != nil {
		return l, fmt.Errorf("--shape: %w", err)
	}
	if l.generator.Prompt, err = arena.ParseLengths(q.Prompt); err != nil {
		return l, fmt.Errorf("--prompt: %w", err)
	}
	if l.generator.Output, err = arena.ParseLengths(q.Output); err != nil {
		return l, fmt.Errorf("--output: %w", err)
	}
	return l, nil
}

// readRate reads 5, 5/s, 300/min or 18000/h as requests/s.
func readRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	per, known := map[string]float64{"": 1, "s": 1, "min": 60, "m": 60, "h": 3600}[unit]
	rate, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	rate /= per
	if !known || err != nil || !(rate > 0 && rate <= maxRate) {
		return 0, fmt.Errorf("--rate %.40q is no rate of requests; write one such as 5/s or 300/min", text)
	}
	return rate, nil
}

// readShares reads ROUTE=SHARE. Without any, a configuration of one route gets
// all of the load.
func readShares(list []string, cfg *config.Config) ([]arena.Share, error) {
	var first, all []string
	for _, r := range cfg.Routes {
		first = append(first, r.Models[0])
		all = append(all, r.Models...)
	}
	if len(list) == 0 {
		if len(first) == 1 {
			return []arena.Share{{Route: first[0], Weight: 1}}, nil
		}
		even := make([]string, len(first))
		for i, name := range first {
			even[i] = name + "=" + strconv.FormatFloat(1/float64(len(first)), 'g', 2, 64)
		}
		return nil, fmt.Errorf("there are %d routes; say how the load is split, such as --share %s", len(first), strings.Join(even, ","))
	}
	var shares []arena.Share
	sum := 0.0
	for _, text := range list {
		// A name may hold =, a share does not.
		i := strings.LastIndex(text, "=")
		if i < 0 {
			return nil, fmt.Errorf("--share %.60q says no share; write such as chat=0.7,nightly=0.3", text)
		}
		name := text[:i]
		weight, err := strconv.ParseFloat(text[i+1:], 64)
		switch {
		case err != nil || !(weight >= 0 && weight <= 1e6):
			return nil, fmt.Errorf("--share %.60q: %.20q is no share; write such as chat=0.7,nightly=0.3", text, text[i+1:])
		case !slices.Contains(all, name):
			return nil, fmt.Errorf("--share: no route %.60q; %s", name, spelling.Meant(name, all))
		case slices.ContainsFunc(shares, func(s arena.Share) bool { return s.Route == name }):
			return nil, fmt.Errorf("--share has %s twice; keep one", name)
		}
		shares = append(shares, arena.Share{Route: name, Weight: weight})
		sum += weight
	}
	if sum <= 0 {
		return nil, errors.New("--share leaves nothing for any route; write such as chat=0.7,nightly=0.3")
	}
	return shares, nil
}

// at returns the load at a factor, how long it is, and what tells after reading
// it whether that went well.
func (l *workload) at(factor float64) (load iter.Seq[arena.Arrival], length time.Duration, failed func() error) {
	if l.file == "" {
		g := l.generator
		g.Rate *= factor
		g.Duration = l.duration
		return arena.Split(g.Arrivals(), l.shares, l.seed), l.duration, func() error { return nil }
	}
	trace := &arena.Trace{File: l.file, Open: l.open, Speed: factor, Until: l.duration}
	length = l.duration
	if length == 0 {
		length = time.Duration(float64(l.took) / factor)
	}
	return arena.Split(trace.Arrivals(), l.shares, l.seed), length, trace.Err
}

// open opens the trace, which is read once for each run: a pipe could not be.
func (l *workload) open() (io.ReadCloser, error) {
	info, err := os.Stat(l.file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file; a trace is read several times", l.file)
	}
	return os.Open(l.file)
}

// measureLoad reads the load once, so that a mistake in it costs no run.
func (p *plan) measureLoad() error {
	l := &p.load
	load, length, failed := l.at(1)
	// At a higher factor fewer may come at factor 1.
	most := int(maxPlanned/max(slices.Max(p.factors), 1)) + 1
	l.summary = arena.Summarize(atMost(load, most), l.duration)
	if err := failed(); err != nil {
		return err
	}
	if l.took = length; length == 0 {
		// The last request has a share of the time as well.
		l.took = max(l.summary.Last+l.summary.Last/time.Duration(max(l.summary.Requests-1, 1)), time.Second)
	}
	switch {
	case l.summary.Requests == 0:
		return fmt.Errorf("no request comes within %v; write a higher --rate, or a longer --duration", l.duration)
	case l.summary.Requests == most:
		return fmt.Errorf("the load is more than %d requests, and no plan plays that many; write a shorter --duration", maxPlanned)
	case l.warmup >= l.took:
		return fmt.Errorf("--warmup is %v, and the load is over after %v; write less", l.warmup, l.took)
	}
	if _, shortest, _ := l.at(slices.Max(p.factors)); p.lastly.at > 0 && p.lastly.at >= shortest {
		return fmt.Errorf("--fault %.60q: the load is over after %v; write an earlier time, or a longer --duration", p.lastly.text, shortest)
	}
	return nil
}

// atMost is the beginning of load.
func atMost(load iter.Seq[arena.Arrival], requests int) iter.Seq[arena.Arrival] {
	return func(yield func(arena.Arrival) bool) {
		n := 0
		for a := range load {
			if n++; !yield(a) || n == requests {
				return
			}
		}
	}
}

// warmupOf is how much of a load of that length is not counted.
func (l *workload) warmupOf(length time.Duration) time.Duration {
	if l.warmup > 0 {
		return min(l.warmup, length/2)
	}
	return min(length/10, time.Minute).Truncate(time.Second)
}

// String describes the load at factor 1.
func (l *workload) String() string {
	rate := float64(l.summary.Requests) / l.took.Seconds()
	if l.file != "" {
		return fmt.Sprintf("%s: %d requests in %s (%s/s), prompts of %.0f and answers of %.0f tokens on average",
			l.file, l.summary.Requests, spell(l.took), report.Brief(rate), l.summary.PromptTokens, l.summary.OutputTokens)
	}
	return fmt.Sprintf("%.4g requests/s for %s, %s: %d requests; prompts %s, answers %s tokens",
		l.generator.Rate, spell(l.took), l.generator.Shape, l.summary.Requests, l.generator.Prompt, l.generator.Output)
}

// spell writes a duration without the units that are zero.
func spell(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, tail := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, tail) {
			text = text[:len(text)-len(tail)+1]
		}
	}
	return text
}

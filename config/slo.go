package config

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// SLO is what a route promises per stream.
type SLO struct {
	MinTPS     float64       // floor in tokens/s of one stream; 0 = none
	MaxTTFT    time.Duration // 0 = none
	Attainment float64       // share of streams that shall keep it, in (0, 1)
	Grace      time.Duration // allowed beyond the floor, once per stream
}

// latency is a pair of limits: time to the first token, and per output token
// after it.
type latency struct{ ttft, tpot time.Duration }

// sloPresets are the limits of MLPerf Inference (99th percentile), from
// loadgen/mlperf.conf of mlcommons/inference. The floor is 1/tpot.
var sloPresets = map[string]latency{
	"llama2-70b-server":         {2000 * time.Millisecond, 200 * time.Millisecond},
	"llama2-70b-interactive":    {450 * time.Millisecond, 40 * time.Millisecond},
	"llama3.1-405b-server":      {6000 * time.Millisecond, 175 * time.Millisecond},
	"llama3.1-405b-interactive": {4500 * time.Millisecond, 80 * time.Millisecond},
	"llama3.1-8b-server":        {2000 * time.Millisecond, 100 * time.Millisecond},
	"llama3.1-8b-interactive":   {500 * time.Millisecond, 30 * time.Millisecond},
	"deepseek-r1-server":        {2000 * time.Millisecond, 80 * time.Millisecond},
	"deepseek-r1-interactive":   {1500 * time.Millisecond, 15 * time.Millisecond},
}

func (r *reader) slo(v value, to *SLO) {
	var preset latency
	o, ok := r.object(v, fields{
		"preset":     func(v value) { preset = r.sloPreset(v) },
		"min_tps":    r.numberInto(&to.MinTPS, "30"),
		"max_ttft":   r.durationInto(&to.MaxTTFT, positive),
		"attainment": func(v value) { r.attainment(v, &to.Attainment) },
		"grace":      r.durationInto(&to.Grace, 0),
	})
	if !ok || !o.has("preset") {
		return
	}
	for _, field := range []string{"min_tps", "max_ttft"} {
		if o.has(field) {
			r.problem(o.keys[field], "%s is part of the preset; keep one of the two", field)
		}
	}
	if preset.tpot > 0 {
		to.MinTPS, to.MaxTTFT = 1/preset.tpot.Seconds(), preset.ttft
	}
}

func (r *reader) sloPreset(v value) latency {
	s, ok := r.text(v)
	if !ok {
		return latency{}
	}
	preset, known := sloPresets[strings.ToLower(s.text)]
	if !known {
		r.problem(v.place(), "unknown preset %s; %s", quote(s.raw), meant(s.raw, slices.Collect(maps.Keys(sloPresets))))
	}
	return preset
}

func (r *reader) attainment(v value, to *float64) {
	x, ok := r.number(v, "0.99")
	if !ok {
		return
	}
	if x <= 0 || x >= 1 {
		r.problem(v.place(), "attainment must be between 0 and 1, both excluded; write a share such as 0.99")
		return
	}
	*to = x
}

package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/spelling"
)

// SLO is what a route promises per stream.
type SLO struct {
	// the floor: tokens per second that every stream keeps, from its first token to its last
	MinTPS float64 `yaml:"min_tps" eg:"30" unset:"none"`
	// time to the first token, waiting included. Predictions are means, so a wait counts half as long again: with `2s`
	// nobody waits in line for more than 1.3 s
	MaxTTFT time.Duration `yaml:"max_ttft" above:"0" unset:"none"`
	// share of streams that shall keep the floor, between 0 and 1; what decisions take off a backend's curve follows it ([how](CURVES-MODEL.md#the-margin))
	Attainment float64 `yaml:"attainment" range:"(0,1)" eg:"0.99" default:"0.99"`
	// allowed beyond the floor, once per stream. Full engines spend it: of 300 tokens at a floor of 30 a stream may have 27 a second. With less room has to be kept free for the stalls of other users' prompts, which costs capacity. Stalls of up to 250 ms are let happen whatever is written here: with `0s` about one stream in fifty misses its floor under full load, more where answers are short
	Grace time.Duration `yaml:"grace" default:"1s"`
	// places that are kept for this route at any load: a number of streams, or a share such as `20%` of what its targets carry at
	// its floor. See [guarantee](#guarantee)
	Guarantee Guarantee `yaml:"guarantee" unset:"none"`
	// instead of `min_tps` and `max_ttft`: one of the limits below
	Preset string `yaml:"preset" is:"slo_preset"`
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

// check puts the limits of the preset in place.
func (s *SLO) check(r *reader, o object) {
	if !o.has("preset") {
		if o.has("attainment") && s.MinTPS == 0 && s.MaxTTFT == 0 {
			r.warn(o.keys["attainment"], "attainment is the share of streams that keep min_tps or max_ttft, and there is neither: no objective is exported for the route, and PacerFloorMissed does not look at it; add one of the two, or leave attainment out")
		}
		return
	}
	for _, field := range []string{"min_tps", "max_ttft"} {
		if o.has(field) {
			r.problem(o.keys[field], "%s is part of the preset; keep one of the two", field)
		}
	}
	if preset, known := sloPresets[s.Preset]; known {
		s.MinTPS, s.MaxTTFT = 1/preset.tpot.Seconds(), preset.ttft
	}
}

// Guarantee is how many places are kept for a route at any load. The zero value is
// none; at most one of the fields is set.
type Guarantee struct {
	Places int     // streams
	Share  float64 // of what its targets carry at its floor, 0 to 1
}

// mostPlaces bounds a guarantee: more than any fleet of these engines runs.
const mostPlaces = 1 << 20

// percentage is a share as a file may have it.
var percentage = regexp.MustCompile(`^([0-9]|[1-9][0-9]|100)(\.[0-9]+)?%$`)

// decode reads a whole number, or a share with a percent sign.
func (g *Guarantee) decode(r *reader, v value) {
	const want = "a number of places, such as 10, or a share, such as 20%"
	s, ok := r.scalar(v, want)
	if !ok {
		return
	}
	if percent, share := strings.CutSuffix(s.text, "%"); share {
		x, err := strconv.ParseFloat(percent, 64)
		if err != nil || x > 100 || !percentage.MatchString(s.text) {
			r.problem(v.place(), "%s is no share from 0%% to 100%%; write one such as 20%%", v.name)
			return
		}
		g.Share = x / 100
		return
	}
	n, err := strconv.Atoi(s.text)
	if err != nil || !s.typed() || n < 0 || n > mostPlaces || strconv.Itoa(n) != s.text {
		r.problem(v.place(), "%s is no number of places from 0 to %d; write %s", v.name, mostPlaces, want)
		return
	}
	g.Places = n
}

func (r *reader) sloPreset(v value, to *string) {
	s, ok := r.text(v)
	if !ok {
		return
	}
	if *to = strings.ToLower(s.text); sloPresets[*to] == (latency{}) {
		r.problem(v.place(), "unknown preset %s; %s", quote(s.raw), spelling.Meant(s.raw, slices.Collect(maps.Keys(sloPresets))))
	}
}

package config

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pacer-dev/pacer/internal/benchfile"
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// Prior is what is believed of a backend's curve before any evidence. At most
// one of the fields is set; neither = nothing is believed.
type Prior struct {
	Preset string          // name of a published curve; "" = none
	Points map[int]float64 // n → tokens/s of one stream, each above 0; from the file, or the files that it names
}

const (
	maxPriorN     = 1 << 20 // concurrency of a point
	maxPriorFiles = 64      // most benchmarks write one level a file

	// What curves are drawn for, by package profiles.
	maxCurveN      = 8192
	maxCurvePoints = 256
	minCurveTPS    = 1e-6
	maxCurveTPS    = 1e7
)

// decode reads the name of a preset, or the points of a curve: bare, under
// points:, or from the files of a benchmark under file:.
func (p *Prior) decode(r *reader, v value) {
	p.read(r, v)
	var beyond, never []int
	for n, tps := range p.Points {
		switch {
		case tps < minCurveTPS || tps > maxCurveTPS:
			never = append(never, n)
		case n > maxCurveN:
			beyond = append(beyond, n)
		}
	}
	slices.Sort(beyond)
	slices.Sort(never)
	if len(beyond) > 0 {
		r.warn(v.place(), "the prior: curves end at %d streams; of its points from %d on what they say of that end is used, and no more", maxCurveN, beyond[0])
	}
	if len(never) > 0 {
		r.warn(v.place(), "the prior: its point at %d is ignored, since no stream has so many or so few tokens per second; %d such in all", never[0], len(never))
	}
	if used := len(p.Points) - len(never); used > maxCurvePoints {
		r.warn(v.place(), "the prior: of %d points %d are used; write fewer", used, maxCurvePoints)
	}
}

func (p *Prior) read(r *reader, v value) {
	if !isMapping(v) {
		r.preset(v, p)
		return
	}
	named := false
	for i := 0; i < len(v.node.Content); i += 2 {
		named = named || v.node.Content[i].ShortTag() == "!!str"
	}
	if !named {
		r.points(v, &p.Points)
		return
	}
	var form struct {
		Points map[int]float64 `yaml:"points" is:"points"`
		File   map[int]float64 `yaml:"file" is:"benchmark"`
	}
	o, ok := r.object(v, &form)
	switch p.Points = form.Points; {
	case !ok:
	case o.has("points") && o.has("file"):
		r.problem(o.keys["file"], "points and file are given; keep one")
	case o.has("file"):
		p.Points = form.File
	case !o.has("points"):
		r.problem(o.start, "the prior has no points; write some, as in { 1: 52, 8: 47, 64: 31 }, or the name of a preset")
	}
}

// benchmark reads the points of a curve from one file, or from several that
// are one curve. Messages name the files as the configuration does.
func (r *reader) benchmark(v value, to *map[int]float64) {
	const want = "the result of a benchmark, such as bench.json, or a list of such files"
	entries := []value{v}
	if v.is(yaml.SequenceNode) {
		entries = entries[:0]
		for i, n := range v.node.Content {
			entries = append(entries, v.entry(i, n))
		}
		if len(entries) == 0 || len(entries) > maxPriorFiles {
			r.problem(v.place(), "%s names %d files; write from 1 to %d", v.name, len(entries), maxPriorFiles)
			return
		}
	} else if isMapping(v) {
		r.mismatch(v, want)
		return
	}
	var paths, names []string
	for _, e := range entries {
		s, ok := r.text(e)
		switch {
		case !ok:
			return
		case s.text == "":
			r.problem(e.place(), "%s is empty; name the result of a benchmark, such as bench.json", e.name)
			return
		case r.readFile == nil:
			r.problem(e.place(), "a prior cannot be read from a file here; write its points, as in { 1: 52, 8: 47, 64: 31 }")
			return
		}
		path := r.path(s.text)
		paths, names = append(paths, path), append(names, path, s.raw)
	}
	c, err := benchfile.Load(paths...)
	as := strings.NewReplacer(names...)
	if err != nil {
		r.problem(v.place(), "%s", as.Replace(err.Error()))
		return
	}
	for _, n := range c.Notes {
		r.warn(v.place(), "the prior: %s", as.Replace(n.String()))
	}
	points := make(map[int]float64, len(c.Points))
	for _, p := range c.Points {
		points[p.N] = p.TPS
	}
	*to = points
}

func (r *reader) preset(v value, to *Prior) {
	s, ok := r.scalar(v, "the name of a preset, or points such as { 1: 52, 8: 47, 64: 31 }")
	if !ok {
		return
	}
	if _, known := presets.Lookup(s.text); !known {
		hint := "pacer sim --list prints the known ones"
		if n := spelling.Nearest(s.raw, presetNames()); n != "" {
			hint = "did you mean " + strconv.Quote(n) + "?"
		}
		r.problem(v.place(), "unknown preset %s; %s", quote(s.raw), hint)
		return
	}
	to.Preset = s.text
}

func presetNames() []string {
	var names []string
	for _, p := range presets.List() {
		names = append(names, p.Name)
	}
	return names
}

func (r *reader) points(v value, to *map[int]float64) {
	points := map[int]float64{}
	count := 0
	ok := r.pairs(v, "points such as { 1: 52, 8: 47, 64: 31 }", func(key string, at place, v value) {
		count++
		n, err := strconv.Atoi(key)
		v.name = "the speed at " + key
		tps, ok := r.number(v, "47")
		switch {
		case err != nil || n < 1 || n > maxPriorN || strconv.Itoa(n) != key:
			r.problem(at, "%s is no concurrency; write a whole number from 1, and the tokens per second of one stream, as in 8: 47", quote(key))
		case ok && tps == 0:
			r.problem(v.place(), "%s must be more than 0; write tokens per second of one stream", v.name)
		case ok:
			points[n] = tps
		}
	})
	if ok && count == 0 {
		r.problem(v.place(), "the prior has no points; write some, as in { 1: 52, 8: 47, 64: 31 }, or the name of a preset")
	}
	*to = points
}

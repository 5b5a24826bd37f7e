package config

import (
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/pacer-dev/pacer/internal/presets"
)

// Prior is what is believed of a backend's curve before any evidence. At most
// one of the fields is set; neither = nothing is believed.
type Prior struct {
	Preset string          // name of a published curve; "" = none
	Points map[int]float64 // n → tokens/s of one stream, each above 0
}

// maxPriorN bounds the concurrency of a point.
const maxPriorN = 1 << 20

// prior reads the name of a preset, or the points of a curve, bare or under
// points:.
func (r *reader) prior(v value, to *Prior) {
	m, ok := v.node.(*ast.MappingNode)
	if !ok {
		r.preset(v, to)
		return
	}
	named := len(m.Values) > 0 && slices.ContainsFunc(m.Values, func(f *ast.MappingValueNode) bool {
		return f.Key.Type() == ast.StringType
	})
	if !named {
		to.Points = r.points(v)
		return
	}
	o, ok := r.object(v, fields{
		"points": func(v value) { to.Points = r.points(v) },
		"file": func(v value) {
			r.problem(v.place(), "a prior from a file is not supported yet; write its points, as in { 1: 52, 8: 47, 64: 31 }")
		},
	})
	if ok && !o.has("points") && !o.has("file") {
		r.problem(o.start, "the prior has no points; write some, as in { 1: 52, 8: 47, 64: 31 }, or the name of a preset")
	}
}

func (r *reader) preset(v value, to *Prior) {
	s, ok := r.scalar(v, "the name of a preset, or points such as { 1: 52, 8: 47, 64: 31 }")
	if !ok {
		return
	}
	if _, known := presets.Lookup(s.text); !known {
		hint := "pacer sim --list prints the known ones"
		if n := nearest(s.raw, presetNames()); n != "" {
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

func (r *reader) points(v value) map[int]float64 {
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
	return points
}

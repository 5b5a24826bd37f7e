package config

import (
	"maps"
	"slices"
)

// split reads the weights of targets, by name.
func (r *reader) split(v value, to *map[string]float64) {
	weights := map[string]float64{}
	r.pairs(v, "names of targets with their parts, such as { gpu-a: 95, gpu-b: 5 }", func(name string, at place, v value) {
		v.name = "the part of " + quote(name)
		weight, ok := r.number(v, "95")
		switch {
		case ok && weight > maxWeight:
			r.problem(at, "%s is above %g; write smaller parts, only their ratio counts", v.name, float64(maxWeight))
		case ok:
			weights[name] = weight
		}
	})
	*to = weights
}

// maxWeight bounds a part of a split, so that their sum is one too.
const maxWeight = 1e6

// TargetName is what a split calls the target: its backend, and where the route
// has several on that one, BACKEND/MODEL.
func (route *Route) TargetName(i int) string {
	t := route.Targets[i]
	for j, other := range route.Targets {
		if j != i && other.Backend == t.Backend {
			return t.Backend + "/" + t.Model
		}
	}
	return t.Backend
}

// checkSplit looks whether the parts are of targets, and of any at all.
func (r *reader) checkSplit(i int) {
	route := &r.cfg.Routes[i]
	var names []string
	for j, t := range route.Targets {
		if t.Backend != "" { // else it could not be read
			names = append(names, route.TargetName(j))
		}
	}
	if len(route.Split) == 0 || len(names) == 0 {
		return
	}
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(route.Split)) {
		total += route.Split[name]
		if !slices.Contains(names, name) {
			r.problem(r.at(routeAt(i, ".split")), "split names %s, which is no target of the route; write %s", quote(name), oneOf(names))
		}
	}
	if total == 0 {
		r.problem(r.at(routeAt(i, ".split")), "all parts of the split are 0; write the parts, such as { %s: 100 }, or leave split out", names[0])
	}
}

// oneOf lists words.
func oneOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + series(words, "or")
}

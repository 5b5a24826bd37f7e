package config

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Route is what clients name in "model".
type Route struct {
	Models       []string // "*" = whatever no other route names
	Class        string   // interactive | batch
	Targets      []Target
	SLO          SLO
	Prefer       string  // headroom | order | cheapest | pack
	Reserve      int     // streams that must still fit before a batch request goes
	BatchShare   float64 // of the places, that batch gets even while interactive requests are kept out
	Hedge        bool    // a stream that waits too long is tried on a second target
	OnInfeasible []Step  // in order; the last is BestEffort or Shed
}

// Target is one upstream model on one backend.
type Target struct {
	Backend string
	Model   string // "" = the client's name goes up unchanged
}

// Upstream is the model that t sends requests for name to, where that is known
// and makes a difference: on a backend whose models are separate, the name itself
// if t says no other. "" stands for whatever clients name.
func (c *Config) Upstream(t Target, name string) (model string, separate bool) {
	for _, b := range c.Backends {
		if separate = b.Name == t.Backend && b.Separate(); separate {
			break
		}
	}
	if separate && t.Model == "" && name != everyModel {
		return name, true
	}
	return t.Model, separate
}

const (
	classInteractive = "interactive"
	classBatch       = "batch"
	everyModel       = "*"
)

// routeMarks are the places of what a route refers to, parallel to its
// Models, Targets and OnInfeasible.
type routeMarks struct {
	models         []place
	targets, steps []mention
	slo, prefer    place
	hedge          place
}

func (r *reader) routes(v value) {
	list, ok := r.list(v, "a list of routes")
	if ok && len(list) == 0 {
		r.problem(v.place(), "routes is empty; write at least one { model: chat, targets: [ { backend: gpu-1 } ] }")
	}
	for _, v := range list {
		route, marks := r.route(v)
		r.cfg.Routes = append(r.cfg.Routes, route)
		r.marks.routes = append(r.marks.routes, marks)
	}
}

func (r *reader) route(v value) (Route, routeMarks) {
	route, marks := defaultRoute(), routeMarks{}
	model := func(v value) {
		for _, v := range orList(v) {
			if name, ok := r.modelName(v); ok {
				route.Models = append(route.Models, name.text)
				marks.models = append(marks.models, v.place())
			}
		}
	}
	o, ok := r.object(v, fields{
		"model":         func(v value) { r.single(v, model) },
		"models":        func(v value) { r.several(v, "a list of names", model) },
		"class":         r.oneOfInto(&route.Class, classInteractive, classBatch),
		"targets":       func(v value) { route.Targets, marks.targets = r.targets(v) },
		"slo":           func(v value) { r.slo(v, &route.SLO) },
		"prefer":        r.oneOfInto(&route.Prefer, "headroom", "order", "cheapest", "pack"),
		"reserve":       r.wholeInto(&route.Reserve, 0),
		"batch_share":   func(v value) { r.batchShare(v, &route.BatchShare) },
		"hedge":         func(v value) { route.Hedge, _ = r.truth(v) },
		"on_infeasible": func(v value) { route.OnInfeasible, marks.steps = r.steps(v) },
	})
	if !ok {
		return route, marks
	}
	switch {
	case o.has("model") && o.has("models"):
		r.problem(o.keys["models"], "model and models are both given; keep one")
	case !o.has("models"):
		o.require("model", "chat")
	}
	o.require("targets", "[ { backend: gpu-1 } ]")
	if !o.has("on_infeasible") {
		route.OnInfeasible = defaultSteps(route.Class)
	}
	marks.slo, marks.prefer, marks.hedge = o.at("slo"), o.at("prefer"), o.at("hedge")
	return route, marks
}

// orList returns the entries of a list, or the value itself.
func orList(v value) []value {
	if v.is(yaml.SequenceNode) {
		list := make([]value, len(v.node.Content))
		for i, n := range v.node.Content {
			list[i] = value{node: n, name: v.name, key: v.key}
		}
		return list
	}
	return []value{v}
}

// single hands on a value that must not be a list.
func (r *reader) single(v value, read func(value)) {
	if v.is(yaml.SequenceNode) {
		r.mismatch(v, "text; several are written "+v.name+"s: [a, b]")
		return
	}
	read(v)
}

// several hands on a value that must be a list with entries.
func (r *reader) several(v value, want string, read func(value)) {
	list, ok := r.list(v, want)
	if ok && len(list) == 0 {
		r.problem(v.place(), "%s is empty; write at least one entry, or leave the field out", v.name)
	}
	if ok {
		read(v)
	}
}

// modelName reads a name that clients and engines use for a model.
func (r *reader) modelName(v value) (scalar, bool) {
	s, ok := r.text(v)
	if !ok {
		return s, false
	}
	if s.text == "" || len(s.text) > 256 || strings.TrimSpace(s.text) != s.text || strings.ContainsFunc(s.text, unicode.IsControl) {
		r.problem(v.place(), "%s %s is no name of a model; write 1 to 256 bytes without outer blanks or control characters", v.name, quote(s.raw))
		return scalar{}, false
	}
	return s, true
}

func (r *reader) targets(v value) ([]Target, []mention) {
	list, ok := r.list(v, "a list such as [ { backend: gpu-1 } ]")
	if ok && len(list) == 0 {
		r.problem(v.place(), "targets is empty; write at least one { backend: gpu-1, model: NAME }")
	}
	var targets []Target
	var mentions []mention
	for _, v := range list {
		var t Target
		var raw string
		o, ok := r.object(v, fields{
			"backend": func(v value) {
				s, _ := r.text(v)
				t.Backend, raw = s.text, s.raw
			},
			"model": func(v value) {
				s, _ := r.modelName(v)
				t.Model = s.text
			},
		})
		if !ok {
			continue
		}
		o.require("backend", "gpu-1")
		if t.Backend == "" {
			continue
		}
		if slices.Contains(targets, t) {
			r.problem(o.start, "the route has this target twice; keep one")
			continue
		}
		targets = append(targets, t)
		mentions = append(mentions, mention{o.at("backend"), raw})
	}
	return targets, mentions
}

// batchShare reads a share from 0 to 1, both included.
func (r *reader) batchShare(v value, to *float64) {
	if x, ok := r.number(v, "0.02"); ok && x >= 0 && x <= 1 {
		*to = x
	} else if ok {
		r.problem(v.place(), "batch_share must be from 0 to 1; write a share such as 0.02")
	}
}

package config

import (
	"fmt"
	"slices"
)

// Route is what clients name in "model".
type Route struct {
	// one name, or a list under `models`: what clients write in `model`. `"openai/*"` is every name that begins so, the longest beginning first; `"*"` (in quotes) is
	// whatever no other route names
	Models []string `yaml:"models" single:"model" is:"model" required:"chat" want:"a list of names" empty:"write at least one entry, or leave the field out"`
	// `interactive` may have a floor; `batch` has none, fills what is left, and never breaks or locks out a floor
	Class string `yaml:"class" enum:"interactive,batch" default:"interactive"`
	// list of `{ backend, model }`; without `model` the client's name goes up unchanged
	Targets []Target `yaml:"targets" required:"[ { backend: gpu-1 } ]" want:"a list such as [ { backend: gpu-1 } ]" empty:"write at least one { backend: gpu-1, model: NAME }"`
	// what is promised: see [slo](#slo)
	SLO SLO `yaml:"slo" unset:"no floor"`
	// among the targets that meet the floor: `headroom` (most room, where a slot is free), `order` (first in the list), `cheapest`, `pack` (tightest fit)
	Prefer string `yaml:"prefer" enum:"@policy" default:"headroom"`
	// streams that must still fit, by speed and below `max_concurrency`, before a batch request goes to a target of this route
	Reserve int `yaml:"reserve" min:"0" default:"1"`
	// batch stays off a backend while interactive requests that could run there are kept waiting or refused, and for 3 s, after a
	// refusal 10 s, more. For each of them that is placed there it saves up this share of a place, and whole ones let it in all the
	// same. The largest of the routes on a backend counts. From 0 (none) to 1
	BatchShare float64 `yaml:"batch_share" range:"[0,1]" eg:"0.02" default:"0.02"`
	// `true`: a stream that is silent for too long is tried on a second target as well: see [hedge](#hedge)
	Hedge bool `yaml:"hedge" default:"false"`
	// `auto`: among the targets that meet the floor, one whose prefix cache has the prompt, where that saves time; `session`: one that has had the
	// same session (`x-session-id`, `prompt_cache_key`, `user`, `previous_response_id`); `off`: as `prefer` says, wherever it is cached. See [affinity](#affinity)
	Affinity string `yaml:"affinity" enum:"auto,off,session" default:"auto"`
	// whose prompts warm a target for whom: `none`, everybody's for everybody; `key`, each key's for itself, for engines that keep their caches apart so
	Isolation string `yaml:"isolation" enum:"none,key" default:"none"`
	// parts of the requests by target: see [split](#split)
	Split map[string]float64 `yaml:"split" is:"split" unset:"as prefer says"`
	// copies for another route: see [shadow](#shadow)
	Shadow Shadow `yaml:"shadow" unset:"none"`
	// route that a request goes on to, once, whose prompt is too long for the target that it was sent to; it keeps the floor of its own
	// route in the figures
	ContextFallback string `yaml:"context_fallback" is:"model_or_none" unset:"none: the client reads what the engine said"`
	// `true`: a stream whose backend dies goes on at another one, where that can be: see [continue](#continue)
	Continue bool `yaml:"continue" default:"false"`
	// what to do, in order, when no target meets the floor: see [on_infeasible](#on_infeasible)
	OnInfeasible []Step `yaml:"on_infeasible" want:"a list of { queue: 2s }, { spill: ROUTE }, best_effort or shed" empty:"write [ shed ] to refuse at once, or leave it out" unset:"by class"`
}

// Shadow says which of a route's requests are copied; no route = none.
type Shadow struct {
	// name of the route that has the copies
	Route string `yaml:"route" is:"model" required:"chat-next"`
	// part of the requests that is copied, from 0 to 1
	Share float64 `yaml:"share" range:"[0,1]" eg:"0.1" unset:"1: all"`
}

func (s *Shadow) check(_ *reader, o object) {
	if !o.has("share") {
		s.Share = 1
	}
}

// Target is one upstream model on one backend.
type Target struct {
	// name of a backend
	Backend string `yaml:"backend" required:"gpu-1"`
	// the model that it is asked for; a `*` at its end is what the `*` of the route's name stands for
	Model string `yaml:"model" is:"model" unset:"the client's name, unchanged"`
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
	if _, wild := Wildcard(name); separate && t.Model == "" && !wild {
		return name, true
	}
	return t.Model, separate
}

const (
	classInteractive = "interactive"
	classBatch       = "batch"
	everyModel       = "*"
)

func (route *Route) check(r *reader, o object) {
	if o.has("model") && o.has("models") {
		r.problem(o.keys["models"], "model and models are both given; keep one")
	}
	for j, t := range route.Targets {
		if t.Backend != "" && slices.Contains(route.Targets[:j], t) {
			r.problem(o.at(fmt.Sprintf("targets[%d]", j)), "the route has this target twice; keep one")
		}
	}
	route.steps(r, o)
}

func (t *Target) check(r *reader, o object) {
	if o.fine["backend"] && t.Backend == "" {
		r.problem(o.at("backend"), "backend is empty; write the name of one in backends:")
	}
}

package config

import (
	"fmt"
	"time"
)

// Step is one entry of on_infeasible: exactly one field is set.
type Step struct {
	// wait in the route's line, at most so long
	Queue time.Duration `yaml:"queue" above:"0"`
	// place on this route instead
	Spill string `yaml:"spill" is:"model"`
	// take the target that is harmed least
	BestEffort bool `yaml:"best_effort" is:"bare"`
	// refuse with 429
	Shed bool `yaml:"shed" is:"bare"`
}

const stepForms = "{ queue: 2s }, { spill: ROUTE }, best_effort or shed"

// decode reads a word, or a mapping of one field. A step with a problem is left
// empty.
func (s *Step) decode(r *reader, v value) {
	if !isMapping(v) {
		var word string
		r.oneOf(v, &word, []string{"best_effort", "shed"}, map[string]string{
			"queue": "needs its time; write { queue: 2s }",
			"spill": "needs its route; write { spill: ROUTE }",
		})
		s.BestEffort, s.Shed = word == "best_effort", word == "shed"
		return
	}
	o, _ := r.object(v, s)
	if o.clean() && len(o.keys) != 1 {
		r.problem(o.start, "a step is one of %s; write each as an entry of its own", stepForms)
	}
	if !o.clean() {
		*s = Step{}
	}
}

// steps looks at the order of on_infeasible, and ends a list that does not end
// the request itself with shed. A route without one does as its class does.
func (route *Route) steps(r *reader, o object) {
	if !o.has("on_infeasible") {
		wait := 2 * time.Second
		if route.Class == classBatch {
			wait = time.Minute
		}
		route.OnInfeasible = []Step{{Queue: wait}, {Shed: true}}
		return
	}
	queued, ended := false, ""
	for i, step := range route.OnInfeasible {
		at := o.at(fmt.Sprintf("on_infeasible[%d]", i))
		switch {
		case step == Step{}:
		case ended == "shed" || ended != "" && !step.Shed:
			r.problem(at, "nothing comes after %s; leave this step out, or move it before", ended)
			route.OnInfeasible[i] = Step{}
		case step.Queue > 0 && queued:
			r.problem(at, "a request waits in line once; keep one queue")
		case step.Shed:
			ended = "shed"
		case step.BestEffort:
			ended = "best_effort"
		}
		queued = queued || step.Queue > 0
	}
	if ended != "shed" {
		route.OnInfeasible = append(route.OnInfeasible, Step{Shed: true})
	}
}

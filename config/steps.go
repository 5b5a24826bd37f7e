package config

import "time"

// Step is one entry of on_infeasible: exactly one field is set.
type Step struct {
	Queue      time.Duration // wait in the route's line, at most so long
	Spill      string        // place on this route instead
	BestEffort bool          // take the target that is harmed least
	Shed       bool          // refuse with 429
}

const stepForms = "{ queue: 2s }, { spill: ROUTE }, best_effort or shed"

// steps reads on_infeasible, and where each step is, with
// the route that it names. A list that does not
// end the request itself ends with shed.
func (r *reader) steps(v value) ([]Step, []mention) {
	list, ok := r.list(v, "a list of "+stepForms)
	if !ok {
		return nil, nil
	}
	if len(list) == 0 {
		r.problem(v.place(), "on_infeasible is empty; write [ shed ] to refuse at once, or leave it out")
	}
	var steps []Step
	var mentions []mention
	queued, ended := false, ""
	for _, v := range list {
		step, raw, ok := r.step(v)
		switch {
		case !ok:
			continue
		case ended == "shed" || ended != "" && !step.Shed:
			r.problem(v.place(), "nothing comes after %s; leave this step out, or move it before", ended)
			continue
		case step.Queue > 0 && queued:
			r.problem(v.place(), "a request waits in line once; keep one queue")
			continue
		}
		queued = queued || step.Queue > 0
		switch {
		case step.Shed:
			ended = "shed"
		case step.BestEffort:
			ended = "best_effort"
		}
		steps, mentions = append(steps, step), append(mentions, mention{v.place(), raw})
	}
	if ended != "shed" {
		steps, mentions = append(steps, Step{Shed: true}), append(mentions, mention{at: v.place()})
	}
	return steps, mentions
}

func (r *reader) step(v value) (s Step, raw string, ok bool) {
	if !isMapping(v) {
		word, ok := r.oneOf(v, []string{"best_effort", "shed"}, map[string]string{
			"queue": "needs its time; write { queue: 2s }",
			"spill": "needs its route; write { spill: ROUTE }",
		})
		s.BestEffort, s.Shed = word == "best_effort", word == "shed"
		return s, "", ok
	}
	before := len(r.problems) + r.dropped
	bare := func(v value) {
		r.problem(v.place(), "%s stands alone; write it without a value", v.name)
	}
	o, _ := r.object(v, fields{
		"queue": r.durationInto(&s.Queue, positive),
		"spill": func(v value) {
			name, _ := r.modelName(v)
			s.Spill, raw = name.text, name.raw
		},
		"best_effort": bare,
		"shed":        bare,
	})
	if len(r.problems)+r.dropped > before {
		return s, "", false
	}
	if len(o.keys) != 1 {
		r.problem(o.start, "a step is one of %s; write each as an entry of its own", stepForms)
		return s, "", false
	}
	return s, raw, true
}

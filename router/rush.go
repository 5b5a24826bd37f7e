package router

// rush is what keeps many replicas from running after the same target. All of them see
// the same room. Each that has a request takes a place before it hears of the others: on
// the last target with room for two, 20 prompts arrive at once. Up to atOnce replicas
// are few enough for what the margins leave, see unheard.
//
// Guarded by Router.mu.
type rush struct {
	luck  float64  // in [0, 1), drawn with each report of the others where they are many
	ended *backend // where a stream of this replica has just ended: that place is its own
}

const (
	// atOnce is how many replicas may choose at the same moment without a rule.
	atOnce = 4

	// drawn is among how many targets with room a replica chooses, where they are many.
	drawn = 3
)

// many reports whether more replicas tell of each other than may choose at once.
func (p *peers) many() bool { return p.load.Replicas > atOnce && !p.silent() }

// yields reports whether a leaves the target v to other replicas until they are heard of
// again. Where targets with room are fewer than replicas, each of these takes a place with
// the chance that no more than atOnce do on each target, unless all could have one there.
// Who cannot wait takes one, see insist.
func (r *Router) yields(a *ask, v *verdict) bool {
	if !r.peers.many() || a.preview || a.insists || a.spilled || a.req.NoQueue || a.weight == 0 || a.route.policy.Regardless || v.model.group.backend == r.rush.ended {
		return false
	}
	feasible, replicas := 0, r.peers.load.Replicas
	for i := range a.verdicts {
		if a.verdicts[i].reason == OK {
			feasible++
		}
	}
	if r.rush.luck*float64(replicas) < float64(atOnce*feasible) {
		return false
	}
	places := 0
	for i := range a.verdicts {
		if u := &a.verdicts[i]; u.reason == OK {
			more, _ := a.admits(u.model, u.model.group.asTold())
			if places += more; places >= replicas {
				return false
			}
		}
	}
	a.yielded = true
	return true
}

// insist chooses for one who has left a place to others and can wait for none; nil = it
// has not.
func (r *Router) insist(a *ask) *verdict {
	if !a.yielded {
		return nil
	}
	a.insists, a.yielded = true, false
	return r.choose(a)
}

// bestOfSome is best among some of the feasible targets, drawn, so that replicas with the
// same view do not all choose the same one.
func (c Choice) bestOfSome(feasible int) int {
	var places [drawn]int
	for i := range places {
		places[i] = min(int(c.Rand()*float64(feasible)), feasible-1)
	}
	chosen, at := -1, 0
	for i := range c.ask.verdicts {
		v := &c.ask.verdicts[i]
		if v.reason != OK {
			continue
		}
		for _, place := range places {
			if place == at && (chosen < 0 || v.rank > c.ask.verdicts[chosen].rank) {
				chosen = i
			}
		}
		at++
	}
	return chosen
}

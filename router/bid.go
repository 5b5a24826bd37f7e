package router

// bid is what a request tells the other replicas before it takes a place: that it is about
// to. What replicas tell is up to 200 ms old. An engine on which nobody runs draws all of
// them, and a prompt that takes two seconds there stops for as long whoever another replica
// has just placed. So such a prompt stands in line until this replica has told of it, and
// has heard of the others: for 20 ms, see News. Of two that bid at once the later one
// hears of the first, for to tell and to hear is one step.
//
// The zero value bids for nothing. Guarded by Router.mu.
type bid struct {
	model  *model // where it would go
	floor  float64
	weight int    // sequences
	prompt int    // tokens
	after  uint64 // peers.tellings when it was made: it is told with a later one
}

// several reports whether other replicas tell what they run.
func (p *peers) several() bool { return p.load.Replicas > 1 && !p.silent() }

// bids reports whether a, which may go where v is about, tells that first: who may have
// been placed there since the others told could not pay for its prompt. Who cannot wait
// goes.
func (p *peers) bids(a *ask, v *verdict) bool {
	if !p.several() || a.preview || a.insists || a.req.NoQueue || a.req.Spare || a.req.Moves || a.weight == 0 || a.route.policy.Regardless {
		return false
	}
	m := v.model
	if !m.dear(a) || a.bid.model == m && a.bid.after < p.heardOf {
		return false
	}
	if a.bid.model != m {
		a.bid = bid{model: m, floor: a.floor, weight: a.weight, prompt: a.toPrefill(m), after: p.tellings}
	}
	a.yielded = true
	return true
}

// dear reports whether a's prompt takes longer on m than the grace of those who have no
// first token yet, as pays counts.
func (m *model) dear(a *ask) bool {
	g := m.group
	if g.promised <= 0 {
		return false
	}
	cost := seconds(leadSafety * g.router.peers.unheard() * g.price.token * float64(a.toPrefill(m)))
	return cost > max(g.leastGrace+m.early(g.promised), newsFrom)
}

// target is the one of these that b is for, nil if it may not go there any more.
func (b *bid) target(verdicts []verdict) *verdict {
	if b.model == nil {
		return nil
	}
	for i := range verdicts {
		if v := &verdicts[i]; v.model == b.model && v.reason == OK {
			return v
		}
	}
	return nil
}

// bidsFor has t bid as b says, and no more as it did.
func (t *Ticket) bidsFor(b bid) {
	if t.bid == b {
		return
	}
	t.bid.count(-1)
	b.count(+1)
	t.bid = b
	t.router.news.Add(1)
}

// count adds b to what its group tells, or takes it off.
func (b *bid) count(by int) {
	if b.model == nil {
		return
	}
	own := &b.model.group.own
	own.bids += by * b.weight
	own.bidPrompt += by * b.prompt
	switch {
	case b.floor <= 0:
	case by > 0:
		b.model.floors.bidding.add(b.floor)
	default:
		b.model.floors.bidding.remove(b.floor)
	}
}

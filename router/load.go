package router

import "time"

// Load is what one replica runs on one backend, or all the others there.
type Load struct {
	Waiting, Decoding int
	PromptTokens      int     // of the waiting
	Floor             float64 // highest floor of its running streams, 0 = none

	// What others need to know to protect these streams. The zero value of each
	// is that nobody tells.
	Leads Leads
	Level Level // of the only target that is counted here; 0 where there are several
	Joint Level // of several, as ofCurve makes it: which they are makes no difference; 0 where there is one

	// Clearing is for how long the replica has it cleared yet; 0 = it does not.
	Clearing time.Duration

	// Prefills is what first tokens there said of a prompt token's cost.
	Prefills Prefills

	// Moves are how Decoding changed of late, in any order.
	Moves []Move

	// Prompts are those that were prefilled of late.
	Prompts []Prompt

	// Models is what of it is counted by model, by its name; nil = nothing.
	Models map[string]Load
}

// Prefills are sums over first tokens of what a prompt token takes: seconds times tokens, and
// the squares of the tokens. The zero value has seen none, or nobody tells.
type Prefills struct{ Time, Weight float64 }

// Leads is how far the streams that decode with a floor are ahead of it.
type Leads struct {
	Streams int           // how many there are; 0 = none, or nobody tells
	Least   time.Duration // for how long all of them may get no token and keep their floors
}

func (l Leads) plus(o Leads) Leads {
	if l.Streams <= 0 || o.Streams > 0 && o.Least < l.Least {
		l.Least = o.Least
	}
	l.Streams += o.Streams
	return l
}

// sane returns l without what no load can be.
func (l Load) sane() Load {
	l.Waiting, l.Decoding, l.PromptTokens = max(l.Waiting, 0), max(l.Decoding, 0), max(l.PromptTokens, 0)
	l.Floor, l.Prefills = finite(l.Floor), Prefills{finite(l.Prefills.Time), finite(l.Prefills.Weight)}
	return l
}

// Plus returns l and o together, both sane or not; Models are l's.
func (l Load) Plus(o Load) Load {
	o = o.sane()
	l.Waiting += o.Waiting
	l.Decoding += o.Decoding
	l.PromptTokens += o.PromptTokens
	l.Floor = max(l.Floor, o.Floor)
	l.Clearing = max(l.Clearing, o.Clearing)
	l.Prefills = Prefills{l.Prefills.Time + o.Prefills.Time, l.Prefills.Weight + o.Prefills.Weight}
	l.Leads = l.Leads.plus(o.Leads)
	l.Level = l.Level.plus(o.Level)
	l.Joint = l.Joint.plus(o.Joint)
	l.Moves = append(l.Moves[:len(l.Moves):len(l.Moves)], o.Moves...)
	l.Prompts = append(l.Prompts[:len(l.Prompts):len(l.Prompts)], o.Prompts...)
	return l
}

// less returns what is left of l without o, which is a part of it. Whose the
// floor and the least lead are nobody says: they are those of what is left, if
// anything is. Of speed nothing is known then.
func (l Load) less(o Load) Load {
	o = o.sane()
	l.Waiting, l.Decoding, l.PromptTokens = l.Waiting-o.Waiting, l.Decoding-o.Decoding, l.PromptTokens-o.PromptTokens
	l.Level, l.Joint = Level{}, Level{}
	if l = l.sane(); l.Waiting+l.Decoding == 0 {
		l.Floor, l.Leads = 0, Leads{}
	}
	return l
}

// Own returns what this replica runs, by backend, for the other replicas: those
// backends where it runs anything, or did of late.
func (r *Router) Own(now time.Time) map[string]Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	r.peers.tellings++
	all := map[string]Load{}
	for _, b := range r.backends {
		var l Load
		for _, g := range b.groups {
			part := g.ownLoad(now)
			if g.id.Separate && part.Waiting+part.Decoding+len(part.Moves)+len(part.Prompts) > 0 {
				if l.Models == nil {
					l.Models = map[string]Load{}
				}
				l.Models[g.id.Model] = part
			}
			if g.id.Separate { // of its speed, its prompts and its clearing nobody else has anything
				part.Level, part.Prefills, part.Clearing = Level{}, Prefills{}, 0
			}
			l = l.Plus(part)
		}
		if b.own > 0 || l.Waiting > 0 || len(l.Moves)+len(l.Prompts) > 0 {
			all[b.name] = l
		}
	}
	return all
}

// ownLoad is what this replica runs in g. It looks at the streams anew: who hears
// of them knows nothing of what comes after.
func (g *group) ownLoad(now time.Time) Load {
	if g.lookedAt.Before(now) {
		g.look(now)
	}
	l := Load{
		Waiting: g.own.waiting + g.own.bids, Decoding: g.own.decoding, PromptTokens: g.own.prompt + g.own.bidPrompt, Floor: g.highestFloor(),
		Moves: g.noted.moves.since(now.Add(-movesReach)), Prompts: g.noted.occupancy.Prompts(now.Add(-movesReach)),
	}
	for _, m := range g.models {
		l.Floor = max(l.Floor, m.floors.bidding.highest(m.solo))
	}
	all := g.price.prefills.all()
	l.Prefills = Prefills{Time: all.xy, Weight: all.xx}
	if c := &g.clearing; c.own && c.on(now) {
		l.Clearing = c.until.Sub(now)
	}
	if g.floored > 0 {
		l.Leads = Leads{Streams: g.floored, Least: g.lead}
	}
	if len(g.models) == 1 {
		l.Level = g.models[0].lately.own
	} else {
		l.Joint = g.ofCurves()
	}
	return l
}

// News counts the requests that were placed and that the other replicas should
// hear of at once: while their prompts are prefilled, all who stream there stand
// still. So it does those who bid for a place, and bids that are given up. It takes no lock.
func (r *Router) News() uint64 { return r.news.Load() }

// newsFrom is from which time of prefill on a prompt is news.
const newsFrom = 100 * time.Millisecond

// announce notes that l was placed.
func (r *Router) announce(l *Lease) {
	if r.peers.load.Replicas > 1 && seconds(l.group.price.token*float64(l.prompt)) >= newsFrom {
		r.news.Add(1)
	}
}

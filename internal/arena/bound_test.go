package arena

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The upper bound: what no policy can pass, not even one that knows the future.
// It is proved here and not played.
//
// A stream of w tokens after its first one met its floor, so from the first token
// to the last it took r = w/floor + grace at most. It took part in w steps. A step
// in which n decode and p prompt tokens are prefilled takes at least b(n) + d·p
// seconds, b from the true curve. Book b(n)/n of each step on everybody who decodes
// in it, and d on each prompt token: together that is at most the time that the
// engine had. For the stream it is Σ b(nₛ)/nₛ over its steps, where Σ b(nₛ) ≤ r. Let h
// be the lower convex hull of the points (b(n), b(n)/n), made to fall: h(s) is the
// least that a step can cost at a mean step time of s. By Jensen's inequality the
// stream was booked at least
//
//	c = w·h(r/w) + d·prompt.
//
// Its first token came within patience of its arrival, so all of c lies between
// arrival and arrival + patience + r. Cut time into bins; engine e has C(e,k) seconds
// in bin k. Of all ways to give streams to engines and their cost to bins, the one that
// meets the most is a linear program, and any prices λ(e,k) ≥ 0 of a second bound it
// from above (weak duality):
//
//	Σ λ·C + Σ over streams max(0, 1 − min over e of c(e)·min over its bins of λ(e,k)).
//
// So the search for good prices needs no proof: bad ones make a higher bound, never
// a false one. Slowdowns count in C, a dead engine has none, and a stream that lives
// through two speeds is booked at the faster one.
//
// What is given away, so that the bound holds: prompts cost time and stop nobody;
// fractions of a stream count; the future is known, so under overload the bound
// serves short answers, which nobody can know. Where prompts are dear or the load
// is far too much, it is therefore far from what can be done.
type bound struct {
	start   time.Duration
	bin     time.Duration
	bins    int
	engines []boundEngine
	jobs    []boundJob
}

const (
	// patience is how long a first token may take. A stream that waited longer and
	// met its floor is beyond the bound; no policy of the tables has so many.
	patience = 10 * time.Second

	boundBin    = 5 * time.Second
	boundRounds = 300

	// Noise has a mean of 1. Of a whole run it is off by less than 0.5 %, of
	// one answer seldom by more than 1 %.
	noiseOfRun    = 1.005
	noiseOfAnswer = 1.01
)

// boundEngine is one backend: its hull, the seconds it has in each bin as if it
// had never been slowed, and the price of one.
type boundEngine struct {
	conf     *Backend
	speed    float64
	rho      float64      // prompt tokens beside each token
	step     float64      // seconds, of each step with all who run there; 0 = each stream has its own
	hull     [][2]float64 // (step, decoding/n) by rising step and falling cost
	capacity []float64
	least    []float64 // lowest drift, by bin
	price    []float64
	wanted   []float64   // seconds, at these prices
	served   [2]float64  // prompts and answers in tokens, at these prices
	cheapest [][]float64 // lowest price from a bin on, by how many more
}

// boundJob is one stream: the bins it may be in, and by engine its cost, +Inf where
// it cannot run, and what it is worth.
type boundJob struct {
	Arrival
	route    *Route
	until    time.Duration
	from, to int
	cost     []float64
	worth    []float64
	counts   float64 // for how many it counts in an assignment
}

func (b *bound) binOf(at time.Duration) int { return min(max(int((at-b.start)/b.bin), 0), b.bins-1) }
func (p pool) promises(a Arrival) bool      { return a.At >= p.warmup && a.At < p.duration() }
func (p pool) duration() time.Duration      { return cmp.Or(p.length, length300) }

// upperBound is the most requests of the routes with a floor that can be met of the
// load of a seed.
func (p pool) upperBound(seed uint64) float64 {
	b := p.bound(seed, boundBin, func(Arrival, *Route) time.Duration { return patience })
	for i := range b.engines {
		b.engines[i].see(0)
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		for e := range b.engines {
			j.cost[e], j.worth[e] = b.engines[e].cost(j, j.OutputTokens, j.least(&b.engines[e]))
		}
	}
	return b.solve(boundRounds)
}

// bound has the jobs of a seed, without their costs, and the engines.
func (p pool) bound(seed uint64, bin time.Duration, patience func(Arrival, *Route) time.Duration) *bound {
	b := &bound{start: p.warmup, bin: bin}
	routes := map[string]*Route{}
	for i := range p.routes {
		if r := &p.routes[i]; r.floored() {
			routes[r.Name] = r
		}
	}
	last := p.duration()
	caches := everKept{}
	for a := range p.load(seed) {
		a.PromptTokens -= caches.of(&a, p.backends[0].Engine.Block)
		// Fewer tokens cannot be judged by a floor, and count with neither.
		if r := routes[a.Route]; r != nil && p.promises(a) && a.OutputTokens >= minArrivals {
			until := a.At + patience(a, r) + r.span(a.OutputTokens)
			b.jobs = append(b.jobs, boundJob{Arrival: a, route: r, until: until, cost: make([]float64, len(p.backends)), worth: make([]float64, len(p.backends))})
			last = max(last, until)
		}
	}
	b.bins = int((last-b.start)/bin) + 1
	for i := range b.jobs {
		j := &b.jobs[i]
		j.from, j.to = b.binOf(j.At), b.binOf(j.until)
	}
	for i := range p.backends {
		b.engines = append(b.engines, p.boundEngine(b, &p.backends[i]))
	}
	return b
}

// everKept are the blocks of all prompts and answers that ever came, as in a cache that
// all engines share, forgets nothing, and has an answer before it is written.
type everKept map[uint64]bool

// of is how many tokens of a's prompt are there, and keeps a. Without blocks there
// is no cache.
func (k everKept) of(a *Arrival, size int) int {
	if size <= 0 || a.Turn == nil {
		return 0
	}
	there, whole := 0, true
	for _, b := range a.blocks(size) {
		if whole = whole && k[b]; whole {
			there += size
		}
		k[b] = true
	}
	return min(there, (a.PromptTokens-1)/size*size)
}

// span is how long an answer of so many tokens may take after its first.
func (r *Route) span(tokens int) time.Duration {
	return seconds(noiseOfAnswer * (float64(tokens-1)/r.SLO.MinTPS + r.Grace.Seconds()))
}

// least is the lowest drift of e while j may run there.
func (j *boundJob) least(e *boundEngine) float64 { return slices.Min(e.least[j.from : j.to+1]) }

// cost is what j costs e with an answer of so many tokens, and that drift, and
// what it is worth: 1 where it meets its floor.
func (e *boundEngine) cost(j *boundJob, tokens int, drift float64) (cost, worth float64) {
	if !j.route.on(e.conf.Name) {
		return math.Inf(1), 0
	}
	w, prompt := float64(tokens-1), float64(j.PromptTokens)
	// Its own context is read in each of its steps, whoever else runs.
	context := e.conf.Engine.Model.E * (w*prompt + w*w/2) / e.speed
	step, worth := (j.route.span(tokens).Seconds()/drift-context)/w, 1.0
	if e.step > 0 {
		if step < e.step/drift {
			worth = 0
		}
		step = e.step / drift
	}
	return w*e.hullAt(step) + context + e.conf.Engine.Model.D*prompt/e.speed, worth
}

// boundEngine finds when a backend can be used.
func (p pool) boundEngine(b *bound, conf *Backend) boundEngine {
	e := boundEngine{conf: conf, speed: cmp.Or(conf.Engine.Speed, 1), price: make([]float64, b.bins)}
	for k := range b.bins {
		from := b.start + time.Duration(k)*b.bin
		var have, least float64
		const slices = 50
		for i := range slices {
			drift, dead := p.stateAt(conf, from+b.bin*time.Duration(i)/slices)
			if least == 0 || drift < least {
				least = drift
			}
			if !dead {
				have += b.bin.Seconds() / slices / drift
			}
		}
		e.capacity = append(e.capacity, have*noiseOfRun*float64(max(conf.Ranks, 1)))
		e.least = append(e.least, least)
	}
	return e
}

// see works out the hull where each step of n sequences has rho·n prompt tokens too.
func (e *boundEngine) see(rho float64) {
	o := &e.conf.Engine
	var points [][2]float64
	for n := 1; n <= cmp.Or(o.MaxNumSeqs, 256); n++ {
		decode := o.Model.StepSeconds(n, 0) / e.speed
		points = append(points, [2]float64{o.Model.StepSeconds(n, rho*float64(n)) / e.speed, decode / float64(n)})
	}
	e.rho, e.hull = rho, lowerHull(points)
}

// stateAt is how slow a backend is at a time, and whether nobody can use it.
func (p pool) stateAt(conf *Backend, at time.Duration) (drift float64, dead bool) {
	drift, dead = 1, at < conf.Joins
	for _, f := range p.faults {
		if f.Backend != conf.Name || f.At > at {
			continue
		}
		switch f.Kind {
		case Drift:
			drift = f.Factor
		case Kill:
			dead = true
		case Back:
			dead = false
		}
	}
	return drift, dead
}

// lowerHull is the lower convex hull of points, as far as it falls.
func lowerHull(points [][2]float64) (hull [][2]float64) {
	slices.SortFunc(points, func(a, b [2]float64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, p := range points {
		if len(hull) > 0 && p[1] >= hull[len(hull)-1][1] {
			continue
		}
		for len(hull) > 1 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if (b[1]-a[1])*(p[0]-a[0]) < (p[1]-a[1])*(b[0]-a[0]) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// hullAt is the least engine time of a token at a mean step of s seconds.
func (e *boundEngine) hullAt(s float64) float64 {
	if s < e.hull[0][0] {
		return math.Inf(1)
	}
	i, found := slices.BinarySearchFunc(e.hull, s, func(p [2]float64, s float64) int { return cmp.Compare(p[0], s) })
	if found || i == len(e.hull) {
		return e.hull[min(i, len(e.hull)-1)][1]
	}
	a, b := e.hull[i-1], e.hull[i]
	return a[1] + (b[1]-a[1])*(s-a[0])/(b[0]-a[0])
}

// solve looks for prices, and returns the least bound that it finds.
func (b *bound) solve(rounds int) float64 {
	best := 0.0
	for i := range b.jobs {
		best += b.jobs[i].most()
	}
	// To begin with, a second of each engine costs what can be met in it: as much as
	// is best for all.
	usual, at := b.usual(), 0.0
	for x := 0.05; x < 3; x *= 1.25 {
		b.setPrices(usual, x)
		if y := b.worth(); y < best {
			best, at = y, x
		}
	}
	if at == 0 { // all of it fits, on the whole; maybe not at all times
		at, rounds = 0.3, (rounds+2)/3
	}
	b.setPrices(usual, at)
	kept := b.prices()
	for round := range rounds {
		y := b.worth()
		if y < best {
			best, kept = y, b.prices()
		}
		if round%60 == 59 {
			b.restore(kept)
			b.worth()
		}
		step := 0.3 / math.Sqrt(float64(1+round%60)) / (1 + float64(round/60))
		for i := range b.engines {
			e := &b.engines[i]
			for k := range e.price {
				over := (e.wanted[k] - e.capacity[k]) / max(e.capacity[k], 0.1)
				e.price[k] = max(e.price[k], usual[i]*1e-4) * math.Exp(step*min(max(over, -2), 2))
			}
		}
	}
	b.restore(kept)
	b.worth()
	return best
}

// most is what j is worth at best.
func (j *boundJob) most() float64 {
	best := 0.0
	for e, c := range j.cost {
		if !math.IsInf(c, 1) {
			best = max(best, j.worth[e])
		}
	}
	return best
}

// usual is how many are met in a second of each engine, on average.
func (b *bound) usual() []float64 {
	list := make([]float64, len(b.engines))
	for i := range list {
		sum, count := 0.0, 0.0
		for k := range b.jobs {
			if c := b.jobs[k].cost[i]; !math.IsInf(c, 1) {
				sum, count = sum+c, count+1
			}
		}
		list[i] = count / max(sum, 1e-9)
	}
	return list
}

func (b *bound) setPrices(usual []float64, x float64) {
	for i := range b.engines {
		for k := range b.engines[i].price {
			b.engines[i].price[k] = x * usual[i]
		}
	}
}

func (b *bound) prices() (all [][]float64) {
	for i := range b.engines {
		all = append(all, slices.Clone(b.engines[i].price))
	}
	return all
}

func (b *bound) restore(all [][]float64) {
	for i := range b.engines {
		copy(b.engines[i].price, all[i])
	}
}

// worth is the bound at the prices of now. It notes who wants how many seconds
// there.
func (b *bound) worth() float64 {
	sum := 0.0
	for i := range b.engines {
		e := &b.engines[i]
		e.wanted = make([]float64, b.bins)
		for k, c := range e.capacity {
			sum += c * e.price[k]
		}
		e.cheapest, e.served = [][]float64{e.price}, [2]float64{}
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		chosen, gain := -1, 0.0
		for e := range b.engines {
			if x := j.worth[e] - j.cost[e]*b.engines[e].lowest(j.from, j.to); x > gain {
				chosen, gain = e, x
			}
		}
		if chosen >= 0 {
			sum += gain
			e := &b.engines[chosen]
			e.served[0] += float64(j.PromptTokens)
			e.served[1] += float64(j.OutputTokens - 1)
			e.want(j.from, j.to, j.cost[chosen])
		}
	}
	return sum
}

// lowest is the lowest price of the bins from one to another.
func (e *boundEngine) lowest(from, to int) float64 {
	for len(e.cheapest) <= to-from {
		n := len(e.cheapest)
		before := e.cheapest[n-1]
		row := make([]float64, max(len(e.price)-n, 0))
		for k := range row {
			row[k] = min(before[k], e.price[k+n])
		}
		e.cheapest = append(e.cheapest, row)
	}
	return e.cheapest[to-from][from]
}

// want books cost on the bins that are as cheap as any.
func (e *boundEngine) want(from, to int, cost float64) {
	if to-from > 64 {
		to = from + 64 // who has so long is no question of bins
	}
	low, sum := e.lowest(from, to), 0.0
	weight := func(k int) float64 {
		if low <= 0 {
			return 1
		}
		x := e.price[k]/low - 1
		return math.Exp(-30 * x)
	}
	for k := from; k <= to; k++ {
		sum += weight(k)
	}
	for k := from; k <= to; k++ {
		e.wanted[k] += cost * weight(k) / sum
	}
}

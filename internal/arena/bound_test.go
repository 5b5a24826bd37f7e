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
	hull     [][2]float64 // (b, b/n) by rising b and falling b/n
	capacity []float64
	least    []float64 // lowest drift, by bin
	price    []float64
	wanted   []float64   // seconds, at these prices
	cheapest [][]float64 // lowest price from a bin on, by how many more
}

// boundJob is one stream: the bins it may be in, and its cost by engine, +Inf where
// it cannot meet its floor.
type boundJob struct {
	from, to int
	cost     []float64
}

func (b *bound) binOf(at float64) int  { return min(max(int(at/boundBin.Seconds()), 0), b.bins-1) }
func (p pool) promises(a Arrival) bool { return a.At >= p.warmup && a.At < p.duration() }
func (p pool) duration() time.Duration { return cmp.Or(p.length, length300) }

// upperBound is the most requests of the routes with a floor that can be met of the
// load of a seed.
func (p pool) upperBound(seed uint64) float64 {
	b := &bound{start: p.warmup}
	var jobs []Arrival
	routes := map[string]*Route{}
	for i := range p.routes {
		if p.routes[i].floored() {
			routes[p.routes[i].Name] = &p.routes[i]
		}
	}
	last := p.duration()
	for a := range p.load(seed) {
		// Fewer tokens cannot be judged by a floor, and count with neither.
		if r := routes[a.Route]; r != nil && p.promises(a) && a.OutputTokens >= minArrivals {
			jobs = append(jobs, a)
			last = max(last, a.At+patience+r.span(a.OutputTokens))
		}
	}
	b.bins = int((last-b.start)/boundBin) + 1
	for i := range p.backends {
		b.engines = append(b.engines, p.boundEngine(b, &p.backends[i]))
	}
	for _, a := range jobs {
		b.jobs = append(b.jobs, b.job(a, routes[a.Route]))
	}
	return b.solve()
}

// span is how long an answer of so many tokens may take after its first.
func (r *Route) span(tokens int) time.Duration {
	return seconds(noiseOfAnswer * (float64(tokens-1)/r.SLO.MinTPS + r.Grace.Seconds()))
}

// job is what a costs.
func (b *bound) job(a Arrival, r *Route) boundJob {
	span := r.span(a.OutputTokens)
	j := boundJob{from: b.binOf((a.At - b.start).Seconds()), to: b.binOf((a.At + patience + span - b.start).Seconds())}
	w := float64(a.OutputTokens - 1)
	for i := range b.engines {
		e := &b.engines[i]
		o := &e.conf.Engine
		speed := cmp.Or(o.Speed, 1)
		// Its own context is read in each of its steps, whoever else runs.
		context := o.Model.E * (w*float64(a.PromptTokens) + w*w/2) / speed
		cost := math.Inf(1)
		if r.on(e.conf.Name) {
			drift := slices.Min(e.least[j.from : j.to+1])
			cost = w*e.hullAt((span.Seconds()/drift-context)/w) + context + o.Model.D*float64(a.PromptTokens)/speed
		}
		j.cost = append(j.cost, cost)
	}
	return j
}

// boundEngine works out the hull of a backend, and when it can be used.
func (p pool) boundEngine(b *bound, conf *Backend) boundEngine {
	o := &conf.Engine
	speed := cmp.Or(o.Speed, 1)
	e := boundEngine{conf: conf, price: make([]float64, b.bins)}
	var points [][2]float64
	for n := 1; n <= cmp.Or(o.MaxNumSeqs, 256); n++ {
		step := o.Model.StepSeconds(n, 0) / speed
		points = append(points, [2]float64{step, step / float64(n)})
	}
	e.hull = lowerHull(points)
	for k := range b.bins {
		from := b.start + time.Duration(k)*boundBin
		var have, least float64
		const slices = 50
		for i := range slices {
			drift, dead := p.stateAt(conf, from+boundBin*time.Duration(i)/slices)
			if least == 0 || drift < least {
				least = drift
			}
			if !dead {
				have += boundBin.Seconds() / slices / drift
			}
		}
		e.capacity = append(e.capacity, have*noiseOfRun*float64(max(conf.Ranks, 1)))
		e.least = append(e.least, least)
	}
	return e
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
func (b *bound) solve() float64 {
	var value, cost float64
	for _, j := range b.jobs {
		if least := slices.Min(j.cost); !math.IsInf(least, 1) {
			value++
			cost += least
		}
	}
	// A common price to begin with: the best of many.
	best, at := value, 0.0
	for x := 0.01; x < 100; x *= 1.3 {
		b.setPrices(x * value / max(cost, 1e-9))
		if y := b.worth(); y < best {
			best, at = y, x*value/cost
		}
	}
	if at == 0 {
		return best // all of it fits
	}
	b.setPrices(at)
	kept := b.prices()
	for round := range boundRounds {
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
				e.price[k] = max(e.price[k], at*1e-4) * math.Exp(step*min(max(over, -2), 2))
			}
		}
	}
	return best
}

func (b *bound) setPrices(x float64) {
	for i := range b.engines {
		for k := range b.engines[i].price {
			b.engines[i].price[k] = x
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
		e.cheapest = [][]float64{e.price}
	}
	for i := range b.jobs {
		j := &b.jobs[i]
		chosen, least := -1, math.Inf(1)
		for e := range b.engines {
			if price := j.cost[e] * b.engines[e].lowest(j.from, j.to); price < least {
				chosen, least = e, price
			}
		}
		if gain := 1 - least; gain > 0 {
			sum += gain
			b.engines[chosen].want(j.from, j.to, j.cost[chosen])
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

package arena

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// The upper bound holds for who knows the future, and lets prompts stop nobody. On
// most pools that is all that was offered. The assignment is what the true curves
// give without these two: the same linear program, where
//
//   - all who run on an engine share its steps. How long those are is settled for
//     each engine: by the floor of one of the routes, and by how much of the grace is
//     used up. Of all ways the best counts. Who needs shorter steps misses;
//   - each step of n sequences has rho·n prompt tokens as well, rho of those that
//     are served on the engine, as for every curve of Pacer;
//   - nobody knows how long an answer will be: each costs the mean of those to
//     prompts as long;
//   - a request waits in line no longer than its route lets it.
//
// It is a fluid: nobody comes at a bad moment, and prompts come evenly. So it is what
// can be done, not a proof: who knew more could do more.

const (
	fluidBin = time.Second

	// Beside its time in line a request waits for the step of now, and for prompts
	// before its own.
	prefillWait = 2 * time.Second

	// alikeAnswers are the answers that a request's is taken from.
	alikeAnswers = 16

	rhoRounds  = 3
	waysRounds = 60 // of prices, for a first look at each way
	bestWays   = 3  // of which all is worked out
)

// slacks are by how much steps may be longer than the floor allows without grace.
var slacks = [...]float64{0, 0.03, 0.1, 0.3, 1}

// assignment is how many requests of the routes with a floor are met at best.
func (p pool) assignment(seed uint64) float64 {
	return min(p.assigned(seed, each), p.upperBound(seed))
}

// each counts every request for one.
func each(*boundJob) float64 { return 1 }

// strictWeights are how many others one of the highest floor may count for.
var strictWeights = [...]float64{1, 1.5, 2, 3, 5}

// assignmentBeside is the same for whoever meets so many of those with the highest
// floor. The assignment serves whichever floor brings more requests; who serves the
// strict one as well has less to give. For each weight w of theirs,
//
//	met ≤ max(met + (w − 1)·met of theirs) − (w − 1)·strict,
//
// and the least of these counts.
func (p pool) assignmentBeside(seed uint64, strict float64) float64 {
	best, highest := p.assignment(seed), slices.Max(p.floors())
	for _, w := range strictWeights[1:] {
		best = min(best, p.assigned(seed, func(j *boundJob) float64 {
			if j.route.SLO.MinTPS == highest {
				return w
			}
			return 1
		})-(w-1)*strict)
	}
	return best
}

// lengthWeights are powers of what a class of prompts costs: with 1 it gains nobody
// anything to serve the shorter ones.
var lengthWeights = [...]float64{0.25, 0.5, 0.75, 1}

// assignmentOfLengths is the same for whoever meets so many of each class of prompts.
// In overload the assignment refuses those with long prompts, for the others are more.
// Each class has a weight here, and as above
//
//	met ≤ max(Σ w·met) − Σ (w − 1)·met of his.
func (p pool) assignmentOfLengths(seed uint64, met [len(PromptClasses)]float64) float64 {
	best, costs := p.assignment(seed), p.lengthCosts(seed)
	for _, power := range lengthWeights {
		weight := func(class int) float64 { return math.Pow(costs[class], power) }
		all := p.assigned(seed, func(j *boundJob) float64 { return weight(promptClass(j.PromptTokens)) })
		for class, m := range met {
			all -= (weight(class) - 1) * m
		}
		best = min(best, all)
	}
	return best
}

// lengthCosts is what a request of each class of prompts costs, as a part of what one
// does on average; 1 of a class that has none.
func (p pool) lengthCosts(seed uint64) (costs [len(PromptClasses)]float64) {
	b := p.fluid(seed)
	b.step(slices.Repeat([]float64{1 / slices.Min(p.floors())}, len(b.engines)))
	var count [len(PromptClasses)]float64
	all, usual := 0.0, b.usual()
	for i := range b.jobs {
		j := &b.jobs[i]
		class := promptClass(j.PromptTokens)
		for k := range b.engines {
			if !math.IsInf(j.cost[k], 1) {
				costs[class] += j.cost[k] * usual[k]
				count[class]++
				all++
			}
		}
	}
	sum := 0.0
	for _, c := range costs {
		sum += c
	}
	for class := range costs {
		if costs[class] /= count[class] * sum / all; count[class] == 0 {
			costs[class] = 1
		}
	}
	return costs
}

// fluid is the program with the prompts that are offered, before its steps are settled.
func (p pool) fluid(seed uint64) *bound {
	b := p.bound(seed, fluidBin, func(a Arrival, r *Route) time.Duration {
		wait := prefillWait
		for _, s := range r.OnInfeasible {
			if s.Kind == router.Queue {
				wait += s.Wait
			}
		}
		return wait
	})
	for i := range b.engines {
		b.engines[i].see(b.offeredRho())
	}
	for i := range b.jobs {
		b.jobs[i].counts = 1
	}
	return b
}

// assigned is what is met at best where each request counts for so many.
func (p pool) assigned(seed uint64, counts func(*boundJob) float64) float64 {
	b := p.fluid(seed)
	for i := range b.jobs {
		b.jobs[i].counts = counts(&b.jobs[i])
	}
	floors := p.floors()
	type way struct {
		steps []float64
		value float64
	}
	var ways []way
	for number := range power(len(floors), len(b.engines)) {
		for _, slack := range slacks {
			x := number
			var steps []float64
			for range b.engines {
				steps = append(steps, (1+slack)/floors[x%len(floors)])
				x /= len(floors)
			}
			b.step(steps)
			ways = append(ways, way{steps, b.solve(waysRounds)})
		}
	}
	slices.SortFunc(ways, func(x, y way) int { return cmp.Compare(y.value, x.value) })
	best := 0.0
	for _, w := range ways[:min(len(ways), bestWays)] {
		for i := range b.engines {
			b.engines[i].see(b.offeredRho())
		}
		best = max(best, b.settle(w.steps))
	}
	return best
}

// step settles how long the steps of each engine are.
func (b *bound) step(steps []float64) {
	for i := range steps {
		b.engines[i].step = steps[i]
	}
	b.expect()
}

// floors are those of the routes, each once.
func (p pool) floors() (list []float64) {
	for i := range p.routes {
		if p.routes[i].floored() {
			list = append(list, p.routes[i].SLO.MinTPS)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func power(base, exponent int) int {
	x := 1
	for range exponent {
		x *= base
	}
	return x
}

// offeredRho is how many prompt tokens come with each token of the answers.
func (b *bound) offeredRho() float64 {
	var prompts, answers float64
	for i := range b.jobs {
		prompts += float64(b.jobs[i].PromptTokens)
		answers += float64(b.jobs[i].OutputTokens - 1)
	}
	return prompts / max(answers, 1)
}

// settle solves b with prompts as they are served.
func (b *bound) settle(steps []float64) (value float64) {
	for range rhoRounds {
		b.step(steps)
		value = b.solve(boundRounds)
		for i := range b.engines {
			if e := &b.engines[i]; e.served[1] > 0 {
				e.see((e.rho + e.served[0]/e.served[1]) / 2)
			}
		}
	}
	return value
}

// expect is what each job costs with the answers to prompts that are as long.
func (b *bound) expect() {
	order := make([]int, len(b.jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, c := &b.jobs[x], &b.jobs[y]
		return cmp.Or(cmp.Compare(a.Route, c.Route), cmp.Compare(a.PromptTokens, c.PromptTokens))
	})
	for at, i := range order {
		j := &b.jobs[i]
		from := max(min(at-alikeAnswers/2, len(order)-alikeAnswers), 0)
		for k := range b.engines {
			e := &b.engines[k]
			drift, cost, worth, count := j.least(e), 0.0, 0.0, 0.0
			for _, x := range order[from:min(from+alikeAnswers, len(order))] {
				if b.jobs[x].route == j.route {
					c, v := e.cost(j, b.jobs[x].OutputTokens, drift)
					cost, worth, count = cost+c, worth+v, count+1
				}
			}
			j.cost[k], j.worth[k] = cost/count, j.counts*worth/count
		}
	}
}

package arena

import (
	"math"
	"slices"
	"time"
)

// routeTally counts what became of the requests of one route.
type routeTally struct {
	route    *Route
	measured time.Duration

	counts   Counts
	byManner [manners]Counts
	byPrompt [len(PromptClasses)]Counts
	cached   int       // prompt tokens of those that were served, by the engines' caches
	goodput  float64   // tokens
	minutes  []float64 // of it, by the minute in which the request came
	ended    float64   // tokens, of those that met their promise and ended while it was counted, whenever they came

	tps, ttft, waited []float64 // tokens/s, seconds, seconds

	began, placed            bool
	firstArrival             time.Duration
	firstPlaced              time.Duration
	returned, returnedPlaced int
}

// promptClass is the class of a prompt of so many tokens.
func promptClass(tokens int) int {
	for i, top := range PromptClasses {
		if tokens <= top {
			return i
		}
	}
	return len(PromptClasses) - 1
}

// offer counts a request that came.
func (r *routeTally) offer(v *visit) {
	if !r.began {
		r.began, r.firstArrival = true, v.arrival.At
	}
	if !v.counts {
		return
	}
	for _, c := range r.countsOf(v) {
		c.Offered++
		c.PromptTokens += v.arrival.PromptTokens
	}
}

// countsOf are those that v counts in.
func (r *routeTally) countsOf(v *visit) []*Counts {
	return []*Counts{&r.counts, &r.byPrompt[promptClass(v.arrival.PromptTokens)], &r.byManner[v.manner]}
}

// place counts one that was placed.
func (r *routeTally) place(v *visit) {
	if !r.placed {
		r.placed, r.firstPlaced = true, v.world.now-r.firstArrival
	}
	if v.counts {
		r.waited = append(r.waited, v.waited.Seconds())
	}
}

// back counts a client that came back when it was told to.
func (r *routeTally) back(v *visit, placed bool) {
	if !v.back.told {
		return
	}
	v.back.told = false
	r.returned++
	if placed {
		r.returnedPlaced++
	}
}

// end counts what became of v.
func (r *routeTally) end(v *visit, o outcome) {
	if s := &v.world.s; o == met && v.world.now >= s.Warmup && v.world.now < s.Duration {
		r.ended += float64(v.seen.tokens)
	}
	if !v.counts {
		return
	}
	for _, c := range r.countsOf(v) {
		switch o {
		case met:
			c.Met++
		case missed:
			c.Missed++
			if v.late() {
				c.Late++
			}
		case unmeasured:
			c.Unmeasured++
		case shed:
			c.Shed++
		case failed:
			c.Failed++
		}
		if o == met || o == missed || o == unmeasured {
			c.ServedPromptTokens += v.arrival.PromptTokens
		}
	}
	if o == shed || o == failed {
		return
	}
	r.cached += v.seat.sequence.Cached()
	if o == met {
		r.goodput += float64(v.seen.tokens)
		minute := int(v.arrival.At / time.Minute)
		r.minutes = append(r.minutes, make([]float64, max(minute+1-len(r.minutes), 0))...)
		r.minutes[minute] += float64(v.seen.tokens)
	}
	if v.measured() {
		r.tps = append(r.tps, v.tps())
	}
	r.ttft = append(r.ttft, (v.seen.first - v.arrived).Seconds())
}

func (r *routeTally) result() RouteResult {
	// Who has not ended by now never will.
	settle := func(c *Counts) {
		c.Failed = c.Offered - c.Met - c.Missed - c.Unmeasured - c.Shed
	}
	settle(&r.counts)
	for i := range r.byManner {
		settle(&r.byManner[i])
	}
	for i := range r.byPrompt {
		settle(&r.byPrompt[i])
	}
	out := RouteResult{
		Route: r.route.Name, Counts: r.counts, CachedTokens: r.cached, ByManner: r.byManner, ByPrompt: r.byPrompt,
		Goodput: r.goodput / r.measured.Seconds(), Ended: r.ended / r.measured.Seconds(), MetTokens: r.minutes,
		TPSP10: quantile(r.tps, 0.1), TPSP50: quantile(r.tps, 0.5),
		TTFTP50: seconds(quantile(r.ttft, 0.5)), TTFTP99: seconds(quantile(r.ttft, 0.99)),
		WaitedP50: seconds(quantile(r.waited, 0.5)), WaitedP99: seconds(quantile(r.waited, 0.99)),
		FirstPlaced: -1, Returned: r.returned, ReturnedPlaced: r.returnedPlaced,
	}
	if r.placed {
		out.FirstPlaced = r.firstPlaced
	}
	return out
}

// quantile returns the q-quantile of xs (nearest rank), which it sorts; NaN of
// nothing.
func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	return xs[min(int(q*float64(len(xs))), len(xs)-1)]
}

// seconds returns s seconds, 0 of NaN.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

package router

import (
	"math"
	"time"
)

// forecast is how many sequences are expected to have ended in a group by
// each of forecastTimes from when it was made: of the own streams by how far
// they got and how long the answers of their routes are, of all others as many
// as end on average; and of those that take their places.
type forecast struct {
	made     time.Time // zero = never
	releases [forecastSteps]float64

	// bias is ln of how many more end than was forecast, of late: a stream that
	// waits for its prefill, or whose steps carry other prompts, ends later than
	// its speed says. check is the forecast that is held against it next.
	bias  float64
	check struct {
		made     time.Time // zero = none
		releases [forecastSteps]float64
		ended    float64 // since
	}
}

// learn compares a forecast with what came of it by now, when it is time, and
// keeps the one just made for the next time.
func (f *forecast) learn(now time.Time) {
	c := &f.check
	d := now.Sub(c.made)
	if !c.made.IsZero() && d < forecastCheck {
		return
	}
	scale := math.Exp(-f.bias) // back to what was forecast without it
	if !c.made.IsZero() && d <= 2*forecastCheck {
		const (
			doubt = 1   // sequences: of few that end nothing follows
			most  = 0.7 // the first answers that end on a route are its shortest: nobody else is known
			share = 0.2
		)
		off := math.Log((c.ended + doubt) / (placesBy(&c.releases, d) + doubt))
		f.bias += share * (min(max(off, -most), most) - f.bias)
	}
	c.made, c.ended = now, 0
	for i, n := range f.releases {
		c.releases[i] = n * scale
	}
}

const (
	// The times go from 1/8 s to 64 s, two to an octave.
	forecastSteps = 19
	forecastFirst = 0.125

	// A forecast older than forecastFresh is made anew, one of the stale ones
	// for each question, and all that are older than forecastStale. Each takes
	// some 5 µs for a hundred streams.
	forecastFresh = 250 * time.Millisecond
	forecastStale = time.Second

	// A forecast is compared with what came of it after forecastCheck.
	forecastCheck = 4 * time.Second

	// forecastCohorts is how many kinds of streams are told apart in a group;
	// further ones end on average.
	forecastCohorts = 8
)

// forecastTimes are in seconds.
var forecastTimes = func() (times [forecastSteps]float64) {
	for i := range times {
		times[i] = forecastFirst * math.Exp2(float64(i)/2)
	}
	return times
}()

// cohort counts the sequences of one route on one target by the bin of the
// tokens that they have so far.
type cohort struct {
	route *route
	model *model
	bins  [lengthBins]float64
	least int // the first bin with any
	most  int // the last
}

// predict makes f, the last forecast of g, the one of now, with cohorts as scratch.
func (g *group) predict(now time.Time, f *forecast, cohorts *[forecastCohorts]cohort) {
	f.made, f.releases = now, [forecastSteps]float64{}
	used, rest := 0, float64(g.m())
	for _, l := range g.own.streams {
		used = enrol(cohorts, used, l)
	}
	for i := range cohorts[:used] {
		rest -= cohorts[i].release(g.m(), &f.releases)
	}
	mean := 0.0 // answers a second that one sequence ends in the long run
	if m := g.fastest(); m != nil {
		mean = finite(m.expects(max(g.m(), 1))) / g.usualAnswer(m)
	}
	scale := math.Exp(f.bias)
	for i, t := range forecastTimes {
		f.releases[i] = scale * (f.releases[i] + max(rest, 0)*mean*t)
	}
	f.learn(now)
}

// enrol adds l to its cohort, or makes it one of used+1; without room it is left
// out.
func enrol(cohorts *[forecastCohorts]cohort, used int, l *Lease) int {
	i := 0
	for i < used && (cohorts[i].route != l.route || cohorts[i].model != l.model) {
		i++
	}
	if i == forecastCohorts || !l.model.known {
		return used
	}
	c := &cohorts[i]
	if i == used {
		*c = cohort{route: l.route, model: l.model, least: lengthBins}
		used++
	}
	bin := lengthBin(l.progress().tokens / float64(l.weight))
	c.bins[bin] += float64(l.weight)
	c.least, c.most = min(c.least, bin), max(c.most, bin)
	return used
}

// Of a stream that has x tokens so far, and gets v tokens/s, on a route whose
// answers are longer than y tokens with probability F(y):
//
//	E(t) = 1 − F(x + v·t)/F(x)           the chance that it has ended by t
//	S(t) = Σ (E(tⱼ) − E(tⱼ₋₁))·M(v·sⱼ)    successors that have ended by t
//	releases(t) = exp(bias)·(Σ E(t) + Σ S(t) + rest·t·v/mean)
//
//	t     seconds from now, one of forecastTimes
//	sⱼ    t less the middle of tⱼ₋₁ and tⱼ: how long a place has had its next streams
//	M(y)  how many answers end, one behind the other, within y tokens on average: the
//	      renewal function of F, Σₖ P(k answers together have at most y tokens), as
//	      lengths.renewals estimates it
//	rest  sequences that nobody knows; mean is the tokens of an answer on average
//	bias  follows ln(ended/forecast), a fifth of the way each 4 s, within ±0.7
//
// E is the chance on the condition that the stream is longer than x, for it is. The
// places of those that end are taken at once: requests wait, or nobody would ask.
//
// release adds to releases how many sequences of c, and of those that take their
// places, are expected to have ended, and returns how many c has.
func (c *cohort) release(m int, releases *[forecastSteps]float64) float64 {
	h := &c.route.lengths
	h.prepare()
	tps := finite(c.model.expects(max(m, 1)))
	var ended [forecastSteps]float64
	count := 0.0
	for bin := c.least; bin <= c.most; bin++ {
		n := c.bins[bin]
		if n == 0 {
			continue
		}
		count += n
		from := (lengthEdges[bin] + lengthEdges[bin+1]) / 2
		left := h.tail(from)
		if left <= 0 { // longer than any: it should have ended
			for i := range ended {
				ended[i] += n
			}
			continue
		}
		for i, t := range forecastTimes {
			ended[i] += n * (1 - h.tail(from+tps*t)/left)
		}
	}
	var renewals [forecastSteps]float64
	for i, t := range forecastTimes {
		renewals[i] = h.renewals(tps * t)
	}
	succeed(&ended, &renewals, releases)
	return count
}

// succeed adds to releases those that ended, and those that took their places
// since: each of these has had so many renewals as it has had time.
func succeed(ended, renewals, releases *[forecastSteps]float64) {
	for i, t := range forecastTimes {
		sum, k := ended[i], 0
		for j := i; j >= 0; j-- { // the time since grows
			fresh, begin := ended[j], 0.0
			if j > 0 {
				fresh, begin = ended[j]-ended[j-1], forecastTimes[j-1]
			}
			since := t - (begin+forecastTimes[j])/2
			for k < forecastSteps-1 && forecastTimes[k] < since {
				k++
			}
			before, at := 0.0, 0.0
			if k > 0 {
				before, at = renewals[k-1], forecastTimes[k-1]
			}
			sum += fresh * (before + (renewals[k]-before)*(since-at)/(forecastTimes[k]-at))
		}
		releases[i] += sum
	}
}

// fastest is the known target of g that is fastest for one stream, one that is
// guessed only where no other is known; nil if none is.
func (g *group) fastest() *model {
	var best *model
	for _, m := range g.models {
		if m.known && (best == nil || best.guessed || !m.guessed && m.solo > best.solo) {
			best = m
		}
	}
	return best
}

// usualAnswer is how many tokens an answer of m has on average: as its curve
// knows, else as the routes on its group do.
func (g *group) usualAnswer(m *model) float64 {
	if m.answer > 0 {
		return m.answer
	}
	sum, weight := 0.0, 0.0
	for _, rt := range g.routes {
		sum, weight = sum+rt.lengths.sum, weight+rt.lengths.weight
	}
	if weight <= 0 {
		return usualAnswer
	}
	return max(sum/weight, 1)
}

// places are how many requests like a are expected to have found a place on its
// route's backends, by each of forecastTimes; known is false where no backend
// in service has a curve to say so.
func (r *Router) places(a *ask) (places [forecastSteps]float64, known bool) {
	spared := false
	for i, m := range a.route.models {
		if m == nil || !m.known || !m.group.backend.inService() || a.passesOver(m) || a.route.sharesGroup(i) {
			continue
		}
		known = true
		groups, missing := []*group{m.group}, a.missing(m, m.group.present())
		if short := a.short(m.group.backend); short > 0 && len(m.group.backend.groups) > 1 {
			// The place may come from any group of the backend.
			if groups, missing = m.group.backend.groups, short; a.route.sharesBackend(i) {
				continue
			}
		}
		var releases [forecastSteps]float64
		for _, g := range groups {
			f := &g.forecast
			if age := a.now.Sub(f.made); age > forecastStale || age > forecastFresh && !spared {
				if a.preview {
					kept := *f
					f = &kept
				}
				g.predict(a.now, f, &r.scratch.cohorts)
				spared = true
			}
			for i, n := range f.releases {
				releases[i] += n
			}
		}
		for i, n := range releases {
			places[i] += max(n-float64(missing-1), 0) / float64(max(a.weight, 1))
		}
	}
	return places, known
}

// short is how many places have to come free below the cap of b before a fits;
// not above 0 where the cap is not what stands in its way.
func (a *ask) short(b *backend) int {
	spare, capped := b.spare()
	if !capped {
		return 0
	}
	return max(a.weight, 1) - spare
}

// untilPlace is when the k-th place comes free, by places; ok is false where none
// of the times says so.
func untilPlace(places *[forecastSteps]float64, k float64) (d time.Duration, ok bool) {
	before, at := 0.0, 0.0
	for i, t := range forecastTimes {
		if places[i] >= k {
			return seconds(at + (t-at)*(k-before)/max(places[i]-before, 1e-9)), true
		}
		before, at = places[i], t
	}
	return retryMost, false
}

// placesBy is how many places come free within d, by places.
func placesBy(places *[forecastSteps]float64, d time.Duration) float64 {
	before, at := 0.0, 0.0
	for i, t := range forecastTimes {
		if s := d.Seconds(); s <= t {
			return before + (places[i]-before)*(s-at)/(t-at)
		}
		before, at = places[i], t
	}
	return before
}

package router

import (
	"math"
	"time"
)

// forecast is how many sequences are expected to have ended on a backend by
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

	// forecastGroups is how many kinds of streams are told apart on a backend;
	// further ones end on average.
	forecastGroups = 8
)

// forecastTimes are in seconds.
var forecastTimes = func() (times [forecastSteps]float64) {
	for i := range times {
		times[i] = forecastFirst * math.Exp2(float64(i)/2)
	}
	return times
}()

// streamGroup counts the sequences of one route on one target by the bin of the
// tokens that they have so far.
type streamGroup struct {
	route *route
	model *model
	bins  [lengthBins]float64
	least int // the first bin with any
	most  int // the last
}

// predict makes the forecast of b, with groups as scratch.
func (b *backend) predict(now time.Time, groups *[forecastGroups]streamGroup) {
	f := &b.forecast
	f.made, f.releases = now, [forecastSteps]float64{}
	used, rest := 0, float64(b.m())
	for _, l := range b.streams {
		used = group(groups, used, l)
	}
	for i := range groups[:used] {
		rest -= groups[i].release(b.m(), &f.releases)
	}
	mean := 0.0 // answers a second that one sequence ends in the long run
	if m := b.fastest(); m != nil {
		mean = finite(m.curve.TPS(max(b.m(), 1))) / b.usualAnswer(m)
	}
	scale := math.Exp(f.bias)
	for i, t := range forecastTimes {
		f.releases[i] = scale * (f.releases[i] + max(rest, 0)*mean*t)
	}
	f.learn(now)
}

// group adds l to its group, or makes it one of used+1; without room it is left
// out.
func group(groups *[forecastGroups]streamGroup, used int, l *Lease) int {
	i := 0
	for i < used && (groups[i].route != l.route || groups[i].model != l.model) {
		i++
	}
	if i == forecastGroups || !l.model.known {
		return used
	}
	g := &groups[i]
	if i == used {
		*g = streamGroup{route: l.route, model: l.model, least: lengthBins}
		used++
	}
	bin := lengthBin(l.progress().tokens / float64(l.weight))
	g.bins[bin] += float64(l.weight)
	g.least, g.most = min(g.least, bin), max(g.most, bin)
	return used
}

// release adds to releases how many sequences of g, and of those that take their
// places, are expected to have ended, and returns how many g has.
func (g *streamGroup) release(m int, releases *[forecastSteps]float64) float64 {
	h := &g.route.lengths
	h.prepare()
	tps := finite(g.model.curve.TPS(max(m, 1)))
	var ended [forecastSteps]float64
	count := 0.0
	for bin := g.least; bin <= g.most; bin++ {
		n := g.bins[bin]
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

// fastest is the known target of b that is fastest for one stream, nil if none
// is known.
func (b *backend) fastest() *model {
	var best *model
	for _, m := range b.models {
		if m.known && (best == nil || m.solo > best.solo) {
			best = m
		}
	}
	return best
}

// usualAnswer is how many tokens an answer of m has on average: as its curve
// knows, else as the routes on its backend do.
func (b *backend) usualAnswer(m *model) float64 {
	if m.answer > 0 {
		return m.answer
	}
	sum, weight := 0.0, 0.0
	for _, rt := range b.routes {
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
		if m == nil || !m.known || !m.backend.inService() || a.route.sharesBackend(i) {
			continue
		}
		b := m.backend
		known = true
		if age := a.now.Sub(b.forecast.made); age > forecastStale || age > forecastFresh && !spared {
			b.predict(a.now, &r.groups)
			spared = true
		}
		missing := float64(a.missing(m) - 1)
		for i, n := range b.forecast.releases {
			places[i] += max(n-missing, 0) / float64(max(a.weight, 1))
		}
	}
	return places, known
}

// missing is how many sequences have to end on m before one like a fits, at
// least 1; as many as run there when nothing less would do.
func (a *ask) missing(m *model) int {
	most := max(m.backend.m(), 1)
	fails, fits := 0, 1
	for fits < most && !a.fits(m, a.weight-fits) {
		fails, fits = fits, min(2*fits, most)
	}
	for fits-fails > 1 {
		if mid := (fits + fails) / 2; a.fits(m, a.weight-mid) {
			fits = mid
		} else {
			fails = mid
		}
	}
	return fits
}

// untilPlace is when the k-th place comes free, by places.
func untilPlace(places *[forecastSteps]float64, k float64) time.Duration {
	before, at := 0.0, 0.0
	for i, t := range forecastTimes {
		if places[i] >= k {
			return seconds(at + (t-at)*(k-before)/max(places[i]-before, 1e-9))
		}
		before, at = places[i], t
	}
	return retryMost
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

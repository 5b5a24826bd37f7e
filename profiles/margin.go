package profiles

import (
	"math"
	"time"
)

const (
	// startMargin is the margin before streams have shown how far their averages
	// spread; leastMargin and mostMargin bound what they may make of it.
	startMargin = 0.10
	leastMargin = 0.02
	mostMargin  = 0.20

	// usualAttainment is the share of streams that shall keep their floor, where
	// nobody says otherwise.
	usualAttainment = 0.99

	// marginTokens is how many tokens after the first make a stream's average
	// one: shorter ones are the noise of a few steps, and the grace is for them.
	marginTokens = 50

	// shortfallTail is by how much, in ln, streams that are a factor e rarer fall
	// shorter at most: 0.01 to 0.03 where it was seen.
	shortfallTail = 0.05

	// marginSlowness is how many times as slowly as a bin deliveries are
	// forgotten: with half-lives of 600 s it is three hours of decoding.
	marginSlowness = 18

	// Buckets of ln(delivered/predicted): numDeliveries−2 of equal width that
	// end at 0, one for what is below, one for what is above.
	numDeliveries = 26
	deliveryWidth = 0.01
	deliveryFloor = -(numDeliveries - 2) * deliveryWidth // e^−0.24 = 0.787: below all margins
)

// deliverySums are the finished streams of a target, by what they delivered of
// what the curve says for the levels of n that they lived at. Their grace is
// taken off the time they took: ratio is then the highest share of what was
// predicted that they would have kept as a floor.
type deliverySums struct {
	T       float64 // occupied seconds of these streams
	Streams [numDeliveries]float64
}

// see counts a stream.
func (d *deliverySums) see(ratio, occupied float64) {
	x := (math.Log(ratio) - deliveryFloor) / deliveryWidth
	switch {
	case math.IsNaN(x):
		return
	case x < 0:
		d.Streams[0]++
	case x >= numDeliveries-2:
		d.Streams[numDeliveries-1]++
	default:
		d.Streams[1+int(x)]++
	}
	d.T += occupied
}

// margins are what is taken off a curve so that streams deliver what is left: in
// all, and what of it streams have shown that it takes, 0 where few have finished.
type margins struct{ all, shown float64 }

// The margin, from N finished streams of which each kept the share r of what was
// predicted (grace taken off its time):
//
//	A    = (1 − attainment)·N          streams that may keep less, a count
//	q(k) = 1 − r of which k streams lie below      by the buckets of ln r
//	most = q(k₁), k₁ + 1 + √(k₁+1) = A             surely not more is needed
//	least = q(A + 1 + √(A+1))                      surely not less
//	margin = 10 %, moved into [least, most], then into [2 %, 20 %]
//
// √(k+1) is one standard error of a count k of rare, independent streams: their number
// is Poisson's, whose variance is its mean. Where A < 2 there is no k₁: even the worst
// stream seen may be one that is not rare enough. Streams that are 2/A times as rare fall
// shorter by no more than the tail of shortfalls is long:
//
//	most = q(0) + 0.05·ln(2/A)
//
// So with few streams 10 % stands, and with 27 that all kept what was predicted it
// begins to fall. Where chunks hold several tokens most is +∞ instead: how many is told
// by their text, and by how much the curve is off for that no stream shows.
//
// margin returns what has to be taken off the curve so that the given share of
// streams delivers what is left. The streams bound it from both sides, as far
// as a quantile of so many can be trusted; within these bounds it is the value
// nearest to startMargin. For 99 of 100 streams it begins to fall when 27 have
// finished, or 200 where chunks hold several tokens (rough), and to rise when 4 of 100
// fell below it.
func (d *deliverySums) margin(attainment float64, rough bool) margins {
	var all float64
	for _, n := range d.Streams {
		all += max(n, 0)
	}
	allowed := (1 - attainment + 1e-12) * all // streams that may deliver less
	// One standard error of a count k of rare streams, which is √(k+1) for the
	// k that may be seen: k+1+√(k+1) ≤ allowed, and k ≤ allowed+1+√(allowed+1).
	root := (math.Sqrt(1+4*allowed) - 1) / 2
	most := d.shortfall(root*root - 1)
	switch {
	case allowed < 2 && rough:
		most = math.Inf(1)
	case allowed < 2:
		most = d.shortfall(0) + shortfallTail*math.Log(2/allowed)
	}
	least := d.shortfall(allowed + 1 + math.Sqrt(allowed+1))
	m := min(max(startMargin, least), most)
	held := func(x, from float64) float64 { return math.Round(1000*min(max(x, from), mostMargin)) / 1000 }
	return margins{held(m, leastMargin), held(least, 0)}
}

// shortfall returns 1 − the ratio below which k ≥ 0 streams lie.
func (d *deliverySums) shortfall(k float64) float64 {
	k = max(k, 0)
	below := 0.0
	for i, n := range d.Streams[:numDeliveries-1] {
		n = max(n, 0)
		if below+n <= k {
			below += n
			continue
		}
		if i == 0 {
			return mostMargin
		}
		return 1 - math.Exp(deliveryFloor+deliveryWidth*(float64(i-1)+(k-below)/n))
	}
	return 0
}

// delivery is what a stream got, and what the curve of the moment says that it
// should have got in the same time at the same levels of n.
type delivery struct {
	booked   float64 // chunks or tokens, as booked
	seconds  float64
	expected float64 // tokens
	occupied float64 // seconds, this stream's share
	familiar bool    // the curve knows these levels, and by far more than this stream
}

// familiarTimes is how many times as many steps as the stream's own a bin has
// to rest on: the curve must not be measured by itself.
const familiarTimes = 10

// delivery holds the stream so far against the curve. What was gathered must
// have been flushed. What was booked by a count that turned out to be untrue is
// nothing to go by.
func (s *Stream) delivery(c *Curve) (d delivery) {
	if !c.fitted || s.unit.counted && !s.countable() {
		return d
	}
	var familiar float64
	for i := range s.held.lives.list {
		l := &s.held.lives.list[i]
		e := l.life
		e.add(&l.pending, 1)
		if !(e.T > 0) {
			continue
		}
		d.booked += e.Y
		d.expected += e.S / c.tpot(e.S/e.T)
		d.occupied += e.T
		d.seconds += e.S
		if c.bins[l.bin].k >= max(expectSteps, familiarTimes*e.K*s.unit.each) {
			familiar += e.S
		}
	}
	for _, q := range s.unseen.delayed { // as far as n is known now
		s.occ.walk(q.from+s.shift, q.to+s.shift, func(n, _ int, took time.Duration) {
			bin, share := BinOf(n), float64(took)/float64(q.to-q.from)
			tokens := q.k * share * s.unit.fill.in(bin)
			d.booked += tokens
			d.expected += took.Seconds() / c.tpot(float64(max(n, 1)))
			d.occupied += took.Seconds() / float64(max(n, 1))
			d.seconds += took.Seconds()
			if c.bins[bin].k >= max(expectSteps, familiarTimes*tokens/float64(max(n, 1))*s.unit.each) {
				familiar += took.Seconds()
			}
		})
	}
	d.familiar = d.seconds > 0 && familiar >= expectShare*d.seconds
	return d
}

// ratio returns delivered over predicted, NaN when unknown. each is the tokens
// in one of what is booked.
func (d *delivery) ratio(each float64) float64 {
	if !(d.expected > 0) || !(d.booked > 0) {
		return math.NaN()
	}
	return d.booked * each / d.expected
}

// kept returns the share of what was predicted that the stream kept, if it may
// take grace seconds longer. each is as above.
func (d *delivery) kept(each, grace float64) float64 {
	return d.ratio(each) * d.seconds / max(d.seconds-grace, 0)
}

// counts reports whether a stream may teach the margin. A count that is rough,
// a backend that may be slower or faster than its curve at all n (which is
// drift, and the curve's to follow) and a client that blocked say nothing of how far
// streams spread.
func (d *delivery) counts(s *Stream, t tally) bool {
	exact := t.source.counted() || t.source == SourceChunks && s.unit.sure && math.Abs(t.each-1) < deliveryWidth
	g := s.profile.group
	return s.measured() && exact && d.familiar && t.decoded >= marginTokens &&
		!g.drift.unsettled()
}

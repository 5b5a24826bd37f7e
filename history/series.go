package history

import (
	"math"
	"sync"
)

// Result is what became of a request in the eyes of its route's SLO.
type Result uint8

// The results: offered = Met + Missed + Unmeasured + Shed + Failed.
const (
	Met Result = iota
	Missed
	Unmeasured
	Shed
	Failed

	NumResults
)

// Outcome is one finished request.
type Outcome struct {
	Result     Result
	ShedReason Reason  // with Shed
	TPS        float64 // of the decoding; 0 or NaN = unmeasured
	TTFT       float64 // seconds, of a route with the time in line; 0 = no token came
	Duration   float64 // seconds from sending to the end; 0 = there was no stream
	Tokens     float64 // of the answer
	Back       bool    // it was refused before, and came back as told
	Key        string  // name of the key that asked; "" = there are none
}

// Reason is why a request was shed.
type Reason uint8

// The reasons, as in pacer_shed_total.
const (
	ByFloor Reason = iota
	Unattainable
	ByTTFT
	QueueFull
	Timeout

	numReasons
)

// gauges are figures of a moment that are averaged over a step.
const numGauges = 4

// The gauges of a route, and of a backend.
const (
	GaugeFree    = 0 // users that a route would take
	GaugeWaiting = 1 // requests in its line

	GaugeN     = 0
	GaugeM     = 1
	GaugeUp    = 2 // 1 = in service
	GaugeSpeed = 3 // delivered over learned
)

// Gauges are figures of one moment; NaN = not known.
type Gauges [numGauges]float64

// tally is what was counted in one step.
type tally struct {
	Results [NumResults]uint32
	Tokens  float32
	Sums    [numGauges]float32 // of the gauges
	Samples [numGauges]uint16
}

func (t *tally) add(o *tally) {
	for i, n := range o.Results {
		t.Results[i] += n
	}
	t.Tokens += o.Tokens
	for i := range t.Sums {
		t.Sums[i] += o.Sums[i]
		t.Samples[i] += o.Samples[i]
	}
}

// cell is a step that still runs.
type cell struct {
	tally
	tps, ttft sketch
}

func (c *cell) add(o *cell) {
	c.tally.add(&o.tally)
	for b := range buckets {
		c.tps[b] += o.tps[b]
		c.ttft[b] += o.ttft[b]
	}
}

// step is one that has ended. At = 0 says that there is none.
type step struct {
	At        int64 // which step since 1970
	Tally     tally
	TPS, TTFT packed
}

// Series is what was counted of one route, or of one backend. It is safe for
// concurrent use; its lock is a leaf.
type Series struct {
	mu     sync.Mutex
	open   cell  // the ten seconds that run
	minute cell  // what of the minute that runs has ended
	before *cell // of that, what was counted before the gateway started; nil = nothing
	total  [NumResults]uint64
	all    struct{ tps, ttft sketch } // since the start, without open and minute
	fine   [fineSteps]step
	coarse [coarseSteps]step

	// What the Watch reads each second: sums since the start.
	sheds            [numReasons]uint64
	results          [NumResults]uint64
	duration, served float64
	back             uint64
	refused          crowd

	others others // its lock is its own
}

// Add counts one finished request in the step that runs. It allocates nothing.
func (s *Series) Add(o Outcome) {
	if s == nil || o.Result >= NumResults {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.Results[o.Result]++
	s.results[o.Result]++
	if o.Back {
		s.back++
	}
	if o.Result == Shed {
		s.refused.add(o.Key)
	}
	if o.Result == Shed && o.ShedReason < numReasons {
		s.sheds[o.ShedReason]++
	}
	if o.Tokens > 0 && !math.IsInf(o.Tokens, 1) {
		s.open.Tokens += float32(o.Tokens)
	}
	if o.Duration > 0 {
		s.duration += o.Duration
		s.served++
	}
	s.open.tps.add(o.TPS, leastTPS)
	s.open.ttft.add(o.TTFT, leastTTFT)
}

// gauge adds the figures of a moment.
func (s *Series) gauge(g Gauges) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range g {
		if !math.IsNaN(v) {
			s.open.Sums[i] += float32(v)
			s.open.Samples[i]++
		}
	}
}

// close ends the step of that number, and with it its minute if last is so.
func (s *Series) close(at int64, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fine[at%fineSteps] = s.open.end(at)
	s.minute.add(&s.open)
	s.open = cell{}
	if !last {
		return
	}
	minute := at / finePerCoarse
	s.coarse[minute%coarseSteps] = s.minute.end(minute)
	own := s.ownMinute()
	for i, n := range own.Results {
		s.total[i] += uint64(n)
	}
	for b := range buckets {
		s.all.tps[b] += own.tps[b]
		s.all.ttft[b] += own.ttft[b]
	}
	s.minute, s.before = cell{}, nil
}

// ownMinute is what of the minute that runs was counted since the gateway started, but for
// its gauges and tokens. mu is held.
func (s *Series) ownMinute() cell {
	c := s.minute
	if s.before != nil {
		for i, n := range s.before.Results {
			c.Results[i] -= n
		}
		for b := range buckets {
			c.tps[b] -= s.before.tps[b]
			c.ttft[b] -= s.before.ttft[b]
		}
	}
	return c
}

// pulse is what the Watch reads.
type pulse struct {
	results          [NumResults]uint64
	sheds            [numReasons]uint64
	duration, served float64
	back             uint64
	crowd            string // key of whom most of the refused are; "" = of nobody, or there are none
}

func (s *Series) pulse() pulse {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused.fade()
	return pulse{s.results, s.sheds, s.duration, s.served, s.back, s.refused.most()}
}

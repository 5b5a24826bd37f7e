package history

import (
	"math"
	"slices"
	"time"
)

// Window is how far back figures reach.
type Window uint8

// The windows.
const (
	FiveMinutes Window = iota
	Hour
	SixHours
	Start // of the gateway

	numWindows
)

var windowNames = [numWindows]string{"5m", "1h", "6h", "start"}

// String returns the word of the API.
func (w Window) String() string { return windowNames[w] }

// Windows are the words of all windows.
func Windows() []string { return windowNames[:] }

// WindowOf returns the window of that word.
func WindowOf(word string) (w Window, ok bool) {
	i := slices.Index(Windows(), word)
	return Window(max(i, 0)), i >= 0
}

// Length of the window; 0 for Start.
func (w Window) Length() time.Duration {
	return [numWindows]time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 0}[w]
}

// Figures are what became of requests within a window.
type Figures struct {
	Results   [NumResults]uint64
	Tokens    float64
	TPS, TTFT Sketch
}

func newFigures() *Figures {
	return &Figures{TPS: Sketch{least: leastTPS}, TTFT: Sketch{least: leastTTFT}}
}

// Offered is all of them.
func (f *Figures) Offered() (n uint64) {
	for _, r := range f.Results {
		n += r
	}
	return n
}

// Attainment is met ÷ (met + missed + shed + failed), NaN where there are none.
func (f *Figures) Attainment() float64 { return attainment(&f.Results) }

func attainment[T uint32 | uint64](r *[NumResults]T) float64 {
	return float64(r[Met]) / float64(r[Met]+r[Missed]+r[Shed]+r[Failed])
}

// BudgetLeft is the share of what may fail, 1 − goal, that has not: 1 = nothing
// has, below 0 = more has than may. NaN for a goal of 1 or none.
func (f *Figures) BudgetLeft(goal float64) float64 {
	if !(goal > 0 && goal < 1) {
		return math.NaN()
	}
	kept := f.Attainment()
	if math.IsNaN(kept) {
		return 1
	}
	return 1 - (1-kept)/(1-goal)
}

// add adds a step that has ended.
func (f *Figures) add(s *step) {
	f.addTally(&s.Tally)
	f.TPS.addPacked(s.TPS)
	f.TTFT.addPacked(s.TTFT)
}

// addCell adds one that runs.
func (f *Figures) addCell(c *cell) {
	f.addTally(&c.tally)
	f.TPS.addDense(&c.tps)
	f.TTFT.addDense(&c.ttft)
}

// addOthers adds the steps of the other replicas that fit.
func (f *Figures) addOthers(s *Series, minutes bool, fits func(at int64) bool) {
	for _, st := range s.others.fitting(minutes, fits) {
		f.add(&st)
	}
}

func (f *Figures) addTally(t *tally) {
	for i, n := range t.Results {
		f.Results[i] += uint64(n)
	}
	f.Tokens += float64(t.Tokens)
}

// Reach is how far back a window that ends at now reaches.
func (r *Ring) Reach(now time.Time, w Window) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	reach := now.Sub(r.started)
	if w == Start {
		return reach
	}
	return min(max(reach, now.Sub(r.oldest)), w.Length())
}

// Figures returns those of a series within a window that ends at now; none for
// nil.
func (r *Ring) Figures(now time.Time, s *Series, w Window) *Figures {
	f := newFigures()
	if s == nil {
		return f
	}
	r.mu.Lock()
	at := r.at
	r.mu.Unlock()
	if _, all := r.Replicas(now); all && w != Start {
		last, minutes := int64(w.Length()/Step), w == SixHours
		running := at
		if minutes {
			last, running = coarseSteps, at/finePerCoarse
		}
		f.addOthers(s, minutes, func(of int64) bool { return of <= running && running-of <= last })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.addCell(&s.open)
	switch w {
	case Start:
		minute := s.ownMinute()
		f.addCell(&minute)
		for i, n := range s.total {
			f.Results[i] += n
		}
		f.TPS.addDense(&s.all.tps)
		f.TTFT.addDense(&s.all.ttft)
		return f
	case SixHours:
		f.addCell(&s.minute)
		minute := at / finePerCoarse
		for i := range s.coarse {
			if st := &s.coarse[i]; st.At > 0 && st.At < minute && minute-st.At <= coarseSteps {
				f.add(st)
			}
		}
		return f
	}
	steps := int64(w.Length() / Step)
	for i := range s.fine {
		if st := &s.fine[i]; st.At > 0 && st.At < at && at-st.At <= steps {
			f.add(st)
		}
	}
	return f
}

// recent is the time that rates of now are over, at least.
const recent = 30 * time.Second

// Rates are per second.
type Rates struct {
	Results [NumResults]float64
	Tokens  float64
}

// Offered is all of them.
func (r *Rates) Offered() (sum float64) {
	for _, n := range r.Results {
		sum += n
	}
	return sum
}

// Recent returns what became of requests of late; none for nil.
func (r *Ring) Recent(now time.Time, s *Series) *Rates {
	out := &Rates{}
	if s == nil {
		return out
	}
	r.mu.Lock()
	at, from := r.at, r.started
	r.mu.Unlock()
	var elsewhere []step
	if _, all := r.Replicas(now); all {
		// The steps that have ended, as long as these here: the last one may not have come.
		elsewhere = s.others.fitting(false, func(of int64) bool { return of < at && at-of <= int64(recent/Step) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.open.tally
	for i := range s.fine {
		if st := &s.fine[i]; st.At > 0 && st.At < at && at-st.At <= int64(recent/Step) {
			sum.add(&st.Tally)
			if began := time.Unix(0, st.At*int64(Step)); began.Before(from) {
				from = began // it was kept over a restart
			}
		}
	}
	if first := time.Unix(0, (at-int64(recent/Step))*int64(Step)); first.After(from) {
		from = first
	}
	seconds := max(now.Sub(from).Seconds(), 1)
	for i, n := range sum.Results {
		out.Results[i] = float64(n) / seconds
	}
	out.Tokens = float64(sum.Tokens) / seconds
	out.addOthers(at, elsewhere)
	return out
}

// addOthers adds the steps of other replicas before at, as rates of the time that they
// are of: without the last one where that has not come.
func (r *Rates) addOthers(at int64, steps []step) {
	seconds := (recent - Step).Seconds()
	var sum tally
	for i := range steps {
		if steps[i].At == at-1 {
			seconds = recent.Seconds()
		}
		sum.add(&steps[i].Tally)
	}
	for i, n := range sum.Results {
		r.Results[i] += float64(n) / seconds
	}
	r.Tokens += float64(sum.Tokens) / seconds
}

// Point is one step of a line over time. What is not known is NaN.
type Point struct {
	Rates
	Kept   float64 // attainment
	Gauges Gauges  // means

	TPSP10, TPSP50, TTFTP99 float64
}

// Grid are the steps of a line over time.
type Grid struct {
	From  time.Time
	Step  time.Duration
	Steps int // the last of which runs
}

// Result is that of the point, per second.
func (p *Point) Result(r Result) float64 { return p.Results[r] }

// GridOf returns the steps of a window that ends at now: 30 of ten seconds, 120
// of thirty, or 120 of three minutes.
func GridOf(now time.Time, w Window) Grid {
	g := Grid{Step: 3 * Minute, Steps: 120}
	switch w {
	case FiveMinutes:
		g = Grid{Step: Step, Steps: 30}
	case Hour:
		g = Grid{Step: 3 * Step, Steps: 120}
	}
	g.From = now.Truncate(g.Step).Add(-time.Duration(g.Steps-1) * g.Step)
	return g
}

// slot is the step of g that t lies in; false = none.
func (g Grid) slot(t time.Time) (int, bool) {
	i := int(t.Sub(g.From) / g.Step)
	return i, !t.Before(g.From) && i < g.Steps
}

// Line returns a series over the steps of g; all of a point is NaN where the
// gateway did not run.
func (r *Ring) Line(now time.Time, s *Series, g Grid) []*Point {
	points := slices.Repeat([]*Point{unknownPoint()}, g.Steps)
	if s == nil {
		return points
	}
	r.mu.Lock()
	running := r.at
	r.mu.Unlock()
	var elsewhere []step
	if _, all := r.Replicas(now); all {
		elsewhere = s.others.fitting(g.Step >= Minute, func(int64) bool { return true })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, length, cells := s.fine[:], Step, []*cell{&s.open}
	if g.Step >= Minute {
		ended, length, cells = s.coarse[:], Minute, []*cell{&s.open, &s.minute}
		running /= finePerCoarse
	}
	bySlot := make([][]*step, g.Steps)
	for i := range ended {
		if st := &ended[i]; st.At > 0 && st.At < running {
			if slot, ok := g.slot(time.Unix(0, st.At*int64(length))); ok {
				bySlot[slot] = append(bySlot[slot], st)
			}
		}
	}
	theirs := make([]tally, g.Steps)
	for i := range elsewhere {
		if slot, ok := g.slot(time.Unix(0, elsewhere[i].At*int64(length))); ok {
			theirs[slot].add(&elsewhere[i].Tally)
			elsewhere[i].Tally.Sums, elsewhere[i].Tally.Samples = [numGauges]float32{}, [numGauges]uint16{}
			bySlot[slot] = append(bySlot[slot], &elsewhere[i])
		}
	}
	nowIn, _ := g.slot(now)
	for i, steps := range bySlot {
		f := newFigures()
		var sum tally
		for _, st := range steps {
			f.add(st)
			sum.add(&st.Tally)
		}
		if i == nowIn {
			for _, c := range cells {
				f.addCell(c)
				sum.add(&c.tally)
			}
		}
		if len(steps) > 0 || i == nowIn {
			begin := g.From.Add(time.Duration(i) * g.Step)
			over := min(max(now.Sub(begin), time.Second), g.Step)
			points[i] = f.point(&sum, over)
			points[i].Gauges = s.others.gauges(&sum, &theirs[i], over)
		}
	}
	return points
}

func unknownPoint() *Point {
	nan := math.NaN()
	p := &Point{Rates: Rates{Tokens: nan}, Kept: nan, TPSP10: nan, TPSP50: nan, TTFTP99: nan}
	for i := range p.Results {
		p.Results[i] = nan
	}
	for i := range p.Gauges {
		p.Gauges[i] = nan
	}
	return p
}

// point is f and t, of so much time, without gauges.
func (f *Figures) point(t *tally, over time.Duration) *Point {
	p := &Point{
		Rates: Rates{Tokens: f.Tokens / over.Seconds()}, Kept: f.Attainment(),
		TPSP10: f.TPS.Quantile(0.1), TPSP50: f.TPS.Quantile(0.5), TTFTP99: f.TTFT.Quantile(0.99),
	}
	for i, n := range t.Results {
		p.Results[i] = float64(n) / over.Seconds()
	}
	return p
}

package history

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Figures of all replicas are the own ones and what the others report: each step of
// ten seconds, when it has ended. A window start is that of this gateway alone.
const (
	// ReportSteps is how many ended steps a replica keeps for the others: an hour.
	ReportSteps = fineSteps

	// heardFor is how long after the last exchange the figures still are of all.
	heardFor = 15 * time.Second

	// othersMost is the entries of a sketch of the others: fewer than of the own ones,
	// since there are as many steps again.
	othersMost = 12

	// MaxReportMarks is how many marks a replica reports, and maxMarkText how long one is.
	MaxReportMarks = 100
	maxMarkText    = 400

	// sameMark is how far apart two replicas notice the same.
	sameMark = 15 * time.Second
)

// Report is one ended step of a replica, for the others.
type Report struct {
	At       int64                 `json:"at"` // which step since 1970
	Routes   map[string]ReportStep `json:"routes,omitempty"`
	Backends map[string]ReportStep `json:"backends,omitempty"`
}

// ReportStep is that of one route or backend.
type ReportStep struct {
	Results [NumResults]uint32 `json:"n"`
	Tokens  float32            `json:"tokens,omitempty"`
	TPS     []uint32           `json:"tps,omitempty"` // packed
	TTFT    []uint32           `json:"ttft,omitempty"`
	Gauges  []*float32         `json:"gauges,omitempty"` // means; nil = not known
}

// gaugesOf are the means of t over a step of a route or backend; nil where nothing ran
// there, nothing waited, and it was in service: most names of a large fleet are idle.
func gaugesOf(of Of, t *tally) []*float32 {
	var means [numGauges]*float32
	for i, n := range t.Samples {
		if n > 0 {
			mean := t.Sums[i] / float32(n)
			means[i] = &mean
		}
	}
	is := func(i int, idle float32) bool { return means[i] == nil || *means[i] == idle }
	if of == OfRoute && is(GaugeWaiting, 0) && t.Results == [NumResults]uint32{} || of == OfBackend && is(GaugeN, 0) && is(GaugeM, 0) && is(GaugeUp, 1) {
		return nil
	}
	return means[:]
}

// Ended returns the number of the last step that has ended.
func (r *Ring) Ended() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at - 1
}

// Report returns the step of that number; nothing in it was counted by others.
func (r *Ring) Report(at int64) *Report {
	rep := &Report{At: at, Routes: map[string]ReportStep{}, Backends: map[string]ReportStep{}}
	r.each(func(of Of, name string, s *Series) {
		s.mu.Lock()
		defer s.mu.Unlock()
		st := &s.fine[at%fineSteps]
		gauges := gaugesOf(of, &st.Tally)
		if st.At != at || st.Tally.Results == [NumResults]uint32{} && st.Tally.Tokens == 0 && gauges == nil {
			return
		}
		x := ReportStep{Results: st.Tally.Results, Tokens: st.Tally.Tokens, TPS: st.TPS, TTFT: st.TTFT, Gauges: gauges}
		if of == OfRoute {
			rep.Routes[name] = x
		} else {
			rep.Backends[name] = x
		}
	})
	return rep
}

// each hands over every series.
func (r *Ring) each(f func(of Of, name string, s *Series)) {
	r.mu.Lock()
	routes, backends := maps.Clone(r.routes), maps.Clone(r.backends)
	r.mu.Unlock()
	for name, s := range routes {
		f(OfRoute, name, s)
	}
	for name, s := range backends {
		f(OfBackend, name, s)
	}
}

// Merge adds what another replica reports, each step once: the caller sees to that.
// It reports whether rep can be one; names that are not configured are left out.
func (r *Ring) Merge(rep *Report) bool {
	r.mu.Lock()
	at := r.at
	r.mu.Unlock()
	// Clocks are not quite the same everywhere.
	if rep.At <= at-fineSteps || rep.At > at+1 {
		return false
	}
	for _, of := range []map[string]ReportStep{rep.Routes, rep.Backends} {
		for _, x := range of {
			if !x.canBe() {
				return false
			}
		}
	}
	r.each(func(of Of, name string, s *Series) {
		from := rep.Backends
		if of == OfRoute {
			from = rep.Routes
		}
		if x, ok := from[name]; ok {
			s.others.merge(of, rep.At, x)
		}
	})
	return true
}

// canBe reports whether a replica can have counted x.
func (x *ReportStep) canBe() bool {
	if len(x.TPS) > packedMost || len(x.TTFT) > packedMost || len(x.Gauges) > numGauges || !(x.Tokens >= 0 && x.Tokens < 1e12) {
		return false
	}
	return !slices.ContainsFunc(x.Gauges, func(g *float32) bool { return g != nil && !(*g >= 0 && *g < 1e9) })
}

// Heard says that so many replicas, this one included, were heard of at now; of one
// alone nothing else is known.
func (r *Ring) Heard(now time.Time, replicas int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard, r.replicas = now, replicas
}

// Replicas returns of how many gateways the figures are at now; all = of all that
// share the store, and else of this one only.
func (r *Ring) Replicas(now time.Time) (n int, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heard.IsZero() || now.Sub(r.heard) > heardFor {
		return 1, false
	}
	return r.replicas, true
}

// others is what the other replicas counted of one route or backend. The zero value
// is nothing. It is safe for concurrent use; its lock is a leaf.
type others struct {
	mu    sync.Mutex
	of    Of
	steps *otherSteps
}

type otherSteps struct {
	fine   [fineSteps]otherStep
	coarse [coarseSteps]otherStep
}

// otherStep is a step of all others together. At = 0 says that there is none.
type otherStep struct {
	At        int64
	Results   [NumResults]uint32
	Tokens    float32
	TPS, TTFT [othersMost]uint32 // packed; 0 = no entry
	Sums      [numGauges]float32 // of the replicas' means
	Samples   [numGauges]uint16  // how many of them
}

func (o *others) merge(of Of, at int64, x ReportStep) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.steps == nil {
		o.steps = &otherSteps{}
	}
	o.of = of
	minute := at / finePerCoarse
	o.steps.fine[at%fineSteps].add(at, x)
	o.steps.coarse[minute%coarseSteps].add(minute, x)
}

func (s *otherStep) add(at int64, x ReportStep) {
	switch {
	case s.At > at:
		return // its place is taken
	case s.At < at:
		*s = otherStep{At: at}
	}
	for i, n := range x.Results {
		s.Results[i] += n
	}
	s.Tokens += x.Tokens
	for i, g := range x.Gauges {
		if g != nil {
			s.Sums[i] += *g
			s.Samples[i]++
		}
	}
	addTo(&s.TPS, x.TPS)
	addTo(&s.TTFT, x.TTFT)
}

func addTo(to *[othersMost]uint32, p packed) {
	if len(p) == 0 {
		return
	}
	var d sketch
	d.unpack(to[:])
	d.unpack(p)
	*to = [othersMost]uint32{}
	copy(to[:], d.packIn(othersMost))
}

// fitting returns the steps that fit, in no order.
func (o *others) fitting(minutes bool, fits func(at int64) bool) (out []step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.steps == nil {
		return nil
	}
	all := o.steps.fine[:]
	if minutes {
		all = o.steps.coarse[:]
	}
	for i := range all {
		if s := &all[i]; s.At > 0 && fits(s.At) {
			out = append(out, step{At: s.At, Tally: tally{Results: s.Results, Tokens: s.Tokens, Sums: s.Sums, Samples: s.Samples}, TPS: slices.Clone(s.TPS[:]), TTFT: slices.Clone(s.TTFT[:])})
		}
	}
	return out
}

// gauges are the means of a step of so much time, of own figures and those of the
// others. Each replica sees the whole of a backend, and what a route would take: its own
// figures go before theirs. A line is of one replica, and all of them add up; where
// nobody told of one, nobody waited.
func (o *others) gauges(own, elsewhere *tally, over time.Duration) (g Gauges) {
	o.mu.Lock()
	lines := o.of == OfRoute
	o.mu.Unlock()
	for i := range g {
		from := own
		if own.Samples[i] == 0 {
			from = elsewhere
		}
		g[i] = float64(from.Sums[i]) / float64(from.Samples[i]) // NaN without samples
		if lines && i == GaugeWaiting && elsewhere.Samples[i] > 0 {
			g[i] = float64(elsewhere.Sums[i]) / math.Ceil(float64(over)/float64(Step))
			if own.Samples[i] > 0 {
				g[i] += float64(own.Sums[i]) / float64(own.Samples[i])
			}
		}
	}
	return g
}

// Marks that other replicas report are on the timeline once each, and not where this
// one has noticed the same.

// markOf names a mark of another replica.
type markOf struct {
	replica string
	id      uint64
}

// Others takes the marks of the other replicas, by the process of each; Replica of a mark
// is what people call it. What one of them reports no longer has ended.
func (w *Watch) Others(now time.Time, reports map[string][]Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	still := map[markOf]uint64{}
	for replica, marks := range reports {
		for _, m := range marks[:min(len(marks), MaxReportMarks)] {
			if !m.canBe(now) {
				continue
			}
			key := markOf{replica, m.ID}
			id, known := w.foreign[key]
			if !known {
				id = w.adopt(m)
			}
			still[key] = id
			if m.Ended.IsZero() {
				w.lines.retellForeign(id, &m)
			} else {
				w.lines.endForeign(id, m.Ended, m.Text)
			}
		}
	}
	for key, id := range w.foreign {
		if _, there := still[key]; !there {
			w.lines.endForeign(id, now, "")
		}
	}
	w.foreign = still
}

// canBe reports whether a gateway can have written m.
func (m *Mark) canBe(now time.Time) bool {
	return m.Replica != "" && m.Of <= OfBackend && slices.Contains(MarkKinds(), m.Kind) && len(m.Text) <= maxMarkText && len(m.Name) <= maxMarkText &&
		!m.Time.IsZero() && m.Time.Before(now.Add(time.Minute)) && !m.Ended.After(now.Add(time.Minute))
}

// adopt puts a mark of another replica on the timeline, unless the same stands there;
// it returns the ID of what stands there.
func (w *Watch) adopt(m Mark) uint64 {
	for _, own := range slices.Backward(w.lines.marks) {
		near := own.Time.Equal(m.Time) // also of the process before this one, which restored it from its disk
		if m.Kind != "start" {
			near = own.Time.Sub(m.Time).Abs() <= sameMark
		}
		if near && own.Kind == m.Kind && own.Of == m.Of && own.Name == m.Name {
			return own.ID
		}
	}
	return w.lines.add(m)
}

// retellForeign has the mark say what m does, where m is of the gateway that noticed it
// first: each has figures of its own.
func (t *timeline) retellForeign(id uint64, m *Mark) {
	if i, ok := t.find(id); ok && t.marks[i].Replica == m.Replica && t.marks[i].Ended.IsZero() {
		t.retell(id, m.Text)
	}
}

// endForeign ends a mark of another replica; one of this gateway is left alone.
func (t *timeline) endForeign(id uint64, at time.Time, text string) {
	i, ok := t.find(id)
	if ok && t.marks[i].Replica != "" && t.marks[i].Ended.IsZero() {
		t.end(id, at, text)
	}
}

// Reported are the last marks of this gateway, for the others.
func (w *Watch) Reported() (out []Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range slices.Backward(w.lines.marks) {
		if len(out) == MaxReportMarks {
			break
		}
		if m.Replica == "" && len(m.Text) <= maxMarkText {
			out = append(out, m)
		}
	}
	return out
}

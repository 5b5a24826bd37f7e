package sim

import (
	"errors"
	"fmt"
	"math"
)

// Point is one measured level of a curve: N streams at TPS tokens/s each.
type Point struct {
	N   int
	TPS float64
}

// Model says how long one decode step takes: from Table, log-log interpolated
// and continued by a fit, or A + B·√n + C·n when Table is empty; plus D for
// every prompt token prefilled in the step, plus E for every token of context
// of the sequences that decode in it. In seconds.
type Model struct {
	Table         []Point // by rising N
	A, B, C, D, E float64
}

// StepSeconds is the noise-free time of a decode step with n sequences of no
// context and p prompt tokens prefilled in it. A step that only prefills (n = 0) reads the
// weights as well, so it costs what a step of one sequence costs, and D·p. No
// work takes no time.
func (m Model) StepSeconds(n int, p float64) float64 {
	if n <= 0 && p <= 0 {
		return 0
	}
	return m.decodeSeconds(max(n, 1)) + m.D*p
}

// decodeSeconds is the time of a step that only decodes n ≥ 1 sequences.
func (m Model) decodeSeconds(n int) float64 {
	if len(m.Table) == 0 {
		return rootLaw{m.A, m.B, m.C}.at(n)
	}
	first, last := m.Table[0], m.Table[len(m.Table)-1]
	switch {
	case n < first.N:
		return m.continued(first, n)
	case n > last.N:
		return m.continued(last, n)
	}
	for i, hi := range m.Table {
		if n == hi.N {
			return 1 / hi.TPS
		}
		if n > hi.N {
			continue
		}
		lo := m.Table[i-1]
		// A straight line in log n and log TPOT; TPOT = 1/TPS.
		x := math.Log(float64(n)/float64(lo.N)) / math.Log(float64(hi.N)/float64(lo.N))
		return math.Exp(x*math.Log(lo.TPS/hi.TPS)) / lo.TPS
	}
	panic("sim: a table that is not by rising N")
}

// continued is the fit to the whole table, scaled so that it meets the table
// at its end p.
func (m Model) continued(p Point, n int) float64 {
	law := fitRootLaw(m.Table)
	return law.at(n) / law.at(p.N) / p.TPS
}

// check says what is wrong with m.
func (m Model) check() error {
	for _, c := range []struct {
		name  string
		value float64
	}{{"A", m.A}, {"B", m.B}, {"C", m.C}, {"D", m.D}, {"E", m.E}} {
		if !(c.value >= 0) || math.IsInf(c.value, 0) {
			return fmt.Errorf("sim: Model.%s is %v, must be a number of seconds, 0 or more", c.name, c.value)
		}
	}
	for i, p := range m.Table {
		if p.N < 1 || !(p.TPS > 0) || math.IsInf(p.TPS, 0) {
			return fmt.Errorf("sim: Model.Table has %d streams at %v tokens/s, both must be positive", p.N, p.TPS)
		}
		if i > 0 && p.N <= m.Table[i-1].N {
			return fmt.Errorf("sim: Model.Table has %d streams after %d, must be by rising number", p.N, m.Table[i-1].N)
		}
	}
	if len(m.Table) == 0 && m.A+m.B+m.C == 0 {
		return errors.New("sim: Model has neither Table nor A, B or C: a step would take no time")
	}
	return nil
}

package arena

import (
	"math"
	"slices"
	"testing"
)

// wide has all backends, which are alike, as one: a step of it is one of theirs, with as many
// users and as much to prefill on each. Nothing is prefilled twice, and no engine has more to
// do than another. So it is a ceiling for who splits the load among them by the same rules.
func (s *Scenario) wide() {
	b := s.Backends[0]
	e, n := &b.Engine, len(s.Backends)
	e.Model.Table = slices.Clone(e.Model.Table)
	for i := range e.Model.Table {
		e.Model.Table[i].N *= n
	}
	e.Model.D /= float64(n)
	e.KVTokens *= n
	e.MaxNumSeqs, e.PrefillBatch = 256*n, 8192*n // n times their defaults
	s.Backends = []Backend{b}
	s.Routes = []Route{chat("chat", s.Routes[0].SLO.MinTPS, s.Backends)}
}

func TestAWideEngineIsAllOfThem(t *testing.T) {
	p := talking("hot", 17, cached(400_000))
	s := p.scenario(Pacer, 1)
	one := s.Backends[0].Engine.Model
	s.wide()
	all := s.Backends[0].Engine.Model
	for _, users := range []int{4, 10, 16, 40, 64} {
		if got, want := all.StepSeconds(4*users, 4000), one.StepSeconds(users, 1000); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("a step of %d users and 4000 prompt tokens takes %.5f s, of a quarter of both on one engine %.5f", 4*users, got, want)
		}
	}
	if len(s.Backends) != 1 || s.Backends[0].Engine.KVTokens != 1_600_000 || len(s.Routes[0].Targets) != 1 {
		t.Errorf("%d backends of %d tokens, %d targets; want one of all of it", len(s.Backends), s.Backends[0].Engine.KVTokens, len(s.Routes[0].Targets))
	}
}

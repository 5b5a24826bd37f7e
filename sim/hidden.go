package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// tenant is somebody else on the engine, who did not come through HTTP: every
// few seconds it wants another number of sequences, from none to the value of
// the fault hidden, and holds it by sending a new one for each that ends. Guarded
// by Server.mu.
type tenant struct {
	random  *rand.Rand
	running []*Sequence
	turn    time.Time // when it wants another number
	want    int
}

// The turns of a tenant are this long and, on average, meanTurn longer.
const (
	leastTurn = 2 * time.Second
	meanTurn  = 8 * time.Second
)

// move lets the tenant do what is due at now, and returns when there is more to
// do; zero when it is not there. The caller holds s.mu.
func (s *Server) moveTenant(now time.Time) time.Time {
	t, most := &s.tenant, s.faults.Load().Hidden
	if most == 0 {
		t.want, t.turn = 0, time.Time{}
	} else if t.turn.IsZero() || !now.Before(t.turn) {
		t.want = t.random.IntN(most + 1)
		t.turn = now.Add(leastTurn + time.Duration(t.random.ExpFloat64()*float64(meanTurn)))
	}
	for len(t.running) > t.want {
		last := len(t.running) - 1
		s.engine.Cancel(t.running[last])
		t.running = t.running[:last]
	}
	for len(t.running) < t.want {
		seq, err := s.engine.Submit(50+t.random.IntN(500), 100+t.random.IntN(300), nil)
		if err != nil {
			break // the engine is too small for it
		}
		t.running = append(t.running, seq)
	}
	return t.turn
}

// leaves takes a sequence of the tenant out that has ended.
func (t *tenant) leaves(seq *Sequence) {
	if i := slices.Index(t.running, seq); i >= 0 {
		t.running = slices.Delete(t.running, i, i+1)
	}
}

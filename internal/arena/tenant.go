package arena

import "github.com/pacer-dev/pacer/sim"

// What a tenant asks for, one answer after the other.
const (
	tenantPrompt = 400
	tenantAnswer = 300
)

// tenant is one user of a backend whom no gateway sees.
type tenant struct {
	engine   *engine
	rank     *rank
	sequence *sim.Sequence
}

// host has so many tenants use the engine from now on.
func (e *engine) host(users int) {
	for range users {
		t := &tenant{engine: e}
		e.tenants = append(e.tenants, t)
		t.ask()
	}
}

// evict ends what tenants run here.
func (e *engine) evict() {
	for _, t := range e.tenants {
		t.rank.cancel(t.sequence)
	}
	e.tenants = nil
}

func (t *tenant) ask() {
	t.rank = t.engine.emptiest()
	t.sequence, _ = t.rank.take(tenantPrompt, tenantAnswer, nil, t)
}

// receive asks again when an answer is whole.
func (t *tenant) receive(out *sim.Output) {
	if out.Last {
		t.ask()
	}
}

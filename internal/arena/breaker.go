package arena

import (
	core "github.com/pacer-dev/pacer/internal/breaker"
	"github.com/pacer-dev/pacer/router"
)

// breaker is what one gateway thinks of one backend: what providers has, in
// virtual time. Its router lets the probe through, not the breaker.
type breaker struct {
	gateway *gateway
	engine  *engine
	core    *core.Breaker
	told    core.State
}

// failure counts a request that e failed.
func (g *gateway) failure(e *engine) { g.breakers[e.index].count(core.Failed) }

// success counts a first token.
func (g *gateway) success(e *engine) { g.breakers[e.index].count(core.Worked) }

func (b *breaker) count(v core.Verdict) {
	now := b.gateway.world.clock
	if b.told == core.HalfOpen {
		b.core.Probed(now, v)
	} else {
		b.core.Count(now, v)
	}
	b.tell()
}

// fire lets a probe through.
func (b *breaker) fire(*world) {
	if g := b.gateway; !g.dead && b == &g.breakers[b.engine.index] {
		b.tell()
	}
}

// tell hands a change of state to the router.
func (b *breaker) tell() {
	g := b.gateway
	s := b.core.State(g.world.clock)
	if s == b.told {
		return
	}
	was := b.told
	b.told = s
	health := router.Up
	switch s {
	case core.Open:
		health = router.Down
		g.world.agenda.enter(g.world.now+b.core.RetryIn(g.world.clock), b)
	case core.HalfOpen:
		health = router.Probing
	case core.Closed:
		if was == core.HalfOpen && g.book != nil {
			g.book.Restarted(b.engine.conf.Name)
			g.prefixes.Returned(g.world.clock, b.engine.conf.Name)
		}
	}
	g.deliver(g.router.Update(g.world.clock, router.BackendHealth{Backend: b.engine.conf.Name, Health: health}))
}

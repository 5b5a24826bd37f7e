package arena

import (
	"time"

	"github.com/pacer-dev/pacer/router"
)

const (
	// tripAfter failures in a row open a breaker, which lets a probe through
	// after openFor: what providers does. That one also opens by the share of
	// failures in a minute; backends here are dead or alive.
	tripAfter = 5
	openFor   = 5 * time.Second
)

// breaker is what one gateway thinks of one backend.
type breaker struct {
	gateway *gateway
	engine  *engine
	health  router.Health
	failed  int // in a row
}

// failure counts a request that e failed.
func (g *gateway) failure(e *engine) {
	b := &g.breakers[e.index]
	b.failed++
	if b.health == router.Probing || b.health == router.Up && b.failed >= tripAfter {
		b.become(router.Down)
		g.world.agenda.enter(g.world.now+openFor, b)
	}
}

// success counts a first token.
func (g *gateway) success(e *engine) {
	b := &g.breakers[e.index]
	b.failed = 0
	if b.health == router.Probing {
		if g.book != nil {
			g.book.Restarted(e.conf.Name)
		}
		b.become(router.Up)
	}
}

// fire lets a probe through.
func (b *breaker) fire(*world) {
	if b.health == router.Down {
		b.become(router.Probing)
	}
}

func (b *breaker) become(h router.Health) {
	b.health, b.failed = h, 0
	g := b.gateway
	g.deliver(g.router.Update(g.world.clock, router.BackendHealth{Backend: b.engine.conf.Name, Health: h}))
}

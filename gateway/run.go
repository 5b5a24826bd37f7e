package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/router"
)

const (
	minTick = 50 * time.Millisecond // the line is looked at no more often
	maxTick = time.Second           // nor less often while somebody waits
)

// Run ticks the router while somebody waits in line, counts the tokens that no
// backend counted, moves those who wait at backends that hang, and returns when ctx
// ends.
func (g *Gateway) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { g.uncounted.run(ctx) })
	beside.Go(func() { g.endings.rescueAll(ctx) })
	defer beside.Wait()
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var due time.Time // when timer fires; zero = it is stopped
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.load.waiting:
		case <-timer.C:
			due = time.Time{}
			g.Deliver(g.router.Update(time.Now(), router.Tick{}))
		}
		now := time.Now()
		next := g.router.NextWake(now)
		if next.IsZero() {
			continue
		}
		// Only ever earlier: a stream of newcomers must not put the tick off.
		if next = now.Add(min(max(next.Sub(now), minTick), maxTick)); due.IsZero() || next.Before(due) {
			due = next
			timer.Reset(due.Sub(now))
		}
	}
}

// someoneWaits wakes Run, which sleeps while nobody waits.
func (g *Gateway) someoneWaits() {
	select {
	case g.load.waiting <- struct{}{}:
	default: // it is already being woken
	}
}

// Deliver hands grants to those who wait for them. It never waits for one of them.
func (g *Gateway) Deliver(grants []router.Grant) {
	for _, grant := range grants {
		if s, ok := grant.Waiter.(*stranded); ok {
			s.granted(grant.Decision)
			continue
		}
		w, ok := grant.Waiter.(*waiter)
		if !ok {
			continue // not one of ours: Placers other than the router keep their own
		}
		select {
		case w.grants <- &grant:
		default:
			// Cannot happen while a ticket is granted at most once. If it
			// does, the place must not be lost with the grant.
			if l := grant.Decision.Lease; l != nil {
				g.Deliver(l.Done(time.Now(), 0))
			}
		}
	}
}

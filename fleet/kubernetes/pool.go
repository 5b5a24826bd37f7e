package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// poolGroups are where an InferencePool may be, the newer first. A cluster may have
// both: a pool is that of the newer one where it is in both.
var poolGroups = [...]string{"inference.networking.k8s.io/v1", "inference.networking.x-k8s.io/v1alpha2"}

// runPool watches the pool, and the pods that it selects.
func (s *source) runPool(ctx context.Context) {
	pools := make(chan inferencePool)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { s.watchPool(ctx, pools) })
	for p, ok := receive(ctx, pools); ok; {
		inner, stop := context.WithCancel(ctx)
		var watching sync.WaitGroup
		of := p // p becomes the next one while these are watched
		watching.Go(func() { s.watchPods(inner, of) })
		p, ok = receive(ctx, pools)
		stop()
		watching.Wait()
	}
}

// receive waits for the next pool; false = ctx has ended.
func receive(ctx context.Context, pools <-chan inferencePool) (inferencePool, bool) {
	select {
	case <-ctx.Done():
		return inferencePool{}, false
	case p := <-pools:
		return p, true
	}
}

// poolWatch is what the groups say of one pool. Its lock is held while the pool is
// handed on, so that the order stays.
type poolWatch struct {
	source *source
	to     chan<- inferencePool

	mu     sync.Mutex // guards what follows
	groups [len(poolGroups)]poolSeen
	last   string // what was sent
}

// poolSeen is what one group says.
type poolSeen struct {
	known bool           // it was listed, or this cluster does not have it, or will not show it
	pool  *inferencePool // nil = it is not there
	err   error          // nil = it is watched
}

// watchPool sends the pool whenever it selects otherwise.
func (s *source) watchPool(ctx context.Context, to chan<- inferencePool) {
	w := &poolWatch{source: s, to: to}
	var all sync.WaitGroup
	defer all.Wait()
	for i, group := range poolGroups {
		m := &mirror[inferencePool, *inferencePool]{
			client: s.client, pause: s.pause, path: "/apis/" + group + "/namespaces/" + s.namespace + "/inferencepools",
			query: url.Values{"fieldSelector": {"metadata.name=" + s.at.where.Pool}},
			heard: func(err error) { w.hear(ctx, i, err) },
			changed: func(objects map[string]inferencePool) {
				seen := poolSeen{known: true}
				if p, there := objects[s.at.where.Pool]; there && len(p.Spec.Selector) > 0 && len(p.ports()) > 0 {
					seen.pool = &p
				}
				w.see(ctx, i, seen)
			},
		}
		all.Go(func() { m.run(ctx) })
	}
}

// hear takes note of how it goes with one group.
func (w *poolWatch) hear(ctx context.Context, group int, err error) {
	w.mu.Lock()
	seen := w.groups[group]
	w.mu.Unlock()
	if seen.err = err; isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusForbidden) {
		seen.known, seen.pool = true, nil
	}
	w.see(ctx, group, seen)
}

// see takes what one group says, and concludes which pool it is. A group that was never
// known to lack it may have it, so none behind it is taken.
func (w *poolWatch) see(ctx context.Context, group int, seen poolSeen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[group] = seen
	s, refused := w.source, 0
	for _, g := range w.groups {
		switch {
		case g.pool != nil:
			s.hear("pool", g.err)
			w.send(ctx, g.pool)
			return
		case !g.known:
			if g.err != nil {
				s.hear("pool", g.err)
			}
			return
		case g.err != nil:
			refused++
		}
	}
	if refused == len(w.groups) {
		s.hear("pool", w.groups[0].err)
		return
	}
	s.hear("pool", fmt.Errorf("there is no InferencePool %s in %s with a selector and a port", s.at.where.Pool, s.namespace))
}

// send hands the pool on if it selects otherwise than the last one. mu is held.
func (w *poolWatch) send(ctx context.Context, p *inferencePool) {
	now := fmt.Sprint(p.Spec.Selector, p.ports())
	if now == w.last {
		return
	}
	w.last = now
	select {
	case w.to <- *p:
	case <-ctx.Done():
	}
}

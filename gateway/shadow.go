package gateway

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/router"
)

const (
	// mostShadows is how many copies may be under way at once, and mostShadowed
	// how large the body of one may be, in bytes. What is beyond is not copied.
	mostShadows  = 256
	mostShadowed = 1 << 20
)

// copies are the copies of requests that are under way. The zero value has none. It
// is safe for concurrent use.
type copies struct {
	mu    sync.Mutex // guards under
	under map[*shadowCopy]bool
}

// shadowCopy is one of them.
type shadowCopy struct {
	route  *route
	cancel context.CancelFunc
	ended  chan struct{}
}

// add has c be under way; false = there are as many as may be.
func (l *copies) add(c *shadowCopy) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.under) >= mostShadows {
		return false
	}
	if l.under == nil {
		l.under = map[*shadowCopy]bool{}
	}
	l.under[c] = true
	return true
}

// end takes c out.
func (l *copies) end(c *shadowCopy) {
	c.cancel()
	l.mu.Lock()
	delete(l.under, c)
	l.mu.Unlock()
	close(c.ended)
}

// beside returns the copies whose routes have a backend of rt.
func (l *copies) beside(rt *route) (all []*shadowCopy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.under {
		if slices.ContainsFunc(c.route.conf.Targets, func(t config.Target) bool {
			return slices.ContainsFunc(rt.conf.Targets, func(own config.Target) bool { return own.Backend == t.Backend })
		}) {
			all = append(all, c)
		}
	}
	return all
}

// waitForCopies is how long a request waits for copies to give back their places.
const waitForCopies = 100 * time.Millisecond

// clearWay breaks off the copies that run on backends of x's route, if x has no place
// there. Nobody reads what they would have said.
func (x *exchange) clearWay() {
	if x.placement.now || x.objective.class == router.Batch {
		return
	}
	all := x.g.copies.beside(x.route)
	if len(all) == 0 || !x.placement.full() {
		return
	}
	for _, c := range all {
		c.cancel()
	}
	late := time.NewTimer(waitForCopies)
	defer late.Stop()
	for _, c := range all {
		select {
		case <-c.ended:
		case <-late.C:
			return
		case <-x.request.http.Context().Done():
			return
		}
	}
}

// shadow sends a copy of the request to the route that x's route names for it, if
// its turn comes. The copy is of class batch, waits for nobody, is charged to no
// key, and its answer is dropped: whatever becomes of it, the client, the floors
// and the figures of this route see nothing of it.
func (x *exchange) shadow() error {
	conf := x.route.conf.Shadow
	if conf.Route == "" || x.request.end.Stored || x.request.body.size > mostShadowed || rand.Float64() >= conf.Share {
		return nil
	}
	rt := x.setup.called(conf.Route)
	if rt == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &shadowCopy{route: rt, cancel: cancel, ended: make(chan struct{})}
	if !x.g.copies.add(c) {
		cancel()
		return nil
	}
	s := x.shadowed(ctx, rt)
	go func() {
		defer x.g.copies.end(c)
		s.run()
	}()
	return nil
}

// shadowed is the copy, for rt.
func (o *order) shadowed(ctx context.Context, rt *route) *exchange {
	from := o.request.http
	ctx = withID(ctx, requestID(from.Context())+"-shadow")
	r := from.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(bytes.Clone(o.request.body.bytes()))), int64(o.request.body.size)
	r.Header.Del("Content-Encoding")
	class := router.Batch
	s := o.g.newExchange(o.setup, anyone, request{http: r, end: o.request.end, path: o.request.path, named: o.request.parsed.Model})
	s.route, s.overrides = rt, overrides{class: &class, minTPS: new(float64)}
	s.objective = newObjective(rt, s.overrides, s.request.end.Decodes)
	s.down.start(&discard{header: http.Header{}}, r, o.setup.conf.Timeouts.Write)
	return s
}

// run is the journey of a copy.
func (x *exchange) run() {
	defer x.down.deadline.stop()
	x.walk(x.read, x.excludeUnfit, x.placeNow, x.forward, x.relay)
}

// placeNow gets the request its lease if there is a place right now.
func (x *exchange) placeNow() error {
	x.placement.now = true
	return x.place()
}

// discard is the client of a copy: it takes everything at once.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header             { return d.header }
func (*discard) WriteHeader(int)                   {}
func (*discard) Write(p []byte) (int, error)       { return len(p), nil }
func (*discard) Flush()                            {}
func (*discard) SetWriteDeadline(time.Time) error  { return nil }
func (*discard) SetReadDeadline(t time.Time) error { return nil }

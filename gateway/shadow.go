package gateway

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/router"
)

const (
	// mostShadows is how many copies may be under way at once, and mostShadowed
	// how large the body of one may be, in bytes. What is beyond is not copied.
	mostShadows  = 256
	mostShadowed = 1 << 20
)

// shadow sends a copy of the request to the route that x's route names for it, if
// its turn comes. The copy is of class batch, waits for nobody, is charged to no
// key, and its answer is dropped: whatever becomes of it, the client, the floors
// and the figures of this route see nothing of it.
func (x *exchange) shadow() error {
	conf := x.route.conf.Shadow
	if conf.Route == "" || x.request.end.Stored || x.request.body.size > mostShadowed || rand.Float64() >= conf.Share {
		return nil
	}
	rt := x.plan.called(conf.Route)
	if rt == nil {
		return nil
	}
	if x.g.shadows.Add(1) > mostShadows {
		x.g.shadows.Add(-1)
		return nil
	}
	s := x.shadowed(rt)
	go func() {
		defer x.g.shadows.Add(-1)
		s.run()
	}()
	return nil
}

// shadowed is the copy, for rt.
func (x *exchange) shadowed(rt *route) *exchange {
	from := x.request.http
	ctx := withID(context.Background(), requestID(from.Context())+"-shadow")
	r := from.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(bytes.Clone(x.request.body.bytes()))), int64(x.request.body.size)
	r.Header.Del("Content-Encoding")
	class := router.Batch
	s := &exchange{
		g: x.g, plan: x.plan, tenant: anyone, route: rt,
		request:   request{http: r, end: x.request.end, path: x.request.path, named: x.request.parsed.Model},
		memory:    holding{budgets: budgets{all: &x.g.buffered, tenant: anyone.held}},
		overrides: overrides{class: &class, minTPS: new(float64)},
		placement: placement{g: x.g},
	}
	s.objective = newObjective(rt, s.overrides, s.request.end.Decodes)
	s.down.start(&discard{header: http.Header{}}, r, x.plan.conf.Timeouts.Write)
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

package gateway

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/providers"
)

// exchange is the journey of one request: its order, the way to a place, the attempt
// that it is served by, and the answer on its way to the client. It belongs to one
// goroutine.
type exchange struct {
	order
	placement placement
	overhead  time.Duration // arrival to the first attempt, without the line

	attempt  *attempt // the last one; nil = it got no place yet
	hedge    hedge
	onward   onward
	failover failover

	down   downstream
	looped *looped // passes the answer on when the handler has returned; nil = the handler does
}

// journey returns the handler of one endpoint below base.
func (g *Gateway) journey(end *endpoint.Endpoint, base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.travel(w, request{http: r, end: end, path: strings.TrimSuffix(r.URL.Path[len(base):], "/")})
	}
}

func (g *Gateway) travel(w http.ResponseWriter, r request) {
	if r.carried = providers.CarriedIn(r.http.Context()); r.carried != nil && r.carried.Model != "" {
		r.named = r.carried.Model
	}
	x := g.newExchange(g.setup.Load(), anyone, r)
	if g.tracer != nil {
		x.span = g.tracer.Request(r.http.Header, operation(r.end), time.Now())
	}
	x.down.start(w, r.http, x.setup.conf.Timeouts.Write)
	defer func() {
		if x.looped == nil {
			x.down.deadline.stop()
		}
	}()
	x.serve()
	if x.looped != nil {
		x.looped.start() // from here on x is the loop's
		return
	}
	if x.down.delivery == aborted {
		panic(http.ErrAbortHandler)
	}
}

func (x *exchange) serve() {
	if x.request.end.Socket {
		x.walk(x.authenticate, x.enter, x.read, x.resolve, x.place, x.forward, x.converse) // realtime.go
		return
	}
	x.walk(
		x.authenticate, // auth.go    API key → tenant
		x.enter,        // ratelimit.go  a place under the limits of the key
		x.read,         // read.go    the whole body; model, stream, max_tokens; nothing else is parsed
		x.resolve,      // resolve.go model → route; the objective that the headers ask for
		x.place,        // placement.go route + class → lease on a backend
		x.shadow,       // shadow.go  a copy for another route, which nobody waits for
		x.forward,      // forward.go send; move on to the next backend until a first byte arrives
		x.relay,        // relay.go   copy the answer, with the meter looking on
	)
}

// walk takes the steps of a journey until one fails, and settles it. One that is
// handed over goes on elsewhere.
func (x *exchange) walk(steps ...func() error) {
	err := errPanicked // stays so only if a step panics
	defer func() {
		if err != errHandedOver {
			x.settle(err) // gives the lease back, feeds the profile, writes the log line
		}
	}()
	defer func() {
		if err == errPanicked {
			x.g.log.Error("panic", "request", requestID(x.request.http.Context()), "panic", recover(), "stack", string(debug.Stack()))
			x.fail(err)
		}
	}()
	for _, step := range steps {
		if err = step(); err == errHandedOver {
			return
		}
		if err != nil {
			x.fail(err) // errors.go  the one place that knows status codes
			return
		}
		err = errPanicked
	}
	err = nil
}

// fail tells the client what went wrong: as an error answer while none has
// begun, and after that by breaking the answer off.
func (x *exchange) fail(err error) {
	if x.down.delivery == begun {
		if !isGone(err) {
			x.breakOff(err)
		}
		x.down.delivery.abort()
		return
	}
	a := answerFor(err)
	x.down.status = a.status
	if isGone(err) {
		x.down.delivery.abort() // nobody reads it; what matters is that it is no success
		return
	}
	x.down.refuse(a, x.request.http)
}

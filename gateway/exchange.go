package gateway

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// exchange is the journey of one request. It belongs to one goroutine.
type exchange struct {
	g    *Gateway
	plan *plan // the configuration it began with
	w    http.ResponseWriter
	rc   *http.ResponseController
	r    *http.Request
	end  *endpoint.Endpoint
	path string // below /v1: "/chat/completions"

	// authenticate
	tenant *tenant

	// enter
	permit *limit.Permit

	// read
	arrived time.Time // the body was complete: waiting counts from here
	body    *body     // nil = not there, or let go
	held    int64     // bytes taken from the budgets beside it
	req     openai.Request
	stream  bool

	// wish
	route    *route
	pinned   string   // the one backend that has the answer this is about; "" = any
	excluded []string // backends that cannot serve it
	wishes   wishes
	class    router.Class
	floor    float64       // tokens/s asked for; 0 = none
	maxTTFT  time.Duration // asked for; 0 = none

	// place
	counted      bool // in Gateway.running
	bodyTokens   int  // of the prompt, estimated from the size of the body
	promptTokens int  // the same, by what the route's prompts have shown
	placing      router.Request
	waiter       *waiter
	ticket       *router.Ticket // while standing in line
	waited       time.Duration  // in line
	decision     router.Decision
	lease        *router.Lease // nil = none, or given back
	firstLease   router.Lease  // memory of the first one

	// forward
	try           *attempt
	rival         *attempt        // under way beside try; nil = none
	hedge         telemetry.Hedge // what became of the second attempt
	hedgedTo      string          // its backend; "" = none was sent
	busy          *busyAnswer     // to pass on, if nobody takes the request
	target        router.Target   // of the last attempt
	accused       []accused       // those who refused it, and may be at fault
	sends         int             // backends it was sent to
	spared        int             // of these, those that refuse whatever they are sent
	sent          time.Time       // the last attempt went up; zero = none did
	own           time.Duration   // arrival to the first attempt, without the line
	opaque        bool            // the answer is passed on unread
	backendsFault bool            // an error answer that the backend's owner has to mend
	content       bool            // verdict given: content came

	keepsText    bool   // what follows, and the beginning of the answer, is kept for a tokenizer
	prompt       []byte // its beginning
	promptWithin int    // bytes of the body that it was found in

	// relay
	deadline   writeDeadline
	begun      bool // the answer's head went out
	status     int
	bytes      int64            // of the body, to the client
	meter      *profiles.Stream // nil = not a stream that is measured
	usage      profiles.Usage
	hasUsage   bool
	text       int     // bytes of content seen
	reasoned   bool    // some of it was reasoning
	perToken   float64 // bytes; learned by settle, NaN = unknown
	firstToken time.Time
	moved      time.Time // the last event of the stream, or a piece of it, was passed on
	ended      time.Time // its last event of all came
	done       bool      // the dialect's last event was seen
	upError    bool      // the backend reported an error within the stream
	garbage    bool
	tail       [4]byte // the last bytes that went out
	blocked    bool    // the client blocks: nothing is evidence
	abort      bool    // the answer must not end as if it were whole

	newborn newborn // the id of an answer that its backend keeps

	// settle
	closed  bool
	summary profiles.Summary
}

// journey returns the handler of one endpoint.
func (g *Gateway) journey(end *endpoint.Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{
			g: g, plan: g.plan.Load(), w: w, rc: http.NewResponseController(w), r: r,
			end:    end,
			path:   r.URL.Path[len("/v1"):],
			tenant: anyone,
		}
		x.deadline.start(x.rc, r, x.plan.conf.Timeouts.Write)
		defer x.deadline.stop()
		x.serve()
		if x.abort {
			panic(http.ErrAbortHandler)
		}
	}
}

func (x *exchange) serve() {
	err := errPanicked               // stays so only if a step panics
	defer func() { x.settle(err) }() // gives the lease back, feeds the profile, writes the log line
	defer func() {
		if err == errPanicked {
			x.g.log.Error("panic", "request", requestID(x.r.Context()), "panic", recover(), "stack", string(debug.Stack()))
			x.fail(err)
		}
	}()

	for _, step := range []func() error{
		x.authenticate, // auth.go    API key → tenant
		x.enter,        // ratelimit.go  a place under the limits of the key
		x.read,         // read.go    the whole body; model, stream, max_tokens; nothing else is parsed
		x.wish,         // wish.go    model → route; what the headers ask for
		x.place,        // place.go   route + class → lease on a backend
		x.forward,      // forward.go send; move on to the next backend until a first byte arrives
		x.relay,        // relay.go   copy the answer, with the meter looking on
	} {
		if err = step(); err != nil {
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
	var gone *goneError
	isGone := errors.As(err, &gone) || errors.Is(err, context.Canceled)
	if x.begun {
		x.abort = true
		if !isGone {
			x.breakOff(err)
		}
		return
	}
	a := answerFor(err)
	x.status = a.status
	if isGone {
		x.abort = true // nobody reads it; what matters is that it is no success
		return
	}
	x.begun = true
	x.deadline.last(time.Now())
	x.bytes += int64(a.write(x.w, x.r))
}

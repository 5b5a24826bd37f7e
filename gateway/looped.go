package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/relayloop"
	"github.com/pacer-dev/pacer/providers"
)

// errHandedOver says that a step has handed the exchange over, and that nothing of
// it may be touched any more.
var errHandedOver = errors.New("gateway: handed over")

// Values of config.Config.Relay: loops pass streams on, or net/http serves all
// requests.
const (
	RelayByLoop    = "loop"
	RelayByNetHTTP = "net/http"
)

// idleClient is how long a connection waits for its next request where the server
// has no bound.
const idleClient = 2 * time.Minute

// loopAfter is how old a stream is when a loop takes it. Going to a loop and back
// costs as much as 25 chunks of a goroutine's (150 µs): one that is over sooner
// gains nothing by it.
const loopAfter = 250 * time.Millisecond

// relays are what passes answers on without a goroutine for each.
type relays struct {
	loops   *relayloop.Loops // nil = there are none
	after   time.Duration    // see loopAfter
	running atomic.Int64     // answers that they pass on
}

// looped is the rest of an exchange whose answer a loop passes on, since it is a
// stream of events between two sockets of HTTP/1.1: a stream that waits has neither a
// goroutine nor a buffer then. What is looked at, counted and written is what
// relay would: this is relay turned inside out.
//
// It belongs to the loop from start to Left, and before and behind to one
// goroutine.
type looped struct {
	x      *exchange
	t      *attempt
	stream relayloop.Stream
	lent   *providers.Lent  // takes the answer out of its frames
	client *clientconn.Lent // where the client's connection goes back to
	ahead  []byte           // what the client sent before this answer was over
	keep   bool             // its connection serves the next request as well
	gone   func()           // tells what still runs for the client that it is gone
	detach func() bool      // the end of the attempt is no longer told to the stream

	ready   time.Time // when all was written that had come
	arrived time.Time // when what is being written came
	frames  bool      // that was nothing but frames
	moved   bool      // that was more than comments
	err     error     // the end of the answer: nothing more is read
}

// loopable reports whether t's stream is one that a loop may pass on.
func (x *exchange) loopable(t *attempt) bool {
	r := x.request.http
	return x.g.relays.loops != nil && !x.route.conf.Continue && x.setup.conf.Relay == RelayByLoop && r.ProtoMajor == 1 && r.ProtoMinor == 1 &&
		t.answer.form == formEvents && t.kind == answerGood && t.up.translation == nil && !x.request.array()
}

// handOver makes t's stream, which is loopable, ready for a loop, if one can pass it on.
// Nothing of what came waits to be passed on.
func (x *exchange) handOver(t *attempt) bool {
	r := x.request.http
	if t.phase >= phaseFinished {
		return false
	}
	from, client := providers.Lendable(t.up.resp.Body), clientconn.Lend(r)
	if from == nil || client == nil {
		return false
	}
	source, err := relayloop.Take(from)
	if err != nil {
		return false
	}
	sink, err := relayloop.Take(client.Under())
	if err != nil {
		source.Close()
		return false
	}
	taken, buffered, err := x.down.control.Hijack()
	if err != nil {
		source.Close()
		sink.Close()
		return false
	}
	ahead, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	crypt, rest := clientconn.Encrypted(taken)
	l := &looped{x: x, t: t, client: client, ready: time.Now()}
	skipped := 0
	l.ahead = relayloop.SkipEnds(slices.Concat(ahead, rest), &skipped)
	l.keep = !r.Close && !says(x.down.w.Header()["Connection"], "close")
	s := &l.stream
	s.From, s.To, s.Handler, s.WriteLimit, s.Watch = source, sink, l, x.setup.conf.Timeouts.Write, len(l.ahead) == 0
	x.g.relays.loops.Choose(s)
	_ = client.Under().Close() // the socket is sink's
	if crypt != nil {
		client.Encrypt(crypt, sink.Encrypt(crypt, client.Under()))
	}
	l.lent = providers.Lend(t.up.resp.Body)
	_ = from.Close()
	if crypt := l.lent.TLS(); crypt != nil {
		l.lent.Wire(source.Encrypt(crypt, from))
	}
	x.looped = l
	x.g.relays.running.Add(1)
	return true
}

// says reports whether a header has word.
func says(values []string, word string) bool {
	for _, v := range values {
		for t := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), word) {
				return true
			}
		}
	}
	return false
}

// start gives the stream to a loop. The contexts that end with the handler are
// replaced by others, which end as those would.
func (l *looped) start() {
	x, u := l.x, &l.t.up
	r, before := x.request.http, u.ctx
	ctx, gone := context.WithCancel(context.WithoutCancel(r.Context()))
	x.request.http = r.WithContext(ctx)
	x.request.http.Body = http.NoBody
	x.down.w, x.down.control = nil, http.ResponseController{}
	x.g.endings.remove(l.t)
	u.first.buf.giveBack(&x.g.buffers)
	u.ctx, u.cancel = context.WithCancelCause(ctx)
	u.timer = u.timer.handOn(time.Now(), u.cancel)
	x.g.endings.add(l.t, x)
	l.gone, l.detach = gone, context.AfterFunc(u.ctx, l.stream.Cancel)
	switch why := context.Cause(before); {
	case r.Context().Err() != nil:
		gone()
	case why != nil:
		u.cancel(why)
	}
	l.stream.Relay()
}

// Arrived implements relayloop.Handler.
func (l *looped) Arrived(now time.Time, p []byte) (out []byte, more bool) {
	x, t := l.x, l.t
	x.down.waited(l.ready, now)
	t.backend.Pulse().Hear(now)
	n, err := l.lent.Take(p)
	l.arrived, l.err, l.frames, l.moved = now, err, n == 0, false
	if n == 0 {
		return nil, err == nil
	}
	if x.request.end.Stores {
		t.indexResponse(p[:n])
	}
	out, seen := t.answer.observe(p[:n], &x.memory)
	before := t.phase
	t.look(now, &seen, x.down.blocked)
	if before < phaseFinished && t.phase >= phaseFinished && bytes.HasSuffix(out, eventEnd) {
		out = append(slices.Clip(out), t.costComment()...)
	}
	t.up.timer.pause() // from here on the client is waited for
	l.moved = seen.Moved
	x.down.passed(out)
	return out, err == nil
}

// Wrote implements relayloop.Handler.
func (l *looped) Wrote(now time.Time) {
	l.ready = now
	if l.frames {
		return
	}
	l.x.down.took(l.arrived, now)
	l.x.blockIfBlocked(l.t)
	l.t.passed(now, l.moved)
}

// Left implements relayloop.Handler. A backend whose answer nobody takes any more hears
// of it at once, and not when a goroutine gets its turn.
func (l *looped) Left(why relayloop.Why, err error) {
	if why != relayloop.Done && why != relayloop.SourceOver && l.err == nil {
		l.stream.From.Close()
	}
	go l.conclude(why, err)
}

// conclude does what is left to do when no more is passed on.
func (l *looped) conclude(why relayloop.Why, err error) {
	x := l.x
	defer x.g.relays.running.Add(-1)
	defer func() { // as the server does behind a handler: a panic ends this request alone
		if p := recover(); p != nil {
			x.g.log.Error("panic", "request", requestID(x.request.http.Context()), "panic", p, "stack", string(debug.Stack()))
			l.stream.To.Close()
			l.client.End()
			l.gone()
		}
	}()
	l.detach()
	l.giveBack(why, err)
	w := &chunkWriter{to: l.stream.To}
	x.down.resume(w, x.request.http, x.setup.conf.Timeouts.Write)
	x.walk(func() error { return l.outcome(why, err) })
	l.endAnswer()
}

// giveBack gives the backend's connection back, or ends it.
func (l *looped) giveBack(why relayloop.Why, err error) {
	if why == relayloop.SourceOver {
		l.err = l.lent.Cut(err)
	}
	if l.lent.Reusable() {
		if c, err := l.stream.From.Conn(); err == nil {
			l.lent.Keep(c)
			return
		}
	}
	l.stream.From.Close()
}

// outcome is what relay would have returned.
func (l *looped) outcome(why relayloop.Why, err error) error {
	x, t := l.x, l.t
	switch why {
	case relayloop.Broken:
		panic(err)
	case relayloop.ClientSlow:
		return &goneError{err: errClientSlow}
	case relayloop.ClientGone:
		if err != io.EOF {
			return &goneError{err: err}
		}
		l.gone()
		l.err = context.Canceled
	case relayloop.Cancelled, relayloop.Torn:
		if why == relayloop.Torn {
			l.stream.To.Close() // what is said of the end would be a part of a chunk
		}
		if context.Cause(t.up.ctx) == nil {
			t.up.cancel(errDraining) // the loops end
		}
		l.err = context.Cause(t.up.ctx)
	}
	return x.finish(t, l.err)
}

// endAnswer ends the answer as the server would behind a handler, and has its
// connection serve the next request.
func (l *looped) endAnswer() {
	x, to := l.x, l.stream.To
	defer l.gone()
	now := time.Now()
	if x.down.delivery == aborted || to.Write([]byte("0\r\n\r\n"), now.Add(x.setup.conf.Timeouts.Write)) != nil || !l.keep || x.g.endings.draining.Load() {
		to.Close()
		l.client.End()
		return
	}
	if len(l.ahead) > 0 {
		c, err := to.Conn()
		if err != nil {
			l.client.End()
			return
		}
		l.client.Back(c, l.ahead)
		return
	}
	park(x.g.relays.loops, to, l.client, now.Add(cmp.Or(l.client.IdleTimeout(), idleClient)))
}

// Looped is how many answers are passed on by loops: their handlers have returned.
func (g *Gateway) Looped() int64 { return g.relays.running.Load() }

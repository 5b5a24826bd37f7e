package gateway

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/tokens"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// relayBuffer is how much of an answer is passed on at once, at most.
	relayBuffer = 32 << 10

	// blockedWrite is how long a write may take before the client counts as
	// one that blocks.
	blockedWrite = 20 * time.Millisecond

	// waitedRead is how long a read must have waited to show that nothing is
	// left of what piled up while the client blocked.
	waitedRead = time.Millisecond

	// maxAnswerTokens bounds what a backend can make us believe of one sequence.
	maxAnswerTokens = 1 << 20

	// linger is how long the end of a stream is waited for after its last
	// event, so that the connection can be used again.
	linger = time.Second
)

// relay passes the answer on as it comes, and flushes at once. Time is taken
// when bytes arrive from the backend, never when the client took them.
//
// Per chunk: two clock reads (arrival, and the end of the write), a few
// additions; no lock and no allocation of its own.
func (x *exchange) relay() error {
	x.begin()
	t := x.try
	n, now, rerr := t.n, t.at, t.rerr
	pass, seen := t.pass, t.seen
	if t.look == nil {
		pass = t.buf[:n]
	}
	for {
		if n > 0 {
			x.look(now, seen)
			if !t.sse && errors.Is(rerr, io.EOF) {
				x.complete(now)
			}
			t.timer.pause() // from here on the client is waited for
			wrote, err := x.pass(now, pass)
			if err != nil {
				return err
			}
			if seen.Moved {
				x.moved = wrote
			}
			x.nextPhase(wrote)
			now = wrote
		}
		if rerr != nil {
			return x.finish(rerr)
		}
		ready := now
		n, rerr = t.resp.Body.Read(t.buf[:])
		now = time.Now()
		if x.blocked && now.Sub(ready) >= waitedRead {
			x.blocked = false
		}
		if n > 0 {
			if x.end.Stores && !x.opaque {
				x.noteID(t.buf[:n])
			}
			pass, seen = x.observe(t.buf[:n])
		}
	}
}

// observe shows p to the meter and returns what of it goes on. What the meter
// keeps, of a document to its end or of an event that is not whole, counts as
// held. Where there is no room for it, that document or event goes on unread.
func (x *exchange) observe(p []byte) (pass []byte, seen providers.Seen) {
	t := x.try
	if t.look == nil {
		return p, providers.Seen{}
	}
	pass, seen = t.look.Read(p)
	if held := int64(t.look.Held()); held != t.held {
		if held > t.held && !x.hold(held-t.held) {
			t.look.Shed()
			held = int64(t.look.Held())
			x.keep(held - t.held)
		} else if held < t.held {
			x.keep(held - t.held)
		}
		t.held = held
	}
	return pass, seen
}

// begin sends the head of the answer.
func (x *exchange) begin() {
	if !x.try.whole { // else it ends at once, and its usage is still to be seen
		x.letGo()
	}
	x.status = x.try.resp.StatusCode
	x.copyHeader(x.try.resp.Header)
	x.begun = true
	x.deadline.begin(x.try.at)
	x.w.WriteHeader(x.status)
	x.deadline.end()
	x.try.timer.restart(x.try.at.Add(x.plan.conf.Timeouts.Silence), errSilence)
}

// letGo lets go of the body, and of the answer that was set aside: nobody else
// is asked any more. A backend that answers before it has read all of the body
// still gets the rest.
func (x *exchange) letGo() {
	x.dropBusy()
	if x.body != nil && x.keepsText && !x.hasUsage {
		x.prompt, x.promptWithin = openai.PromptText(x.body.bytes(), tokens.MaxText)
	}
	x.dropBody()
}

// nextPhase gives the backend its time for the next bytes, from ready on. Until
// the first token that is at least the time allowed for a first byte: an engine
// may announce itself long before it has a place for the request. Comments show
// that somebody is there, and not that anything goes on: they alone keep a stream
// open for as long as a first byte may take, and no longer.
func (x *exchange) nextPhase(ready time.Time) {
	t, timeouts := x.try, &x.plan.conf.Timeouts
	if x.done {
		t.timer.restart(ready.Add(linger), errSilence)
		return
	}
	until := ready.Add(timeouts.Silence)
	if first := x.sent.Add(timeouts.FirstByte); t.sse && x.firstToken.IsZero() && first.After(until) {
		until = first
	}
	if t.sse {
		if x.moved.IsZero() {
			x.moved = x.sent
		}
		if last := x.moved.Add(max(timeouts.FirstByte, timeouts.Silence)); last.Before(until) {
			until = last
		}
	}
	t.timer.extend(until)
}

// look takes note of what arrived at now.
func (x *exchange) look(now time.Time, seen providers.Seen) {
	if x.opaque || x.done {
		return
	}
	if seen.Chunks > 0 {
		if !x.content {
			x.content = true
			x.good()
		}
		if x.meter != nil {
			x.meter.Text(seen.Bytes)
			x.token(now, &seen)
		}
	}
	if seen.Usage != nil && x.believes(seen.Usage) && !x.ofOneChoice(&seen) {
		x.hasUsage = true
		x.usage = profiles.Usage(*seen.Usage)
		if x.meter != nil {
			x.meter.Usage(x.usage)
		}
	}
	if seen.Reasoning && x.meter != nil {
		x.meter.Reasoning()
	}
	if seen.Error {
		x.upError = true
	}
	x.text += seen.Bytes
	x.reasoned = x.reasoned || seen.Reasoning
	if seen.Bad && x.end.Decodes {
		x.garbage = true
		if x.meter != nil {
			x.meter.Blocked() // whatever this is, it is no evidence
		}
	}
	if seen.Done {
		x.done, x.ended = true, now
		x.leave(now)
	}
}

// complete takes note that the document is all there, before its last piece
// goes out.
func (x *exchange) complete(now time.Time) {
	if x.try.look != nil {
		_, seen := x.try.look.End() // of a document nothing was held back
		x.look(now, seen)
	}
	x.leave(now)
}

// leave gives back the places that the request held. A client that has all of
// its answer may ask again before the last write has returned, and its places
// have to be free then.
func (x *exchange) leave(now time.Time) {
	x.release(now, true)
	x.permit.Leave()
}

// believes reports whether a backend's count can be true.
func (x *exchange) believes(u *providers.Usage) bool {
	return u.PromptTokens <= max(maxPromptTokens, 16*x.bodyTokens) &&
		u.CompletionTokens <= maxAnswerTokens*max(x.req.Sequences, 1)
}

// ofOneChoice reports whether a usage counts one sequence of several: what
// engines say while the answer runs, they say of each choice.
func (x *exchange) ofOneChoice(seen *providers.Seen) bool {
	return seen.Running && x.try.ask == openai.AskContinuous && x.req.Sequences > 1
}

// token books an arrival of content in a stream that is measured.
func (x *exchange) token(now time.Time, seen *providers.Seen) {
	if x.firstToken.IsZero() {
		x.firstToken = now
		x.lease.FirstToken(now) // before Read: the exposure opens at the n that includes this stream
	}
	total := 0 // by the backend's own count, where it was asked for one
	if x.try.ask == openai.AskContinuous && x.req.Sequences == 1 {
		total = seen.Tokens
	}
	x.meter.ReadCounted(now, seen.Chunks, total)
	tokens, _, _ := x.meter.Decoding()
	x.lease.Progress(now, tokens)
	if x.blocked {
		x.meter.Blocked() // this piled up while the client blocked: its time says nothing
	}
}

// pass writes p to the client and flushes it. It returns when that was done.
func (x *exchange) pass(now time.Time, p []byte) (time.Time, error) {
	if len(p) == 0 {
		return now, nil
	}
	x.deadline.begin(now)
	n, err := x.w.Write(p)
	x.bytes += int64(n)
	if err == nil {
		err = x.rc.Flush()
	}
	x.deadline.end()
	wrote := time.Now()
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errClientSlow
		}
		return wrote, &goneError{err: err}
	}
	x.keepTail(p)
	if wrote.Sub(now) > blockedWrite {
		x.blocked = true
		if x.meter != nil && !x.done {
			x.meter.Blocked()
		}
	}
	return wrote, nil
}

// finish says what the end of the answer means.
func (x *exchange) finish(rerr error) error {
	t, now := x.try, time.Now()
	if t.look != nil && (t.sse || !x.done) {
		pass, seen := t.look.End()
		x.look(now, seen)
		if _, err := x.pass(now, pass); err != nil && !x.done {
			return err
		}
	}
	// A document is whole where its transfer is, a stream with its last event.
	transferred := errors.Is(rerr, io.EOF)
	whole := t.sse && x.done || !t.sse && transferred && !x.garbage
	switch cause := context.Cause(t.ctx); {
	case whole:
		if !x.content {
			x.content = true
			if !x.opaque { // of one that is, the verdict was given
				x.good() // an answer without content is one
			}
		}
		if t.sse {
			t.backend.StreamEnded(nil)
		}
		return nil
	case x.r.Context().Err() != nil:
		return &goneError{err: x.r.Context().Err()}
	case errors.Is(cause, errTotal), errors.Is(cause, errDraining): // our doing, not the backend's
		return &cutError{backend: t.name, err: cause}
	case errors.Is(cause, errSilence):
		rerr = errSilence
	case transferred:
		rerr = io.ErrUnexpectedEOF // a clean end without the last event is none
	}
	switch {
	case !x.content && !x.opaque:
		t.verdict(rerr)
	case t.sse:
		t.backend.StreamEnded(rerr)
	default:
		t.backend.Cut(rerr)
	}
	if t.sse && transferred && x.upError {
		return nil // llama.cpp and TGI end so what they said an error in: the client knows
	}
	return &cutError{backend: t.name, err: rerr}
}

// breakOff ends a begun answer so that nobody takes it for whole: an error
// event in the endpoint's own format, if it is a stream, and then, by the
// caller, the connection.
func (x *exchange) breakOff(err error) {
	if x.try == nil || !x.try.sse || x.done {
		return
	}
	now := time.Now()
	message := "The backend broke off the answer."
	for _, ours := range []error{errTotal, errDraining} {
		if errors.Is(err, ours) {
			message = answerFor(ours).message
		}
	}
	event := x.try.look.ErrorEvent(message)
	if !x.atEventEnd() {
		event = append([]byte("\n\n"), event...)
	}
	_, _ = x.pass(now, event) // the client's loss if it is gone
}

// keepTail remembers the last bytes that went out.
func (x *exchange) keepTail(p []byte) {
	if len(p) >= len(x.tail) {
		copy(x.tail[:], p[len(p)-len(x.tail):])
		return
	}
	copy(x.tail[:], x.tail[len(p):])
	copy(x.tail[len(x.tail)-len(p):], p)
}

// atEventEnd reports whether the last bytes were the blank line that ends an
// event, or nothing has gone out.
func (x *exchange) atEventEnd() bool {
	a, b, c, d := x.tail[0], x.tail[1], x.tail[2], x.tail[3]
	return d == 0 || c == '\n' && d == '\n' || c == '\r' && d == '\r' || a == '\r' && b == '\n' && c == '\r' && d == '\n'
}

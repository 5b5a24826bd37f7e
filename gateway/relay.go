package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/tokens"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// waitedRead is how long a read must have waited to show that nothing is
	// left of what piled up while the client blocked.
	waitedRead = time.Millisecond

	// maxAnswerTokens bounds what a backend can make us believe of one sequence.
	maxAnswerTokens = 1 << 20

	// maxErrorBody is how much of an error answer is passed on, in bytes. It may
	// take as long as a silence, however often something of it comes.
	maxErrorBody = 4 << 20

	// linger is how long the end of a stream is waited for after its last
	// event, so that the connection can be used again.
	linger = time.Second
)

// eventEnd is how an event ends behind which a comment may follow.
var eventEnd = []byte("\n\n")

var errLongError = errors.New("gateway: an error answer that is longer than any")

// relay passes the answer on as it comes, and flushes at once. Time is taken
// when bytes arrive from the backend, never when the client took them.
//
// Per chunk: two clock reads (arrival, and the end of the write), a few
// additions; no lock and no allocation of its own.
//
// Where a backend dies, the stream may go on with another one's answer.
func (x *exchange) relay() error {
	x.begin(x.attempt)
	for {
		if err := x.copy(x.attempt); err == nil || !x.goOn(err) {
			return err
		}
	}
}

// copy passes on the answer of t, whose head went out.
func (x *exchange) copy(t *attempt) error {
	u := &t.up
	n, now, rerr := u.first.n, u.first.at, u.first.err
	settled := u.first.at.Add(x.g.relays.after)
	asked := !x.loopable(t) // whether a loop can go on with it
	if !asked {
		providers.PauseAt(u.resp.Body, settled)
	}
	room, pass, seen := u.first.buf.room(), t.answer.pass, t.answer.seen
	if t.answer.meter == nil {
		pass = u.first.bytes()
	}
	for {
		if n > 0 {
			before := t.phase
			t.look(now, &seen, x.down.blocked)
			if t.answer.form != formEvents && errors.Is(rerr, io.EOF) {
				t.complete(now, x.down.blocked)
			}
			if before < phaseFinished && t.phase >= phaseFinished && bytes.HasSuffix(pass, eventEnd) {
				pass = append(slices.Clip(pass), t.costComment()...)
			}
			u.timer.pause() // from here on the client is waited for
			wrote, err := x.pass(t, now, pass)
			if err != nil {
				return err
			}
			t.passed(wrote, seen.Moved)
			now = wrote
		}
		if rerr == nil && t.kind != answerGood && x.down.bytes > maxErrorBody {
			rerr = errLongError
		}
		if rerr != nil {
			return x.finish(t, rerr)
		}
		if !asked && !now.Before(settled) {
			if asked = true; x.handOver(t) {
				return errHandedOver
			}
		}
		if t.answer.form == formEvents {
			room = u.first.buf.next(n, &x.g.buffers)
		}
		ready := now
		n, rerr = x.next(t, room)
		now = time.Now()
		x.down.waited(ready, now)
		if errors.Is(rerr, providers.ErrPaused) {
			rerr = nil
		}
		if n > 0 {
			t.backend.Pulse().Hear(now)
			if x.request.end.Stores && t.answer.form != formUnread && u.translation == nil {
				t.indexResponse(room[:n])
			}
			pass, seen = t.answer.observe(room[:n], &x.memory)
		}
	}
}

// next reads what of t's answer comes next. A stream that can be continued may be
// cancelled meanwhile for a place elsewhere.
func (x *exchange) next(t *attempt, room []byte) (int, error) {
	if x.onward.thread == nil || t.phase >= phaseFinished {
		return t.up.resp.Body.Read(room)
	}
	t.rescue.await(false)
	defer t.rescue.leave(x.g)
	return t.up.resp.Body.Read(room)
}

// passed notes that what came was with the client at wrote. moved: it was more than
// comments.
func (t *attempt) passed(wrote time.Time, moved bool) {
	if moved {
		t.measured.lastEvent = wrote
	}
	t.nextPhase(wrote)
}

// begin sends the head of the answer.
func (x *exchange) begin(t *attempt) {
	switch {
	case t.answer.whole: // it ends at once, and its usage is still to be seen
	case x.onward.thread != nil: // the body may go up once more
		x.failover.drop()
	default:
		x.letGo()
	}
	t.copyHeader(x.down.w.Header())
	x.down.begin(t.up.first.at, t.up.resp.StatusCode)
	t.up.timer.restart(t.up.first.at.Add(x.setup.conf.Timeouts.Silence), &errSilence)
}

// letGo lets go of the body, of what it was read as, and of the answer that was set aside:
// nobody else is asked any more. A backend that answers before it has read all of the body
// still gets the rest.
func (x *exchange) letGo() {
	x.failover.drop()
	if x.request.body != nil && x.prompt.keep && !x.attempt.measured.hasUsage {
		x.prompt.sample, x.prompt.within = openai.PromptText(x.request.body.bytes(), tokens.MaxText)
	}
	x.speech.letGo(&x.memory)
	x.request.dropBody()
}

// nextPhase gives the backend its time for the next bytes, from ready on. Until
// the first token that is at least the time allowed for a first byte: an engine
// may announce itself long before it has a place for the request. Comments show
// that somebody is there, and not that anything goes on: they alone keep a stream
// open for as long as a first byte may take, and no longer.
func (t *attempt) nextPhase(ready time.Time) {
	timer, timeouts, m := t.up.timer, &t.setup.conf.Timeouts, &t.measured
	if t.phase >= phaseFinished {
		timer.restart(ready.Add(linger), &errSilence)
		return
	}
	until := ready.Add(timeouts.Silence)
	if t.kind != answerGood {
		until = t.up.first.at.Add(timeouts.Silence)
	}
	if t.answer.form == formEvents {
		if m.firstToken.IsZero() {
			if first := t.up.sent.Add(timeouts.FirstByte); first.After(until) {
				until = first
			}
		}
		if m.lastEvent.IsZero() {
			m.lastEvent = t.up.sent
		}
		if last := m.lastEvent.Add(max(timeouts.FirstByte, timeouts.Silence)); last.Before(until) {
			until = last
		}
	}
	timer.extend(until)
}

// look takes note of what arrived at now. What comes behind the end, or is not
// read, is nothing. blocked: the client takes nothing at the moment.
func (t *attempt) look(now time.Time, seen *providers.Seen, blocked bool) {
	if t.answer.form == formUnread || t.phase >= phaseFinished {
		return
	}
	if t.phase == phaseAnswered && (seen.Chunks > 0 || seen.Done) { // an answer without content is one
		t.good()
	}
	m := &t.measured
	if seen.Chunks > 0 && m.stream != nil {
		m.stream.Text(seen.Bytes)
		t.token(now, seen, blocked)
	}
	if seen.Usage != nil && t.request.believes(seen.Usage) && !t.up.ofOneChoice(seen) {
		m.count(seen.Usage)
	}
	t.runsUp(now)
	m.see(seen)
	if seen.Bad && t.request.end.Decodes {
		m.garbage = true
		m.block() // whatever this is, it is no evidence
	}
	if seen.Done {
		m.ended = now
		t.leave(now)
	}
}

// complete takes note that the document is all there, before its last piece
// goes out.
func (t *attempt) complete(now time.Time, blocked bool) {
	if t.answer.meter != nil {
		_, seen := t.answer.meter.End() // of a document nothing was held back
		t.look(now, &seen, blocked)
	}
	t.leave(now)
}

// leave gives back the places that the request held. A client that has all of
// its answer may ask again before the last write has returned, and its places
// have to be free then.
func (t *attempt) leave(now time.Time) {
	t.finish(now, true)
	t.permit.Leave()
}

// believes reports whether a backend's count can be true.
func (r *request) believes(u *providers.Usage) bool {
	return u.PromptTokens <= max(maxPromptTokens, 16*r.estimate) &&
		u.CompletionTokens <= maxAnswerTokens*max(r.parsed.Sequences, 1)
}

// ofOneChoice reports whether a usage counts one sequence of several: what
// engines say while the answer runs, they say of each choice.
func (u *roundTrip) ofOneChoice(seen *providers.Seen) bool {
	return seen.Running && u.ask == openai.AskContinuous && u.request.parsed.Sequences > 1
}

// token books an arrival of content in a stream that is measured.
func (t *attempt) token(now time.Time, seen *providers.Seen, blocked bool) {
	m, lease := &t.measured, t.lease()
	if t.hung(now) {
		m.stream.Hung()
	}
	total := 0 // by the backend's own count, where it was asked for one
	if t.up.ask == openai.AskContinuous && t.request.parsed.Sequences == 1 {
		total = seen.Tokens
	}
	if m.firstToken.IsZero() {
		m.firstToken = now
		if !t.unusual() {
			m.visit.First(now.Sub(t.up.sent), lease.Ahead().PromptTokens)
		}
		lease.FirstTokens(now, m.stream.FirstTokens(total)) // before Read: the exposure opens at the n that includes this stream
	}
	m.stream.ReadCounted(now, seen.Chunks, total)
	tokens := m.stream.Count()
	lease.Progress(now, tokens)
	if blocked {
		m.stream.Blocked() // this piled up while the client blocked: its time says nothing
	}
}

// pass writes p, of t's answer, to the client. It returns when that was done.
func (x *exchange) pass(t *attempt, now time.Time, p []byte) (time.Time, error) {
	wrote, err := x.down.write(now, p)
	if err == nil {
		x.blockIfBlocked(t)
	}
	return wrote, err
}

// blockIfBlocked notes that the client does not take what comes.
func (x *exchange) blockIfBlocked(t *attempt) {
	if x.down.blocked && t.phase < phaseFinished {
		t.measured.block()
	}
}

// finish says what the end of the answer means.
func (x *exchange) finish(t *attempt, rerr error) error {
	now, isEvents := time.Now(), t.answer.form == formEvents
	if t.answer.meter != nil && (isEvents || t.phase < phaseFinished) {
		pass, seen := t.answer.meter.End()
		t.look(now, &seen, x.down.blocked)
		if _, err := x.pass(t, now, pass); err != nil && t.phase < phaseFinished {
			return err
		}
	}
	if t.measured.reportedError {
		t.up.noteWithin(now, "the backend reported an error within its answer") // its words may be the user's
	}
	// A document is whole where its transfer is, a stream with its last event.
	transferred := errors.Is(rerr, io.EOF)
	switch cause := context.Cause(t.up.ctx); {
	case isEvents && t.phase >= phaseFinished:
		t.backend.StreamEnded(nil)
		return nil
	case !isEvents && transferred && !t.measured.garbage:
		return nil
	case x.request.http.Context().Err() != nil:
		return &goneError{err: x.request.http.Context().Err()}
	case errors.Is(cause, errTotal), errors.Is(cause, errDraining): // our doing, not the backend's
		return &cutError{backend: t.name(), err: cause}
	case errors.Is(cause, errSilence):
		rerr = errSilence
	case errors.Is(cause, errHung): // which is known, and goes on elsewhere
		t.verdict(providers.ErrNoVerdict)
		return &cutError{backend: t.name(), err: errHung}
	case transferred:
		rerr = io.ErrUnexpectedEOF // a clean end without the last event is none
	}
	switch {
	case t.phase == phaseAnswered:
		t.verdict(rerr)
	case isEvents:
		t.backend.StreamEnded(rerr)
	default:
		t.backend.Cut(rerr)
	}
	if isEvents && transferred && t.measured.reportedError {
		return nil // llama.cpp and TGI end so what they said an error in: the client knows
	}
	switch {
	case t.measured.reportedError: // which says more, and is noted
	case errors.Is(rerr, errSilence):
		t.up.noteWithin(now, "the backend fell silent within an answer")
	default:
		t.up.noteWithin(now, "the backend broke an answer off")
	}
	return &cutError{backend: t.name(), err: rerr}
}

// breakOff ends a begun answer so that nobody takes it for whole: an error
// event in the endpoint's own format, if it is a stream, and then, by the
// caller, the connection.
func (x *exchange) breakOff(err error) {
	t := x.attempt
	if t == nil || t.answer.form != formEvents || t.phase >= phaseFinished && !x.onward.lost() {
		return
	}
	now := time.Now()
	message := "The backend broke off the answer."
	if errors.Is(err, errSilence) {
		message = "The backend fell silent within the answer."
	}
	for _, ours := range []error{errTotal, errDraining} {
		if errors.Is(err, ours) {
			message = answerFor(ours).message
		}
	}
	event := t.answer.meter.ErrorEvent(message)
	if !x.down.atEventEnd() {
		event = append([]byte("\n\n"), event...)
	}
	_, _ = x.pass(t, now, event) // the client's loss if it is gone
}

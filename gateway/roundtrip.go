package gateway

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
)

// errorStart is how much of an error answer is looked at.
const errorStart = 4 << 10

// roundTrip is the backend's side of an attempt: the request on its way up, and
// the answer until its first bytes have come.
//
// It belongs to the goroutine of the exchange, but for send while that is at
// work in a goroutine of its own, which closes done.
type roundTrip struct {
	*order
	*place
	timer       *upstreamTimer
	resp        *http.Response
	translation *translation // nil = the backend speaks the client's dialect
	ask         openai.Ask   // what usage the backend is asked for
	relaxed     bool         // it did not take more
	owed        bool         // the backend owes an answer
	lacked      bool         // it has not the endpoint, and instead is sent
	strip       providers.Strip
	first       firstRead

	model string // what the backend calls it; "" = as the client does

	ctx    context.Context
	cancel context.CancelCauseFunc // nil = nothing was prepared
	done   chan struct{}           // closed when send is over; nil = it has no goroutine of its own

	instead   []substitute // what goes up where the backend lacks the endpoint, one after the other
	uncarried error        // why nothing can go up instead; nil = it can, or was not looked at
	counted   int          // the tokens of a prompt, which the gateway itself answers with; 0 = it does not

	onward *onward // what came before it, which goes up behind the prompt

	call providers.Call
	sent time.Time // zero = it did not go up

	err      error // of sending
	panicked any   // what send panicked with, in a goroutine of its own
}

// firstRead is what the first read of an answer brought.
type firstRead struct {
	buf readBuffer // the relay goes on with it
	n   int
	at  time.Time // when it came
	err error     // with it, or after it
}

// bytes is what came. It is overwritten by the next read.
func (f *firstRead) bytes() []byte { return f.buf.room()[:f.n] }

// send sends the request up and reads the start of the answer. Where a backend
// refuses to be asked for usage, it sends the request again without. It touches
// nothing but u. silence is how long the words of an error may take.
func (u *roundTrip) send(buffers *buffers, silence time.Duration) {
	for u.sendOnce(buffers, silence) && !u.carried() {
		if u.substitute() {
			continue
		}
		path, asked := u.asked()
		less, ok := providers.RefusesAsk(u.resp.StatusCode, u.first.bytes(), asked, u.ask)
		if !ok {
			return
		}
		_ = u.resp.Body.Close()
		u.ask, u.strip, u.relaxed = less, u.backend.Strip(path, asked, less), true
		u.call.Body = u.edit(less)
	}
}

// sendOnce sends the request and reads of a good answer its first bytes, of an
// error as much as is looked at. It reports whether there is an answer.
func (u *roundTrip) sendOnce(buffers *buffers, silence time.Duration) bool {
	u.first.n, u.first.err = 0, nil
	if u.counted > 0 {
		u.resp, u.err = countAnswer(u.request.path, u.counted), nil
	} else {
		u.resp, u.err = u.backend.Send(u.ctx, u.call)
	}
	if u.err != nil || !u.answers() {
		return false
	}
	u.backend.Pulse().See(time.Now()) // a server may send it while its GPU stands still
	f := &u.first
	if u.resp.StatusCode == http.StatusSwitchingProtocols {
		f.at = time.Now()
		return true
	}
	f.buf.begin(buffers, u.request.streams())
	room := f.buf.room()
	if u.resp.StatusCode < 300 && u.blindRead() {
		f.n = 0
	} else if u.resp.StatusCode < 300 {
		for f.n == 0 && f.err == nil {
			f.n, f.err = u.resp.Body.Read(room)
		}
	} else {
		u.resp.Body = mask(u.resp.Body, u.backend.secrets())
		over := time.AfterFunc(silence, func() { u.cancel(errSilence) })
		f.n, f.err = readStart(u.resp.Body, room[:errorStart])
		over.Stop()
	}
	f.at = time.Now()
	if f.n > 0 {
		u.backend.Pulse().Hear(f.at)
	}
	return true
}

// owe says that the backend owes an answer, unless another proxy carries it, which may
// take it elsewhere.
func (u *roundTrip) owe() {
	if u.owed = u.request.carried == nil; u.owed {
		u.backend.Pulse().Owe(u.sent)
	}
}

// settle says that it does no more. Calls after the first do nothing.
func (u *roundTrip) settle() {
	if u.owed {
		u.owed = false
		u.backend.Pulse().Settle()
	}
}

// launch has send done by a goroutine of its own; close waits for it.
func (u *roundTrip) launch(buffers *buffers, silence time.Duration) {
	u.done = make(chan struct{})
	go func() {
		defer close(u.done)
		defer func() { u.panicked = recover() }()
		u.send(buffers, silence)
	}()
}

// answers reports whether the status can be that of a completion or of an
// error. 101 makes the client's connection one of another protocol, 204 and
// 205 have no body, which is an answer only where something is deleted, and what
// is below 100 cannot be passed on at all.
func (u *roundTrip) answers() bool {
	status := u.resp.StatusCode
	if status == http.StatusSwitchingProtocols {
		return u.request.end.Socket
	}
	if status == http.StatusNoContent || status == http.StatusResetContent {
		return u.request.end.Stored
	}
	return status >= 200 && status < 600
}

// status is that of the answer; 0 = there is none.
func (u *roundTrip) status() int {
	if u.resp == nil {
		return 0
	}
	return u.resp.StatusCode
}

// close cancels what still runs at the backend and gives the buffer back.
func (u *roundTrip) close(buffers *buffers) {
	if u.timer != nil {
		u.timer.stop()
	}
	u.settle()
	if u.cancel != nil {
		u.cancel(context.Canceled)
	}
	if u.done != nil {
		<-u.done // soon: sending and reading end with the context
	}
	if u.resp != nil {
		_ = u.resp.Body.Close()
	}
	u.first.buf.giveBack(buffers)
}

// readStart fills buf as far as the answer goes.
func readStart(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

// retryHeaders returns what the answer says of trying again, by the headers that
// SDKs read.
func (u *roundTrip) retryHeaders() http.Header {
	h, secrets := http.Header{}, u.backend.secrets()
	for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"} {
		if v := u.resp.Header[name]; v != nil && !repeats(v, secrets) {
			h[name] = v
		}
	}
	return h
}

// failsSaying is a failure that the backend itself reported, in the words of
// says.
func (u *roundTrip) failsSaying(status int, problem string, says openai.Failure) error {
	e := u.fails(status, problem, nil)
	e.says = says
	e.retry = u.retryHeaders()
	return e
}

// noteError notes that the target failed, and in what words.
func (u *roundTrip) noteError(message string) {
	if u.lastError == nil {
		return
	}
	status := u.status()
	if status < 300 {
		status = 0
	}
	u.lastError.note(time.Now(), status, message, false)
}

// noteWithin notes that an answer had begun when it failed.
func (u *roundTrip) noteWithin(now time.Time, message string) {
	if u.lastError != nil {
		u.lastError.note(now, 0, message, true)
	}
}

package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// keepsDocument is a meter that keeps the document that it looks on at.
type keepsDocument interface {
	// Kept is all that came of it; nil = it is not kept any more.
	Kept() []byte
}

// hold reads a document, of which start has come, to its end before anything of it goes
// out. Where its backend breaks it off, another one can still be asked, and the client can
// be told. The meter keeps it anyhow, to read its usage.
//
// One that is larger than the meter keeps goes on as it comes from there on. So does one
// that begins with nothing but white space: a server says with it that it is there; and one
// in the place of a stream, which another attempt may be racing with.
// first.at moves on with it: what waits for the client counts from there.
func (t *attempt) hold(start []byte) error {
	u, a := &t.up, &t.answer
	keeper, ok := a.meter.(keepsDocument)
	if !ok || a.whole || t.request.streams() || len(bytes.TrimLeft(start, " \t\r\n")) == 0 {
		return nil
	}
	kept := keeper.Kept()
	if kept == nil { // there is no room for it
		return nil
	}
	silence := t.setup.conf.Timeouts.Silence
	u.timer.restart(u.first.at.Add(silence), &errSilence)
	for u.first.err == nil {
		room := u.first.buf.room()
		var n int
		n, u.first.err = u.resp.Body.Read(room)
		if n == 0 {
			continue
		}
		u.first.at = time.Now()
		t.backend.Pulse().Hear(u.first.at)
		u.timer.extend(u.first.at.Add(silence))
		if t.request.end.Stores && u.translation == nil {
			t.indexResponse(room[:n])
		}
		before := kept
		a.observe(room[:n], &t.memory)
		if kept = keeper.Kept(); kept == nil { // too large, or there is no room
			t.memory.adjust(int64(len(before))) // it had room, and counts until the end; what came now is only passed on
			a.pass = append(before, room[:n]...)
			return nil
		}
	}
	if err := u.first.err; err != nil && !errors.Is(err, io.EOF) {
		a.drop(&t.memory)
		if errors.Is(context.Cause(u.ctx), errSilence) {
			return t.sendFailed(errSilence, "fell silent within its answer")
		}
		return t.sendFailed(err, "broke off its answer")
	}
	a.pass, a.whole = kept, u.first.err != nil
	return nil
}

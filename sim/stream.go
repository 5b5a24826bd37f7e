package sim

import (
	"bytes"
	"io"
	"net/http"
)

// flushBytes is how much of a stream is written at once, for clients that fell
// behind.
const flushBytes = 32 << 10

// stream sends the answer as server-sent events, one for each token.
func (a *answer) stream() {
	quirks := &a.server.quirks
	for quirks.headersAfterQueue && !a.g.admitted() {
		a.wait()
	}
	out := eventWriter{w: a.w, flush: http.NewResponseController(a.w).Flush}
	if f, ok := a.w.(interface{ FlushError() error }); ok {
		out.flush = f.FlushError // spares the controller's search at every token
	}
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	if quirks.closesAfterStream {
		h.Set("Keep-Alive", "timeout=5, max=100")
	}
	a.w.WriteHeader(http.StatusOK)

	if quirks.roleAtOnce {
		for i := range a.g.choices {
			out.buffer = a.voice.open(out.buffer, i)
		}
	}
	if quirks.ping {
		out.buffer = append(out.buffer, ": ping\n\n"...)
	}
	out.send()
	a.tokens(&out)
	if quirks.closesAfterStream {
		a.closeAfterStream()
	}
}

// tokens sends everything after the headers, until the stream is at its end.
func (a *answer) tokens(out *eventWriter) {
	cut := a.server.quirks.cutWithoutDone
	end := a.g.maxTokens
	if cut {
		end = (end + 1) / 2
	}
	for open := len(a.g.choices); open > 0; {
		a.wait()
		for i := range a.g.choices {
			if !a.more(out, i, end) {
				continue
			}
			open--
			if !cut {
				out.buffer = a.voice.finish(out.buffer, i)
			}
		}
		if open == 0 && !cut {
			out.buffer = a.voice.end(out.buffer)
		}
		out.send()
	}
}

// more gathers what choice i has produced since the last time, of end tokens in all. It
// reports whether those are the last ones.
func (a *answer) more(out *eventWriter, i, end int) (last bool) {
	quirks, c := &a.server.quirks, &a.g.choices[i]
	ready := min(int(c.produced.Load()), end)
	if c.written == ready {
		return false
	}
	if c.written == 0 && !quirks.roleAtOnce {
		out.buffer = a.voice.open(out.buffer, i)
		if !quirks.roleWithFirst {
			out.send()
		}
	}
	for ; c.written < ready; c.written++ {
		before := len(out.buffer)
		out.buffer = a.voice.token(out.buffer, i, c.written)
		half := out.buffer[before : before+(len(out.buffer)-before)/2]
		if quirks.ping && (c.written+1)%pingEvery == 0 {
			out.buffer = append(out.buffer, ": ping\n\n"...)
		}
		out.sendIfFull()
		if cut := a.server.faults.Load().Cut; cut > 0 && c.written+1 >= cut {
			half = bytes.Clone(half)
			out.send()
			out.buffer = append(out.buffer, half...) // engines die within an event, too
			out.send()
			a.cutIfFaulty(c.written + 1)
		}
	}
	return ready == end
}

// closeAfterStream ends the body properly, and then the connection, without
// having announced it: whoever put it into a pool finds it dead.
func (a *answer) closeAfterStream() {
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if a.r.ProtoAtLeast(1, 1) {
		// All chunks were flushed; what is missing is the last, empty one.
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}
	conn.Close()
}

// eventWriter gathers events and sends them in one write.
type eventWriter struct {
	w      io.Writer
	flush  func() error
	buffer []byte
}

// send writes what was gathered, so that the client has it now. A client that
// is gone ends the handler.
func (o *eventWriter) send() {
	if len(o.buffer) > 0 {
		if _, err := o.w.Write(o.buffer); err != nil {
			panic(http.ErrAbortHandler)
		}
		o.buffer = o.buffer[:0]
	}
	if err := o.flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (o *eventWriter) sendIfFull() {
	if len(o.buffer) >= flushBytes {
		o.send()
	}
}

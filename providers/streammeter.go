package providers

import (
	"bytes"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/sse"
)

// maxHeld is the largest beginning of an event that is held back, in bytes. A
// usage event has a few hundred, and so has a chunk; what grows beyond goes on
// as it is.
const maxHeld = 64 << 10

// keptBuffer is how large a buffer may be that a stream keeps for the next event,
// in bytes: thousands of streams that had a large one each would keep them all.
const keptBuffer = 2 << 10

// streamMeter looks on at a stream of chat.completions or completions, and
// takes out what strip says.
//
// held is the beginning of an event that may have to be changed: one that could
// become a usage event, or, with StripRunning or StripNull, any. The rules that
// decide look at the bytes of the event alone, and the one for usage events
// (suspect), once false, stays so as the event grows: hence cuts between reads
// change nothing.
type streamMeter struct {
	usageMeter
	keptText
	scan  sse.Scanner
	strip Strip

	// nulls says that the engine writes "usage":null where it has no count: vLLM
	// and SGLang do in completions, and some in every stream. A count that is
	// taken out leaves a null there.
	nulls bool

	read  int64 // bytes of the stream taken so far
	held  []byte
	spare []byte // the other buffer: pass may lie in it
	out   []byte // what is left of a read that something was cut out of
	cut   bool   // the last event was cut out: an LF that comes late goes with it
	chunk openai.Chunk
	data  []byte // of the last event, as chunk was read from it

	suspect   suspect // of the unfinished event
	suspectAt int64   // where that begins
}

func (m *streamMeter) Read(p []byte) (pass []byte, seen Seen) {
	if m.strip == 0 {
		m.scan.Feed(p)
		for ev, ok := m.scan.Next(); ok; ev, ok = m.scan.Next() {
			m.event(ev, &seen)
			seen.Moved = true
		}
		if !seen.Moved {
			_, seen.Moved = m.scan.Pending()
		}
		return p, seen
	}
	return m.readStripping(p)
}

// readStripping works on src: what is held, and p. done is how far of it is
// passed on or cut out.
func (m *streamMeter) readStripping(p []byte) (pass []byte, seen Seen) {
	src, from := p, m.read // of src[0]
	if len(m.held) > 0 {
		from -= int64(len(m.held))
		m.held = append(m.held, p...)
		src = m.held
	}
	m.read += int64(len(p))

	done := 0
	m.out = m.out[:0]
	if m.scan.Feed(p) > 0 && m.cut {
		done = 1
	}
	for ev, ok := m.scan.Next(); ok; ev, ok = m.scan.Next() {
		m.event(ev, &seen)
		seen.Moved = true
		if m.cut = m.ours(ev, src, from); m.cut {
			m.out = append(m.out, src[done:ev.From-from]...)
			done = int(ev.To - from)
		} else {
			done = m.cutRunning(ev, src, from, done)
		}
	}
	hold := len(src)
	at, ok := m.scan.Pending()
	if ok && at >= from && m.mayChange(at, src[at-from:]) {
		hold = int(at - from)
	}
	seen.Moved = seen.Moved || ok
	return m.hold(src, done, hold), seen
}

// mayChange reports whether the event that begins at at with raw could have to
// be changed.
func (m *streamMeter) mayChange(at int64, raw []byte) bool {
	if m.strip&(StripRunning|StripNull) != 0 {
		return len(raw) <= maxHeld
	}
	if at != m.suspectAt {
		m.suspect, m.suspectAt = suspect{}, at
	}
	return m.suspect.could(raw)
}

// ours reports whether ev, which was read from src, is a usage event that
// Pacer alone asked for.
func (m *streamMeter) ours(ev sse.Event, src []byte, from int64) bool {
	if m.strip&StripEvent == 0 || !m.chunk.UsageOnly || ev.From < from {
		return false
	}
	return (&suspect{}).could(src[ev.From-from : ev.Blank-from])
}

// cutRunning takes the usage out of ev, a count or a null, if it is there only
// because Pacer asked. What of src goes on before it is added to out; it returns
// how far that is. An event of several data lines, which no engine sends, stays
// as it is.
func (m *streamMeter) cutRunning(ev sse.Event, src []byte, from int64, done int) int {
	r := &m.chunk.Running
	ours := StripRunning
	if r.Null {
		ours, m.nulls = StripNull, m.strip&StripNull == 0
	}
	if m.strip&ours == 0 || r.To == 0 || m.chunk.Error || ev.From < from {
		return done
	}
	raw := src[ev.From-from : ev.Blank-from]
	at := bytes.Index(raw, m.data)
	if at < 0 || len(raw) > maxHeld-2 { // the line end of a CRLF may have been held as well
		return done
	}
	at += int(ev.From - from)
	if m.nulls && !r.Null {
		m.out = append(append(m.out, src[done:at+r.Value]...), "null"...)
		return at + r.End
	}
	m.out = append(m.out, src[done:at+r.From]...)
	return at + r.To
}

// hold keeps src[hold:] and returns src[done:hold], behind what is in out.
func (m *streamMeter) hold(src []byte, done, hold int) (pass []byte) {
	pass = src[done:hold]
	if len(m.out) > 0 {
		m.out = append(m.out, pass...)
		pass = m.out
	}
	switch {
	case len(m.held) == 0: // src is the caller's
		m.held = append(m.held, src[hold:]...)
	case hold > 0: // pass lies in held: the rest moves to the other buffer
		m.held, m.spare = append(m.spare[:0], src[hold:]...), m.held
	}
	if len(m.held) == 0 && cap(m.held) > keptBuffer {
		m.held = nil
	}
	if cap(m.spare) > keptBuffer {
		m.spare = nil
	}
	if cap(m.out) > keptBuffer {
		m.out = nil
	}
	return pass
}

// End passes on what is held, without the usage that Pacer alone asked for,
// also where the last event lacks only its blank line.
func (m *streamMeter) End() (pass []byte, seen Seen) {
	pass, m.held = m.held, nil
	ev, ok := m.scan.End()
	if !ok {
		return pass, seen
	}
	m.event(ev, &seen)
	seen.Bad = false // the end of a stream may cut an event in two
	from := m.read - int64(len(pass))
	if m.strip != 0 && m.ours(ev, pass, from) {
		return pass[:ev.From-from], seen
	}
	m.out = m.out[:0]
	if done := m.cutRunning(ev, pass, from, 0); done > 0 {
		pass = append(m.out, pass[done:]...)
	}
	return pass, seen
}

func (m *streamMeter) ErrorEvent(message string) []byte { return chat.errorEvent(message, 0) }

// event adds what is in ev to seen. Of an event too large to be looked at
// nothing is known.
func (m *streamMeter) event(ev sse.Event, seen *Seen) {
	m.chunk = openai.Chunk{}
	data := bytes.TrimSpace(ev.Data)
	m.data = data
	var ok bool
	switch {
	case len(data) == 0: // a keep-alive
		return
	case string(data) == "[DONE]":
		seen.Done = true
		return
	}
	if m.kept, ok = openai.ParseChunkText(data, &m.chunk, m.kept, m.most); !ok {
		seen.Bad = true
		return
	}
	if m.chunk.Error || string(ev.Name) == "error" {
		m.chunk.Error, m.chunk.UsageOnly = true, false
		seen.Error = true
	}
	if m.chunk.Content {
		seen.Chunks++
		seen.Bytes += m.chunk.Bytes
		seen.Reasoning = seen.Reasoning || m.chunk.Reasoning
		if m.chunk.HasUsage {
			seen.Tokens = m.chunk.Usage.CompletionTokens
		}
	}
	if u := m.take(&m.chunk); u != nil {
		seen.Usage, seen.Running = u, m.chunk.Running.To > 0 && !m.chunk.Running.Null
		m.drop()
	}
}

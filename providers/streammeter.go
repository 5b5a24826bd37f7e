package providers

import (
	"bytes"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/sse"
)

// streamMeter looks on at a stream of chat.completions or completions, and
// takes out what strip says.
//
// Before the event that is held there may be the one that ends a choice: vLLM has its
// system_fingerprint on that one, but, once it is asked for usage, on the usage event alone.
//
// What a read of the shape touches comes first: of thousands of streams it is in no
// cache, and costs by its lines.
type streamMeter struct {
	shape   shape // of the events that were read
	strip   Strip
	between bool  // the stream is between two events, and nothing but the next read changes what is known of it
	holds   int32 // see Held
	passed  passed

	usageMeter
	keptText
	scan sse.Scanner

	// nulls says that the engine writes "usage":null where it has no count,
	// without being asked: so does SGLang. A count that is taken out leaves a null
	// there.
	nulls bool

	// last is the last event, if it ends a choice and waits for the fingerprint
	// that the usage event behind it may have. printed says that no event has to:
	// one that went on had a fingerprint.
	last    lastEvent
	printed bool

	tail  sse.Tail
	out   []byte // what is left of a read that something was cut out of
	cut   bool   // the last event was cut out: an LF that comes late goes with it
	chunk openai.Chunk
	data  []byte // of the last event, as chunk was read from it
}

// keptBuffer is how large a buffer may be that a stream keeps for the next event,
// in bytes: thousands of streams that had a large one each would keep them all.
const keptBuffer = 2 << 10

// passed is what went by since the rest of a streamMeter was told: whole events of the
// shape.
type passed struct {
	bytes  int64
	events int
}

// Read implements Meter.
func (m *streamMeter) Read(p []byte) (pass []byte, seen Seen) {
	if m.between {
		if size, events, text := m.shape.count(p); size == len(p) && size > 0 {
			m.passed.bytes += int64(size)
			m.passed.events += events
			return p, Seen{Chunks: events, Bytes: text, Reasoning: m.shape.reasoning, Moved: true}
		}
	}
	m.catchUp()
	pass, seen = m.readEvents(p)
	m.between = !m.last.waits && m.most == 0 && m.tail.Len() == 0 && m.scan.Between()
	m.measure()
	return pass, seen
}

// catchUp tells what went by.
func (m *streamMeter) catchUp() {
	if m.passed.events > 0 {
		m.scan.SkipUnseen(m.passed.bytes)
		m.tail.Skip(m.passed.bytes)
		m.chunks += m.passed.events
		m.passed, m.cut = passed{}, false
	}
}

// next reports the next event that has to be read. Those before it that are of the
// shape are added to seen: they go on as they are.
func (m *streamMeter) next(seen *Seen) (sse.Event, bool) {
	if !m.last.waits && m.most == 0 {
		if n, events, text := m.shape.count(m.scan.Rest()); n > 0 {
			m.scan.Advance(n)
			m.cut = false
			m.chunks += events
			seen.Chunks += events
			seen.Bytes += text
			seen.Reasoning = seen.Reasoning || m.shape.reasoning
			seen.Moved = true
		}
	}
	return m.scan.Next()
}

// readEvents works on src: what is held, and p. done is how far of it is
// passed on or cut out.
func (m *streamMeter) readEvents(p []byte) (pass []byte, seen Seen) {
	src, from := m.tail.Add(p)
	done := 0
	m.out = m.out[:0]
	if m.scan.Feed(p) > 0 {
		if m.cut {
			done = 1
		}
		m.last.to++
	}
	for ev, ok := m.next(&seen); ok; ev, ok = m.next(&seen) {
		m.event(ev, &seen)
		seen.Moved = true
		if m.cut = m.ours(ev, from); m.cut {
			done = m.release(src, from, done, m.fingerprint(ev))
			m.out = append(m.out, src[done:ev.From-from]...)
			done = int(ev.To - from)
		} else {
			done = m.release(src, from, done, nil)
			done = m.edit(ev, src, from, done)
		}
	}
	hold := m.tail.Until(&m.scan, src, from)
	if l := &m.last; l.waits && l.to == from+int64(hold) {
		hold = int(l.from - from)
	} else {
		done = m.release(src, from, done, nil)
	}
	if !seen.Moved {
		_, seen.Moved = m.scan.Pending()
	}
	if pass = src[done:hold]; len(m.out) > 0 {
		m.out = append(m.out, pass...)
		pass = m.out
	}
	m.tail.Keep(src, hold)
	if cap(m.out) > keptBuffer {
		m.out = nil
	}
	return pass, seen
}

// ours reports whether ev, of which what came before from went on, is a usage event that
// Pacer alone asked for.
func (m *streamMeter) ours(ev sse.Event, from int64) bool {
	return m.strip&StripEvent != 0 && m.chunk.UsageOnly && ev.From >= from && ev.Blank-ev.From <= sse.MaxTail
}

// lastEvent is an event that is held because the next one may add to it. All
// are offsets in the stream.
type lastEvent struct {
	waits    bool
	from, to int64
	usage    change // what is cut out of it anyhow
	print    change // where the fingerprint goes, and the null in its place
}

// change is a piece of the stream, and what goes there instead. to is 0 when
// there is nothing to change.
type change struct {
	from, to int64
	text     string
}

// fingerprint returns that of ev, a usage event, as it is written there, if it
// stands directly behind the last event.
func (m *streamMeter) fingerprint(ev sse.Event) []byte {
	if f := m.chunk.Fingerprint; f.To > 0 && !f.Null && ev.From == m.last.to {
		return m.data[f.From:f.To]
	}
	return nil
}

// release applies to the last event what there is to change, and the
// fingerprint if there is one. What of src goes on before it is added to out; it
// returns how far that is.
func (m *streamMeter) release(src []byte, from int64, done int, fingerprint []byte) int {
	l := m.last
	m.last = lastEvent{}
	if !l.waits {
		return done
	}
	if fingerprint != nil && l.print.from < l.usage.from {
		done = m.apply(l.print, src, from, done, fingerprint)
		fingerprint = nil
	}
	done = m.apply(l.usage, src, from, done, nil)
	if fingerprint != nil {
		done = m.apply(l.print, src, from, done, fingerprint)
	}
	return done
}

// apply adds src up to c to out, and c's text and more in its place.
func (m *streamMeter) apply(c change, src []byte, from int64, done int, more []byte) int {
	if c.to == 0 {
		return done
	}
	m.out = append(m.out, src[done:c.from-from]...)
	m.out = append(append(m.out, c.text...), more...)
	return int(c.to - from)
}

// edit takes the usage out of ev, a count or a null, if it is there only because
// Pacer asked, or has ev wait for that and a fingerprint. What of src goes on
// before it is added to out; it returns how far that is. An event of several data
// lines, which no engine sends, stays as it is.
func (m *streamMeter) edit(ev sse.Event, src []byte, from int64, done int) int {
	c := &m.chunk
	m.printed = m.printed || c.Fingerprint.To > 0 && !c.Fingerprint.Null
	r, ours := &c.Running, StripRunning
	if r.Null {
		ours, m.nulls = StripNull, m.strip&StripNull == 0
	}
	cuts := m.strip&ours != 0 && r.To > 0
	waits := m.strip&MovePrint != 0 && c.Choices.Finished && !m.printed
	if !cuts && !waits || c.Error || ev.From < from {
		return done
	}
	raw := src[ev.From-from : ev.Blank-from]
	at := bytes.Index(raw, m.data)
	if at < 0 || len(raw) > sse.MaxTail-2 { // the line end of a CRLF may have been held as well
		return done
	}
	data := ev.From + int64(at)
	l := lastEvent{waits: true, from: ev.From, to: ev.To}
	if cuts {
		l.usage = change{from: data + int64(r.From), to: data + int64(r.To)}
		if m.nulls && !r.Null {
			l.usage = change{from: data + int64(r.Value), to: data + int64(r.End), text: "null"}
		}
	}
	if !waits {
		return m.apply(l.usage, src, from, done, nil)
	}
	l.print = change{from: data + int64(c.Fingerprint.From), to: data + int64(c.Fingerprint.To)}
	if c.Fingerprint.To == 0 {
		end := data + int64(len(m.data)) - 1
		l.print = change{from: end, to: end, text: `,"system_fingerprint":`}
	}
	m.last = l
	return done
}

// End passes on what is held, without the usage that Pacer alone asked for. An event
// that lacks only its blank line is one; what is less than that goes nowhere.
func (m *streamMeter) End() (pass []byte, seen Seen) {
	m.catchUp()
	m.between = false
	defer m.measure()
	src, from, before := m.tail.Take(&m.scan)
	m.out = m.out[:0]
	done := 0
	ev, ok := m.scan.End()
	if ok {
		m.event(ev, &seen)
	}
	switch broken := !ok || ev.Oversize || seen.Bad || len(bytes.TrimSpace(ev.Data)) == 0; {
	case broken:
		src = src[:before]
		done = m.release(src, from, done, nil)
	case m.ours(ev, from):
		done = m.release(src, from, done, m.fingerprint(ev))
		src = src[:ev.From-from]
	default:
		done = m.release(src, from, done, nil)
		done = m.edit(ev, src, from, done)
		done = m.release(src, from, done, nil)
	}
	seen.Bad = false // the end of a stream may cut an event in two
	if done == 0 {
		return src, seen
	}
	return append(m.out, src[done:]...), seen
}

func (m *streamMeter) ErrorEvent(message string) []byte { return errorEvent(endpoint.Chat, message, 0) }

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
		m.chunks++
		seen.Bytes += m.chunk.Bytes
		seen.Reasoning = seen.Reasoning || m.chunk.Reasoning
		if m.chunk.HasUsage {
			seen.Tokens = m.chunk.Usage.CompletionTokens
		}
		if ev.Name == nil {
			m.shape.learn(data, &m.chunk)
		}
	}
	if u := m.take(&m.chunk); u != nil {
		seen.Usage, seen.Running = u, m.chunk.Running.To > 0 && !m.chunk.Running.Null
		m.drop()
	}
}

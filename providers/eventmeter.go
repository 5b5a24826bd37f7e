package providers

import (
	"bytes"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/sse"
)

// eventMeter looks on at a stream whose events have a type. All of it is passed
// on: what such an endpoint counts, it counts without being asked.
type eventMeter struct {
	dialect endpoint.Dialect
	scan    sse.Scanner
	events  openai.Events
	event   openai.Event
	usage   Usage
	next    int64 // the sequence_number of an event that would follow
	image   bool  // one is completed; whether another follows, only the end tells
	tail    sse.Tail
}

func (m *eventMeter) Read(p []byte) (pass []byte, seen Seen) {
	src, from := m.tail.Add(p)
	m.scan.Feed(p)
	for ev, ok := m.scan.Next(); ok; ev, ok = m.scan.Next() {
		m.take(ev, &seen)
		seen.Moved = true
	}
	if !seen.Moved {
		_, seen.Moved = m.scan.Pending()
	}
	hold := m.tail.Until(&m.scan, src, from)
	m.tail.Keep(src, hold)
	return src[:hold], seen
}

// End passes on an event that lacks only its blank line, and none that lacks more.
func (m *eventMeter) End() (pass []byte, seen Seen) {
	pass, _, before := m.tail.Take(&m.scan)
	ev, ok := m.scan.End()
	if ok {
		m.take(ev, &seen)
	}
	if broken := !ok || ev.Oversize || seen.Bad || len(bytes.TrimSpace(ev.Data)) == 0; broken {
		pass = pass[:before]
	}
	seen.Bad = false // the end of a stream may cut an event in two
	seen.Done = seen.Done || m.image
	return pass, seen
}

func (m *eventMeter) ErrorEvent(message string) []byte { return errorEvent(m.dialect, message, m.next) }

// take adds what is in ev to seen.
func (m *eventMeter) take(ev sse.Event, seen *Seen) {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case ev.Oversize:
		m.large(ev.Name, seen)
		return
	case len(data) == 0: // a keep-alive
		return
	case string(data) == "[DONE]":
		seen.Done = true
		return
	case !m.events.Parse(ev.Name, data, &m.event):
		seen.Bad = true
		return
	}
	m.next++
	if m.event.Sequence >= 0 {
		m.next = m.event.Sequence + 1
	}
	if m.event.Content {
		seen.Chunks++
		seen.Bytes += m.event.Bytes
		seen.Reasoning = seen.Reasoning || m.event.Reasoning
	}
	if m.event.HasUsage {
		m.usage = Usage(m.event.Usage)
		seen.Usage = &m.usage
	}
	seen.Error = seen.Error || m.event.Error
	m.ends(m.event.Type, seen)
	if string(ev.Name) == "error" { // llama.cpp has another type within
		seen.Error, seen.Done = true, true
	}
}

// large takes an event of which only the name is known.
func (m *eventMeter) large(name []byte, seen *Seen) {
	m.next++
	if bytes.HasSuffix(name, []byte("delta")) && string(name) != "message_delta" || bytes.HasSuffix(name, []byte(".partial_image")) {
		seen.Chunks++
	}
	seen.Error = seen.Error || string(name) == "error" || string(name) == "response.failed"
	m.ends(name, seen)
}

// ends notes whether an event of this type is the last. So is one that reports
// an error: nothing follows it that could make the answer whole.
func (m *eventMeter) ends(typ []byte, seen *Seen) {
	switch string(typ) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled",
		"message_stop", "transcript.text.done", "speech.audio.done", "error":
		seen.Done = true
	case "image_generation.completed", "image_edit.completed":
		m.image = true
	}
}

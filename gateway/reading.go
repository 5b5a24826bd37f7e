package gateway

import (
	"bytes"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/providers"
)

// form is how an answer is read.
type form uint8

const (
	formUnread   form = iota // passed on as it is: an error, or one that is compressed or stored
	formDocument             // it is over where its transfer is
	formEvents               // a stream of events, over with the last one of its dialect
)

// reading is an answer as it is looked at on its way to the client.
type reading struct {
	form     form
	events   bool // its head, or its first bytes, say that it is a stream of events
	whole    bool // a document that came whole in the first read
	meter    providers.Meter
	held     int64  // bytes that the meter keeps, as far as they are counted
	encoding string // it is compressed; "" = it is not
	id       idScan

	// of the first read
	pass []byte // what of it goes on
	seen providers.Seen
}

// observe shows p to the meter and returns what of it goes on. What the meter
// keeps, of a document to its end or of an event that is not whole, is taken from
// memory. Where there is no room for it, that document or event goes on unread.
func (a *reading) observe(p []byte, memory *holding) (pass []byte, seen providers.Seen) {
	if a.meter == nil {
		return p, providers.Seen{}
	}
	pass, seen = a.meter.Read(p)
	if held := int64(a.meter.Held()); held != a.held {
		if held < a.held {
			memory.adjust(held - a.held)
		} else if memory.take(held-a.held) != nil {
			a.meter.LetGo()
			held = int64(a.meter.Held())
			memory.adjust(held - a.held)
		}
		a.held = held
	}
	return pass, seen
}

// drop lets go of what the meter keeps: nothing of the answer goes on.
func (a *reading) drop(memory *holding) {
	a.meter.LetGo()
	memory.adjust(-a.held)
	a.held = 0
}

const (
	// maxIDScan is how much of an answer is searched for its id, in bytes, and
	// maxIDReads in how many reads.
	maxIDScan  = 64 << 10
	maxIDReads = 32
)

// idScan is the search for the id of an answer that its backend will store. The
// zero value has seen nothing.
type idScan struct {
	text  []byte // as far as it came; the budget for bodies covers it
	reads int
	over  bool
}

// find looks for the id in p, which follows what came before, and returns it
// once; "" = not yet, or not at all.
func (s *idScan) find(p []byte, events bool, memory *holding) string {
	if s.over {
		return ""
	}
	s.reads++
	if len(s.text)+len(p) > maxIDScan || s.reads > maxIDReads || memory.take(int64(len(p))) != nil {
		s.text, s.over = nil, true
		return ""
	}
	s.text = append(s.text, p...)
	text := s.text
	if events {
		at := bytes.Index(text, []byte("data:"))
		if at < 0 {
			return ""
		}
		text = text[at+len("data:"):]
	}
	id := openai.ResponseID(text)
	if id != "" {
		s.text, s.over = nil, true
	}
	return id
}

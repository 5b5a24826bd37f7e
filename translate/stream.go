package translate

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/internal/sse"
)

// Reply is what of a request its answer needs.
type Reply struct {
	ID        string // makes ids that an answer lacks its own: letters and digits
	Model     string // as the client calls it
	Created   int64  // seconds since 1970
	WantUsage bool   // of a chat: its stream ends with the usage
	Array     bool   // of generateContent: its stream is an array, and no events
	Plain     bool   // the request went up as it came, and so its answer goes down
	Prompt    int    // tokens of the prompt, as estimated

	WholeCalls bool // of a chat: each call of a tool comes as one piece

	Spaces []string // namespaces of the request's tools, as Request has them
	Asked  []Param  // of responses: what the answer says again, as Request has it
}

// id is the quoted id that an answer's target gave, or one that is made for it.
func (o *Reply) id(given []byte, prefix, suffix string) []byte {
	if given != nil {
		return given
	}
	return quote(prefix + o.ID + suffix)
}

// Look is what came by in one call of Feed or End.
type Look struct {
	Chunks    int // payloads that carry content of any kind
	Bytes     int // of that content
	Reasoning bool
	Usage     *Usage // all that is counted so far; nil = nothing new
	Tokens    int    // the completion tokens that a usage within the last of Chunks counts; 0 = there was none
	Done      bool   // the last event came
	Error     bool   // the target reported an error within its answer
	Bad       bool   // something came that is not of the dialect
	Moved     bool   // an event came, or a piece of one
}

// framing cuts a stream into payloads. next returns the next one, with its name
// where it has one; bad is a payload that cannot be read.
type framing interface {
	feed(p []byte)
	next() (f frame, ok bool)
	end() (f frame, ok bool)
	pending() bool
	held() int
	letGo()
}

type frame struct {
	name, data []byte
	bad        bool
}

// heard takes the events of an answer.
type heard interface {
	emit(e Event)
	bad()
}

// hearing reads the answers of a target. used reads a usage that stands beside a
// piece of text, and emits it with that JSON as Raw.
type hearing interface {
	payload(f frame, to heard)
	used(v gjson.Result, to heard)
	document(v gjson.Result, to heard)
}

// voice writes the events of a stream for a client: it appends what goes out now.
type voice interface {
	say(b []byte, e *Event) []byte
}

// Stream is an answer that is translated as it comes. However its bytes are cut
// into calls of Feed, the sums of what was seen and the bytes that go out are the
// same.
type Stream struct {
	frames framing
	from   hearing
	to     voice

	out     []byte
	look    Look
	content bool // the payload under way has some
	counts  bool // and a usage
	usage   Usage
	over    bool
	failed  bool // the client was told of an error: nothing may follow that looks like a whole answer
	begun   bool
	blocks  int // that have begun
	event   Event
	shape   shape

	plain, array bool         // payloads go on as they are; and are items of an array
	items        int          // that have gone on
	passed       *sse.Scanner // of the events that go on as they are; nil = none do
	tail         sse.Tail     // of these

	keep int
	kept []byte
}

// keptOut is how large a buffer may be that a stream keeps for the next event, in
// bytes.
const keptOut = 4 << 10

// NewStream translates a stream of from for a client of to. A plain one is looked at,
// and goes on as it is, but that an array is made of it for who asked for one.
func NewStream(from, to Name, o Reply) *Stream {
	o.Model = cut(o.Model, longestModel)
	s := &Stream{frames: table[from].frames(), from: table[from].hear(), to: table[to].stream(o), plain: o.Plain, array: o.Array}
	if events, ok := s.frames.(*eventStream); ok && s.plain && !s.array {
		s.passed = &events.scan
	}
	return s
}

// Feed takes the bytes that arrived, and returns those that go to the client.
// They are valid until the next call.
func (s *Stream) Feed(p []byte) (out []byte, look Look) {
	s.begin()
	src, from := p, int64(0)
	if s.passed != nil {
		src, from = s.tail.Add(p)
	}
	if rest := s.known(p); len(rest) > 0 {
		s.frames.feed(rest)
		for f, ok := s.frames.next(); ok; f, ok = s.frames.next() {
			s.take(f, false)
			s.look.Moved = true
		}
		s.look.Moved = s.look.Moved || s.frames.pending()
	}
	switch {
	case s.passed != nil:
		hold := s.tail.Until(s.passed, src, from)
		s.tail.Keep(src, hold)
		return src[:hold], s.look
	case s.plain && !s.array:
		return p, s.look
	}
	return s.out, s.look
}

// End is called when no more comes, and returns what is left to go out.
func (s *Stream) End() (out []byte, look Look) {
	s.begin()
	var src []byte
	before := 0
	if s.passed != nil {
		src, _, before = s.tail.Take(s.passed)
	}
	f, ok := s.frames.end()
	if ok {
		s.take(f, false)
	}
	unread := s.over && string(f.data) != "[DONE]" && !gjson.ValidBytes(f.data) // nothing was taken of it
	if broken := !ok || s.look.Bad || len(f.data) == 0 || unread; broken {
		src = src[:before]
	}
	s.look.Bad = false // the end of a stream may cut an event in two
	if s.passed != nil {
		return src, s.look
	}
	if s.plain && s.array && s.over && s.items > 0 {
		s.out = append(s.out, "\n]"...)
	}
	return s.out, s.look
}

// item passes a payload on as an item of an array. What is no JSON would break all of it.
func (s *Stream) item(data []byte) {
	if !gjson.ValidBytes(data) {
		return
	}
	mark := ",\r\n"
	if s.items == 0 {
		mark = "["
	}
	s.items++
	s.out = append(append(s.out, mark...), data...)
}

// Break returns the event that tells the client that the target died; none, if it was
// told of an error before.
func (s *Stream) Break(message string) []byte {
	s.begin()
	if s.failed {
		return nil
	}
	s.event = Event{Kind: Failed, Failure: &Failure{Message: message}}
	if g, ok := s.to.(*geminiVoice); ok && s.plain {
		g.begun = s.items > 0
	}
	s.out = s.to.say(s.out, &s.event)
	return s.out
}

// keeper is a voice that keeps some of the answer, because its client reads that as a
// whole. ends is how many bytes are written of it at its end. letGo lets go of it, and
// reports whether the answer is lost so.
type keeper interface {
	held() int
	ends() int
	letGo() (lost bool)
}

const (
	// mostKept is how much of a stream is kept for its end, in bytes. Some of it is
	// written four times then.
	mostKept = 4 << 20

	// fewBytes is what may go out of one read uncounted: what a read of small events
	// comes to is less, and thousands of short answers end at once.
	fewBytes = 256 << 10
)

// Held is how many bytes are kept between two calls, with those that the end of what is
// kept will take: there must be room for them before they are there. LetGo lets go of
// the event that is under way: it will be lost, and the stream with it.
func (s *Stream) Held() int {
	n, out := s.frames.held()+s.tail.Size()+cap(s.kept), cap(s.out)
	if k, ok := s.to.(keeper); ok {
		n += k.held()
		out = max(out, k.ends())
	}
	if out > fewBytes {
		n += out
	}
	return n
}

// LetGo lets go of what is kept. An answer that its client reads again as a whole
// ends there: what comes of it is not passed on any more.
func (s *Stream) LetGo() {
	s.frames.letGo()
	if k, ok := s.to.(keeper); ok && !s.plain && k.letGo() {
		s.over = true
	}
}

// KeepText has up to most bytes of the answer's text kept, until there is a usage.
func (s *Stream) KeepText(most int) { s.keep = most }

// Text is what was kept.
func (s *Stream) Text() []byte { return s.kept }

func (s *Stream) begin() {
	if cap(s.out) > keptOut {
		s.out = nil
	}
	s.out, s.look = s.out[:0], Look{}
}

// known takes the events that p begins with, as long as they are of the shape, and
// returns the rest.
func (s *Stream) known(p []byte) (rest []byte) {
	events, ok := s.frames.(*eventStream)
	if !ok || s.shape.n == 0 || !events.scan.Between() {
		return p
	}
	at := 0
	for {
		f, n := firstEvent(p[at:])
		if n == 0 || !s.shape.matches(f) {
			break
		}
		s.take(f, true)
		at += n
	}
	if at > 0 {
		events.scan.Skip(p[:at])
		s.look.Moved = true
	}
	return p[at:]
}

// take takes a payload; known is one that is of the shape.
func (s *Stream) take(f frame, known bool) {
	if s.plain && s.array && !f.bad {
		s.item(f.data)
	}
	if s.over {
		return
	}
	if f.bad {
		s.bad()
		return
	}
	s.content, s.counts = false, false
	if known || s.shape.matches(f) {
		s.shape.say(f, s.from, s)
	} else {
		s.shape.begin()
		s.from.payload(f, s)
		s.shape.learn(f)
	}
	if s.content {
		s.look.Chunks++
		if s.counts {
			s.look.Tokens = s.usage.Completion
		}
	}
}

func (s *Stream) bad() { s.look.Bad = true }

// emit notes what e is worth, and has it written.
func (s *Stream) emit(e Event) {
	e.named()
	s.shape.note(&e)
	switch e.Kind {
	case Begin:
		if s.begun { // some voices say much of the request then
			return
		}
		s.begun = true
	case BlockBegin:
		if s.blocks++; s.blocks > mostBlocks && !s.plain {
			s.tooMuch("The backend's answer has too many parts.")
			return
		}
		s.see(e.Name, e.Block == Thinking)
	case BlockDelta:
		if k, ok := s.to.(keeper); ok && !s.plain && k.held()+len(e.Text) > mostKept {
			s.tooMuch("The backend's answer is too long to be told as a whole.")
			return
		}
		if e.Block == Redacted {
			break
		}
		s.see(e.Text, e.Block == Thinking)
	case Used:
		if e.Usage != (Usage{}) {
			s.usage, s.counts = e.Usage, true
			s.look.Usage = &s.usage
			s.keep, s.kept = 0, nil
		}
	case Failed:
		s.look.Error = true
	case Over:
		s.over, s.look.Done = true, true
	}
	if s.plain || s.failed {
		return
	}
	s.failed = e.Kind == Failed
	s.event = e // it stays on the heap with the stream
	s.out = s.to.say(s.out, &s.event)
}

// tooMuch ends an answer of which the client is told no more, and lets go of it.
func (s *Stream) tooMuch(message string) {
	if s.failed {
		return
	}
	s.emit(Event{Kind: Failed, Failure: &Failure{Message: message}})
	s.emit(Event{Kind: Over})
	if k, ok := s.to.(keeper); ok {
		k.letGo()
	}
}

func (s *Stream) see(text []byte, reasoning bool) {
	n := openai.TextLen(text)
	if n == 0 {
		return
	}
	s.content = true
	s.look.Bytes += n
	s.look.Reasoning = s.look.Reasoning || reasoning
	if len(s.kept) < s.keep {
		t := openai.Unquote(text)
		s.kept = append(s.kept, t[:min(len(t), s.keep-len(s.kept))]...)
	}
}

// eventStream is server-sent events.
type eventStream struct{ scan sse.Scanner }

func newEventStream() framing { return &eventStream{} }

func (s *eventStream) feed(p []byte) { s.scan.Feed(p) }

func (s *eventStream) next() (frame, bool) {
	ev, ok := s.scan.Next()
	return frame{name: ev.Name, data: bytes.TrimSpace(ev.Data), bad: ev.Oversize}, ok
}

func (s *eventStream) end() (frame, bool) {
	ev, ok := s.scan.End()
	return frame{name: ev.Name, data: bytes.TrimSpace(ev.Data), bad: ev.Oversize}, ok
}

func (s *eventStream) pending() bool { _, ok := s.scan.Pending(); return ok }
func (s *eventStream) held() int     { return s.scan.Held() }
func (s *eventStream) letGo()        { s.scan.LetGo() }

package sse

import "bytes"

const (
	// MaxEvent is the largest event whose text is kept, in bytes: of each of its
	// lines, and of its data lines joined.
	MaxEvent = 1 << 20

	// keptBuffer is the largest buffer that stays with a Scanner from event to
	// event: one large event must not hold its memory for the rest of a stream.
	keptBuffer = 64 << 10

	// overLong is how much is kept of a line above the limit.
	overLong = 1
)

var bom = [3]byte{0xEF, 0xBB, 0xBF}

// Event is one event of a stream. Its slices are valid until the next call of
// the Scanner that reported it.
type Event struct {
	Name []byte // the last event: field, nil if none
	Data []byte // the data: fields, joined with LF

	// Oversize events have no Data, and a Name only if that has a line of its own
	// within the limit.
	Oversize bool

	// From is where the first line of the event begins that is not a comment,
	// Blank is where the blank line at its end begins, To is the first byte
	// behind that line.
	From, Blank, To int64
}

// Scanner finds events. The zero value is ready for the beginning of a stream.
// It belongs to one goroutine.
//
// Feed it a piece, call Next until it reports false, feed the next piece. An
// event that lies within one piece is not copied.
type Scanner struct {
	limit int // of a line and of the joined data; 0 = MaxEvent

	chunk  []byte
	pos    int   // next byte of chunk to look at
	base   int64 // offset of chunk[0]
	lf, cr int   // next line end of each kind at or after pos; < pos: not looked for

	bomSeen   int8 // bytes of a byte order mark matched; -1 = the beginning is past
	afterCR   bool // the last byte was a CR: an LF now belongs to it
	afterCRTo bool // and that CR ended an event

	// The unfinished line at the end of the last piece: at most limit bytes are
	// kept, and overLong if it is longer. partLen counts all.
	part     []byte
	partLen  int
	partFrom int64

	// The event under way. data is cut out of chunk or part until owned, then it
	// is buf.
	open    bool // a line that is no comment was seen
	from    int64
	hasData bool
	over    bool
	owned   bool
	data    []byte
	buf     []byte
	name    []byte
	named   bool
	spent   bool // it was reported, and is forgotten by the next call
}

// Feed gives the scanner the next piece of the stream, which must stay as it
// is until Next has reported false. lead is 1 if the first byte of p still
// belongs to the last event: the LF of a CRLF that was cut in two. Otherwise
// it is 0.
func (s *Scanner) Feed(p []byte) (lead int) {
	s.forget()
	s.base += int64(len(s.chunk))
	s.chunk, s.pos, s.lf, s.cr = p, 0, -1, -1
	if len(p) == 0 {
		return 0
	}
	if s.afterCR {
		if p[0] == '\n' {
			s.pos = 1
			if s.afterCRTo {
				lead = 1
			}
		}
		s.afterCR, s.afterCRTo = false, false
	}
	for s.bomSeen >= 0 && s.pos < len(p) {
		s.matchBOM()
	}
	return lead
}

// matchBOM looks at the next of the first three bytes of the stream.
func (s *Scanner) matchBOM() {
	if s.chunk[s.pos] == bom[s.bomSeen] {
		s.pos++
		if s.bomSeen++; int(s.bomSeen) == len(bom) {
			s.bomSeen = -1
		}
		return
	}
	if s.bomSeen > 0 { // it was none, and its bytes belong to the first line
		s.part = append(s.part[:0], bom[:s.bomSeen]...)
		s.partLen, s.partFrom = int(s.bomSeen), 0
	}
	s.bomSeen = -1
}

// Next reports the next event that ends in the piece. False means that the
// rest of the piece is the beginning of an event, or nothing.
func (s *Scanner) Next() (Event, bool) {
	s.forget()
	for s.pos < len(s.chunk) {
		end := s.lineEnd()
		if end == len(s.chunk) {
			s.keepPart()
			break
		}
		line, size, at := s.chunk[s.pos:end], end-s.pos, s.base+int64(s.pos)
		if s.partLen > 0 {
			at = s.partFrom
			size += s.partLen
			line = s.joinPart(line)
		}
		s.pos = end + 1
		if s.chunk[end] == '\r' {
			if s.pos == len(s.chunk) {
				s.afterCR = true
			} else if s.chunk[s.pos] == '\n' {
				s.pos++
			}
		}
		if size == 0 {
			if ev, ok := s.finish(at, s.base+int64(s.pos)); ok {
				s.afterCRTo = s.afterCR
				return ev, true
			}
			continue
		}
		s.line(line, size, at)
	}
	s.own()
	return Event{}, false
}

// Rest returns what of the piece Next has not looked at, if an event or a comment
// begins there; nil = one has begun before.
func (s *Scanner) Rest() []byte {
	if s.bomSeen >= 0 || s.afterCR || s.partLen > 0 || s.open && !s.spent || s.chunk == nil {
		return nil
	}
	return s.chunk[s.pos:]
}

// Advance leaves n bytes of Rest out, which are whole events that end with LF: the
// caller has read them.
func (s *Scanner) Advance(n int) {
	s.forget()
	s.pos += n
}

// Between reports whether the stream is at the beginning of an event, or of a
// comment, as far as it came.
func (s *Scanner) Between() bool { return s.pos == len(s.chunk) && s.Rest() != nil }

// Skip takes p, which is whole events that end with LF: the caller has read them.
// The stream must be Between events.
func (s *Scanner) Skip(p []byte) {
	s.Feed(p)
	s.Advance(len(p))
}

// SkipUnseen is Skip of n bytes that the scanner is not shown.
func (s *Scanner) SkipUnseen(n int64) { s.base += n }

// Pending reports whether the last piece ended within an event, and where that
// event begins.
func (s *Scanner) Pending() (from int64, ok bool) {
	switch {
	case s.spent:
		return 0, false
	case s.open:
		return s.from, true
	case s.partLen > 0 && s.part[0] != ':':
		return s.partFrom, true
	case s.bomSeen > 0: // may be no mark at all, but the beginning of a field
		return 0, true
	}
	return 0, false
}

// End is called at the end of the stream and reports the event that lacks its
// blank line, if there is one. The standard throws it away; whether it is
// whole is for the caller to judge.
func (s *Scanner) End() (Event, bool) {
	s.forget()
	end := s.base + int64(len(s.chunk))
	if s.partLen > 0 {
		s.line(s.part, s.partLen, s.partFrom)
		s.partLen = 0
	}
	return s.finish(end, end)
}

// lineEnd returns where the line at pos ends, len(chunk) if not in this piece.
// Both kinds of end are looked for once for all lines before them, so that a
// piece is searched twice, however many lines it has.
func (s *Scanner) lineEnd() int {
	if s.lf < s.pos {
		s.lf = s.find('\n')
	}
	if s.cr < s.pos {
		s.cr = s.find('\r')
	}
	return min(s.lf, s.cr)
}

func (s *Scanner) find(c byte) int {
	if i := bytes.IndexByte(s.chunk[s.pos:], c); i >= 0 {
		return s.pos + i
	}
	return len(s.chunk)
}

// keepPart keeps the rest of the piece for the line to be finished by the next.
func (s *Scanner) keepPart() {
	s.own() // the data may lie in part
	rest := s.chunk[s.pos:]
	if s.partLen == 0 {
		s.part, s.partFrom = s.part[:0], s.base+int64(s.pos)
	}
	s.partLen += len(rest)
	s.pos = len(s.chunk)
	s.extendPart(rest)
}

// joinPart returns the line that ends with rest.
func (s *Scanner) joinPart(rest []byte) []byte {
	s.own()
	s.partLen += len(rest)
	s.extendPart(rest)
	s.partLen = 0
	return s.part
}

// extendPart appends rest, unless the line is a comment or too long. partLen
// counts rest already.
func (s *Scanner) extendPart(rest []byte) {
	if s.partLen <= s.max() && (len(s.part) == 0 || s.part[0] != ':') {
		s.part = append(s.part, rest...)
		return
	}
	if len(s.part) == 0 {
		s.part = append(s.part, rest[0])
	}
	s.part = s.part[:overLong]
}

// own copies the data of the event under way out of memory that is about to
// change.
func (s *Scanner) own() {
	if s.hasData && !s.owned {
		s.buf = append(s.buf[:0], s.data...)
		s.data, s.owned = s.buf, true
	}
}

func (s *Scanner) max() int {
	if s.limit > 0 {
		return s.limit
	}
	return MaxEvent
}

// line takes one line of size bytes (more than line holds if it is above the
// limit) that begins at offset at.
func (s *Scanner) line(line []byte, size int, at int64) {
	if line[0] == ':' {
		return
	}
	if !s.open {
		s.open, s.from = true, at
	}
	if size > s.max() {
		s.tooLarge()
		return
	}
	field, value := line, []byte(nil)
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		field, value = line[:i], line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(field) {
	case "data":
		if !s.over {
			s.addData(value)
		}
	case "event":
		s.name, s.named = append(s.name[:0], value...), true
	}
}

func (s *Scanner) addData(value []byte) {
	switch {
	case !s.hasData:
		s.data, s.hasData = value, true
	case len(s.data)+1+len(value) > s.max():
		s.tooLarge()
	default:
		s.own()
		s.buf = append(append(s.buf, '\n'), value...)
		s.data = s.buf
	}
}

// tooLarge drops the data of the event under way.
func (s *Scanner) tooLarge() { s.over, s.hasData, s.owned, s.data = true, false, false, nil }

// finish ends the event under way at the blank line [blank, to). An event
// without data is none.
func (s *Scanner) finish(blank, to int64) (Event, bool) {
	s.spent = true
	if !s.hasData && !s.over {
		s.forget()
		return Event{}, false
	}
	ev := Event{Data: s.data, Oversize: s.over, From: s.from, Blank: blank, To: to}
	if s.named {
		ev.Name = s.name
	}
	return ev, true
}

// forget drops the event that was reported last.
func (s *Scanner) forget() {
	if !s.spent {
		return
	}
	s.spent, s.open, s.hasData, s.over, s.owned, s.named = false, false, false, false, false, false
	s.data = nil
	if cap(s.buf) > keptBuffer {
		s.buf = nil
	}
	if cap(s.part) > keptBuffer && s.partLen == 0 {
		s.part = nil
	}
	if cap(s.name) > keptBuffer {
		s.name = nil
	}
}

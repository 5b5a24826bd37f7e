package translate

import (
	"encoding/binary"
	"hash/crc32"
)

// maxMessage is the largest message of an AWS event stream that is read, in bytes.
const maxMessage = 1 << 20

// messageStream is an AWS event stream: messages of a length, headers and a
// payload, each with checksums. After a message that is none, nothing can be
// found any more.
type messageStream struct {
	buf    []byte
	at     int  // of the next message
	broken bool // and reported
	told   bool
}

func newMessageStream() framing { return &messageStream{} }

const (
	preludeLen = 12 // two lengths and their checksum
	sumLen     = 4
)

func (s *messageStream) feed(p []byte) {
	if s.broken {
		return
	}
	if s.at > 0 { // else a message that comes in small pieces were moved with each of them
		s.buf, s.at = s.buf[:copy(s.buf, s.buf[s.at:])], 0
	}
	s.buf = append(s.buf, p...)
}

func (s *messageStream) next() (frame, bool) {
	rest := s.buf[s.at:]
	if s.broken || len(rest) < preludeLen {
		return s.broke()
	}
	total, headers := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
	if crc32.ChecksumIEEE(rest[:8]) != binary.BigEndian.Uint32(rest[8:]) || total > maxMessage || total < preludeLen+sumLen || headers > total-preludeLen-sumLen {
		s.broken = true
		return s.broke()
	}
	if uint32(len(rest)) < total {
		return frame{}, false
	}
	message, sum := rest[:total-sumLen], rest[total-sumLen:total]
	if crc32.ChecksumIEEE(message) != binary.BigEndian.Uint32(sum) {
		s.broken = true
		return s.broke()
	}
	s.at += int(total)
	name, ok := messageName(message[preludeLen : preludeLen+headers])
	return frame{name: name, data: message[preludeLen+headers:], bad: !ok}, true
}

// broke reports once that the stream cannot be read any further.
func (s *messageStream) broke() (frame, bool) {
	if !s.broken || s.told {
		return frame{}, false
	}
	s.told, s.buf, s.at = true, nil, 0
	return frame{bad: true}, true
}

func (s *messageStream) end() (frame, bool) { return frame{}, false }
func (s *messageStream) pending() bool      { return len(s.buf) > s.at }
func (s *messageStream) held() int          { return cap(s.buf) }
func (s *messageStream) letGo()             { s.broken, s.buf, s.at = true, nil, 0 }

// headerSizes are how long the values of headers are, by their kind: booleans, numbers,
// bytes and text with a length of their own (−1), times and UUIDs.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// messageName finds the type of an event, or of an exception, among headers.
func messageName(h []byte) (name []byte, ok bool) {
	for len(h) > 0 {
		n := int(h[0])
		if len(h) < n+2 {
			return nil, false
		}
		key, kind := h[1:1+n], int(h[1+n])
		h = h[n+2:]
		if kind >= len(headerSizes) {
			return nil, false
		}
		size := headerSizes[kind]
		if size < 0 {
			if len(h) < 2 {
				return nil, false
			}
			size = int(binary.BigEndian.Uint16(h))
			h = h[2:]
		}
		if len(h) < size {
			return nil, false
		}
		if kind == 7 {
			switch string(key) {
			case ":event-type", ":exception-type", ":error-code":
				name = h[:size]
			}
		}
		h = h[size:]
	}
	return name, true
}

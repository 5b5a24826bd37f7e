package realtime

import (
	"encoding/binary"
	"errors"
)

// The opcodes of frames, by RFC 6455.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPong         = 0xA
)

var (
	errFraming = errors.New("realtime: a frame that is none of RFC 6455")
	errTooLong = errors.New("realtime: a message that is longer than one may be")
)

// framer follows the frames of one direction. The zero value stands before the
// first one; masked says whether they come from a client.
type framer struct {
	masked bool
	most   int64 // bytes of one message

	left    uint64 // of the frame's payload
	op      byte   // of the frame
	message byte   // opcode of the message that is not whole; 0 = none
	size    int64  // of that message so far
	whole   bool   // the frame ends its message
	closed  bool   // a close frame came

	// see takes the payload of a message in text. nil = nobody looks.
	see func(part []byte, whole bool)
}

// take follows p, and returns how much of it may be passed on: all but the
// beginning of a head that is not whole, or of a frame that is refused.
func (f *framer) take(p []byte) (pass int, err error) {
	for pass < len(p) {
		if f.left > 0 {
			n := int(min(f.left, uint64(len(p)-pass)))
			f.left -= uint64(n)
			f.show(p[pass : pass+n])
			pass += n
			continue
		}
		n, err := f.head(p[pass:])
		if err != nil || n == 0 {
			return pass, err
		}
		pass += n
		if f.left == 0 {
			f.show(nil)
		}
	}
	return pass, nil
}

// between reports whether the next byte begins a frame.
func (f *framer) between() bool { return f.left == 0 }

// head reads the head of a frame and returns its length; 0 = it is not whole.
func (f *framer) head(p []byte) (n int, err error) {
	if len(p) < 2 {
		return 0, nil
	}
	op, fin, masked := p[0]&0x0F, p[0]&0x80 != 0, p[1]&0x80 != 0
	length, n := uint64(p[1]&0x7F), 2
	switch length {
	case 126:
		if n = 4; len(p) < n {
			return 0, nil
		}
		length = uint64(binary.BigEndian.Uint16(p[2:]))
	case 127:
		if n = 10; len(p) < n {
			return 0, nil
		}
		length = binary.BigEndian.Uint64(p[2:])
	}
	if masked {
		n += 4
	}
	if len(p) < n {
		return 0, nil
	}
	switch {
	case p[0]&0x70 != 0, masked != f.masked, length >= 1<<63:
		return 0, errFraming
	case op >= opClose:
		if !fin || length > 125 || op > opPong {
			return 0, errFraming
		}
		f.closed = f.closed || op == opClose
	case op == opContinuation != (f.message != 0), op > opBinary:
		return 0, errFraming
	default:
		if f.message == 0 {
			f.message, f.size = op, 0
		}
		if length > uint64(f.most-f.size) {
			return 0, errTooLong
		}
		f.size += int64(length)
		f.whole = fin
	}
	f.op, f.left = op, length
	return n, nil
}

// show hands the next part of a frame's payload on, and ends the message with its
// last one.
func (f *framer) show(part []byte) {
	if f.op >= opClose {
		return
	}
	over := f.left == 0 && f.whole
	if f.see != nil && f.message == opText {
		f.see(part, over)
	}
	if over {
		f.message = 0
	}
}

// closing is a close frame with a reason that has at most 123 bytes, masked with
// mask if that is not nil.
func closing(code uint16, reason string, mask []byte) []byte {
	payload := append(binary.BigEndian.AppendUint16(nil, code), reason...)
	frame := []byte{0x80 | opClose, byte(len(payload))}
	if mask != nil {
		frame[1] |= 0x80
		frame = append(frame, mask[:4]...)
		for i := range payload {
			payload[i] ^= mask[i%4]
		}
	}
	return append(frame, payload...)
}

package providers

import "github.com/pacer-dev/pacer/internal/sse"

// maxHeld is the largest beginning of an event that is held back, in bytes. A
// usage event has a few hundred, and so has a chunk; what grows beyond goes on
// as it is.
const maxHeld = 64 << 10

// keptBuffer is how large a buffer may be that a stream keeps for the next event,
// in bytes: thousands of streams that had a large one each would keep them all.
const keptBuffer = 2 << 10

// whole passes on whole events. The beginning of one is held back until its end is there:
// it may have to be changed, and where a backend dies within it, no client is to
// take it for an event. No client can use it sooner. The zero value is the beginning of a stream.
type whole struct {
	read  int64 // bytes of the stream taken so far
	held  []byte
	spare []byte // the other buffer: what was passed on may lie in it
	out   []byte // what is left of a read that something was cut out of
}

// add takes p in. It returns what is to be worked on: what is held, and p; and where in the stream
// that begins.
func (w *whole) add(p []byte) (src []byte, from int64) {
	src, from = p, w.read
	if len(w.held) > 0 {
		from -= int64(len(w.held))
		w.held = append(w.held, p...)
		src = w.held
	}
	w.read += int64(len(p))
	return src, from
}

// until is how far src, which begins at from, has whole events, and what is not held back.
func (w *whole) until(scan *sse.Scanner, src []byte, from int64) int {
	if at, ok := scan.Pending(); ok && at >= from && w.read-at <= maxHeld {
		return int(at - from)
	}
	return len(src)
}

// pass keeps src[hold:] and returns src[done:hold], behind what is in out.
func (w *whole) pass(src []byte, done, hold int) (pass []byte) {
	pass = src[done:hold]
	if len(w.out) > 0 {
		w.out = append(w.out, pass...)
		pass = w.out
	}
	switch {
	case len(w.held) == 0: // src is the caller's
		w.held = append(w.held, src[hold:]...)
	case hold > 0: // pass lies in held: the rest moves to the other buffer
		w.held, w.spare = append(w.spare[:0], src[hold:]...), w.held
	}
	if len(w.held) == 0 && cap(w.held) > keptBuffer {
		w.held = nil
	}
	if cap(w.spare) > keptBuffer {
		w.spare = nil
	}
	if cap(w.out) > keptBuffer {
		w.out = nil
	}
	return pass
}

// size is how many bytes it keeps.
func (w *whole) size() int { return cap(w.held) + cap(w.spare) + cap(w.out) }

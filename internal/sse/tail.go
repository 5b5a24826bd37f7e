package sse

// MaxTail is the largest beginning of an event that is held back, in bytes. A
// usage event has a few hundred, and so has a chunk; what grows beyond goes on
// as it is.
const MaxTail = 64 << 10

// keptTail is how large a buffer may be that stays with a Tail for the next event,
// in bytes: thousands of streams that had a large one each would keep them all.
const keptTail = 2 << 10

// Tail holds back the beginning of an event until its end is there, so that whole
// events pass: one may have to be changed, and where a backend dies within it, no client is
// to take it for an event. No client can use it sooner. The zero value is ready for the
// beginning of a stream. It belongs to one goroutine.
//
// Add a piece, feed it to the Scanner, and keep what is behind Until. What is before
// that goes on.
type Tail struct {
	read  int64 // bytes of the stream taken so far
	held  []byte
	spare []byte // the other buffer: what was passed on may lie in it
}

// Add takes p in. It returns what is to be worked on: what is held, and p; and where in the
// stream that begins.
func (t *Tail) Add(p []byte) (src []byte, from int64) {
	src, from = p, t.read
	if len(t.held) > 0 {
		from -= int64(len(t.held))
		t.held = append(t.held, p...)
		src = t.held
	}
	t.read += int64(len(p))
	return src, from
}

// Skip notes that n bytes went by, and nothing is held.
func (t *Tail) Skip(n int64) { t.read += n }

// Until is how far src, which begins at from and ends where scan is, has whole events, and
// what is not held back.
func (t *Tail) Until(scan *Scanner, src []byte, from int64) int {
	if at, ok := scan.Pending(); ok && at >= from && t.read-at <= MaxTail {
		return int(at - from)
	}
	return len(src)
}

// Keep holds src[hold:] back. src, which Add returned, is good until the next Add.
func (t *Tail) Keep(src []byte, hold int) {
	switch {
	case len(t.held) == 0: // src is the caller's
		t.held = append(t.held, src[hold:]...)
	case hold > 0: // what goes on lies in held: the rest moves to the other buffer
		t.held, t.spare = append(t.spare[:0], src[hold:]...), t.held
	}
	if len(t.held) == 0 && cap(t.held) > keptTail {
		t.held = nil
	}
	if cap(t.spare) > keptTail {
		t.spare = nil
	}
}

// Take returns what is held at the end of the stream, where that begins, and how much of it
// comes before the event that scan has under way. Nothing is held any more.
func (t *Tail) Take(scan *Scanner) (src []byte, from int64, before int) {
	src, t.held = t.held, nil
	from = t.read - int64(len(src))
	if at, ok := scan.Pending(); ok && at >= from {
		return src, from, int(at - from)
	}
	return src, from, len(src)
}

// Len is how many bytes are held back.
func (t *Tail) Len() int { return len(t.held) }

// Size is how many bytes its buffers have.
func (t *Tail) Size() int { return cap(t.held) + cap(t.spare) }

package gateway

import "sync"

const (
	// relayBuffer is how much of an answer is passed on at once, at most.
	relayBuffer = 32 << 10

	// waitBuffer is what a stream of events waits with, in bytes. Its events are
	// small, and most of the time none is there: thousands of streams at once must
	// not each hold room for what does not come. What net/http has read ahead of us
	// is no more than that.
	waitBuffer = 4 << 10
)

// buffers are what answers are read into, kept for the next ones. The zero value
// has none; it is safe for concurrent use.
type buffers struct{ large, small sync.Pool }

// getLarge returns one for whatever comes.
func (b *buffers) getLarge() *[relayBuffer]byte {
	if p, ok := b.large.Get().(*[relayBuffer]byte); ok {
		return p
	}
	return new([relayBuffer]byte)
}

// getSmall returns one to wait with.
func (b *buffers) getSmall() *[waitBuffer]byte {
	if p, ok := b.small.Get().(*[waitBuffer]byte); ok {
		return p
	}
	return new([waitBuffer]byte)
}

// readBuffer is the room that one answer is read into: a large one for documents, and
// while a stream of events fills the small one. The zero value has none.
type readBuffer struct {
	large *[relayBuffer]byte
	small *[waitBuffer]byte // in place of large
}

// begin takes one to wait for the first byte with, if there is none yet: a small one
// for what will be a stream.
func (r *readBuffer) begin(from *buffers, streams bool) {
	switch {
	case r.room() != nil:
	case streams:
		r.small = from.getSmall()
	default:
		r.large = from.getLarge()
	}
}

// room is all of it.
func (r *readBuffer) room() []byte {
	switch {
	case r.large != nil:
		return r.large[:]
	case r.small != nil:
		return r.small[:]
	}
	return nil
}

// next is the room for the next read of a stream of events, of which the last one
// brought n bytes. What those lay in may be another's from here on.
func (r *readBuffer) next(n int, from *buffers) []byte {
	switch {
	case r.large != nil && n < waitBuffer/2:
		from.large.Put(r.large)
		r.large, r.small = nil, from.getSmall()
	case r.small != nil && n >= waitBuffer*3/4: // what frames took of it is not in n
		from.small.Put(r.small)
		r.large, r.small = from.getLarge(), nil
	}
	return r.room()
}

// giveBack keeps it for the next answer. Calls after the first do nothing.
func (r *readBuffer) giveBack(to *buffers) {
	if r.large != nil {
		to.large.Put(r.large)
	}
	if r.small != nil {
		to.small.Put(r.small)
	}
	r.large, r.small = nil, nil
}

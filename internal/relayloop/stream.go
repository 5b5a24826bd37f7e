package relayloop

import (
	"container/list"
	"errors"
	"sync/atomic"
	"time"
)

// ErrUnsupported reports a system without epoll.
var ErrUnsupported = errors.New("relayloop: there is no epoll on this system")

// Why says why a stream left its loop.
type Why uint8

// The reasons. What an error is with them stands behind each.
const (
	Done       Why = iota // the handler wanted no more, and all was written; none
	SourceOver            // the backend's side has ended; io.EOF, or what reading said
	ClientGone            // the client's side has ended; what writing said, or io.EOF
	ClientSlow            // the client did not take for too long what was sent; none
	Cancelled             // somebody said so, or the loops end; none
	Torn                  // the same, while the client had a part of a chunk, behind which nothing can be written; none
	Broken                // the handler panicked, or the system failed; that
)

// Handler is what becomes of the bytes of one stream. All its methods are called
// by the loop, one at a time, and must not block.
type Handler interface {
	// Arrived takes what the backend sent, which came at now. It returns what goes
	// to the client, in p or elsewhere, valid until the next call, and whether more
	// is to be read. Framed as a chunk it is written as a whole; none is no chunk.
	Arrived(now time.Time, p []byte) (out []byte, more bool)

	// Wrote is called behind each Arrived, when its client's system has taken all
	// of it.
	Wrote(now time.Time)

	// Left is the last call. Both sockets are the handler's again. Of what was
	// written last the client may have a part, but by Done, SourceOver and Cancelled.
	Left(why Why, err error)
}

// Stream is one stream on its way from a backend to a client.
type Stream struct {
	From, To *Socket
	Handler  Handler

	// WriteLimit is how long the client may take for what was read at once.
	WriteLimit time.Duration

	// Watch is whether the client's end is looked for: not while something that it
	// sent ahead lies before that.
	Watch bool

	loop      *loop
	cancelled atomic.Bool
	state     state
}

// Idle is a client's connection between two requests.
type Idle struct {
	Socket *Socket

	// Until is when it is closed.
	Until time.Time

	// Then is called by the loop, once: with what was read when the client has sent
	// something, with nil when it has closed the connection, or nothing came for
	// too long, or Close was called. The socket is the caller's again.
	Then func(said []byte)

	loop  *loop
	ends  int // line ends that were skipped
	spot  spot
	place *list.Element // among those that wait
}

// SkipEnds returns p without the line ends that it begins with, as far as there are
// no more than four, with those that *skipped counts: what some clients send behind the
// body of a request, and servers skip before the next one.
func SkipEnds(p []byte, skipped *int) []byte {
	for ; *skipped < 4 && len(p) > 0 && (p[0] == '\r' || p[0] == '\n'); *skipped++ {
		p = p[1:]
	}
	return p
}

const (
	// firstRoom is how much is read at once of what a client sends that was waited
	// for, in bytes: no more than servers read at once.
	firstRoom = 4 << 10

	// readRoom is how much of a stream is read at once, in bytes. It bounds what
	// one stream can keep a loop busy with, and what a parked one holds.
	readRoom = 32 << 10

	// frameHead is the room for the size of a chunk before it, frameTail for the
	// end of its line behind it.
	frameHead = 16
	frameTail = 2
)

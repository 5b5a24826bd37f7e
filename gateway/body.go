package gateway

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/pacer-dev/pacer/internal/openai"
)

const (
	// smallBody is the largest body that lies on the heap, in bytes. Pages of its
	// own cost a small one more time than the rest of the request.
	smallBody = 64 << 10

	// onHeap is how often the budgets count what lies on the heap: the collector
	// lets as much garbage gather beside it.
	onHeap = 2

	// bodyStart is the room of a body of which nothing has come, in bytes. It gets
	// at most bodyAhead times what has come, or as much would be taken by bodies
	// that are promised and never sent.
	bodyStart = 4 << 10
	bodyAhead = 8

	// bodyStep is how much more room pages get at once, in bytes.
	bodyStep = 64 << 10
)

// mappings are the bodies that lie outside of the heap, in all. The system gives
// a process so many mappings and no more, and the runtime, which needs some
// itself, ends the program when it gets none: bodies have half of them.
var (
	mappings     atomic.Int64
	mostMappings = systemMappings() / 2
)

// body is the one copy of a request's body. What goes up is read from it,
// around the bytes that are edited.
//
// A body that is not small lies outside of the heap. There a buffer that grows
// would be there twice, and what was let go would stay until the collector
// comes. Here room for all that may come is set aside, which takes nothing; the
// pages that are filled count against the budgets, and they go back to the
// system at the moment when the last user leaves.
//
// Its users are the exchange, and each reader that is not closed: a transport
// may still be sending when the answer begins. The exchange alone calls next,
// wrote, whole, skip and bytes, and holds no slice of it after leave.
type body struct {
	budgets budgets
	most    int   // bytes that it may become
	mapped  bool  // it lies outside of the heap
	cover   int   // bytes of room that may be filled
	paid    int64 // what the budgets count for it
	from    int   // where the text begins
	size    int   // what has come

	mu    sync.Mutex // guards what follows, and the reading of room
	users int
	room  []byte // nil = it is gone
}

// newBody returns an empty body of at most most bytes, whose one user is the
// caller. told says that it will have as many but one.
func newBody(b budgets, most int, told bool) (*body, error) {
	y := &body{budgets: b, users: 1, most: most}
	if told && most > smallBody {
		return y, y.move()
	}
	return y, y.grow()
}

// grow gives the body more room on the heap, or the first. It never passes
// smallBody.
func (y *body) grow() error {
	cover := min(y.ahead(), smallBody, y.most)
	if err := y.pay(onHeap * int64(cover)); err != nil {
		return err
	}
	room := make([]byte, cover)
	copy(room, y.room)
	y.room, y.cover = room, cover
	return nil
}

// ahead is how large the room may be for what has come.
func (y *body) ahead() int { return max(bodyStart, bodyAhead*y.size) }

// pay has the budgets count n bytes for the body, and no longer what they did.
func (y *body) pay(n int64) error {
	if n > y.paid {
		if err := y.budgets.take(n - y.paid); err != nil {
			return err
		}
	} else {
		y.budgets.give(y.paid - n)
	}
	y.paid = n
	return nil
}

// move gives the body pages of its own, with what has come.
func (y *body) move() error {
	if mappings.Add(1) > mostMappings {
		mappings.Add(-1)
		return errOverloaded
	}
	pages, err := newPages(y.most)
	if err != nil {
		mappings.Add(-1)
		return errOverloaded
	}
	copy(pages, y.room[:y.size])
	y.room, y.mapped, y.cover = pages, true, y.size
	return nil
}

// next returns where the next bytes go: one at least, until all that it may
// have has come.
func (y *body) next() ([]byte, error) {
	if y.size < y.cover {
		return y.room[y.size:y.cover], nil
	}
	if y.size == y.most {
		return nil, errBodyLonger
	}
	if !y.mapped && y.cover < smallBody {
		err := y.grow()
		return y.room[y.size:], err
	}
	if !y.mapped {
		if err := y.move(); err != nil {
			return nil, err
		}
	}
	cover := min(max(y.ahead(), os.Getpagesize()), y.cover+bodyStep, y.most)
	if err := y.pay(int64(cover)); err != nil {
		return nil, err
	}
	fillPages(y.room[y.cover:cover])
	y.cover = cover
	return y.room[y.size:y.cover], nil
}

// wrote says that n bytes have come.
func (y *body) wrote(n int) { y.size += n }

// whole says that all has come, and returns the room that is not needed.
func (y *body) whole() {
	switch page := os.Getpagesize(); {
	case y.mapped:
		if used := (y.size + page - 1) / page * page; used < y.cover {
			emptyPages(y.room[used:y.cover])
			_ = y.pay(int64(used))
		}
	case y.size < y.cover/2:
		y.room = bytes.Clone(y.room[:y.size])
		_ = y.pay(onHeap * int64(y.size)) // less than before: not refused
	}
}

// skip leaves out n bytes at the beginning.
func (y *body) skip(n int) { y.from += n }

// bytes is the text. It must not be kept.
func (y *body) bytes() []byte {
	if y == nil {
		return nil
	}
	return y.room[y.from:y.size:y.size]
}

// leave is called once by each user.
func (y *body) leave() {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.users--; y.users > 0 {
		return
	}
	if y.mapped {
		freePages(y.room)
		mappings.Add(-1)
	}
	y.room = nil
	_ = y.pay(0)
}

// errBodyLonger reports a body that goes on behind the length it was said to have.
var errBodyLonger = &bodyError{err: errors.New("it is longer than its Content-Length")}

var errBodyGone = errors.New("gateway: the request body was let go")

// edited is a body as it goes up to one backend. It implements providers.Body.
type edited struct {
	*body
	edits []openai.Splice
}

// Len implements providers.Body.
func (e edited) Len() int64 { return int64(openai.EditedLen(e.size-e.from, e.edits)) }

// Open implements providers.Body.
func (e edited) Open() (io.ReadCloser, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.room == nil {
		return nil, errBodyGone
	}
	e.users++
	return &bodyReader{body: e.body, text: *openai.NewReader(e.bytes(), e.edits)}, nil
}

// bodyReader reads a body on its way up. It is safe for concurrent use: a
// transport may close it while it is read.
type bodyReader struct {
	mu   sync.Mutex // before body.mu
	body *body      // nil = closed
	text openai.Reader
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		return 0, os.ErrClosed
	}
	return r.text.Read(p)
}

// Close implements io.Closer. Calls after the first do nothing.
func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body != nil {
		r.body.leave()
		r.body, r.text = nil, openai.Reader{}
	}
	return nil
}

package h1client

import (
	"cmp"
	"net"
	"sync"
	"syscall"
)

// wireRoom is how much of an encrypted answer is read ahead of TLS, in bytes. TLS itself
// asks for one record at a time, and takes a few more if these are short.
const wireRoom = 16 << 10

var wireRooms = sync.Pool{New: func() any { return new([wireRoom]byte) }}

// wire is what TLS reads from and writes to: a connection, or another one in its place.
type wire struct {
	net.Conn
	raw   syscall.RawConn // of the connection; nil = it is no socket
	full  bool            // the last read had all that it asked for: there may be more
	still bool            // what is not there is not waited for
	over  error           // what reading ahead said; nil = the connection goes on
	room  *[wireRoom]byte // nil = nothing is ahead
	ahead []byte          // was read, and not given to TLS; lies in room
}

// NothingYet is what reading says below TLS where it would have to wait. TLS goes on
// behind it, as it is said to pass.
type NothingYet struct{}

// Error implements error.
func (NothingYet) Error() string { return "h1client: nothing to read yet" }

// Timeout implements net.Error.
func (NothingYet) Timeout() bool { return true }

// Temporary implements net.Error.
func (NothingYet) Temporary() bool { return true }

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	switch {
	case len(w.ahead) > 0:
	case w.over != nil:
		return 0, w.over
	case !w.still:
		n, err := w.Conn.Read(p)
		w.full = n == len(p)
		return n, err
	case !w.full || w.raw == nil:
		return 0, NothingYet{}
	default:
		w.fill()
		if len(w.ahead) == 0 {
			return 0, cmp.Or[error](w.over, NothingYet{})
		}
	}
	n := copy(p, w.ahead)
	if w.ahead = w.ahead[n:]; len(w.ahead) == 0 {
		wireRooms.Put(w.room)
		w.room, w.ahead = nil, nil
	}
	return n, nil
}

// fill reads ahead what is there, and no end of it.
func (w *wire) fill() {
	room := wireRooms.Get().(*[wireRoom]byte)
	n, err := readNow(w.raw, room[:])
	if w.over, w.full = err, n == len(room); n == 0 {
		wireRooms.Put(room)
		return
	}
	w.room, w.ahead = room, room[:n]
}

// rest reads from what encrypts w what is there besides, as far as that fits in p. What
// goes wrong is said by the next read.
func (w *wire) rest(encrypted net.Conn, p []byte) (n int) {
	w.still = true
	for n < len(p) {
		m, err := encrypted.Read(p[n:])
		if n += m; err != nil {
			break
		}
	}
	w.still = false
	return n
}

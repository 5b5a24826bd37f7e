//go:build unix

package h1client

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// readNow reads what is there. The error is the connection's end; that a read was given
// no more time is none.
func readNow(raw syscall.RawConn, p []byte) (n int, err error) {
	closed := raw.Read(func(fd uintptr) bool {
		for {
			n, err = syscall.Read(int(fd), p)
			if err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case errors.Is(closed, os.ErrDeadlineExceeded):
		return 0, nil
	case closed != nil:
		return 0, closed
	case err == syscall.EAGAIN:
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// look looks at a socket without taking anything from it. It is kept with its
// connection, since what it needs would else be made anew each time.
type look struct {
	peek  func(fd uintptr)
	start [goodbyeLen]byte // of what is there to read
	none  bool             // nothing is
	said  bool             // it is no goodbye
}

// quiet reports whether the socket has neither bytes nor an end to read, and
// whether there are bytes that are no goodbye.
func (l *look) quiet(raw syscall.RawConn) (quiet, said bool) {
	if l.peek == nil {
		l.peek = func(fd uintptr) {
			n, _, err := syscall.Recvfrom(int(fd), l.start[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			l.none = n <= 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK)
			l.said = n > 0 && !isGoodbye(l.start[:n])
		}
	}
	if raw.Control(l.peek) != nil {
		return false, false
	}
	return l.none, l.said
}

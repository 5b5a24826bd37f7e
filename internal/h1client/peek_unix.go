//go:build unix

package h1client

import "syscall"

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

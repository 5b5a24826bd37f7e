package relayloop

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is a connected socket that the runtime's poller does not know. It
// belongs to one goroutine, or to a loop.
type Socket struct {
	fd    int      // -1 = it is conn's, or closed
	conn  net.Conn // in place of fd, once a write had to wait
	crypt *crypt   // nil = it is plain
}

// Take returns the socket of c, whose descriptor it duplicates. It is the caller's
// to close c, or to close the socket and go on with c: with both open, both read
// from one connection.
func Take(c net.Conn) (*Socket, error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil, ErrUnsupported
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dup error
	if err := raw.Control(func(own uintptr) {
		fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return nil, err
	}
	if dup != nil {
		return nil, os.NewSyscallError("fcntl", dup)
	}
	return &Socket{fd: fd}, nil
}

// Conn returns the connection as the rest of the program knows them. The socket is
// nobody's from there on.
func (s *Socket) Conn() (net.Conn, error) {
	if c := s.conn; c != nil {
		s.conn = nil
		return c, nil
	}
	f := os.NewFile(uintptr(s.fd), "socket")
	s.fd = -1
	c, err := net.FileConn(f) // a duplicate
	_ = f.Close()
	if err == nil && c.RemoteAddr() == nil { // its client has reset it
		_ = c.Close()
		return nil, os.NewSyscallError("getpeername", syscall.ENOTCONN)
	}
	return c, err
}

// Close closes the connection, at once. Calls after the first do nothing.
func (s *Socket) Close() {
	s.goodbye()
	switch {
	case s.conn != nil:
		_ = s.conn.Close()
	case s.fd >= 0:
		_ = unix.Close(s.fd)
	}
	s.conn, s.fd = nil, -1
}

// Write writes p, and waits until the client's system has taken it, or until
// then.
func (s *Socket) Write(p []byte, until time.Time) error {
	p, err := s.seal(nil, p)
	if err == nil {
		err = s.writeAll(p, until)
	}
	if err != nil {
		s.cut()
	}
	return err
}

// writeAll is Write of what goes over the wire.
func (s *Socket) writeAll(p []byte, until time.Time) error {
	for s.conn == nil && len(p) > 0 {
		n, err := write(s.fd, p)
		p = p[n:]
		switch {
		case errors.Is(err, syscall.EAGAIN):
			if s.conn, err = s.Conn(); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	if len(p) == 0 {
		return nil
	}
	if err := s.conn.SetWriteDeadline(until); err != nil {
		return err
	}
	_, err := s.conn.Write(p)
	return err
}

// write writes what the system takes of p at once.
func write(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Write(fd, p)
		if err == unix.EINTR {
			continue
		}
		return max(n, 0), err
	}
}

// read reads what is there.
func read(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err == unix.EINTR {
			continue
		}
		return max(n, 0), err
	}
}

// read reads what is there, as far as that fits in p, and reports whether there may
// be more of which no event will tell. ended: an event has said that the other side
// has.
func (s *Socket) read(p []byte, ended bool) (n int, more bool, err error) {
	if s.crypt != nil {
		return s.crypt.read(p, ended)
	}
	n, err = read(s.fd, p)
	if err != nil && err != unix.EAGAIN {
		err = os.NewSyscallError("read", err)
	}
	return n, n == len(p) || ended, err
}

// peek is what a client's socket has to read.
type peek uint8

const (
	peekNothing peek = iota
	peekShort        // less than any data has over TLS: a goodbye, perhaps
	peekBytes
	peekEnd
)

// look looks at what there is to read, and takes nothing.
func (s *Socket) look() peek {
	var b [shortRecords]byte
	for {
		n, _, err := unix.Recvfrom(s.fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return peekNothing
		case err != nil || n == 0:
			return peekEnd
		case s.crypt != nil && n < len(b):
			return peekShort
		}
		return peekBytes
	}
}

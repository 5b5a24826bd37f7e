package relayloop

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pacer-dev/pacer/internal/h1client"
)

// shortRecords is more than the records of TLS have, in bytes, that are no data: a
// goodbye, or new keys. Whoever sends a request sends more.
const shortRecords = 40

// crypt is the TLS of a socket. It belongs to whom the socket belongs to.
type crypt struct {
	tls    *tls.Conn // over wire
	fd     *int      // of the socket
	sealed []byte    // what tls wrote, on its way
	more   bool      // the system may have more to read, of which no event will tell
	ended  bool      // so it has, in any case
	cut    bool      // the other side has a part of a record, behind which nothing can be written
}

// Encrypt has c encrypt what goes over s. It returns what c has to read from and
// write to from here on, in place of before, which s was taken from, and which still
// knows its addresses.
func (s *Socket) Encrypt(c *tls.Conn, before net.Conn) net.Conn {
	s.crypt = &crypt{tls: c, fd: &s.fd}
	return &wire{Conn: before, crypt: s.crypt}
}

// errUnsaid ends a stream whose backend takes nothing that TLS has to say to it.
var errUnsaid = errors.New("relayloop: the other side of TLS takes nothing")

// wire is what TLS reads from and writes to while a loop has its socket. It never
// waits, and what is written is kept for whoever had that encrypted.
type wire struct {
	net.Conn
	crypt *crypt
}

// Read implements net.Conn. What is there is read at once, and not looked for again
// where less came than was asked for: of what comes behind that an event tells.
func (w *wire) Read(p []byte) (int, error) {
	c := w.crypt
	if !c.more && !c.ended {
		return 0, h1client.NothingYet{}
	}
	n, err := read(*c.fd, p)
	c.more = n == len(p)
	switch {
	case err == unix.EAGAIN:
		return 0, h1client.NothingYet{}
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	w.crypt.sealed = append(w.crypt.sealed, p...)
	return len(p), nil
}

// Close implements net.Conn. The socket is closed by its owner.
func (w *wire) Close() error { return nil }

// SetDeadline implements net.Conn.
func (w *wire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// read is Socket.read. What TLS has to say to what it reads, new keys or what is wrong,
// is sent; these are few bytes, behind a request that was taken whole.
func (c *crypt) read(p []byte, ended bool) (n int, more bool, err error) {
	c.more, c.ended = true, ended
	defer func() {
		if len(c.sealed) == 0 {
			return
		}
		sent, _ := write(*c.fd, c.sealed)
		if sent < len(c.sealed) {
			c.cut = true
			if err == nil || err == unix.EAGAIN {
				err = errUnsaid
			}
		}
		c.sealed = nil
	}()
	for n < len(p) {
		m, err := c.tls.Read(p[n:])
		n += m
		switch {
		case err == nil:
			continue
		case err == h1client.NothingYet{}:
			if n == 0 {
				return 0, false, unix.EAGAIN
			}
			return n, false, nil
		case n > 0: // it says so again
			return n, true, nil
		case err == io.EOF:
			return 0, false, nil
		}
		return 0, false, err
	}
	return n, true, nil
}

// seal returns p as it goes over the wire, in room if it fits.
func (s *Socket) seal(room, p []byte) ([]byte, error) {
	c := s.crypt
	if c == nil || len(p) == 0 {
		return p, nil
	}
	c.sealed = room[:0]
	_, err := c.tls.Write(p)
	sealed := c.sealed
	c.sealed = nil
	return sealed, err
}

// cut notes that the other side may have a part of a record.
func (s *Socket) cut() {
	if s.crypt != nil {
		s.crypt.cut = true
	}
}

// goodbye says that nothing more is written, as far as that can be said at once.
func (s *Socket) goodbye() {
	c := s.crypt
	if c == nil || c.cut || s.conn == nil && s.fd < 0 {
		return
	}
	c.cut, c.sealed = true, nil
	if c.tls.CloseWrite() != nil {
		return
	}
	if s.conn == nil {
		_, _ = write(s.fd, c.sealed)
		return
	}
	if s.conn.SetWriteDeadline(time.Now().Add(cancelLimit)) == nil {
		_, _ = s.conn.Write(c.sealed)
	}
}

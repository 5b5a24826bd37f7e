package providers

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// answerWait is how long a write that failed is held back for the answer that
// its connection may still have. It has arrived by then, and only waits to be
// read.
const answerWait = time.Second

// answered is a connection whose answer is read although a write on it failed.
//
// A server that refuses a request by its head (413, 401) answers, closes, and
// its kernel resets the connection because of the body that nobody read. The
// answer has arrived before the reset and can be read, but net/http closes a
// connection at once when a write fails. So the failure is told when the
// connection is closed, by whoever read it to its end, or after answerWait.
type answered struct {
	net.Conn
	once   sync.Once
	closed chan struct{} // or about to be
}

func newAnswered(c net.Conn) *answered { return &answered{Conn: c, closed: make(chan struct{})} }

// Write implements net.Conn.
func (c *answered) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		timer := time.NewTimer(answerWait)
		defer timer.Stop()
		select {
		case <-c.closed:
		case <-timer.C:
		}
	}
	return n, err
}

// SetWriteDeadline implements net.Conn. TLS sets one for its goodbye, and
// net/http none: nothing is read from here on.
func (c *answered) SetWriteDeadline(t time.Time) error {
	c.end()
	return c.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn.
func (c *answered) Close() error {
	c.end()
	return c.Conn.Close()
}

func (c *answered) end() { c.once.Do(func() { close(c.closed) }) }

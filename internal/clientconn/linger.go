package clientconn

import "time"

// Bounds of what is thrown away behind an answer.
const (
	// lingerTime is from the answer to the end of the connection. It is below
	// the ten seconds after which a client that is refused is gone for certain.
	lingerTime = 8 * time.Second

	// told is how many bytes may still come where the client said how many it
	// sends, and it is no more than that. Most clients read no answer before they
	// have sent all.
	told = 256 << 20

	// untold is how many may come where it did not say, or said more.
	untold = 32 << 20
)

// lingers sets how many bytes are thrown away when the server closes the
// connection.
func (c *conn) lingers(most int64) { c.linger.Store(most) }

// Close implements net.Conn. Where an answer was given to a client that still
// sends, the connection lingers and is closed later.
func (c *conn) Close() error {
	if c.linger.Load() == 0 {
		return c.end()
	}
	c.startLingering()
	return nil
}

// CloseWrite is what net/http does before it waits for a client whose request
// it gave up to read the answer. It reads nothing more then.
func (c *conn) CloseWrite() error {
	if c.linger.Load() != 0 {
		c.startLingering()
		return nil
	}
	return c.closeWrite()
}

func (c *conn) closeWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// end closes the connection, whatever still comes.
func (c *conn) end() error {
	err := c.listener.connections.under(c).Close()
	c.listener.connections.closed(c)
	return err
}

func (c *conn) startLingering() {
	c.once.Do(func() {
		if c.listener.connections.lingers(c) {
			go c.discard()
		} else {
			_ = c.end()
		}
	})
}

// discard ends the connection from this side, throws away what the client still
// sends, and closes it when the client does. The buffer is small because there
// may be as many as there are connections.
func (c *conn) discard() {
	defer c.listener.connections.discarding.Done()
	defer func() { _ = c.end() }()
	_ = c.closeWrite()
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	var buf [4 << 10]byte
	for left := c.linger.Load(); left > 0; {
		n, err := c.Conn.Read(buf[:])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

package h1server

import (
	"sync"
	"syscall"
	"time"
)

// hangups tells connections that their clients are gone. It is safe for concurrent
// use.
type hangups interface {
	// watch looks after c from here on, until forget. It reports whether it can.
	watch(c *conn) bool
	forget(c *conn)

	// gone looks whether c's client is gone now. It is asked of those that are watched.
	gone(c *conn) bool

	close()
}

// hangup is what is known of the end of one connection's client.
type hangup struct {
	watched bool // by the server's hangups; else a goroutine waits, while a handler runs
	slot    int32
	raw     syscall.RawConn

	mu     sync.Mutex // guards what follows
	told   bool       // that something ended
	cancel func()     // ends the request that is answered; nil = none is, or its body is not whole
	wait   *waiter    // nil = no goroutine waits
	peeked [1]byte    // was read by it
	has    bool       // there is such a byte
}

// waiter is a goroutine that waits in a read for the client's end.
type waiter struct {
	done     chan struct{}
	disarmed bool // under the hangup's lock: the end of its read says nothing
}

// arm has cancel called when the client is gone. It is called when all of a request
// was read.
func (c *conn) arm(cancel func()) {
	h := &c.hangup
	if !h.watched {
		c.armWaiter(cancel)
		return
	}
	h.mu.Lock()
	h.cancel = cancel
	told := h.told
	h.mu.Unlock()
	if told && c.server.hangups.gone(c) {
		cancel()
	}
}

// armWaiter is arm where nobody else sees the end.
func (c *conn) armWaiter(cancel func()) {
	h := &c.hangup
	c.readBy(time.Time{})
	w := &waiter{done: make(chan struct{})}
	h.wait = w
	go func() {
		defer close(w.done)
		n, err := c.nc.Read(h.peeked[:])
		h.mu.Lock()
		defer h.mu.Unlock()
		h.has = n > 0
		if err != nil && !w.disarmed {
			cancel()
		}
	}()
}

// disarm returns when cancel is no longer called.
func (c *conn) disarm() {
	h := &c.hangup
	if h.watched {
		h.mu.Lock()
		h.cancel = nil
		h.mu.Unlock()
		return
	}
	if h.wait == nil {
		return
	}
	h.mu.Lock()
	h.wait.disarmed = true
	h.mu.Unlock()
	c.readBy(time.Unix(1, 0))
	<-h.wait.done
	h.wait = nil
	if h.has {
		h.has = false
		c.take(h.peeked[:])
	}
}

// tell is called when something of the connection has ended: what the client sends,
// or all of it. It looks whether the client is gone only once arm knows that it was
// told: else the rest of a body could be read between both, and nobody looked again.
func (c *conn) tell() {
	h := &c.hangup
	h.mu.Lock()
	h.told = true
	armed := h.cancel != nil
	h.mu.Unlock()
	if armed && c.server.hangups.gone(c) {
		c.cancel()
	}
}

// cancel ends the request that is answered, if hang-ups end it and disarm was not
// called.
func (c *conn) cancel() {
	h := &c.hangup
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cancel != nil {
		h.cancel()
	}
}

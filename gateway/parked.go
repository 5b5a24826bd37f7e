package gateway

import (
	"net"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/relayloop"
)

// parked is the connection of a client that waits in a loop for its next request,
// as the server's bound on connections sees it: it can be closed, from anywhere.
type parked struct {
	net.Conn // what it was before, which is closed, and still knows its addresses
	idle     relayloop.Idle
	client   *clientconn.Lent

	mu     sync.Mutex // guards what follows
	waits  bool       // a loop has it, or had
	closed bool
	next   net.Conn // what it has become; nil = it waits
}

// park has a loop wait for the client's next request, until then, and gives the
// connection back to its server with that.
func park(loops *relayloop.Loops, to *relayloop.Socket, client *clientconn.Lent, until time.Time) {
	p := &parked{Conn: client.Under(), client: client}
	p.idle = relayloop.Idle{Socket: to, Until: until, Then: p.then}
	if !client.Park(p) {
		to.Close()
		return
	}
	loops.Wait(&p.idle)
	p.mu.Lock()
	p.waits = true
	closed := p.closed
	p.mu.Unlock()
	if closed {
		p.idle.Close()
	}
}

// Close implements net.Conn.
func (p *parked) Close() error {
	p.mu.Lock()
	next, waits := p.next, p.waits && !p.closed
	p.closed = true
	p.mu.Unlock()
	switch {
	case next != nil:
		return next.Close()
	case waits:
		p.idle.Close()
	}
	return nil
}

// then is called by the loop.
func (p *parked) then(said []byte) {
	if said == nil {
		p.idle.Socket.Close()
		p.client.End()
		return
	}
	c, err := p.idle.Socket.Conn()
	if err != nil {
		p.client.End()
		return
	}
	p.mu.Lock()
	p.next = c
	closed := p.closed
	p.mu.Unlock()
	if closed {
		_ = c.Close()
		return
	}
	p.client.Back(c, said)
}

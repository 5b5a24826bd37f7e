package gateway

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections bounds how many connections clients have at once, so that some
// descriptors are left for the backends. At the bound the one that has idled for
// longest makes room for a new one; while none idles, a new one is closed.
//
// An idle connection is one between requests, or before its first byte. It is
// safe for concurrent use. Lock order: mu is a leaf.
type connections struct {
	most int // 0 = no bound

	mu     sync.Mutex // guards what follows
	open   int
	idle   list.List // of *conn, the one that has idled for longest first
	warned time.Time
}

// add takes a new connection into the count. false = there is no room for it.
// It returns one that has to be closed first, if there is one, and whether the
// bound is to be spoken of.
func (c *connections) add(now time.Time, n *conn) (evict *conn, ok, say bool) {
	if c.most == 0 {
		return nil, true, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= c.most {
		if say = now.Sub(c.warned) >= time.Minute; say {
			c.warned = now
		}
		front := c.idle.Front()
		if front == nil {
			return nil, false, say
		}
		evict = c.idle.Remove(front).(*conn)
		evict.place = nil
	}
	c.open++
	n.counted = true
	n.place = c.idle.PushBack(n)
	return evict, true, say
}

// busy takes a connection off the list of idle ones.
func (c *connections) busy(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.place != nil {
		c.idle.Remove(n.place)
		n.place = nil
	}
}

// idles puts a connection on it.
func (c *connections) idles(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.counted && n.place == nil {
		n.place = c.idle.PushBack(n)
	}
}

// closed takes a connection off the count. Calls after the first do nothing.
func (c *connections) closed(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !n.counted {
		return
	}
	n.counted = false
	c.open--
	if n.place != nil {
		c.idle.Remove(n.place)
		n.place = nil
	}
}

// follow is the hook of http.Server: what it says of a connection.
func (c *connections) follow(nc net.Conn, state http.ConnState) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	n, ok := nc.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.busy(n)
	case http.StateIdle:
		n.ours.Store(false)
		c.idles(n)
	}
}

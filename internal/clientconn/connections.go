package clientconn

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// connections bounds how many connections clients have at once, so that some
// descriptors are left for the backends. It is safe for concurrent use. Lock
// order: mu is a leaf.
//
// At the bound one makes room for a new one, in this order, and of each the one
// that has been there for longest:
//
//  1. it was answered, and lingers
//  2. a stranger's: it has shown no valid key, and has no answer running,
//     whether it idles or sends. A tenth of all is left to strangers while
//     there are others to turn to
//  3. of a client with a key, between two requests
//
// While all are at work for clients with a key, or answer, a new one is closed.
type connections struct {
	most int // 0 = no bound

	discarding sync.WaitGroup // the goroutines of those that linger

	mu        sync.Mutex // guards what follows
	open      int
	ended     bool      // nothing lingers any more
	lingering list.List // of *conn, as are the others; the first goes first
	strangers list.List
	idle      list.List // known ones
	warned    time.Time
}

// standing is what is known of a connection.
type standing struct {
	open      bool // counted
	active    bool // a request is under way
	known     bool // a valid key was shown
	answering bool // an answer runs
	lingering bool

	in *list.List // where the connection is; nil = it makes room for nobody
}

// list returns where a connection of that standing belongs.
func (c *connections) list(s standing) *list.List {
	switch {
	case !s.open:
		return nil
	case s.lingering:
		return &c.lingering
	case s.answering:
		return nil
	case !s.known:
		return &c.strangers
	case !s.active:
		return &c.idle
	}
	return nil
}

// settle puts n where it belongs. A stranger that begins a request keeps its
// place; c.mu is held.
func (c *connections) settle(n *conn, again bool) {
	to := c.list(n.standing)
	if n.standing.in == to {
		if to != nil && again {
			to.MoveToBack(n.place)
		}
		return
	}
	if n.standing.in != nil {
		n.standing.in.Remove(n.place)
	}
	n.standing.in, n.place = to, nil
	if to != nil {
		n.place = to.PushBack(n)
	}
}

// update changes what is known of n.
func (c *connections) update(n *conn, change func(*standing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&n.standing)
	c.settle(n, !n.standing.active)
}

// add takes a new connection into the count. false = there is no room for it.
// It returns one that has to be closed first, if there is one, and whether the
// bound is to be spoken of.
func (c *connections) add(now time.Time, n *conn) (evict *conn, ok, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > 0 && c.open >= c.most {
		if say = now.Sub(c.warned) >= time.Minute; say {
			c.warned = now
		}
		if evict = c.first(); evict == nil {
			return nil, false, say
		}
		evict.standing.in.Remove(evict.place)
		evict.standing.in, evict.place = nil, nil
	}
	c.open++
	n.standing.open = true
	c.settle(n, false)
	return evict, true, say
}

// first returns the connection that makes room next, nil if none does.
func (c *connections) first() *conn {
	from := &c.strangers
	switch {
	case c.lingering.Len() > 0:
		from = &c.lingering
	case c.strangers.Len() <= c.most/10 && c.idle.Len() > 0:
		from = &c.idle
	}
	if e := from.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

// closed takes a connection off the count. Calls after the first do nothing.
func (c *connections) closed(n *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !n.standing.open {
		return
	}
	n.standing.open = false
	c.open--
	c.settle(n, false)
}

// under is the connection below n, which is another one while n waits.
func (c *connections) under(n *conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.Conn
}

// lingers notes that n does, and reports whether it may.
func (c *connections) lingers(n *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || !n.standing.open {
		return false
	}
	n.standing.lingering = true
	c.settle(n, false)
	c.discarding.Add(1)
	return true
}

// endLingering returns all that linger. From here on none does.
func (c *connections) endLingering() (all []*conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for e := c.lingering.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*conn))
	}
	return all
}

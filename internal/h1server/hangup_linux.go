package h1server

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// epoll is hangups by one epoll that is told of ends alone. The runtime's own
// poller waits for it, so that no thread does.
//
// Lock order: mu, then a connection's hangup.
type epoll struct {
	file *os.File // nil = nothing was watched yet
	raw  syscall.RawConn
	over chan struct{} // run has returned

	mu    sync.Mutex // guards what follows, and file, raw and over until there is a file
	ended bool
	slots []slot
	free  []int32
}

// slot is a place in the table. An event that names an older generation is of a
// connection that has left.
type slot struct {
	generation int32
	conn       *conn
}

func newHangups() hangups { return &epoll{} }

// open opens the epoll, if nobody has. e.mu is held.
func (e *epoll) open() error {
	if e.file != nil {
		return nil
	}
	if e.ended {
		return os.ErrClosed
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), "epoll")
	if e.raw, err = file.SyscallConn(); err != nil {
		_ = file.Close()
		return err
	}
	e.file, e.over = file, make(chan struct{})
	go e.run()
	return nil
}

// run tells connections of their ends until the epoll is closed.
func (e *epoll) run() {
	defer close(e.over)
	var events [128]unix.EpollEvent
	for {
		n := 0
		err := e.raw.Read(func(fd uintptr) bool {
			var err error
			if n, err = unix.EpollWait(int(fd), events[:], 0); err != nil && err != unix.EINTR && err != unix.EAGAIN {
				panic(fmt.Sprintf("h1server: epoll_wait: %v", err)) // of a descriptor that is ours
			}
			return n > 0
		})
		if err != nil {
			return
		}
		for i := range n {
			e.tell(&events[i])
		}
	}
}

func (e *epoll) tell(ev *unix.EpollEvent) {
	e.mu.Lock()
	at := e.slots[ev.Fd]
	e.mu.Unlock()
	if at.generation == ev.Pad && at.conn != nil {
		at.conn.tell()
	}
}

// watch implements hangups.
func (e *epoll) watch(c *conn) bool {
	socket, ok := c.nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	e.mu.Lock()
	if e.open() != nil {
		e.mu.Unlock()
		return false
	}
	if len(e.free) == 0 {
		e.free = append(e.free, int32(len(e.slots)))
		e.slots = append(e.slots, slot{})
	}
	at := e.free[len(e.free)-1]
	e.free = e.free[:len(e.free)-1]
	e.slots[at].conn = c
	ev := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: at, Pad: e.slots[at].generation}
	e.mu.Unlock()
	c.hangup.slot, c.hangup.raw = at, raw
	if !e.control(raw, unix.EPOLL_CTL_ADD, &ev) {
		e.leave(at)
		return false
	}
	return true
}

// forget implements hangups.
func (e *epoll) forget(c *conn) {
	e.control(c.hangup.raw, unix.EPOLL_CTL_DEL, nil) // one that is closed is out already
	e.leave(c.hangup.slot)
}

func (e *epoll) leave(at int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slots[at].generation++
	e.slots[at].conn = nil
	e.free = append(e.free, at)
}

// control changes what the epoll knows of a connection, and reports whether it did.
func (e *epoll) control(of syscall.RawConn, op int, ev *unix.EpollEvent) bool {
	var did error
	err := e.raw.Control(func(own uintptr) {
		if err := of.Control(func(fd uintptr) { did = unix.EpollCtl(int(own), op, int(fd), ev) }); err != nil {
			did = err
		}
	})
	return err == nil && did == nil
}

// gone implements hangups: it looks at what there is to read, and takes nothing.
func (e *epoll) gone(c *conn) bool {
	gone := true // so it is where the connection is closed
	_ = c.hangup.raw.Control(func(fd uintptr) {
		var b [1]byte
		for {
			n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			if err == unix.EINTR {
				continue
			}
			gone = err == nil && n == 0 || err != nil && err != unix.EAGAIN
			return
		}
	})
	return gone
}

func (e *epoll) close() {
	e.mu.Lock()
	e.ended = true
	file := e.file
	e.mu.Unlock()
	if file != nil {
		_ = file.Close()
		<-e.over
	}
}

package relayloop

import (
	"container/list"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Loops are the loops of a program. They are safe for concurrent use.
type Loops struct {
	loops []*loop
	next  atomic.Uint32
}

// New returns count loops. They serve while Run runs. What was given to them
// waits until then.
func New(count int) (*Loops, error) {
	all := &Loops{}
	for range count {
		l, err := newLoop()
		if err != nil {
			all.close()
			return nil, err
		}
		all.loops = append(all.loops, l)
	}
	return all, nil
}

func (l *Loops) close() {
	for _, each := range l.loops {
		each.close()
	}
}

// Run serves until ctx ends. What is in the loops then leaves them, and so does
// what still comes.
func (l *Loops) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, each := range l.loops {
		running.Go(each.run)
	}
	<-ctx.Done()
	for _, each := range l.loops {
		each.post(message{kind: end})
	}
	running.Wait()
	l.close()
	return nil
}

// Choose chooses the loop that s is for. It is called once, before Relay.
func (l *Loops) Choose(s *Stream) { s.loop = l.pick() }

// Relay has the loop that was chosen pass s on. Both its sockets are that loop's
// from here on.
func (s *Stream) Relay() { s.loop.post(message{kind: begin, stream: s}) }

// Cancel has s leave its loop, if it is there, or as soon as it is. Anybody may
// call it, once a loop was chosen.
func (s *Stream) Cancel() {
	s.cancelled.Store(true)
	s.loop.post(message{kind: cancel, stream: s})
}

// Wait has a loop wait for what the client of i sends. Its socket is that loop's
// from here on.
func (l *Loops) Wait(i *Idle) {
	i.loop = l.pick()
	i.loop.post(message{kind: wait, idle: i})
}

// Close has i leave its loop, if it is still there. Anybody may call it, once i
// was given to Wait.
func (i *Idle) Close() { i.loop.post(message{kind: forget, idle: i}) }

func (l *Loops) pick() *loop { return l.loops[int(l.next.Add(1))%len(l.loops)] }

// spot is a place in the table of a loop. The zero value is none.
type spot struct {
	slot int32
	in   bool
}

// slot is one of a loop's table. An event that names an older generation is of
// somebody who has left.
type slot struct {
	generation int32
	stream     *Stream
	idle       *Idle
}

type kind uint8

const (
	begin kind = iota
	cancel
	wait
	forget
	end
)

// message is what others want of a loop.
type message struct {
	kind   kind
	stream *Stream
	idle   *Idle
}

// loop is one loop. But for the inbox all of it belongs to run.
//
// Lock order: mu is a leaf.
type loop struct {
	epoll, bell int // descriptors

	mu    sync.Mutex // guards what follows
	inbox []message
	over  bool // run has ended: who comes leaves at once

	slots  []slot
	free   []int32
	room   []byte    // what is read lies in it, with room for a frame
	rooms  [][]byte  // others like it, which parked streams have given back
	spare  []byte    // for chunks that do not lie in room
	sealed []byte    // for what is encrypted
	again  []*Stream // have more to read, as far as is known
	turn   []*Stream // the other buffer of again
	idles  list.List // of *Idle, in the order of their ends
	parked list.List // of *Stream, the one that was parked first comes first
	swept  time.Time
	ending bool
	events [256]unix.EpollEvent
	taken  []message
}

// Sides of a stream, in the lowest bit of what an event names.
const (
	fromSide int32 = 0
	toSide   int32 = 1
)

const bellName = -1 // what the bell's events name

func newLoop() (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return nil, os.NewSyscallError("eventfd", err)
	}
	l := &loop{epoll: epoll, bell: bell, room: make([]byte, frameHead+readRoom+frameTail)}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: bellName}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, bell, &ev); err != nil {
		l.close()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return l, nil
}

func (l *loop) close() {
	_ = unix.Close(l.epoll)
	_ = unix.Close(l.bell)
}

// post gives m to the loop. Behind its end, what comes leaves at once.
func (l *loop) post(m message) {
	l.mu.Lock()
	over, first := l.over, len(l.inbox) == 0
	if !over {
		l.inbox = append(l.inbox, m)
	}
	if first && !over {
		l.ring() // under the lock: the bell is closed behind over
	}
	l.mu.Unlock()
	if over {
		switch m.kind {
		case begin:
			m.stream.Handler.Left(Cancelled, nil)
		case wait:
			m.idle.Then(nil)
		}
	}
}

func (l *loop) ring() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(l.bell, one[:]) // it is full only when it rings
}

// run serves until it is told to end, and then until all have left.
func (l *loop) run() {
	for !l.ending {
		n, err := unix.EpollWait(l.epoll, l.events[:], l.timeout())
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("relayloop: epoll_wait: %v", err)) // of a descriptor that is ours
		}
		for i := range max(n, 0) {
			l.serve(&l.events[i])
		}
		l.readAgain()
		if l.idles.Len() > 0 || l.parked.Len() > 0 {
			l.sweep(time.Now())
		}
		if n > 0 {
			runtime.Gosched() // those that begin and end streams want their turn
		}
	}
	l.finish()
}

// sweepEvery is how often it is looked for those whose time is over.
const sweepEvery = 250 * time.Millisecond

// timeout is how long to wait for events, in milliseconds; -1 = for ever.
func (l *loop) timeout() int {
	if len(l.again) > 0 {
		return 0
	}
	if l.idles.Len() == 0 && l.parked.Len() == 0 {
		return -1
	}
	return int(sweepEvery / time.Millisecond)
}

// sweep ends what has waited for too long.
func (l *loop) sweep(now time.Time) {
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for e := l.idles.Front(); e != nil && !now.Before(e.Value.(*Idle).Until); e = l.idles.Front() {
		l.dismiss(e.Value.(*Idle), nil)
	}
	for e := l.parked.Front(); e != nil; {
		s := e.Value.(*Stream)
		e = e.Next()
		if !now.Before(s.state.until) {
			why := ClientSlow
			if s.state.cancelled {
				why = Cancelled
			}
			l.leave(s, why, nil)
		}
	}
}

// finish lets all go that are there, and all that come.
func (l *loop) finish() {
	l.mu.Lock()
	l.over = true
	rest := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, m := range rest {
		l.take(m)
	}
	for i := range l.slots {
		if s := l.slots[i].stream; s != nil {
			l.leave(s, Cancelled, nil)
		}
		if s := l.slots[i].idle; s != nil {
			l.dismiss(s, nil)
		}
	}
}

// serve takes one event. What panics in it ends its stream alone.
func (l *loop) serve(ev *unix.EpollEvent) {
	if ev.Fd == bellName {
		l.answer()
		return
	}
	at := &l.slots[ev.Fd>>1]
	if at.generation != ev.Pad {
		return
	}
	if i := at.idle; i != nil {
		l.hear(i, ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
		return
	}
	l.guarded(at.stream, func(s *Stream) {
		if ev.Fd&1 == fromSide {
			s.state.ended = s.state.ended || ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
			l.readFrom(s)
			return
		}
		l.clientSaid(s, ev.Events)
	})
}

// guarded does what is to be done for s. What panics in it ends s alone.
func (l *loop) guarded(s *Stream, do func(*Stream)) {
	defer func() {
		if p := recover(); p != nil {
			l.leave(s, Broken, fmt.Errorf("relayloop: panic: %v\n%s", p, debug.Stack()))
		}
	}()
	do(s)
}

// readAgain reads from those that have more, one after the other: each of them
// once, so that none keeps the others waiting.
func (l *loop) readAgain() {
	l.turn, l.again = l.again, l.turn[:0]
	for i, s := range l.turn {
		l.turn[i] = nil
		if s.state.queued = false; s.state.in {
			l.guarded(s, l.readFrom)
		}
	}
}

// queue has s read from again, before it is waited for.
func (l *loop) queue(s *Stream) {
	if !s.state.queued {
		s.state.queued = true
		l.again = append(l.again, s)
	}
}

// answer takes what others posted.
func (l *loop) answer() {
	var count [8]byte
	_, _ = unix.Read(l.bell, count[:])
	l.mu.Lock()
	l.taken, l.inbox = l.inbox, l.taken[:0]
	l.mu.Unlock()
	for i, m := range l.taken {
		l.taken[i] = message{}
		l.take(m)
	}
}

func (l *loop) take(m message) {
	switch m.kind {
	case begin:
		l.begin(m.stream)
	case cancel:
		l.cancel(m.stream, time.Now())
	case wait:
		l.await(m.idle)
	case forget:
		l.dismiss(m.idle, nil)
	case end:
		l.ending = true
	}
}

// place gives a slot to a stream or an idle connection.
func (l *loop) place(s *Stream, i *Idle) spot {
	if len(l.free) == 0 {
		l.free = append(l.free, int32(len(l.slots)))
		l.slots = append(l.slots, slot{})
	}
	last := len(l.free) - 1
	at := l.free[last]
	l.free = l.free[:last]
	l.slots[at].stream, l.slots[at].idle = s, i
	return spot{slot: at, in: true}
}

// vacate takes the slot back. What epoll has still to tell of it is nobody's.
func (l *loop) vacate(at *spot) {
	s := &l.slots[at.slot]
	s.generation++
	s.stream, s.idle = nil, nil
	l.free = append(l.free, at.slot)
	at.in = false
}

// watch says what of fd is waited for.
func (l *loop) watch(fd int, at spot, side int32, events uint32) error {
	ev := unix.EpollEvent{Events: events, Fd: at.slot<<1 | side, Pad: l.slots[at.slot].generation}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &ev))
}

// unwatch waits for nothing of fd. It fails only for one that is not waited for.
func (l *loop) unwatch(fd int) { _ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, fd, nil) }

func (l *loop) await(i *Idle) {
	i.spot = l.place(nil, i)
	if err := l.watch(i.Socket.fd, i.spot, toSide, unix.EPOLLIN); err != nil {
		l.dismiss(i, nil)
		return
	}
	i.place = l.idles.PushBack(i)
}

// hear reads what the client of i sent. Line ends alone, and what TLS has to say for
// itself, are no request: it is waited for as before.
func (l *loop) hear(i *Idle, ended bool) {
	n, _, err := i.Socket.read(l.room[:firstRoom], ended)
	switch {
	case err == unix.EAGAIN:
		return
	case err != nil, n == 0:
		l.dismiss(i, nil)
		return
	}
	if said := SkipEnds(l.room[:n], &i.ends); len(said) > 0 {
		l.dismiss(i, append([]byte(nil), said...))
	}
}

// dismiss takes i out of the loop. If it is not there, nothing happens.
func (l *loop) dismiss(i *Idle, said []byte) {
	if !i.spot.in {
		return
	}
	l.unwatch(i.Socket.fd)
	if i.place != nil {
		l.idles.Remove(i.place)
		i.place = nil
	}
	l.vacate(&i.spot)
	i.Then(said)
}

package relayloop

import (
	"container/list"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// state is what a loop knows of a stream. It belongs to the loop.
type state struct {
	spot
	pending []byte        // what the client has not taken yet; nil = it is not parked
	room    []byte        // the buffer of the loop that it lies in; nil = it has its own
	since   time.Time     // when what is pending came
	until   time.Time     // for how long it may be
	place   *list.Element // of parked
	last    bool          // no more is to be read
	ahead   bool          // the client is not watched
	ended   bool          // an event said that the backend has: it is read to its end
	queued  bool          // it is in again

	cancelled bool // it leaves when its client has taken what is pending
}

func (l *loop) begin(s *Stream) {
	if s.cancelled.Load() {
		s.Handler.Left(Cancelled, nil)
		return
	}
	s.state.spot = l.place(s, nil)
	s.state.ahead = !s.Watch
	// Edges alone: nothing has to be said to the system while a stream waits for its
	// client, and no end is told twice.
	err := l.watch(s.To.fd, s.state.spot, toSide, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLOUT|unix.EPOLLET)
	if err == nil {
		err = l.watch(s.From.fd, s.state.spot, fromSide, unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLET)
	}
	switch {
	case err != nil:
		l.leave(s, Broken, err)
	case s.From.crypt != nil:
		l.queue(s) // what TLS has read and nobody took
	}
}

// cancelLimit is how long a client may take for what was read before its stream was
// cancelled: less than what the end of the program waits for.
const cancelLimit = time.Second

// cancel has s leave, once its client has all of the chunk that it has a part of.
func (l *loop) cancel(s *Stream, now time.Time) {
	if !s.state.in || s.state.pending == nil {
		l.leave(s, Cancelled, nil)
		return
	}
	s.state.cancelled = true
	if end := now.Add(cancelLimit); end.Before(s.state.until) {
		s.state.until = end
	}
}

// leave takes s out of the loop. If it is not there, nothing happens.
func (l *loop) leave(s *Stream, why Why, err error) {
	if !s.state.in {
		return
	}
	if s.state.pending != nil {
		s.To.cut()
		if why == Cancelled {
			why = Torn
		}
	}
	l.unwatch(s.To.fd)
	l.unwatch(s.From.fd)
	l.unpark(s)
	l.vacate(&s.state.spot)
	s.Handler.Left(why, err)
}

// readFrom reads what the backend sent, once, and passes it on.
func (l *loop) readFrom(s *Stream) {
	if s.state.pending != nil {
		return // it is read from when the client has taken that
	}
	n, rest, err := s.From.read(l.room[frameHead:frameHead+readRoom], s.state.ended)
	switch {
	case err == unix.EAGAIN:
		return
	case err != nil:
		l.leave(s, SourceOver, err)
		return
	case n == 0:
		l.leave(s, SourceOver, io.EOF)
		return
	}
	if rest {
		l.queue(s) // of all else an edge will tell
	}
	now := time.Now()
	out, more := s.Handler.Arrived(now, l.room[frameHead:frameHead+n])
	s.state.last = !more
	if out, err = l.pack(s, out); err != nil {
		l.leave(s, ClientGone, err)
		return
	}
	l.pass(s, now, now, out)
	if cap(l.spare) > 2*readRoom {
		l.spare = nil
	}
	if cap(l.sealed) > 2*readRoom {
		l.sealed = nil
	}
}

// pack returns out as it goes over the wire.
func (l *loop) pack(s *Stream, out []byte) (wire []byte, err error) {
	if len(out) == 0 {
		return nil, nil
	}
	out, l.spare = frame(l.room, l.spare, out)
	if s.To.crypt == nil {
		return out, nil
	}
	l.sealed, err = s.To.seal(l.sealed, out)
	return l.sealed, err
}

// pass writes p, which came at since, and parks s where that would have to wait.
func (l *loop) pass(s *Stream, since, now time.Time, p []byte) {
	if len(p) > 0 {
		n, err := write(s.To.fd, p)
		if err != nil && err != unix.EAGAIN {
			l.leave(s, ClientGone, os.NewSyscallError("write", err))
			return
		}
		if n < len(p) {
			l.park(s, since, p[n:])
			return
		}
	}
	if s.state.pending != nil {
		l.unpark(s)
		l.queue(s) // what came meanwhile
	}
	s.Handler.Wrote(now)
	switch {
	case s.state.last:
		l.leave(s, Done, nil)
	case s.state.cancelled:
		l.leave(s, Cancelled, nil)
	}
}

// smallRest is how much is copied for a stream that is parked, in bytes. With more
// it takes the buffer itself.
const smallRest = 4 << 10

// park keeps rest until the client takes it.
func (l *loop) park(s *Stream, since time.Time, rest []byte) {
	if s.state.pending != nil {
		s.state.pending = rest // the end of what it was
		return
	}
	switch at := cap(l.room) - cap(rest); {
	case len(rest) <= smallRest:
		rest = append([]byte(nil), rest...)
	case at >= 0 && at < len(l.room) && &l.room[at] == &rest[0]:
		s.state.room, l.room = l.room, l.takeRoom()
	default:
		l.spare, l.sealed = nil, nil // it lies in one of them
	}
	s.state.pending, s.state.since, s.state.until = rest, since, since.Add(s.WriteLimit)
	s.state.place = l.parked.PushBack(s)
}

// keptRooms is how many buffers a loop keeps for those that are parked next.
const keptRooms = 32

func (l *loop) takeRoom() []byte {
	if last := len(l.rooms) - 1; last >= 0 {
		room := l.rooms[last]
		l.rooms = l.rooms[:last]
		return room
	}
	return make([]byte, frameHead+readRoom+frameTail)
}

// unpark gives up what is pending.
func (l *loop) unpark(s *Stream) {
	if s.state.pending == nil {
		return
	}
	if s.state.room != nil && len(l.rooms) < keptRooms {
		l.rooms = append(l.rooms, s.state.room)
	}
	l.parked.Remove(s.state.place)
	s.state.pending, s.state.room, s.state.place = nil, nil, nil
}

// clientSaid takes an event of the client's side.
func (l *loop) clientSaid(s *Stream, events uint32) {
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		l.leave(s, ClientGone, io.EOF)
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP) != 0 && !s.state.ahead {
		switch seen := s.To.look(); {
		case seen == peekEnd, seen == peekShort && events&unix.EPOLLRDHUP != 0:
			l.leave(s, ClientGone, io.EOF)
			return
		case seen == peekBytes:
			s.state.ahead = true
		}
	}
	if events&unix.EPOLLOUT != 0 && s.state.pending != nil {
		l.pass(s, s.state.since, time.Now(), s.state.pending)
	}
}

//go:build linux

package relayloop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pacer-dev/pacer/internal/must"
)

// patience bounds each wait for a condition.
const patience = time.Minute

func run(t *testing.T) *Loops {
	t.Helper()
	l := must.Get(New(2))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = l.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return l
}

// ends returns both of a connection.
func ends(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	far = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	near = must.Get(l.Accept())(t)
	_ = far.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { far.Close() })
	return near, far
}

// pair returns a socket, and the connection at its other end.
func pair(t *testing.T) (*Socket, *net.TCPConn) {
	t.Helper()
	near, far := ends(t)
	s := must.Get(Take(near))(t)
	near.Close()
	return s, far.(*net.TCPConn)
}

// way is how a stream left.
type way struct {
	why Why
	err error
}

// through is a handler that passes all on.
type through struct {
	stream Stream
	panics bool
	keeps  bool // the sockets, when it leaves
	most   int  // bytes after which it wants no more; 0 = none
	seen   int
	wrote  int
	left   chan way
}

func (h *through) Arrived(_ time.Time, p []byte) ([]byte, bool) {
	if h.panics {
		panic("on purpose")
	}
	h.seen += len(p)
	return p, h.most == 0 || h.seen < h.most
}

func (h *through) Wrote(time.Time) { h.wrote++ }

func (h *through) Left(why Why, err error) {
	if !h.keeps {
		h.stream.From.Close()
		h.stream.To.Close()
	}
	h.left <- way{why, err}
}

// relay has l pass on from backend to client.
func relay(t *testing.T, l *Loops, h *through) (backend, client *net.TCPConn) {
	t.Helper()
	h.stream.From, backend = pair(t)
	h.stream.To, client = pair(t)
	h.start(l)
	return backend, client
}

// start has l pass on what is between its two sides.
func (h *through) start(l *Loops) {
	h.left = make(chan way, 1)
	h.stream.Handler, h.stream.Watch = h, true
	if h.stream.WriteLimit == 0 {
		h.stream.WriteLimit = patience
	}
	l.Choose(&h.stream)
	h.stream.Relay()
}

func (h *through) wantLeft(t *testing.T, why Why) way {
	t.Helper()
	select {
	case w := <-h.left:
		if w.why != why {
			t.Fatalf("it left by %d (%v), want %d", w.why, w.err, why)
		}
		return w
	case <-time.After(patience):
		t.Fatalf("it did not leave, want %d", why)
	}
	return way{}
}

// All bytes come through, in order and framed, whatever their number and however
// often the client lets them wait; an end does not overtake them.
func TestAllBytesComeThrough(t *testing.T) {
	l := run(t)
	for _, size := range []int{1, 1000, readRoom - 1, readRoom, readRoom + 1, 10 * readRoom, 8 << 20} {
		for _, how := range []string{"closes", "resets behind all", "stays"} {
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(i * 7 >> 3)
			}
			h := &through{}
			if how == "stays" {
				h.most = size
			}
			backend, client := relay(t, l, h)
			var sending sync.WaitGroup
			sending.Go(func() {
				_, _ = backend.Write(want)
				if how == "closes" {
					backend.Close()
				}
			})
			got := make([]byte, size)
			from := httputil.NewChunkedReader(client)
			if _, err := io.ReadFull(from, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, it %s: they do not come through (%v)", size, how, err)
			}
			sending.Wait()
			switch how {
			case "closes":
				if w := h.wantLeft(t, SourceOver); w.err != io.EOF {
					t.Errorf("%d bytes: it left with %v, want io.EOF", size, w.err)
				}
			case "stays":
				h.wantLeft(t, Done)
			default:
				_ = backend.SetLinger(0)
				backend.Close()
				if w := h.wantLeft(t, SourceOver); w.err == nil || w.err == io.EOF {
					t.Errorf("%d bytes: it left with %v, want a reset", size, w.err)
				}
			}
			if more, _ := io.ReadAll(from); len(more) > 0 {
				t.Errorf("%d bytes: there are %d more", size, len(more))
			}
		}
	}
}

// A client that leaves ends its stream, though the backend say nothing; one that
// sends ahead does not, and what it sent stays in its socket.
func TestClientsThatLeaveOrSendAhead(t *testing.T) {
	l := run(t)
	for _, ahead := range []bool{false, true} {
		for _, reset := range []bool{false, true} {
			h := &through{}
			backend, client := relay(t, l, h)
			if ahead {
				_, _ = client.Write([]byte("more"))
				_, _ = backend.Write([]byte("x"))
				must.Get(io.ReadFull(client, make([]byte, len("1\r\nx\r\n"))))(t)
				if reset {
					_ = client.SetLinger(0)
					client.Close()
					h.wantLeft(t, ClientGone)
					continue
				}
				_ = client.CloseWrite() // it waits for its answers
				_, _ = backend.Write([]byte("y"))
				backend.Close()
				if got, err := io.ReadAll(client); string(got) != "1\r\ny\r\n" && err == nil {
					t.Errorf("it got %q", got)
				}
				h.wantLeft(t, SourceOver)
				continue
			}
			if reset {
				_ = client.SetLinger(0)
			}
			client.Close()
			h.wantLeft(t, ClientGone)
			if _, err := backend.Read(make([]byte, 1)); err == nil {
				t.Error("the backend was told something")
			}
		}
	}
}

// One that blocks stops nobody, and is given up when its time is over. Another's
// panic ends that stream alone.
func TestNobodyStopsTheOthers(t *testing.T) {
	l := run(t)
	slow := &through{}
	slow.stream.WriteLimit = 2 * sweepEvery
	backend, _ := relay(t, l, slow)
	var sending sync.WaitGroup
	sending.Go(func() { _, _ = io.Copy(backend, endless{}) })
	broken := &through{panics: true}
	other, _ := relay(t, l, broken)
	_, _ = other.Write([]byte("x"))
	broken.wantLeft(t, Broken)
	for range 10 {
		h := &through{most: 1}
		backend, client := relay(t, l, h)
		_, _ = backend.Write([]byte("x"))
		must.Get(io.ReadFull(client, make([]byte, len("1\r\nx\r\n"))))(t)
		h.wantLeft(t, Done)
	}
	slow.wantLeft(t, ClientSlow)
	backend.Close()
	sending.Wait()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A stream leaves once, whoever wants it to, and whenever.
func TestCancel(t *testing.T) {
	l := run(t)
	for i := range 200 {
		h := &through{}
		backend, client := relay(t, l, h)
		var all sync.WaitGroup
		for range 3 {
			all.Go(h.stream.Cancel)
		}
		all.Go(func() { backend.Close() })
		all.Go(func() { client.Close() })
		all.Wait()
		select {
		case <-h.left:
		case <-time.After(patience):
			t.Fatalf("stream %d does not leave", i)
		}
		select {
		case <-h.left:
			t.Fatalf("stream %d left twice", i)
		default:
		}
	}
	never := &through{left: make(chan way, 1)}
	never.stream.From, _ = pair(t)
	never.stream.To, _ = pair(t)
	never.stream.Handler = never
	l.Choose(&never.stream)
	never.stream.Cancel()
	never.stream.Relay()
	never.wantLeft(t, Cancelled)
}

// Who is cancelled while its client has a part of a chunk leaves when the client has
// the rest, or by Torn when that takes it for too long.
func TestCancelledWithinAChunk(t *testing.T) {
	for _, reads := range []bool{true, false} {
		l := must.Get(newLoop())(t)
		var backend, client *net.TCPConn
		h := &through{left: make(chan way, 1), keeps: true}
		s := &h.stream
		s.From, backend = pair(t)
		s.To, client = pair(t)
		s.Handler, s.WriteLimit, s.loop = h, patience, l
		l.begin(s)
		var sending sync.WaitGroup
		sending.Go(func() {
			for _, err := backend.Write(make([]byte, readRoom)); err == nil; _, err = backend.Write(make([]byte, readRoom)) {
			}
		})
		for s.state.pending == nil {
			l.readFrom(s)
		}
		l.take(message{kind: cancel, stream: s})
		l.readAgain() // it is not read from any more
		arrived := h.seen
		if len(h.left) > 0 {
			t.Fatal("it left within a chunk")
		}
		if !reads {
			l.sweep(time.Now().Add(cancelLimit - time.Millisecond))
			if len(h.left) > 0 {
				t.Fatal("it left before its client had the time for the rest")
			}
			l.swept = time.Time{}
			l.sweep(time.Now().Add(2 * cancelLimit))
			h.wantLeft(t, Torn)
		} else {
			got := make(chan []byte, 1)
			go func() {
				b, _ := io.ReadAll(httputil.NewChunkedReader(client))
				got <- b
			}()
			for len(h.left) == 0 {
				l.clientSaid(s, unix.EPOLLOUT)
			}
			h.wantLeft(t, Cancelled)
			if err := s.To.Write([]byte("5\r\nerror\r\n0\r\n\r\n"), time.Now().Add(patience)); err != nil {
				t.Error(err)
			}
			if b := <-got; len(b) != arrived+5 || !bytes.HasSuffix(b, []byte("error")) {
				t.Errorf("%d bytes came, want %d and what was written behind", len(b), arrived)
			}
		}
		if l.parked.Len() > 0 {
			t.Error("it is still parked")
		}
		s.From.Close()
		s.To.Close()
		sending.Wait()
		l.close()
	}
}

// An event of one that has left in the same batch is not another one's, although
// that has its slot, and its descriptor.
func TestAnEventOfOneThatHasLeft(t *testing.T) {
	l := must.Get(newLoop())(t)
	defer l.close()
	first := &through{left: make(chan way, 1)}
	first.stream.From, _ = pair(t)
	first.stream.To, _ = pair(t)
	first.stream.Handler, first.stream.loop = first, l
	l.begin(&first.stream)
	at := first.stream.state.spot
	event := l.events[0]
	event.Fd, event.Pad, event.Events = at.slot<<1|fromSide, l.slots[at.slot].generation, 1
	l.leave(&first.stream, Cancelled, nil)

	second := &through{left: make(chan way, 1)}
	var backend *net.TCPConn
	second.stream.From, backend = pair(t)
	second.stream.To, _ = pair(t)
	second.stream.Handler, second.stream.loop = second, l
	l.begin(&second.stream)
	if second.stream.state.slot != at.slot {
		t.Fatalf("it has slot %d, want %d again", second.stream.state.slot, at.slot)
	}
	_, _ = backend.Write([]byte("x"))
	l.serve(&event)
	if second.seen != 0 {
		t.Error("it took the event of another one")
	}
	l.leave(&second.stream, Cancelled, nil)
}

// A connection that waits is given back when its client speaks, leaves, or is told
// to go.
func TestIdle(t *testing.T) {
	l := run(t)
	for name, c := range map[string]struct {
		do    func(i *Idle, client *net.TCPConn)
		until time.Duration
		want  string
	}{
		"speaks": {func(_ *Idle, c *net.TCPConn) { _, _ = c.Write([]byte("x")) }, patience, "x"},
		"has line ends first": {func(_ *Idle, c *net.TCPConn) {
			_, _ = c.Write([]byte("\r\n"))
			time.Sleep(10 * time.Millisecond) // two reads of a real socket, mostly; one read gives the same
			_, _ = c.Write([]byte("\r\nx"))
		}, patience, "x"},
		"leaves":       {func(_ *Idle, c *net.TCPConn) { c.Close() }, patience, ""},
		"says no word": {func(*Idle, *net.TCPConn) {}, time.Millisecond, ""},
		"has to go":    {func(i *Idle, _ *net.TCPConn) { i.Close() }, patience, ""},
	} {
		s, client := pair(t)
		said := make(chan []byte, 1)
		i := &Idle{Socket: s, Until: time.Now().Add(c.until), Then: func(sent []byte) { said <- sent }}
		l.Wait(i)
		c.do(i, client)
		select {
		case got := <-said:
			if string(got) != c.want {
				t.Errorf("one that %s: said %q, want %q", name, got, c.want)
			}
		case <-time.After(patience):
			t.Fatalf("one that %s is not given back", name)
		}
		s.Close()
	}
}

// The end of the loops lets all go, also those who come later.
func TestTheEndOfTheLoops(t *testing.T) {
	l := must.Get(New(1))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	h := &through{}
	relay(t, l, h)
	cancel()
	h.wantLeft(t, Cancelled)
	must.Do(t, <-done)
	late := &through{}
	relay(t, l, late)
	late.wantLeft(t, Cancelled)
}

// A socket writes all, also when it has to wait, and only until then.
func TestSocketWrites(t *testing.T) {
	s, far := pair(t)
	defer s.Close()
	want := bytes.Repeat([]byte("0123456789"), 1<<20)
	var reading sync.WaitGroup
	var got []byte
	reading.Go(func() {
		got = make([]byte, len(want))
		_, _ = io.ReadFull(far, got)
	})
	must.Do(t, s.Write(want, time.Now().Add(patience)))
	reading.Wait()
	if !bytes.Equal(got, want) {
		t.Error("other bytes came")
	}
	if err := s.Write(bytes.Repeat(want, 10), time.Now().Add(-time.Second)); !errors.Is(err, context.DeadlineExceeded) && err == nil {
		t.Error("a write into a full socket did not end")
	}
}

func TestFrame(t *testing.T) {
	room := make([]byte, frameHead+readRoom+frameTail)
	for _, n := range []int{1, 15, 16, 4095, readRoom} {
		for _, skip := range []int{0, 1, n / 2} {
			p := room[frameHead : frameHead+n]
			for i := range p {
				p[i] = byte(i)
			}
			out := bytes.Clone(p[skip:])
			for where, lies := range map[string][]byte{"there": p[skip:], "elsewhere": out} {
				if len(lies) == 0 {
					continue
				}
				chunk, _ := frame(room, nil, lies)
				got, err := io.ReadAll(io.LimitReader(httputil.NewChunkedReader(bytes.NewReader(append(chunk, "0\r\n\r\n"...))), int64(len(out))+1))
				if err != nil || !bytes.Equal(got, out) {
					t.Errorf("%d bytes, %s: %d come out (%v)", len(out), where, len(got), err)
				}
				copy(p[skip:], out)
			}
		}
	}
}

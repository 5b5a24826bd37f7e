package h1server

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Front serves connections as its http.Server would. It is safe for concurrent use.
type Front struct {
	http    *http.Server
	hangups hangups
	ending  atomic.Bool // Shutdown or Close was called

	serving sync.Once
	looked  sync.Once // hangups were closed
	others  others    // on their way to net/http

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]bool
	conns     map[*conn]bool
}

// New returns a server in front of s, which serves what is not plain. Of s these
// hold here, too: Handler, ConnContext, ConnState, ReadHeaderTimeout, IdleTimeout and
// ErrorLog. Handler is required. Who returned it calls Shutdown or Close at the end.
func New(s *http.Server) (*Front, error) {
	if s.Handler == nil {
		return nil, errors.New("h1server: Handler is required")
	}
	own := &Front{http: s, hangups: newHangups(), listeners: map[net.Listener]bool{}, conns: map[*conn]bool{}}
	own.others.bell.L = &own.others.mu
	return own, nil
}

// Unreader is a connection that takes back what was read of it. Those that are none
// are served by net/http through one.
type Unreader interface {
	// Unread puts p before what comes. The first read deadline that is set behind it
	// is by, if that is earlier; zero = it is as it is set.
	Unread(p []byte, by time.Time)
}

// Serve serves what l accepts until that ends. It returns http.ErrServerClosed
// behind Shutdown and Close.
func (s *Front) Serve(l net.Listener) error {
	defer l.Close()
	if !s.track(l) {
		return http.ErrServerClosed
	}
	s.serving.Do(func() {
		s.others.addr = l.Addr()
		go func() { _ = s.http.Serve(&s.others) }()
	})
	wait := time.Duration(0)
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
			s.begin(nc)
			continue
		case s.ending.Load():
			return http.ErrServerClosed
		}
		var passing interface{ Temporary() bool }
		if !errors.As(err, &passing) || !passing.Temporary() {
			return err
		}
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		s.logf("http: Accept error: %v; retrying in %v", err, wait)
		<-time.After(wait)
	}
}

func (s *Front) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() {
		return false
	}
	s.listeners[l] = true
	return true
}

// begin serves nc.
func (s *Front) begin(nc net.Conn) {
	c := &conn{server: s, nc: nc, ctx: context.Background(), since: time.Now()}
	if a := nc.RemoteAddr(); a != nil { // a socket that its client has reset has none
		c.remote = a.String()
	}
	if s.http.ConnContext != nil {
		c.ctx = s.http.ConnContext(c.ctx, nc)
	}
	s.state(nc, http.StateNew)
	s.mu.Lock()
	refused := s.ending.Load()
	if !refused {
		s.conns[c] = true
		c.hangup.watched = s.hangups.watch(c)
	}
	s.mu.Unlock()
	if refused {
		_ = nc.Close()
		return
	}
	go c.serve()
}

func (s *Front) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// handOn gives c to net/http, with what was read of it.
func (s *Front) handOn(c *conn) {
	c.leave()
	by := time.Time{}
	if !c.served { // its first head has the time that it was given, and not that time anew
		by = c.applied
	}
	_ = c.nc.SetDeadline(time.Time{}) // the last request's
	ahead := append([]byte(nil), c.in...)
	c.in = nil
	c.letGo()
	nc := c.nc
	if u, ok := nc.(Unreader); ok {
		u.Unread(ahead, by)
	} else {
		nc = &unread{Conn: nc, ahead: ahead, by: by}
	}
	if !s.others.put(nc) {
		_ = nc.Close()
	}
}

// unread is a connection of which something was read.
type unread struct {
	net.Conn
	ahead []byte
	by    time.Time // see Unreader; zero = it was heeded
}

// SetReadDeadline implements net.Conn.
func (u *unread) SetReadDeadline(t time.Time) error {
	t, u.by = sooner(t, u.by), time.Time{}
	return u.Conn.SetReadDeadline(t)
}

// sooner is the earlier of two deadlines, of which zero is none.
func sooner(t, by time.Time) time.Time {
	if by.IsZero() || !t.IsZero() && t.Before(by) {
		return t
	}
	return by
}

// Read implements net.Conn.
func (u *unread) Read(p []byte) (int, error) {
	if len(u.ahead) > 0 {
		n := copy(p, u.ahead)
		u.ahead = u.ahead[n:]
		return n, nil
	}
	return u.Conn.Read(p)
}

func (s *Front) idle() time.Duration {
	if s.http.IdleTimeout != 0 {
		return s.http.IdleTimeout
	}
	return s.http.ReadTimeout
}

func (s *Front) state(nc net.Conn, is http.ConnState) {
	if s.http.ConnState != nil {
		s.http.ConnState(nc, is)
	}
}

func (s *Front) logf(format string, args ...any) {
	if s.http.ErrorLog != nil {
		s.http.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// Shutdown accepts no more, closes what waits for a request, and returns when all
// answers have ended, or ctx has. What handlers took is theirs.
func (s *Front) Shutdown(ctx context.Context) error {
	s.end()
	s.closeIdle(time.Now())
	err := s.http.Shutdown(ctx)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for err == nil {
		if s.closeIdle(time.Now()) == 0 {
			s.looked.Do(s.hangups.close)
			return nil
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-poll.C:
		}
	}
	return err
}

// closeIdle closes what waits for a request, and returns how many connections there
// were. A new one has the time for its first request that net/http gives it.
func (s *Front) closeIdle(now time.Time) int {
	const patience = 5 * time.Second
	return s.each(func(c *conn) {
		if c.phase.CompareAndSwap(phaseIdle, phaseClosed) || now.Sub(c.since) > patience && c.phase.CompareAndSwap(phaseNew, phaseClosed) {
			_ = c.nc.Close()
		}
	})
}

// Close closes all connections but those that handlers took.
func (s *Front) Close() error {
	s.end()
	err := s.http.Close()
	s.each(func(c *conn) {
		_ = c.nc.Close()
		c.cancel() // a descriptor that is closed tells nobody
	})
	s.looked.Do(s.hangups.close)
	return err
}

// end accepts no more.
func (s *Front) end() {
	s.mu.Lock()
	s.ending.Store(true)
	all := s.listeners
	s.listeners = map[net.Listener]bool{}
	s.mu.Unlock()
	for l := range all {
		_ = l.Close()
	}
	_ = s.others.Close()
}

// each does what is to be done for each connection, and returns how many there are.
func (s *Front) each(do func(*conn)) int {
	s.mu.Lock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		do(c)
	}
	return len(all)
}

// others is a listener of connections that net/http is to serve.
type others struct {
	addr net.Addr

	mu    sync.Mutex // guards what follows
	bell  sync.Cond
	ended bool
	all   []net.Conn
}

// put reports whether somebody will serve nc.
func (o *others) put(nc net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return false
	}
	o.all = append(o.all, nc)
	o.bell.Signal()
	return true
}

// Accept implements net.Listener.
func (o *others) Accept() (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.all) == 0 && !o.ended {
		o.bell.Wait()
	}
	if o.ended {
		return nil, net.ErrClosed
	}
	nc := o.all[0]
	o.all[0] = nil
	if o.all = o.all[1:]; len(o.all) == 0 {
		o.all = nil
	}
	return nc, nil
}

// Close implements net.Listener.
func (o *others) Close() error {
	o.mu.Lock()
	rest := o.all
	o.ended, o.all = true, nil
	o.bell.Broadcast()
	o.mu.Unlock()
	for _, nc := range rest {
		_ = nc.Close()
	}
	return nil
}

// Addr implements net.Listener.
func (o *others) Addr() net.Addr { return o.addr }

package picker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// Options configures a Server.
type Options struct {
	// Handler serves the requests. Required. A request whose context has a
	// providers.Carried is sent to its backend by Envoy.
	Handler http.Handler

	// Log is required.
	Log *slog.Logger

	// Streams is how many requests there may be at once. Default: 20000.
	Streams int

	// Body is how large the body of a request may be, in bytes. It bounds a
	// message. Default: 32 MiB.
	Body int64

	// FailClosed: a request that cannot be judged, since there are too many or the
	// server ends, is refused. Otherwise Envoy is told to send it where it likes.
	FailClosed bool

	// Ready says whether requests can be served, to those who ask the health
	// service. Required.
	Ready func() bool

	// Objectives are the classes of the objectives that requests may name.
	Objectives map[string]string
}

// Server is the endpoint picker. It is safe for concurrent use.
type Server struct {
	extproc.UnimplementedExternalProcessorServer
	o        Options
	grpc     *grpc.Server
	running  atomic.Int64
	draining atomic.Bool
	work     sync.WaitGroup // receiving goroutines
	told     sync.Map       // what was warned of: a word → time.Time
}

const (
	defaultStreams = 20_000
	defaultBody    = 32 << 20

	// messageSlack is what a message may have beyond the largest body, in bytes: what
	// stands beside it, and what Envoy's own bound on bodies is above ours. A message
	// that is larger ends its stream, and where Envoy fails open the request passes.
	messageSlack = 4 << 20

	// handshake is how long a new connection may take to say what it speaks.
	handshake = 10 * time.Second

	// alive is how often a silent Envoy is asked whether it is there, and aliveFor
	// how long it may take to say so.
	alive    = 30 * time.Second
	aliveFor = 10 * time.Second
)

// New checks o and returns a Server. It starts nothing.
func New(o Options) (*Server, error) {
	switch {
	case o.Handler == nil:
		return nil, errors.New("picker: Handler is required")
	case o.Log == nil:
		return nil, errors.New("picker: Log is required")
	case o.Ready == nil:
		return nil, errors.New("picker: Ready is required")
	case o.Streams < 0, o.Body < 0:
		return nil, errors.New("picker: Streams and Body may not be negative")
	}
	o.Streams, o.Body = cmp.Or(o.Streams, defaultStreams), cmp.Or(o.Body, defaultBody)
	s := &Server{o: o}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(int(o.Body)+messageSlack),
		grpc.MaxConcurrentStreams(uint32(o.Streams)+spareStreams),
		grpc.ConnectionTimeout(handshake),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: alive, Timeout: aliveFor}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	extproc.RegisterExternalProcessorServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, &health{s: s})
	return s, nil
}

// spareStreams is how many streams of a connection are open beyond those that are
// served: they are told so, where they would wait unseen.
const spareStreams = 1024

// Serve takes connections from l until Shutdown or Close.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Drain has the health service say that nobody should come any more.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown takes no more streams, and returns when those under way are over, or
// with ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.grpc.GracefulStop()
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err() // Close ends the goroutine too
	}
}

// Close ends all streams and connections, and waits for what serves them.
func (s *Server) Close() error {
	s.Drain()
	s.grpc.Stop()
	s.work.Wait()
	return nil
}

// Running is how many requests are under way.
func (s *Server) Running() int64 { return s.running.Load() }

// Process serves one HTTP request, from its head to the end of its answer.
func (s *Server) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	n := s.running.Add(1)
	defer s.running.Add(-1)
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(context.Canceled)
	lost := make(chan struct{})
	c := &call{
		s: s, stream: stream, ctx: ctx, inbox: make(chan *extproc.ProcessingRequest),
		lose: sync.OnceFunc(func() { close(lost) }),
	}
	s.work.Go(func() { c.receive(cancel) })
	over := make(chan error, 1)
	s.work.Go(func() { over <- c.process(n) })
	select {
	case err := <-over:
		return err
	case <-lost: // with the end of the stream the write that hangs ends too
		return status.Error(codes.DeadlineExceeded, "a write took longer than timeouts.write")
	}
}

// process serves the request, the n-th that is under way.
func (c *call) process(n int64) error {
	s := c.s
	first, err := c.next(c.ctx)
	if err != nil {
		return nil // Envoy opened a stream and has nothing to say
	}
	if first.GetRequestHeaders() == nil {
		return c.malformed("a stream begins with the head of its request")
	}
	c.begin(first)
	switch {
	case n > int64(s.o.Streams):
		return c.unjudged("there are too many requests under way")
	case c.observes:
		return c.malformed("observability_mode shows a request and lets nobody decide")
	}
	return c.serve()
}

// malformed ends a stream that is none of the protocol. Envoy does as its
// failure_mode_allow says.
func (c *call) malformed(what string) error {
	c.s.warn("malformed", "a stream of Envoy was ended: "+what)
	return status.Error(codes.InvalidArgument, what)
}

// warnEvery is how often the same thing is said.
const warnEvery = time.Minute

// warn says text, once in a while for each word.
func (s *Server) warn(word, text string) {
	now := time.Now()
	if last, ok := s.told.Load(word); ok && now.Sub(last.(time.Time)) < warnEvery {
		return
	}
	s.told.Store(word, now)
	s.o.Log.Warn(text)
}

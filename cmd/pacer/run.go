package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/internal/clientconn"
)

// Bounds of a connection that are the same everywhere: none of them limits a
// stream.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 120 * time.Second

	// Of the admin port: a whole request, and the answer to it but for events,
	// which set deadlines of their own. Its connections are fewer than half of
	// spareDescriptors, and pages are a part of them.
	adminRead        = 10 * time.Second
	adminWrite       = 30 * time.Second
	adminConnections = 200

	// endTimeout is how long requests that are broken off have to say so to
	// their clients before the connections are closed.
	endTimeout = 2 * time.Second

	// settleTimeout bounds how long requests that were cut have to settle.
	settleTimeout = 5 * time.Second
)

// run opens both ports, starts every loop, calls ready with the addresses, and
// returns when ctx ends or one part fails. At the end no request is taken any
// more, after timeouts.linger if ctx ended by SIGTERM; running ones have
// timeouts.drain, and what was learned goes out last.
func (p *program) run(ctx context.Context, ready func(dataURL, adminURL string)) error {
	defer func() {
		for _, c := range p.close {
			c()
		}
	}()
	cfg := p.fleet.Config()
	requests := &inFlight{handler: p.gateway.Handler(), looped: p.gateway.Looped}
	data, err := p.open(cfg, requests)
	if err != nil {
		return err
	}
	defer data.close()
	adminListener, err := p.options.listenTCP(cfg.Admin.Listen)
	if err != nil {
		return fmt.Errorf("admin port: %w; choose another address with admin.listen: or --admin", err)
	}
	defer adminListener.Close()
	p.start(ctx)

	adm := p.server(p.admin, 64<<10)
	adm.ReadTimeout, adm.WriteTimeout = adminRead, adminWrite
	adminClients := clientconn.Listen(adm, adminListener, clientconn.Options{Name: "admin", Most: adminConnections, Log: p.log})
	defer adminClients.End()
	loopCtx, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoops()
	g, gctx := errgroup.WithContext(loopCtx)
	for _, loop := range p.loops {
		g.Go(func() error { return ignoreCanceled(loop(gctx)) })
	}
	g.Go(func() error { return ignoreClosed(data.server.Serve(data.listener)) })
	if data.returned != nil {
		g.Go(func() error { return ignoreClosed(data.server.Serve(data.returned)) })
	}
	g.Go(func() error { return ignoreClosed(adm.Serve(adminClients)) })
	ready(data.at, "http://"+adminListener.Addr().String())

	g.Go(func() error {
		select {
		case <-ctx.Done():
		case <-gctx.Done():
		}
		p.drain(data.server, adm, requests, lingers(ctx))
		stopLoops()
		return nil
	})
	return g.Wait()
}

// fromHere is where a client on this machine reaches a listener.
func fromHere(scheme string, a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return scheme + net.JoinHostPort("127.0.0.1", port)
	}
	return scheme + a.String()
}

// server returns an HTTP server without limits that would cut a stream.
func (p *program) server(h http.Handler, maxHeader int) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * is a request like any other: it gets our answer.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
}

// lingers reports whether ctx ended in a way that a load balancer has to notice:
// a person at a terminal does not wait for one.
func lingers(ctx context.Context) bool {
	var told toldToStop
	return errors.As(context.Cause(ctx), &told) && told.signal == syscall.SIGTERM
}

// drain lets running requests end, at most timeouts.drain, then breaks them off.
// With linger, those that come in the first part of that time are still served.
// All have settled when it returns, so that the loops, which end after it, hand
// on what the last of them taught.
func (p *program) drain(data portServer, adm *http.Server, requests *inFlight, linger bool) {
	timeouts := p.fleet.Config().Timeouts
	over := time.Now().Add(timeouts.Drain)
	p.systemd.stopping(timeouts.Drain + endTimeout + settleTimeout + flushTimeout)
	p.gateway.Drain()
	p.log.Info("stopping", "requests", requests.count(), "drain", timeouts.Drain.String())
	if linger {
		<-time.After(min(timeouts.Linger, timeouts.Drain/2))
	}
	ctx, cancel := context.WithDeadline(context.Background(), over)
	defer cancel()
	err := data.Shutdown(ctx)
	if err == nil && requests.wait(time.Until(over)) > 0 { // whose connections are no longer the server's: sessions, and streams in loops
		err = context.DeadlineExceeded
	}
	if err != nil {
		p.log.Warn("requests cut at the end of timeouts.drain", "requests", requests.count(), "drain", timeouts.Drain.String())
		p.gateway.End()
		requests.wait(endTimeout)
		data.Close()
		if left := requests.wait(settleTimeout); left > 0 {
			p.log.Error("requests that do not end", "requests", left)
		}
	}
	adm.Close()
}

// inFlight counts the requests whose handler runs, or whose answer a loop passes
// on: a server that is closed, or shuts down, does not wait for those.
type inFlight struct {
	handler http.Handler
	running atomic.Int64
	looped  func() int64
}

// ServeHTTP implements http.Handler.
func (f *inFlight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.running.Add(1)
	defer f.running.Add(-1)
	f.handler.ServeHTTP(w, r)
}

func (f *inFlight) count() int64 { return f.running.Load() + f.looped() }

// wait waits until none runs, for limit at most, and returns how many still do.
func (f *inFlight) wait(limit time.Duration) int64 {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(limit); f.count() > 0 && time.Now().Before(end); {
		<-poll.C
	}
	return f.count()
}

// forEach calls do so often, first after that time, until ctx ends, and returns why it did.
func forEach(ctx context.Context, every time.Duration, do func(now time.Time)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			do(time.Now())
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/gateway"
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
	dataListener, err := p.options.listenTCP(cfg.Listen)
	if err != nil {
		return fmt.Errorf("data port: %w; choose another address with listen: or --listen", err)
	}
	defer dataListener.Close()
	adminListener, err := p.options.listenTCP(cfg.Admin.Listen)
	if err != nil {
		return fmt.Errorf("admin port: %w; choose another address with admin.listen: or --admin", err)
	}
	defer adminListener.Close()
	requests := &inFlight{handler: p.gateway.Handler()}
	data := p.server(requests, int(cfg.Limits.Header))
	dataClients := p.gateway.Listen(data, dataListener, p.room.connections())
	defer dataClients.End()
	dataListener = dataClients
	scheme := "http://"
	if cfg.TLS.Cert != "" {
		cert, err := gateway.LoadCertificate(cfg.TLS.Cert, cfg.TLS.Key, p.log)
		if err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		p.certificate.Store(cert)
		scheme = "https://"
		dataListener = tls.NewListener(dataListener, cert.Config())
	}
	dataURL := fromHere(scheme, dataListener.Addr())
	p.dataURL.Store(&dataURL)
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
	g.Go(func() error { return ignoreClosed(data.Serve(dataListener)) })
	g.Go(func() error { return ignoreClosed(adm.Serve(adminClients)) })
	ready(scheme+dataListener.Addr().String(), "http://"+adminListener.Addr().String())

	g.Go(func() error {
		select {
		case <-ctx.Done():
		case <-gctx.Done():
		}
		p.drain(data, adm, requests, lingers(ctx))
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
func (p *program) drain(data, adm *http.Server, requests *inFlight, linger bool) {
	timeouts := p.fleet.Config().Timeouts
	over := time.Now().Add(timeouts.Drain)
	p.systemd.stopping(timeouts.Drain + endTimeout + settleTimeout + flushTimeout)
	p.gateway.Drain()
	p.log.Info("stopping", "requests", requests.running.Load(), "drain", timeouts.Drain.String())
	if linger {
		<-time.After(min(timeouts.Linger, timeouts.Drain/2))
	}
	ctx, cancel := context.WithDeadline(context.Background(), over)
	defer cancel()
	if err := data.Shutdown(ctx); err != nil {
		p.log.Warn("requests cut at the end of timeouts.drain", "requests", requests.running.Load(), "drain", timeouts.Drain.String())
		p.gateway.End()
		requests.wait(endTimeout)
		data.Close()
		if left := requests.wait(settleTimeout); left > 0 {
			p.log.Error("requests that do not end", "requests", left)
		}
	}
	adm.Close()
}

// inFlight counts the requests whose handler runs: a server that is closed
// does not wait for them.
type inFlight struct {
	handler http.Handler
	running atomic.Int64
}

// ServeHTTP implements http.Handler.
func (f *inFlight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.running.Add(1)
	defer f.running.Add(-1)
	f.handler.ServeHTTP(w, r)
}

// wait waits until none runs, for limit at most, and returns how many still do.
func (f *inFlight) wait(limit time.Duration) int64 {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(limit); f.running.Load() > 0 && time.Now().Before(end); {
		<-poll.C
	}
	return f.running.Load()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

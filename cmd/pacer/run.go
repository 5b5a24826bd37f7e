package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Bounds of a connection that are the same everywhere: none of them limits a
// stream.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 120 * time.Second
)

// run opens both ports, starts every loop, calls ready with the addresses, and
// returns when ctx ends or one part fails. At the end no request is taken any
// more, running ones have timeouts.drain, and what was learned goes out last.
func (p *program) run(ctx context.Context, ready func(dataURL, adminURL string)) error {
	defer func() {
		for _, c := range p.close {
			c()
		}
	}()
	dataListener, err := p.options.listenTCP(p.cfg.Listen)
	if err != nil {
		return fmt.Errorf("data port: %w; choose another listen address", err)
	}
	defer dataListener.Close()
	adminListener, err := p.options.listenTCP(p.cfg.Admin.Listen)
	if err != nil {
		return fmt.Errorf("admin port: %w; choose another admin.listen address", err)
	}
	defer adminListener.Close()
	scheme := "http://"
	if p.cfg.TLS.Cert != "" {
		cert, err := tls.LoadX509KeyPair(p.cfg.TLS.Cert, p.cfg.TLS.Key)
		if err != nil {
			return fmt.Errorf("tls: %w", err)
		}
		scheme = "https://"
		dataListener = tls.NewListener(dataListener, &tls.Config{
			Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		})
	}
	p.start(ctx)

	data := p.server(p.gateway.Handler(), int(p.cfg.Limits.Header))
	adm := p.server(p.admin, 64<<10)
	loopCtx, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoops()
	g, gctx := errgroup.WithContext(loopCtx)
	for _, loop := range p.loops {
		g.Go(func() error { return ignoreCanceled(loop(gctx)) })
	}
	g.Go(func() error { return ignoreClosed(data.Serve(dataListener)) })
	g.Go(func() error { return ignoreClosed(adm.Serve(adminListener)) })
	ready(scheme+dataListener.Addr().String(), "http://"+adminListener.Addr().String())

	g.Go(func() error {
		select {
		case <-ctx.Done():
		case <-gctx.Done():
		}
		p.drain(data, adm)
		stopLoops()
		return nil
	})
	return g.Wait()
}

// server returns an HTTP server without limits that would cut a stream.
func (p *program) server(h http.Handler, maxHeader int) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
}

// drain lets running requests end, at most timeouts.drain, then ends them.
func (p *program) drain(data, adm *http.Server) {
	p.gateway.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.Timeouts.Drain)
	defer cancel()
	if err := data.Shutdown(ctx); err != nil {
		p.log.Warn("requests cut at the end of timeouts.drain", "drain", p.cfg.Timeouts.Drain)
		data.Close()
	}
	adm.Close()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

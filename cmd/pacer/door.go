package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway"
	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/h1server"
	"github.com/pacer-dev/pacer/picker"
)

// door is what requests come in by: the data port, or an Envoy that asks.
type door struct {
	server   portServer
	listener net.Listener
	returned net.Listener // of the connections that it has given away for a while, and serves again; nil = there are none
	at       string       // its address, as the ready line has it
	close    func()
}

// portServer is a server that lets what runs come to its end.
type portServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// open opens the door that p has.
func (p *program) open(cfg *config.Config, requests http.Handler) (*door, error) {
	if p.options.picker {
		return p.openPicker(cfg, requests)
	}
	l, err := p.options.listenTCP(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("data port: %w; choose another address with listen: or --listen", err)
	}
	data := p.server(requests, int(cfg.Limits.Header))
	clients := p.gateway.Listen(data, l, p.room.connections())
	d := &door{server: data, listener: clients, returned: clients.Returned(), close: func() {
		clients.End()
		l.Close()
	}}
	scheme := "http://"
	switch {
	case cfg.TLS.Cert != "":
		scheme = "https://"
		if cfg.Relay == gateway.RelayByNetHTTP {
			break
		}
		if err := clientconn.ServeH2(data); err != nil {
			d.close()
			return nil, fmt.Errorf("data port: %w", err)
		}
	case cfg.Relay != gateway.RelayByNetHTTP:
		if d.server, err = h1server.New(data); err != nil {
			d.close()
			return nil, fmt.Errorf("data port: %w", err)
		}
	}
	if err := p.secure(cfg, d); err != nil {
		return nil, err
	}
	d.at = scheme + d.listener.Addr().String()
	dataURL := fromHere(scheme, d.listener.Addr())
	p.dataURL.Store(&dataURL)
	return d, nil
}

// openPicker opens the port that an Envoy asks at.
func (p *program) openPicker(cfg *config.Config, requests http.Handler) (*door, error) {
	classes := make(map[string]string, len(cfg.Picker.Objectives))
	for _, o := range cfg.Picker.Objectives {
		classes[o.Name] = o.Class
	}
	s, err := picker.New(picker.Options{
		Handler: requests, Log: p.log, Streams: cfg.Limits.Streams, Body: cfg.Limits.Body,
		FailClosed: cfg.Picker.Fail == config.FailClosed, Objectives: classes,
		Ready: func() bool { return p.router.InService() },
	})
	if err != nil {
		return nil, err
	}
	l, err := p.options.listenTCP(cfg.Picker.Listen)
	if err != nil {
		return nil, fmt.Errorf("picker port: %w; choose another address with picker.listen: or --listen", err)
	}
	d := &door{server: s, listener: l, at: l.Addr().String(), close: func() { l.Close() }}
	if err := p.secure(cfg, d); err != nil {
		return nil, err
	}
	return d, nil
}

// secure puts TLS on d, where the configuration has a certificate.
func (p *program) secure(cfg *config.Config, d *door) error {
	if cfg.TLS.Cert == "" {
		return nil
	}
	cert, err := gateway.LoadCertificate(cfg.TLS.Cert, cfg.TLS.Key, p.log)
	if err != nil {
		d.close()
		return fmt.Errorf("tls: %w", err)
	}
	p.certificate.Store(cert)
	d.listener = tls.NewListener(d.listener, cert.Config())
	return nil
}

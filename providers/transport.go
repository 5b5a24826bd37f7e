package providers

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

const (
	defaultConnectTimeout = 5 * time.Second

	// keepAlive is how often a connection that is silent is checked.
	keepAlive = 30 * time.Second

	// idleTimeout is below the 5 s after which uvicorn (vLLM) and llama.cpp close
	// a kept connection without saying so.
	//
	// It is no round number because the timer of net/http runs on while the
	// connection is in use, and an answer without a body is back in the pool a
	// moment before it is handed over: a timer that fires in that moment breaks
	// the request. Where everything happens at whole milliseconds, as in virtual
	// time, that moment would be hit.
	idleTimeout = 4*time.Second - 1_234_567*time.Nanosecond

	// idleConns is how many connections are kept at most: above the streams that
	// one engine runs at once, so that none is dialed twice.
	idleConns = 4096

	// maxHeader bounds the head of an answer, in bytes.
	maxHeader = 256 << 10
)

func (o Options) connectTimeout() time.Duration {
	return cmp.Or(o.ConnectTimeout, defaultConnectTimeout)
}

func (o Options) dial() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial
	}
	return (&net.Dialer{KeepAlive: keepAlive}).DialContext
}

// clientTLS is what a server of that name is spoken to with.
func (o Options) clientTLS(name string) *tls.Config {
	c := &tls.Config{}
	if o.TLS != nil {
		c = o.TLS.Clone()
	}
	if c.ServerName == "" {
		c.ServerName = name
	}
	c.NextProtos = []string{"http/1.1"}
	return c
}

// newTransport returns the way to one backend. It has no timeout but that of
// the connection: an engine may send its headers only when the request gets a
// slot, so each phase is timed by who waits for it.
func newTransport(o Options) *http.Transport {
	timeout, dial := o.connectTimeout(), o.dial()
	var protocols http.Protocols
	protocols.SetHTTP1(true) // streams of HTTP/2 would share one connection and stall together
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return newAnswered(conn), nil
		},
		Proxy:                  o.Proxy,
		TLSHandshakeTimeout:    timeout,
		Protocols:              &protocols,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        idleTimeout,
		DisableCompression:     true, // chunks could not be seen
		MaxResponseHeaderBytes: maxHeader,
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
	}
	return t
}

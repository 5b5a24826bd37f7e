package bench

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
)

// front is how clients reach a proxy.
type front uint8

const (
	frontPlain front = iota // HTTP/1.1
	frontTLS                // the same over TLS
	frontH2                 // HTTP/2 over TLS
)

// wiring is how a proxy is reached, and how it reaches the backend. The zero value
// is plain HTTP/1.1 on both sides.
type wiring struct {
	front front
	back  bool // over TLS
}

// dialer connects clients to a proxy.
type dialer struct {
	front  front
	config *tls.Config
	h2     *http.Transport // whose connections are shared
}

func newDialer(over wiring, ca *x509.CertPool) *dialer {
	d := &dialer{front: over.front, config: &tls.Config{RootCAs: ca}}
	if d.front == frontH2 {
		d.h2 = &http.Transport{TLSClientConfig: d.config, ForceAttemptHTTP2: true, DisableCompression: true}
	}
	return d
}

func (d *dialer) close() {
	if d.h2 != nil {
		d.h2.CloseIdleConnections()
	}
}

func (d *dialer) connect(addr string) (net.Conn, error) {
	if d.front == frontTLS {
		return tls.Dial("tcp", addr, d.config)
	}
	return net.Dial("tcp", addr)
}

// shared returns what sends request, as it is written on HTTP/1.1, over connections
// that are shared; nil = none are.
func (d *dialer) shared(addr string, request []byte) func() (*http.Response, error) {
	if d.h2 == nil {
		return nil
	}
	return func() (*http.Response, error) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", "https", addr
		r.Body = io.NopCloser(bytes.NewReader(body))
		return d.h2.RoundTrip(r)
	}
}

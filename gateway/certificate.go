package gateway

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateAge is how long a certificate is used before its files are looked
// at again.
const certificateAge = time.Second

// Certificate is the certificate of the data port. A handshake sees whether its
// files have changed, and reads them again; while the new ones cannot be read,
// or do not go together (the two are not replaced in one step), the old one
// stands. It is safe for concurrent use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	mu      sync.Mutex // guards what follows; handshakes do not wait for it
	looked  time.Time
	read    [2]stamp
	failing bool // said so in the log
}

// stamp is what changes when a file is replaced.
type stamp struct {
	modified time.Time
	size     int64
}

// LoadCertificate reads a certificate and its key from PEM files.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	stamps, err := c.stamps()
	if err != nil {
		return nil, err
	}
	if err := c.load(stamps); err != nil {
		return nil, err
	}
	return c, nil
}

// Config is that of a server with c, for HTTP/2 and HTTP/1.1.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.look(time.Now())
			return c.current.Load(), nil
		},
	}
}

// Ends is when the certificate that is used now expires.
func (c *Certificate) Ends() time.Time { return c.current.Load().Leaf.NotAfter }

// look reads the files again if they have changed.
func (c *Certificate) look(now time.Time) {
	if !c.mu.TryLock() { // somebody else is looking
		return
	}
	defer c.mu.Unlock()
	if now.Sub(c.looked) < certificateAge {
		return
	}
	c.looked = now
	stamps, err := c.stamps()
	if err == nil && stamps == c.read {
		return
	}
	if err == nil {
		err = c.load(stamps)
	}
	switch {
	case err == nil:
		c.failing = false
		c.log.Info("new TLS certificate", "cert", c.certFile)
	case !c.failing:
		c.failing = true
		c.log.Error("the TLS certificate has changed and cannot be read; the old one stays", "error", err.Error())
	}
}

// stamps looks at both files, before they are read: one that changes in between
// is read again.
func (c *Certificate) stamps() (s [2]stamp, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s, fmt.Errorf("gateway: certificate: %w", err)
		}
		s[i] = stamp{info.ModTime(), info.Size()}
	}
	return s, nil
}

func (c *Certificate) load(s [2]stamp) error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("gateway: certificate: %w", err)
	}
	c.current.Store(&cert)
	c.read = s
	return nil
}

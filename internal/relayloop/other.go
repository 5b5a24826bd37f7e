//go:build !linux

package relayloop

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Loops are the loops of a program. There are none on this system.
type Loops struct{}

type (
	loop  struct{}
	state struct{}
	spot  struct{}
)

// New reports ErrUnsupported.
func New(int) (*Loops, error) { return nil, ErrUnsupported }

// Run returns when ctx ends.
func (l *Loops) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Choose does nothing.
func (l *Loops) Choose(*Stream) {}

// Relay has s leave at once.
func (s *Stream) Relay() { s.Handler.Left(Cancelled, nil) }

// Cancel does nothing.
func (s *Stream) Cancel() {}

// Wait has i leave at once.
func (l *Loops) Wait(i *Idle) { i.Then(nil) }

// Close does nothing.
func (i *Idle) Close() {}

// Socket is a connected socket. There are none on this system.
type Socket struct{}

// Take reports ErrUnsupported.
func Take(net.Conn) (*Socket, error) { return nil, ErrUnsupported }

// Encrypt does nothing.
func (s *Socket) Encrypt(_ *tls.Conn, before net.Conn) net.Conn { return before }

// Conn reports ErrUnsupported.
func (s *Socket) Conn() (net.Conn, error) { return nil, ErrUnsupported }

// Close does nothing.
func (s *Socket) Close() {}

// Write reports ErrUnsupported.
func (s *Socket) Write([]byte, time.Time) error { return ErrUnsupported }

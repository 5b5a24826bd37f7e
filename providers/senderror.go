package providers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Phase is how far a request had come when it failed.
type Phase uint8

// The phases of a request, in order.
const (
	Connect Phase = iota // no connection was there yet
	Write                // the request was being written
	Headers              // it was written, and its answer's head waited for
)

// String returns connect, write or headers.
func (p Phase) String() string { return [...]string{"connect", "write", "headers"}[p] }

// SendError reports a request that got no answer. Its text may name the
// backend's address and is for the log; what a client may read is Reason.
type SendError struct {
	Phase Phase
	Err   error
	Body  int64 // how large the request's body is, in bytes
}

// largeBody is the size from which a body does not fit into the buffers of a
// connection, in bytes.
const largeBody = 64 << 10

// CutShort reports whether the connection ended while a large body was being
// written. So ends a server that takes no body of that size and whose answer, if
// there was one, was lost with the connection. It says nothing of how it is.
func (e *SendError) CutShort() bool { return e.Phase == Write && e.Body >= largeBody && isEnded(e.Err) }

// isEnded reports whether err is the end of a connection.
func isEnded(err error) bool { return isReset(err) || isEOF(err) }

// isReset also takes a write that failed because whoever read from the
// connection had found it ended, and closed it.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed)
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Error says in which phase what went wrong.
func (e *SendError) Error() string { return "providers: " + e.Phase.String() + ": " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *SendError) Unwrap() error { return e.Err }

// Reason says what went wrong in words that name neither the address nor the
// credentials of a backend: "refused the connection". Its subject is the
// backend.
func (e *SendError) Reason() string {
	var (
		dns      *net.DNSError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		verify   *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
	)
	err := e.Err
	var key *KeyError
	switch {
	case errors.Is(err, context.Canceled):
		return "was not waited for"
	case errors.As(err, &key):
		return "was not asked: its credentials cannot be had"
	case errors.As(err, &dns):
		return "has a name that does not resolve"
	case errors.As(err, &record), errors.As(err, &alert), errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &hostname):
		return "failed the TLS handshake"
	case timedOut(err) && e.Phase == Connect:
		return "did not accept the connection in time"
	case timedOut(err):
		return "did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection"
	case e.CutShort():
		return fmt.Sprintf("closed the connection while the %.1f MB of the request were being sent, which may be more than it takes", float64(e.Body)/1e6)
	case isReset(err):
		return "reset the connection"
	case isEOF(err):
		return "closed the connection before it answered"
	case e.Phase == Connect:
		return "could not be reached"
	}
	return "did not answer"
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

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
func (p Phase) String() string {
	switch p {
	case Connect:
		return "connect"
	case Write:
		return "write"
	case Headers:
		return "headers"
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// SendError reports a request that got no answer. Its text may name the
// backend's address and is for the log; what a client may read is Reason.
type SendError struct {
	Phase Phase
	Err   error
}

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
	switch {
	case errors.Is(err, context.Canceled):
		return "was not waited for"
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
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return "reset the connection"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
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

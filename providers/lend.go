package providers

import (
	"io"
	"net"
	"time"

	"github.com/pacer-dev/pacer/internal/h1client"
)

// Lent is an answer whose connection somebody else reads.
type Lent = h1client.Lent

// Lendable returns the connection that the body of an answer is read from, if
// somebody else can read it instead; nil = that cannot be.
func Lendable(body io.Reader) net.Conn { return h1client.Lendable(unkeyed(body)) }

// Lend is what takes such an answer out of its frames then.
func Lend(body io.Reader) *Lent { return h1client.Lend(unkeyed(body)) }

// ErrPaused is what reading a body says at the time that PauseAt named.
var ErrPaused = h1client.ErrPaused

// PauseAt has a read of the body say ErrPaused, once, where it waits at that time. It
// does nothing to a body that cannot be lent.
func PauseAt(body io.Reader, at time.Time) { h1client.PauseAt(unkeyed(body), at) }

// unkeyed is body without what gives its key back.
func unkeyed(body io.Reader) io.Reader {
	if b, ok := body.(*lent); ok {
		return b.ReadCloser
	}
	return body
}

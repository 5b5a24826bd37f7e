package providers

import (
	"io"
	"net"

	"github.com/pacer-dev/pacer/internal/h1client"
)

// Lent is an answer whose connection somebody else reads.
type Lent = h1client.Lent

// Lendable returns the connection that the body of an answer is read from, if
// somebody else can read it instead; nil = that cannot be.
func Lendable(body io.Reader) net.Conn { return h1client.Lendable(unkeyed(body)) }

// Lend is what takes such an answer out of its frames then.
func Lend(body io.Reader) *Lent { return h1client.Lend(unkeyed(body)) }

// unkeyed is body without what gives its key back.
func unkeyed(body io.Reader) io.Reader {
	if b, ok := body.(*lent); ok {
		return b.ReadCloser
	}
	return body
}

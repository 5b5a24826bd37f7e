package providers

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/h1client"
)

// newOwn returns the client that speaks HTTP/1.1 to the backend, with what
// newTransport gives net/http's.
func (b *Backend) newOwn(o Options) *h1client.Client {
	own := h1client.Options{
		Dial: o.dial(), Addr: hostPort(b.base),
		ConnectTimeout: o.connectTimeout(), IdleTimeout: idleTimeout, MaxIdle: idleConns, MaxHead: maxHeader,
		Unasked: o.OnUnasked,
	}
	if b.base.Scheme == "https" {
		own.TLS = o.clientTLS(b.base.Hostname())
	}
	return h1client.New(own)
}

// hostPort is where u is reached.
func hostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), portOf(u)) }

// portOf is the port of u, or the usual one of its scheme.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// direct reports whether requests to base go through no proxy.
func (o Options) direct(base *url.URL) bool {
	if o.Proxy == nil {
		return true
	}
	through, err := o.Proxy(&http.Request{URL: base})
	return err == nil && through == nil
}

// upRequest is a request as it is written, and the room for its head. The client
// keeps nothing of it.
type upRequest struct {
	r    h1client.Request
	head []byte
}

var upRequests = sync.Pool{New: func() any { return &upRequest{head: make([]byte, 0, 2<<10)} }}

// keptHead is the largest room for a head that is kept, in bytes.
const keptHead = 64 << 10

var phases = [...]Phase{h1client.Connecting: Connect, h1client.Writing: Write, h1client.Waiting: Headers}

// sendOwn is sendWith without net/http, and for credentials that are no more than a
// header.
func (b *Backend) sendOwn(ctx context.Context, c Call, l *loan) (*http.Response, error) {
	u := upRequests.Get().(*upRequest)
	defer func() {
		if u.r = (h1client.Request{}); cap(u.head) <= keptHead {
			upRequests.Put(u)
		}
	}()
	u.r.NoAnswerBody = c.Method == http.MethodHead
	if c.Body != nil && c.Body.Len() > 0 {
		u.r.Body, u.r.Length = c.Body, c.Body.Len()
	}
	u.head = b.appendHead(u.head[:0], c, u.r.Length, l)
	u.r.Head = u.head
	resp, err := b.own.Do(ctx, &u.r)
	if err != nil {
		return nil, sendError(err, u.r.Length)
	}
	return resp, nil
}

// sendError is err of the own client, for a request whose body has length bytes.
func sendError(err error, length int64) *SendError {
	fail := &SendError{Phase: Connect, Err: err, Body: length}
	var own *h1client.Error
	if errors.As(err, &own) {
		fail.Phase, fail.Err = phases[own.Stage], own.Err
	}
	return fail
}

// appendHead appends the head of c, whose body has length bytes, with what the key
// of l made; nil = none.
func (b *Backend) appendHead(to []byte, c Call, length int64, l *loan) []byte {
	method := cmp.Or(c.Method, http.MethodPost)
	to = append(append(to, method...), ' ')
	to = append(b.appendURI(to, c), " HTTP/1.1\r\nHost: "...)
	to = append(append(to, b.host...), "\r\n"...)
	if length > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		to = strconv.AppendInt(append(to, "Content-Length: "...), length, 10)
		to = append(to, "\r\n"...)
	}
	b.eachUpward(c, func(name, value string) {
		to = appendValue(append(append(to, name...), ": "...), value)
		to = append(to, "\r\n"...)
	})
	if l != nil {
		if name, value := carried(&b.kind, l.value); b.headers[name] == nil {
			to = append(appendValue(append(append(to, name...), ": "...), value), "\r\n"...)
		}
	}
	return append(to, "\r\n"...)
}

// appendValue appends the value of a header in one line, whatever is in it.
func appendValue(to []byte, v string) []byte {
	if strings.IndexByte(v, '\r') < 0 && strings.IndexByte(v, '\n') < 0 {
		return append(to, v...)
	}
	return append(to, strings.NewReplacer("\r", " ", "\n", " ").Replace(v)...)
}

// appendURI appends the path and the query of c. Of most calls that is the path of
// the base and their own, in which nothing has to be escaped.
func (b *Backend) appendURI(to []byte, c Call) []byte {
	if b.flat && !c.Escaped && plainPath(c.Path) && !endpoint.Of(c.Path).Root {
		return append(append(to, b.prefix...), c.Path...)
	}
	return append(to, b.target(c).RequestURI()...)
}

// plainPath reports whether p has nothing but what stands for itself in a URL.
func plainPath(p string) bool {
	for i := range len(p) {
		switch c := p[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '_', c == '-':
		default:
			return false
		}
	}
	return p != "" && p[0] == '/'
}

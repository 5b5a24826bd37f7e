package gateway

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/openai"
)

const (
	// bodyStart is the first buffer for a body whose length is not told, and
	// for one that claims a length it has yet to send.
	bodyStart = 64 << 10

	// bodyRate is the slowest upload that is waited for, in bytes/s: a client
	// that sends a byte now and then must not hold a buffer for ever.
	bodyRate = 4 << 10
)

// read takes the WHOLE body before anything goes up, and looks at its top
// level. A transport that still reads the client's body while the answer
// begins truncates streams (golang/go#40747), and a failover needs the body
// again.
func (x *exchange) read() error {
	body, err := x.readBody()
	if err != nil {
		return err
	}
	clientconn.Answering(x.r.Context())
	x.body = body
	x.arrived = time.Now()
	if x.end.stored {
		return nil
	}
	kind := x.r.Header.Get("Content-Type")
	if x.end.form && isForm(kind) {
		x.req, err = openai.PeekForm(body, kind)
	} else {
		// Some editors and shells begin a file with a mark; Python reads over it.
		x.body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
		x.req, err = openai.Peek(x.body)
	}
	if err != nil {
		return err
	}
	x.stream = x.req.Stream
	return nil
}

func isForm(contentType string) bool {
	const form = "multipart/form-data"
	return len(contentType) >= len(form) && strings.EqualFold(contentType[:len(form)], form)
}

// readBody reads the body, as it is without compression, into memory that the
// budget covers. The limit holds for both forms of it.
func (x *exchange) readBody() ([]byte, error) {
	if err := x.beginBody(); err != nil {
		return nil, err
	}
	defer x.endBody()
	limit := x.plan.conf.Limits.Body
	if x.r.ContentLength > limit {
		return nil, &bodyTooLargeError{limit: limit}
	}
	from, length, err := x.bodySource()
	if err != nil {
		return nil, err
	}
	size := length + 1 // one more, so that EOF is seen without growing
	if size == 0 || size > bodyStart {
		size = bodyStart
	}
	if err := x.take(size); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, size)
	pace := x.newPace()
	for {
		if len(buf) == cap(buf) {
			next := min(2*int64(cap(buf)), limit+1)
			if err := x.take(next - int64(cap(buf))); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, next), buf...)
		}
		pace.next(int64(len(buf)))
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, &bodyTooLargeError{limit: limit}
		case err == io.EOF:
			pace.end()
			return buf, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, errSlowBody
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, &goneError{err: err}
		case err != nil:
			return nil, &bodyError{err: err}
		}
	}
}

// bodySource returns where the body is read from, and how long it is; -1 = not
// told.
func (x *exchange) bodySource() (io.Reader, int64, error) {
	switch enc := strings.ToLower(strings.TrimSpace(x.r.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return x.r.Body, x.r.ContentLength, nil
	case "gzip", "x-gzip":
		return &gunzip{from: x.r.Body}, -1, nil
	default:
		x.w.Header().Set("Accept-Encoding", "gzip")
		return nil, 0, &encodingError{encoding: enc}
	}
}

// gunzip reads a compressed body. Its head is looked for by the first Read, so
// that a slow client meets the same deadlines as any other.
type gunzip struct {
	from  io.Reader
	zip   *gzip.Reader
	whole bool // from came to its end
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.zip == nil {
		if g.zip, err = gzip.NewReader(rawBody{g}); err == nil {
			return 0, nil
		}
		if err == io.EOF { // nothing at all is no gzip
			err = io.ErrUnexpectedEOF
		}
	} else {
		n, err = g.zip.Read(p)
	}
	if g.whole && errors.Is(err, io.ErrUnexpectedEOF) {
		err = gzip.ErrChecksum // all is there, and it is not whole: not a client that left
	}
	return n, err
}

// rawBody is the body as it was sent.
type rawBody struct{ *gunzip }

func (r rawBody) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.whole = r.whole || err == io.EOF
	return n, err
}

// take takes n bytes from the budget of all, and from the tenant's, until
// settle; the error says which of them is used up.
func (x *exchange) take(n int64) error {
	if !x.tenant.held.take(n) {
		return errShareTaken
	}
	if !x.g.buffered.take(n) {
		x.tenant.held.give(n)
		return errOverloaded
	}
	x.held += n
	return nil
}

// hold is take, where it makes no difference.
func (x *exchange) hold(n int64) bool { return x.take(n) == nil }

// keep counts n bytes, or takes them off, that cannot be refused.
func (x *exchange) keep(n int64) {
	x.tenant.held.force(n)
	x.g.buffered.force(n)
	x.held += n
}

// pace sets the read deadline of a body as it comes in.
type pace struct {
	rc    *http.ResponseController
	start time.Time
	idle  time.Duration // longest wait for the next bytes
}

func (x *exchange) newPace() *pace {
	return &pace{rc: http.NewResponseController(x.w), start: time.Now(), idle: x.plan.conf.Timeouts.Write}
}

// next allows for the next read when got bytes are there.
func (p *pace) next(got int64) {
	deadline := time.Now().Add(p.idle)
	if slowest := p.start.Add(p.idle + time.Duration(got)*time.Second/bodyRate); slowest.Before(deadline) {
		deadline = slowest
	}
	_ = p.rc.SetReadDeadline(deadline) // a connection without deadlines has none
}

// end takes the deadline off: from here on the server itself reads ahead, to
// see the client hang up.
func (p *pace) end() { _ = p.rc.SetReadDeadline(time.Time{}) }

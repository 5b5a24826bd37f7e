package gateway

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/openai"
)

const (
	// maxRatio is how many times its compressed size a body may unpack to once it
	// is above ratioStart, in bytes: a prompt rarely passes 20, what was made to
	// fill the memory of others comes near 1,000.
	maxRatio   = 50
	ratioStart = 1 << 20

	// unzipping is what unpacking takes beside the body, in bytes: a window and
	// tables.
	unzipping = 48 << 10
)

// read takes the WHOLE body before anything goes up, and looks at its top
// level. A transport that still reads the client's body while the answer
// begins truncates streams (golang/go#40747), and a failover needs the body
// again.
func (x *exchange) read() error {
	if err := x.readBody(); err != nil {
		return err
	}
	clientconn.Answering(x.r.Context())
	x.body.whole()
	x.arrived = time.Now()
	if x.end.Stored {
		return nil
	}
	var err error
	kind := x.r.Header.Get("Content-Type")
	if x.end.Form && isForm(kind) {
		x.req, err = openai.PeekForm(x.body.bytes(), kind)
	} else {
		// Some editors and shells begin a file with a mark; Python reads over it.
		if mark := []byte("\xEF\xBB\xBF"); bytes.HasPrefix(x.body.bytes(), mark) {
			x.body.skip(len(mark))
		}
		x.req, err = openai.Peek(x.body.bytes())
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
// budgets cover. The limit holds for both forms of it.
func (x *exchange) readBody() error {
	if err := x.beginBody(); err != nil {
		return err
	}
	defer x.endBody()
	limit := x.plan.conf.Limits.Body
	if x.r.ContentLength > limit {
		return &bodyTooLargeError{limit: limit}
	}
	from, zip, err := x.bodySource()
	if err != nil {
		return err
	}
	defer zip.close()
	most, told := limit, zip == nil && x.r.ContentLength >= 0
	if told {
		most = x.r.ContentLength
	}
	// One byte more, so that the end is seen, and what is beyond the limit.
	if x.body, err = newBody(x.budgets(), int(most)+1, told); err != nil {
		return err
	}
	deadline := uploadDeadline{control: x.rc, start: time.Now(), idle: x.plan.conf.Timeouts.Write}
	for {
		room, err := x.body.next()
		if err != nil {
			return err
		}
		deadline.next(int64(x.body.size))
		n, err := from.Read(room)
		x.body.wrote(n)
		switch {
		case int64(x.body.size) > limit:
			return &bodyTooLargeError{limit: limit}
		case zip.bursts(x.body.size):
			return errRatio
		case err == io.EOF:
			deadline.end()
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errSlowBody
		case errors.Is(err, io.ErrUnexpectedEOF):
			return &goneError{err: err}
		case errors.Is(err, errOverloaded), errors.Is(err, errShareTaken):
			return err
		case err != nil:
			return &bodyError{err: err}
		}
	}
}

// dropBody gives the body up, if there is one.
func (x *exchange) dropBody() {
	if x.body != nil {
		x.body.leave()
		x.body = nil
		x.req.Forget()
	}
}

// bodySource returns where the body is read from; zip is nil if it was not
// compressed.
func (x *exchange) bodySource() (from io.Reader, zip *gunzip, err error) {
	switch enc := strings.ToLower(strings.TrimSpace(x.r.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return x.r.Body, nil, nil
	case "gzip", "x-gzip":
		zip = &gunzip{from: x.r.Body, x: x}
		return zip, zip, nil
	default:
		x.w.Header().Set("Accept-Encoding", "gzip")
		return nil, nil, &encodingError{encoding: enc}
	}
}

// gunzip reads a compressed body. Its beginning is waited for by the first Read,
// so that a slow client meets the same deadlines as any other.
type gunzip struct {
	x     *exchange
	from  io.Reader
	zip   *gzip.Reader // nil = not begun
	read  int64        // bytes as they were sent
	whole bool         // from came to its end
}

// unzippers are kept for the next body.
var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.zip == nil {
		err = g.begin()
	} else {
		n, err = g.zip.Read(p)
	}
	if g.whole && errors.Is(err, io.ErrUnexpectedEOF) {
		err = gzip.ErrChecksum // all is there, and it is not whole: not a client that left
	}
	return n, err
}

// begin takes what unpacking needs as soon as the beginning of the body is there.
func (g *gunzip) begin() error {
	start, err := io.ReadAll(io.LimitReader(rawBody{g}, bodyStart))
	if err != nil {
		return err
	}
	if err := g.x.take(unzipping); err != nil {
		return err
	}
	g.zip = unzippers.Get().(*gzip.Reader)
	err = g.zip.Reset(io.MultiReader(bytes.NewReader(start), rawBody{g}))
	if err == io.EOF { // nothing at all is no gzip
		err = io.ErrUnexpectedEOF
	}
	return err
}

// bursts reports whether what was read is too little to unpack to size bytes.
func (g *gunzip) bursts(size int) bool {
	return g != nil && size > ratioStart && int64(size) > maxRatio*g.read
}

// close gives back what unpacking took.
func (g *gunzip) close() {
	if g == nil || g.zip == nil {
		return
	}
	_ = g.zip.Reset(strings.NewReader("")) // keeps nothing of this body alive
	unzippers.Put(g.zip)
	g.x.keep(-unzipping)
}

// rawBody is the body as it was sent.
type rawBody struct{ *gunzip }

func (r rawBody) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.read += int64(n)
	r.whole = r.whole || err == io.EOF
	return n, err
}

// budgets are those that the request draws on.
func (x *exchange) budgets() budgets { return budgets{all: &x.g.buffered, tenant: x.tenant.held} }

// take has the budgets count n bytes of the heap beside the body, until settle.
func (x *exchange) take(n int64) error {
	err := x.budgets().take(onHeap * n)
	if err == nil {
		x.held += onHeap * n
	}
	return err
}

// hold is take, where it makes no difference.
func (x *exchange) hold(n int64) bool { return x.take(n) == nil }

// keep counts n bytes, or takes them off, that cannot be refused.
func (x *exchange) keep(n int64) {
	x.budgets().force(onHeap * n)
	x.held += onHeap * n
}

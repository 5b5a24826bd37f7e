package gateway

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/httpfield"
	"github.com/pacer-dev/pacer/internal/openai"
)

// read takes the WHOLE body before anything goes up, and looks at its top
// level. A transport that still reads the client's body while the answer
// begins truncates streams (golang/go#40747), and a failover needs the body
// again.
func (x *exchange) read() error {
	if err := x.readBody(); err != nil {
		return err
	}
	r := &x.request
	clientconn.Answering(r.http.Context())
	r.body.whole()
	r.arrived = time.Now()
	if r.end.Stored {
		return nil
	}
	if r.end.Socket {
		return x.readSocket()
	}
	var err error
	kind := httpfield.First(r.http.Header, "Content-Type")
	if r.end.Form && isForm(kind) {
		r.parsed, err = openai.PeekForm(r.body.bytes(), kind)
	} else {
		// Some editors and shells begin a file with a mark; Python reads over it.
		if mark := []byte("\xEF\xBB\xBF"); bytes.HasPrefix(r.body.bytes(), mark) {
			r.body.skip(len(mark))
		}
		r.parsed, err = openai.Peek(r.body.bytes())
	}
	if r.named != "" {
		r.parsed.Name(r.named)
	}
	if err == nil && r.end.Dialect == endpoint.Generate {
		r.generates()
	}
	return err
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
	defer x.tenant.sending.Add(-1)
	limit, length := x.setup.conf.Limits.Body, x.request.http.ContentLength
	if length > limit {
		return &bodyTooLargeError{limit: limit}
	}
	from, zip, err := x.bodySource()
	if err != nil {
		return err
	}
	defer zip.close()
	most, told := limit, zip == nil && length >= 0
	if told {
		most = length
	}
	// One byte more, so that the end is seen, and what is beyond the limit.
	body, err := newBody(x.memory.budgets, int(most)+1, told)
	x.request.body = body
	if err != nil {
		return err
	}
	deadline := uploadDeadline{control: &x.down.control, start: time.Now(), idle: x.setup.conf.Timeouts.Write}
	for {
		room, err := body.next()
		if err != nil {
			return err
		}
		deadline.next(int64(body.size))
		n, err := from.Read(room)
		body.wrote(n)
		switch {
		case int64(body.size) > limit, zip.passes():
			return &bodyTooLargeError{limit: limit}
		case zip.bursts(body.size):
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

// bodySource returns where the body is read from; zip is nil if it was not
// compressed.
func (x *exchange) bodySource() (from io.Reader, zip *gunzip, err error) {
	switch enc := strings.ToLower(strings.TrimSpace(httpfield.First(x.request.http.Header, "Content-Encoding"))); enc {
	case "", "identity":
		return x.request.http.Body, nil, nil
	case "gzip", "x-gzip":
		zip = &gunzip{from: x.request.http.Body, most: x.setup.conf.Limits.Body, memory: &x.memory}
		return zip, zip, nil
	default:
		x.down.w.Header().Set("Accept-Encoding", "gzip")
		return nil, nil, &encodingError{encoding: enc}
	}
}

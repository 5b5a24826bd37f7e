package h1client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/pacer-dev/pacer/internal/httpfield"
)

var (
	errLongHead  = errors.New("h1client: the head of the answer is too long")
	errMalformed = errors.New("h1client: malformed answer")
)

func malformed(what string, s string) error {
	return fmt.Errorf("%w: %s: %.80q", errMalformed, what, s)
}

// head reads heads until one is the answer's. begun reports whether any byte of
// one came. The room is the answer's from the start: who drops or finishes that
// gives it back, and nobody else.
func (a *answer) head(r *Request) (begun bool, err error) {
	a.room = headRooms.Get().(*[headRoom]byte)
	buf := a.room[:]
	size, left := 0, a.conn.client.o.MaxHead
	for {
		end := 0
		for scanned := 0; ; {
			if end = headEnd(buf[:size], &scanned); end > 0 {
				break
			}
			if size >= left {
				return true, errLongHead
			}
			if size == len(buf) {
				buf = append(buf, make([]byte, min(len(buf), left+1-len(buf)))...)
				a.giveRoomBack()
			}
			n, err := a.conn.Conn.Read(buf[size:])
			if size += n; n == 0 && err != nil {
				return begun || size > 0, cutHead(a.ctx, err, begun || size > 0)
			}
		}
		begun = true
		if end > left {
			return true, errLongHead
		}
		status, err := a.parse(string(buf[:end]))
		if err != nil {
			return true, err
		}
		if left -= end; status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
			if a.rest = buf[end:size]; end == size {
				a.giveRoomBack()
			}
			return true, a.frame(r)
		}
		size = copy(buf, buf[end:size])
	}
}

// cutHead is what the end of a connection within, or before, a head is.
func cutHead(ctx context.Context, err error, begun bool) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == io.EOF && begun {
		return io.ErrUnexpectedEOF
	}
	return err
}

// headEnd returns where the head that b begins with ends, 0 if not in b. Empty
// lines before it are part of it. scanned is how far it has been looked at.
func headEnd(b []byte, scanned *int) int {
	for at := *scanned; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return 0
		}
		at += i + 1
		rest := b[at:]
		switch {
		case len(rest) > 0 && rest[0] == '\n':
			return at + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return at + 2
		case len(rest) == 0, len(rest) == 1 && rest[0] == '\r':
			*scanned = at - 1
			return 0
		}
		*scanned = at
	}
}

// parse reads a head into the answer, and returns its status.
func (a *answer) parse(head string) (status int, err error) {
	line, rest := cutLine(head)
	resp := &a.resp
	proto, text, ok := strings.Cut(line, " ")
	if !ok {
		return 0, malformed("status line", line)
	}
	text = strings.TrimLeft(text, " ")
	code, _, _ := strings.Cut(text, " ")
	if status, err = strconv.Atoi(code); err != nil || len(code) != 3 || status < 0 {
		return 0, malformed("status", line)
	}
	if resp.ProtoMajor, resp.ProtoMinor, ok = http.ParseHTTPVersion(proto); !ok {
		return 0, malformed("version", line)
	}
	resp.Proto, resp.Status, resp.StatusCode = proto, text, status
	fields := strings.Count(rest, "\n")
	header, values := make(http.Header, fields), make([]string, fields)
	for i := 0; ; i++ {
		if line, rest = cutLine(rest); line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		name, isName := httpfield.Canonical(name)
		if !ok || !isName || !httpguts.ValidHeaderFieldValue(value) {
			return 0, malformed("header", line) // a line that goes on with a blank is one
		}
		value = strings.Trim(value, " \t")
		if before := header[name]; before != nil {
			header[name] = append(before, value)
			continue
		}
		values[i] = value
		header[name] = values[i : i+1 : i+1]
	}
	resp.Header = header
	return status, nil
}

// cutLine returns the first line of s, without its end, and what comes behind it.
func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// frame finds out how long the body is, by RFC 9112, section 6.3, and as strict
// as net/http.
func (a *answer) frame(r *Request) error {
	resp, h := &a.resp, a.resp.Header
	chunked, faulty := false, resp.StatusCode == http.StatusSwitchingProtocols // whatever it speaks then
	if te, ok := h["Transfer-Encoding"]; ok {
		delete(h, "Transfer-Encoding")
		if resp.ProtoAtLeast(1, 1) {
			if len(te) != 1 || !strings.EqualFold(te[0], "chunked") {
				return malformed("transfer encoding", strings.Join(te, ", "))
			}
			chunked = true
		}
		faulty = faulty || !chunked // RFC 9112, section 6.1: HTTP/1.0 knows none
	}
	length, err := contentLength(h)
	if err != nil {
		return err
	}
	resp.Close = faulty || closes(resp)
	delete(h, "Trailer") // what comes behind the body is read, and goes nowhere
	resp.Body = a
	switch status := resp.StatusCode; {
	case r.NoAnswerBody:
		resp.ContentLength, a.mode = length, modeNone
	case status/100 == 1, status == http.StatusNoContent, status == http.StatusNotModified:
		resp.ContentLength, a.mode = 0, modeNone
	case chunked:
		if h["Content-Length"] != nil {
			delete(h, "Content-Length")
			resp.Close = true // it said both: who knows where it thinks that the answer ends
		}
		resp.TransferEncoding = chunkedEncoding
		resp.ContentLength, a.mode = -1, modeChunked
	case length >= 0:
		resp.ContentLength, a.mode, a.left = length, modeLength, uint64(length)
	default:
		resp.ContentLength, a.mode, resp.Close = -1, modeEnd, true
	}
	if a.mode == modeNone || a.mode == modeLength && a.left == 0 {
		a.mode = modeNone
		a.finish()
	}
	return nil
}

var chunkedEncoding = []string{"chunked"}

// contentLength returns what the head says; -1 = nothing. That it says so more
// than once is taken only if it is the same.
func contentLength(h http.Header) (int64, error) {
	said := h["Content-Length"]
	if len(said) == 0 {
		return -1, nil
	}
	for _, v := range said[1:] {
		if v != said[0] {
			return 0, malformed("lengths", strings.Join(said, ", "))
		}
	}
	h["Content-Length"] = said[:1]
	n, err := strconv.ParseUint(said[0], 10, 63)
	if err != nil {
		return 0, malformed("length", said[0])
	}
	return int64(n), nil
}

// closes reports whether the connection ends with the answer.
func closes(r *http.Response) bool {
	if r.ProtoMajor < 1 {
		return true
	}
	closing := httpguts.HeaderValuesContainsToken(r.Header["Connection"], "close")
	if r.ProtoMajor == 1 && r.ProtoMinor == 0 {
		return closing || !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "keep-alive")
	}
	return closing
}

package h1server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/httpfield"
)

// heldBack is how much of an answer waits for more, or for its end, in bytes.
const heldBack = 2 << 10

// mostWire is the largest buffer for what is written that is kept, in bytes.
const mostWire = 64 << 10

// serving is one request and its answer: the http.ResponseWriter, and what its
// ResponseController asks for. It belongs to the goroutine of the handler.
type serving struct {
	conn   *conn
	cancel context.CancelFunc
	req    *http.Request
	left   int64 // bytes of the request's body that are to come
	closed bool  // that was closed

	header  http.Header
	status  int   // 0 = no head was written
	length  int64 // of the body as the header says; -1 = it does not
	written int64 // bytes of the body
	wire    *[]byte
	at      int // what of wire is head; behind it lies what waits of the body

	typed   bool // the header says the type, or that there is to be none
	sent    bool // the head has gone out
	chunked bool
	closing bool // the connection ends behind the answer
	said    bool // the header says so

	writeBy time.Time
	err     error // of writing; nothing more is written
}

var wires = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// Header implements http.ResponseWriter.
func (t *serving) Header() http.Header { return t.header }

// WriteHeader implements http.ResponseWriter.
func (t *serving) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case t.conn.taken:
		return
	case t.status != 0:
		t.conn.server.logf("http: superfluous response.WriteHeader call")
		return
	case status < 200 && status != http.StatusSwitchingProtocols:
		t.ahead(status)
		return
	}
	t.status = status
	t.wire = wires.Get().(*[]byte)
	b := statusLine((*t.wire)[:0], status)
	dated := false
	for name, values := range t.header {
		switch name {
		case "Content-Length":
			t.declared(values)
			continue
		case "Transfer-Encoding", "Trailer":
			continue
		case "Content-Type":
			t.typed = true
			if status == http.StatusNotModified {
				continue
			}
		case "Content-Encoding":
			t.typed = t.typed || len(values) > 0 && values[0] != ""
		case "Connection":
			t.said = len(values) == 1 && values[0] == "close" // as net/http has it
			t.closing = t.closing || t.said
			if t.closing && !t.said {
				continue
			}
		case "Date":
			dated = dated || len(values) > 0
		}
		if !strings.HasPrefix(name, http.TrailerPrefix) {
			b = appendField(b, name, values)
		}
	}
	if !dated {
		b = append(append(append(b, "Date: "...), date(time.Now())...), crlf...)
	}
	*t.wire, t.at = b, len(b)
}

// ahead sends an answer ahead of the answer, with what the header has by then.
func (t *serving) ahead(status int) {
	b := statusLine(nil, status)
	for name, values := range t.header {
		if name != "Content-Length" && name != "Transfer-Encoding" {
			b = appendField(b, name, values)
		}
	}
	if _, err := t.conn.write(append(b, crlf...), t.writeBy); err != nil {
		t.err = err
	}
}

// appendField appends a header, unless its name is none.
func appendField(b []byte, name string, values []string) []byte {
	if _, ok := httpfield.Canonical(name); !ok {
		return b
	}
	for _, v := range values {
		b = append(append(b, name...), ": "...)
		b = append(appendValue(b, v), crlf...)
	}
	return b
}

// declared takes the length that the header says. What is none counts for nothing.
func (t *serving) declared(values []string) {
	if len(values) == 0 || values[0] == "" {
		return
	}
	if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n >= 0 {
		t.length = n
		return
	}
	t.conn.server.logf("http: invalid Content-Length of %q", values[0])
}

func statusLine(b []byte, status int) []byte {
	if status == http.StatusOK {
		return append(b, "HTTP/1.1 200 OK\r\n"...)
	}
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10)
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	return append(append(append(b, ' '), text...), crlf...)
}

// appendValue appends the value of a header. What could end it becomes blanks.
func appendValue(b []byte, v string) []byte {
	v = strings.Trim(v, " \t\r\n")
	if strings.IndexByte(v, '\r') < 0 && strings.IndexByte(v, '\n') < 0 {
		return append(b, v...)
	}
	for i := range len(v) {
		if c := v[i]; c == '\r' || c == '\n' {
			b = append(b, ' ')
		} else {
			b = append(b, c)
		}
	}
	return b
}

// bodyAllowed reports whether an answer of that status may have a body.
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified && status != http.StatusSwitchingProtocols
}

// Write implements http.ResponseWriter.
func (t *serving) Write(p []byte) (int, error) {
	if t.conn.taken {
		return 0, http.ErrHijacked
	}
	if t.status == 0 {
		t.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case !bodyAllowed(t.status):
		return 0, http.ErrBodyNotAllowed
	case t.length >= 0 && t.written+int64(len(p)) > t.length:
		return 0, http.ErrContentLength
	case t.err != nil:
		return 0, t.err
	}
	t.written += int64(len(p))
	if t.wire == nil {
		t.wire = wires.Get().(*[]byte)
		*t.wire, t.at = (*t.wire)[:0], 0
	}
	if len(*t.wire)-t.at+len(p) <= heldBack {
		*t.wire = append(*t.wire, p...)
		return len(p), nil
	}
	if err := t.send(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushError is what http.ResponseController asks for.
func (t *serving) FlushError() error {
	if t.conn.taken {
		return http.ErrHijacked
	}
	if t.status == 0 {
		t.WriteHeader(http.StatusOK)
	}
	return t.send(nil, false)
}

// Flush implements http.Flusher.
func (t *serving) Flush() { _ = t.FlushError() }

// finish sends what is left when the handler has returned.
func (t *serving) finish() {
	if t.status == 0 {
		t.WriteHeader(http.StatusOK)
	}
	_ = t.send(nil, true)
	if t.length >= 0 && t.written != t.length && bodyAllowed(t.status) {
		t.closing = true
	}
}

// send writes what waits, and p behind it, in one piece. end is whether the answer
// ends with that.
func (t *serving) send(p []byte, end bool) error {
	if t.err != nil {
		t.giveBack()
		return t.err
	}
	var head, waits []byte
	if t.wire != nil {
		head, waits = (*t.wire)[:t.at], (*t.wire)[t.at:]
	}
	out := wires.Get().(*[]byte)
	b := append((*out)[:0], head...)
	if !t.sent {
		b = t.frame(b, waits, p, end)
	}
	if n := len(waits) + len(p); n > 0 && t.chunked {
		b = append(strconv.AppendUint(b, uint64(n), 16), crlf...)
		b = append(append(append(b, waits...), p...), crlf...)
	} else {
		b = append(append(b, waits...), p...)
	}
	if end && t.chunked {
		b = append(b, "0\r\n\r\n"...)
	}
	t.giveBack()
	if t.sent = true; len(b) > 0 {
		_, t.err = t.conn.write(b, t.writeBy)
	}
	if *out = b; cap(b) <= mostWire {
		wires.Put(out)
	}
	if t.err != nil {
		t.cancel() // whoever reads this is gone
	}
	return t.err
}

// frame ends the head, once it is known how long the body is.
func (t *serving) frame(b, waits, p []byte, end bool) []byte {
	first := waits
	if len(first) == 0 {
		first = p
	}
	if !t.typed && len(first) > 0 {
		b = append(append(append(b, "Content-Type: "...), http.DetectContentType(first)...), crlf...)
	}
	switch {
	case !bodyAllowed(t.status):
	case t.length >= 0:
		b = length(b, t.length)
	case end:
		t.length = int64(len(waits) + len(p))
		b = length(b, t.length)
	default:
		t.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	t.closing = t.closing || t.left > 0
	if t.closing && !t.said {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, crlf...)
}

func length(b []byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, "Content-Length: "...), n, 10), crlf...)
}

// giveBack gives the buffer back of what waited.
func (t *serving) giveBack() {
	if t.wire != nil {
		if cap(*t.wire) <= mostWire {
			wires.Put(t.wire)
		}
		t.wire, t.at = nil, 0
	}
}

// SetReadDeadline is what http.ResponseController asks for. It holds for what is
// read of the body from here on.
func (t *serving) SetReadDeadline(d time.Time) error {
	t.conn.wanted = d
	return nil
}

// SetWriteDeadline is what http.ResponseController asks for. It holds for what is
// written from here on.
func (t *serving) SetWriteDeadline(d time.Time) error {
	t.writeBy = d
	return nil
}

// EnableFullDuplex is what http.ResponseController asks for: nothing else is done here.
func (t *serving) EnableFullDuplex() error { return nil }

// Hijack implements http.Hijacker. What was read ahead is in the reader's buffer.
func (t *serving) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c := t.conn
	if c.taken {
		return nil, nil, http.ErrHijacked
	}
	if t.status != 0 && !t.sent {
		if err := t.send(nil, false); err != nil {
			return nil, nil, err
		}
	}
	c.taken = true
	t.giveBack()
	c.disarm()
	c.leave()
	c.applied = time.Time{}
	_ = c.nc.SetDeadline(time.Time{})
	ahead := c.in
	c.room, c.in = nil, nil // ahead may lie in it
	from := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(ahead), c.nc), max(len(ahead), 16))
	_, _ = from.Peek(len(ahead))
	c.server.state(c.nc, http.StateHijacked)
	return c.nc, bufio.NewReadWriter(from, bufio.NewWriterSize(c.nc, 16)), nil
}

// servingBody is the body of the request.
type servingBody serving

// Read implements io.Reader.
func (b *servingBody) Read(p []byte) (int, error) {
	c := b.conn
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	p = p[:min(int64(len(p)), b.left)]
	n, err := 0, error(nil)
	if len(c.in) > 0 {
		n = copy(p, c.in)
		c.in = c.in[n:]
		c.letGo()
	} else {
		c.readBy(c.wanted)
		n, err = c.nc.Read(p)
	}
	if b.left -= int64(n); b.left == 0 {
		c.arm(b.cancel)
		return n, io.EOF
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer. What was not read is not read any more.
func (b *servingBody) Close() error {
	b.closed = true
	return nil
}

// date returns now as headers have it.
func date(now time.Time) string {
	second := now.Unix()
	if d := lastDate.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dated{second: second, text: now.UTC().Format(http.TimeFormat)}
	lastDate.Store(d)
	return d.text
}

type dated struct {
	second int64
	text   string
}

var lastDate atomic.Pointer[dated]

package gateway

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pacer-dev/pacer/providers"
)

// attempt is one try to have the request served by one backend, until its
// first byte has come.
type attempt struct {
	backend *backend
	name    string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	watch   *watch
	verdict func(error)
	wentUp  bool

	resp   *http.Response
	events bool // the answer is a stream of events
	sse    bool // and the meter knows its last one
	whole  bool // the answer is a document, and came whole in the first read
	busy   bool // it is full: somebody else may take the request
	look   providers.Meter
	buf    *[relayBuffer]byte
	n      int       // bytes of the first read, in buf
	at     time.Time // when it came
	held   int64     // bytes that the meter keeps, as far as they are counted
	rerr   error     // with it, or after it
	pass   []byte    // what of it goes on
	seen   providers.Seen
	ended  bool
}

// explains reports whether an error answer that begins with start may go to
// the client as it is: it is an object, as SDKs expect, and does not repeat the
// key that the backend was shown.
func (t *attempt) explains(start []byte) bool {
	text := bytes.TrimLeft(start, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && !t.tellsKey(start)
}

// plainText returns what an error answer that begins with start says in plain
// words, as of axum and uvicorn; "" if it says nothing, or says it as a page.
func (t *attempt) plainText(start []byte) string {
	const longest = 300 // bytes
	kind, _, _ := mime.ParseMediaType(t.resp.Header.Get("Content-Type"))
	if kind != "text/plain" || !utf8.Valid(start) || t.tellsKey(start) {
		return ""
	}
	text := strings.Join(strings.Fields(string(start)), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

func (t *attempt) tellsKey(start []byte) bool {
	key := t.backend.key
	return key != "" && bytes.Contains(start, []byte(key))
}

func (t *attempt) failure(status int, problem string, err error) *upstreamError {
	return &upstreamError{backend: t.name, status: status, problem: problem, err: err}
}

// refused is a failure that the backend itself reported.
func (t *attempt) refused(status int, problem string) error {
	e := t.failure(status, problem, nil)
	e.retry = retryHeaders(t.resp.Header)
	return e
}

// end cancels what still runs at the backend and gives everything back that the
// attempt holds. Calls after the first do nothing.
func (t *attempt) end() {
	if t.ended {
		return
	}
	t.ended = true
	t.verdict(providers.ErrNoVerdict) // does nothing if one was given
	if t.watch != nil {
		t.watch.stop()
	}
	if t.cancel != nil {
		t.cancel(context.Canceled)
	}
	if t.resp != nil {
		_ = t.resp.Body.Close()
	}
}

// readStart fills buf as far as the answer goes.
func readStart(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

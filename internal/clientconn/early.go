package clientconn

import (
	"io"
	"net/http"
	"time"
)

// Early wraps handlers that may answer before they have read the body. On
// HTTP/1 net/http would read on before it lets the answer go, up to 256 KiB and
// without a deadline; here the answer of one that has not read the body to its
// end goes out at once, says Connection: close, and the connection lingers. On
// HTTP/2 an answer does not wait for the body, and its stream alone ends.
func Early(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := of(r.Context())
		if c != nil {
			c.ours.Store(true)
		}
		if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, header: w.Header(), close: [1]string{"close"}}
		b.header["Connection"] = b.close[:]
		defer func() {
			if !b.whole {
				// net/http looks for the end of the body once more, behind the answer.
				_ = http.NewResponseController(w).SetReadDeadline(past)
				if c != nil {
					c.lingers(mostOf(r))
				}
			}
		}()
		r.Body = b // as net/http's own wrappers do: it keeps the one that it gave
		next.ServeHTTP(w, r)
	})
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// mostOf is how many bytes r's client may still send.
func mostOf(r *http.Request) int64 {
	if r.ContentLength > told || r.ContentLength < 0 {
		return untold
	}
	return told
}

// body is the body of a request on HTTP/1. Until it has been read to its end the
// answer says that the connection is closed behind it.
type body struct {
	io.ReadCloser
	header http.Header
	close  [1]string // what header says of Connection, if nobody else has said it
	whole  bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.whole {
		b.whole = true
		if said := b.header["Connection"]; len(said) == 1 && &said[0] == &b.close[0] {
			delete(b.header, "Connection")
		}
	}
	return n, err
}

// ahead is how much of a body net/http may have read together with the head.
const ahead = 4 << 10

// TakeRest takes what of r's body has come with its head, before an answer that
// does not need it. If that is all, the connection can serve the next request.
// It waits for nothing.
func TakeRest(w http.ResponseWriter, r *http.Request) {
	b, ok := r.Body.(*body)
	if !ok || b.whole || r.ContentLength < 0 || r.ContentLength > ahead || r.Header.Get("Expect") != "" {
		return
	}
	if http.NewResponseController(w).SetReadDeadline(past) == nil {
		_, _ = io.Copy(io.Discard, b)
	}
}

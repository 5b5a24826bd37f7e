package providers

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/internal/upstream"
)

// Call is one request as it goes up: Path is below the base URL
// ("/chat/completions", and a query if it has one), Model is the backend's name
// of the model, Header is the client's own (credentials, hop-by-hop and
// accept-encoding are dropped here). None of it is changed.
type Call struct {
	Method    string // "" = POST
	Path      string
	Escaped   bool   // Path is escaped already, as that of an upstream.Form
	Model     string // for backends that have it in their URLs; "" = unknown
	Header    http.Header
	Body      Body // nil = none
	RequestID string

	// Upgrade is the protocol that the connection is to go on with, as websocket. The
	// body of an answer with 101 is an io.ReadWriteCloser then. "" = HTTP.
	Upgrade string

	// Prompt and Answer are what it may take of a limit on tokens, as far as that
	// is known.
	Prompt, Answer int

	Carried *Carried // who takes it there; nil = a connection of the backend's own
}

// takes is what c takes of limits.
func (c *Call) takes() (t cost) {
	t[upstream.Requests] = 1
	t[upstream.Input], t[upstream.Output] = float64(max(c.Prompt, 0)), float64(max(c.Answer, 0))
	t[upstream.Tokens] = t[upstream.Input] + t[upstream.Output]
	return t
}

// length is how many bytes c's body has.
func (c *Call) length() int64 {
	if c.Body == nil {
		return 0
	}
	return c.Body.Len()
}

// Body is what goes up, complete. It is opened for each time that it is sent.
// What was opened is closed when all of it went up, or no more of it will; that
// may be later than Send returns.
type Body interface {
	Len() int64 // in bytes; 0 = there is none
	Open() (io.ReadCloser, error)
}

// Send sends c and returns the response when its headers are there. The
// response's body must be closed. Redirects are not followed. An EOF on a kept
// connection before any byte is retried once on a fresh one. A key that is refused
// or full is replaced by another one, if there is one that is neither. So is one
// that may be forbidden something; if another one serves it, it rests, too. The
// error is a *SendError.
func (b *Backend) Send(ctx context.Context, c Call) (*http.Response, error) {
	if c.Carried != nil {
		return b.sendCarried(ctx, c)
	}
	if len(b.pool.keys) == 0 {
		return b.sendWith(ctx, c, nil)
	}
	var tried []*key
	var doubted []loan
	renewed := false
	l, _ := b.pool.lend(time.Now(), c.Model, c.takes(), nil) // there is one
	for {
		resp, err := b.sendWith(ctx, c, &l)
		if err != nil {
			l.giveBack()
			return nil, err
		}
		now := time.Now()
		verdict := l.answered(now, resp)
		if resp.StatusCode < 300 {
			for i := range doubted {
				doubted[i].refused(now)
			}
		} else if verdict == keyDoubted {
			doubted = append(doubted, l)
		}
		if verdict == keyStale && !renewed {
			renewed = true
		} else if tried = append(tried, l.key); verdict == keyServed || len(tried) >= mostKeys {
			return l.answer(resp), nil
		}
		next, ok := b.pool.lend(now, c.Model, c.takes(), tried)
		if !ok {
			return l.answer(resp), nil
		}
		_ = resp.Body.Close()
		l.giveBack()
		l = next
	}
}

// sendWith sends c with one key; nil = without.
func (b *Backend) sendWith(ctx context.Context, c Call, l *loan) (*http.Response, error) {
	if l != nil {
		var err error
		if l.value, err = l.key.Source.Get(ctx); err != nil {
			return nil, &SendError{Phase: Connect, Err: &KeyError{err}, Body: c.length()}
		}
	}
	if b.own != nil && c.Upgrade == "" && (l == nil || l.value.AWS == nil) {
		return b.sendOwn(ctx, c, l)
	}
	req := b.request(c)
	if l != nil {
		if err := b.authorize(ctx, req, c.Body, l); err != nil {
			return nil, &SendError{Phase: Connect, Err: &KeyError{err}, Body: req.ContentLength}
		}
	}
	transport := b.kept
	if c.Upgrade != "" {
		transport = b.fresh
	}
	resp, trip, err := roundTrip(ctx, transport, req)
	if err != nil && trip.stale() && ctx.Err() == nil {
		// The engine had closed the connection and this request was the first to
		// find out. The transport sends again by itself where it sees that; not
		// where the write broke, as with a large body.
		resp, trip, err = roundTrip(ctx, b.fresh, req)
	}
	if err != nil {
		return nil, &SendError{Phase: trip.phase(), Err: err, Body: req.ContentLength}
	}
	return resp, nil
}

// request builds what goes up, but for its body.
func (b *Backend) request(c Call) *http.Request {
	req := &http.Request{
		Method: cmp.Or(c.Method, http.MethodPost), URL: b.target(c), Header: b.upward(c),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		GetBody: func() (io.ReadCloser, error) { return http.NoBody, nil },
	}
	if c.Upgrade != "" {
		req.Header["Connection"], req.Header["Upgrade"] = []string{"Upgrade"}, []string{c.Upgrade}
	}
	if c.Body != nil && c.Body.Len() > 0 {
		// Complete: a transport that reads the client's own body while the answer
		// begins truncates streams (golang/go#40747).
		req.ContentLength, req.GetBody = c.Body.Len(), c.Body.Open
	}
	return req
}

func roundTrip(ctx context.Context, t *http.Transport, req *http.Request) (*http.Response, *trip, error) {
	var tr trip
	req = req.WithContext(httptrace.WithClientTrace(ctx, tr.trace()))
	var err error
	if req.Body, err = req.GetBody(); err != nil {
		return nil, &tr, err
	}
	resp, err := t.RoundTrip(req)
	return resp, &tr, err
}

// trip is how far a request has come. The transport tells it from goroutines
// of its own, so it is made of atomics.
type trip struct {
	connected, reused, wrote, answered atomic.Bool
}

func (t *trip) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { // once more for each connection tried
			t.reused.Store(info.Reused)
			t.wrote.Store(false)
			t.answered.Store(false)
			t.connected.Store(true)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			t.wrote.Store(info.Err == nil)
		},
		GotFirstResponseByte: func() { t.answered.Store(true) },
	}
}

// stale reports whether the request failed on a kept connection before any
// byte of an answer: nothing that a backend which works would not do.
func (t *trip) stale() bool { return t.connected.Load() && t.reused.Load() && !t.answered.Load() }

func (t *trip) phase() Phase {
	switch {
	case !t.connected.Load():
		return Connect
	case !t.wrote.Load():
		return Write
	}
	return Headers
}

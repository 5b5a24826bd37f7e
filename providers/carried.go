package providers

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"
)

// Carried is one request that another proxy takes to its backend: the proxy asks
// where the request should go, sends it there itself, and shows what comes back.
// It belongs to the goroutine that serves the request.
type Carried struct {
	// Trip stands in for a connection. It gets the request as the backend is to
	// get it, and is called once at most. An error that is a *SendError stays one.
	Trip func(*http.Request) (*http.Response, error)

	Only   []string // hosts with ports that the proxy may go to; nil = to all
	Model  string   // what is asked for, whatever the body says; "" = as the body says
	Tenant string   // whose turn it is in a line, where there are no keys; "" = nobody's
	Blind  bool     // no body of an answer is shown: its end alone is

	// Instead are hosts with ports that the proxy may turn to where the chosen one
	// cannot be reached, the best first. It is set before Trip is called.
	Instead []string

	// Chosen is the host and port of the backend. It is set before Trip is called.
	Chosen string

	// Served is the host and port that answered; "" = the chosen one. It is set by
	// Trip.
	Served string
}

type carriedKey struct{}

// Carry returns ctx with c, for a request whose context that is.
func Carry(ctx context.Context, c *Carried) context.Context {
	return context.WithValue(ctx, carriedKey{}, c)
}

// CarriedIn returns what Carry put into ctx; nil = nothing.
func CarriedIn(ctx context.Context) *Carried {
	c, _ := ctx.Value(carriedKey{}).(*Carried)
	return c
}

// Reaches reports whether the proxy may go to a host and port. A host without a
// port stands for all of its ports.
func (c *Carried) Reaches(endpoint string) bool {
	if c == nil || c.Only == nil || slices.Contains(c.Only, endpoint) {
		return true
	}
	host, _, err := net.SplitHostPort(endpoint)
	return err == nil && slices.Contains(c.Only, host)
}

// Endpoint is the host and port that requests to b go to.
func (b *Backend) Endpoint() string { return b.endpoint }

// sendCarried is Send by way of c.Carried. A key that is refused is not replaced:
// what was sent cannot be sent again.
func (b *Backend) sendCarried(ctx context.Context, c Call) (*http.Response, error) {
	req := b.request(c).WithContext(ctx)
	var l loan
	keyed := len(b.pool.keys) > 0
	fail := func(phase Phase, err error) (*http.Response, error) {
		if keyed {
			l.giveBack()
		}
		var told *SendError
		if errors.As(err, &told) {
			told.Body = req.ContentLength
			return nil, told
		}
		return nil, &SendError{Phase: phase, Err: err, Body: req.ContentLength}
	}
	if keyed {
		l, _ = b.pool.lend(time.Now(), c.Model, c.takes(), nil) // there is one
		var err error
		if l.value, err = l.key.Source.Get(ctx); err == nil {
			err = b.authorize(ctx, req, c.Body, &l)
		}
		if err != nil {
			return fail(Connect, &KeyError{err})
		}
	}
	var err error
	if req.Body, err = req.GetBody(); err != nil {
		return fail(Connect, err)
	}
	c.Carried.Chosen = b.endpoint
	resp, err := c.Carried.Trip(req)
	if err != nil {
		return fail(Headers, err)
	}
	if keyed {
		l.answered(time.Now(), resp)
		resp = l.answer(resp)
	}
	return resp, nil
}

// Like reports whether a request that was made for b can go to other as it is.
func (b *Backend) Like(other *Backend) bool {
	if b.kind.Word != other.kind.Word || b.base.Path != other.base.Path || b.base.RawQuery != other.base.RawQuery ||
		b.ask != other.ask || !maps.EqualFunc(b.headers, other.headers, slices.Equal[[]string]) {
		return false
	}
	mine, theirs := b.Secrets(), other.Secrets()
	slices.Sort(mine)
	slices.Sort(theirs)
	return slices.Equal(mine, theirs)
}

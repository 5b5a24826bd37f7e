package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/internal/openai"
)

// ServeLine serves one request of a batch job as its owner: in class batch, under
// the limits of the owner's key, and to the end, for nobody reads along. What has no
// room now is to be sent again, and so is what a backend failed at.
func (g *Gateway) ServeLine(ctx context.Context, j batch.Job, l batch.Line) batch.Answer {
	id := "req-" + rand.Text()
	p := g.setup.Load()
	end, _ := batchEndpoint(l.URL)
	t := p.tenantCalled(j.Owner)
	if end == nil || t == nil {
		err := error(errUnserved)
		if t == nil {
			err = &keyError{}
		}
		a := answerFor(err)
		return batch.Answer{Status: a.status, RequestID: id, Body: openai.ErrorBody(a.message, a.typ, a.param, a.code)}
	}
	r, err := http.NewRequestWithContext(withID(ctx, id), http.MethodPost, l.URL, io.NopCloser(bytes.NewReader(l.Body)))
	if err != nil {
		return batch.Answer{Status: http.StatusBadRequest, RequestID: id, Body: openai.ErrorBody("The url cannot be read.", "invalid_request_error", "url", "")}
	}
	r.ContentLength = int64(len(l.Body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Pacer-Class", "batch")
	to := &lineAnswer{header: http.Header{}, most: int(min(p.conf.Limits.Body, 64<<20))}
	x := g.newExchange(p, t, request{http: r, end: end, path: end.Path})
	x.down.start(to, r, p.conf.Timeouts.Write)
	defer x.down.deadline.stop()
	x.walk(x.enter, x.read, x.whole, x.resolve, x.place, x.forward, x.relay)
	return to.answer(id, x.down.delivery == aborted)
}

// whole refuses a stream: nobody reads along.
func (o *order) whole() error {
	if o.request.parsed.Stream {
		return &openai.BadRequest{Message: "stream must be false in a batch.", Param: "stream"}
	}
	return nil
}

// tenantCalled returns who has the key of that name, if it is good still; "" is
// anyone, as long as there are no keys.
func (p *setup) tenantCalled(name string) *tenant {
	if len(p.tenants) == 0 && name == "" {
		return anyone
	}
	for _, t := range p.tenants {
		if t.name == name && (t.conf.Expires.IsZero() || time.Now().Before(t.conf.Expires)) {
			return t
		}
	}
	return nil
}

// batchEndpoint returns the endpoint of the requests of a job; nil = it has none.
func batchEndpoint(url string) (end *endpoint.Endpoint, ok bool) {
	path, found := strings.CutPrefix(url, "/v1")
	if !found {
		return nil, false
	}
	switch path {
	case "/chat/completions", "/completions", "/embeddings", "/responses", "/moderations", "/messages":
		return endpoint.Of(path), true
	}
	return nil, false
}

// lineAnswer is the client of a request whose answer is kept.
type lineAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
	most   int // bytes
}

var errTooMuch = errors.New("the answer is longer than one may be")

func (l *lineAnswer) Header() http.Header { return l.header }

func (l *lineAnswer) WriteHeader(status int) {
	if l.status == 0 {
		l.status = status
	}
}

func (l *lineAnswer) Write(p []byte) (int, error) {
	l.WriteHeader(http.StatusOK)
	if l.body.Len()+len(p) > l.most {
		return 0, errTooMuch
	}
	return l.body.Write(p)
}

func (*lineAnswer) Flush()                           {}
func (*lineAnswer) SetWriteDeadline(time.Time) error { return nil }
func (*lineAnswer) SetReadDeadline(time.Time) error  { return nil }

// answer is what came. broken: it is not whole.
func (l *lineAnswer) answer(id string, broken bool) batch.Answer {
	a := batch.Answer{Status: l.status, RequestID: id, Body: l.body.Bytes()}
	if broken {
		a = batch.Answer{Status: http.StatusBadGateway, RequestID: id, Body: openai.ErrorBody("The backend broke off its answer.", "upstream_error", "", "upstream_failed")}
	}
	switch a.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		a.Again = again(l.header)
	case http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInternalServerError:
		a.Again, a.Fault = again(l.header), true
	}
	if l.header.Get("X-Should-Retry") == "false" && l.header.Get("Retry-After") == "" {
		a.Again = 0 // no time helps
	}
	return a
}

// again is when a request that was refused is sent again.
func again(h http.Header) time.Duration {
	seconds, _ := strconv.Atoi(h.Get("Retry-After"))
	return time.Duration(min(max(seconds, 1), 60)) * time.Second
}

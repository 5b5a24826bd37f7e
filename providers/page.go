package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/pacer-dev/pacer/internal/credential"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// readPage reads the URL of a page, as of metrics or health.
func readPage(text string) (*url.URL, error) {
	text, wrong := upstream.PageURL(text, "", "URL", "/metrics")
	if wrong != "" {
		return nil, fmt.Errorf("field URL: %s", wrong)
	}
	page, err := url.Parse(text)
	if err != nil || text == "" {
		return nil, errors.New("field URL is no http:// or https:// URL")
	}
	return page, nil
}

// page is one that is read at a backend again and again.
type page struct {
	request   *http.Request
	transport *http.Transport
	kind      *upstream.Kind
	key       credential.Source // nil = it is read without
}

// page returns the page at at of a backend with this base. Its headers and its first key
// go along on its own server, and to no other one. Pages are not signed.
func (o Options) page(at, base *url.URL, kind *upstream.Kind, headers http.Header) page {
	p := page{transport: newTransport(o), kind: kind}
	p.request = &http.Request{Method: http.MethodGet, URL: at, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if at.Scheme == base.Scheme && strings.EqualFold(hostPort(at), hostPort(base)) {
		p.request.Header = headers
		if keys := o.keys(); len(keys) > 0 {
			p.key = keys[0].Source
		}
	}
	return p
}

// get asks for the page, by the transport itself: redirects are not followed, and what
// goes wrong is told without the URL. The error is a *KeyError where there is no key.
func (p *page) get(ctx context.Context) (*http.Response, error) {
	r := p.request.Clone(ctx)
	if p.key != nil {
		v, err := p.key.Get(ctx)
		if err != nil {
			return nil, &KeyError{err}
		}
		if v.AWS == nil {
			carry(r.Header, p.kind, v)
		}
	}
	return p.transport.RoundTrip(r)
}

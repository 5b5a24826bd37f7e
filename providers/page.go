package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// pageRequest returns the request for a page. The headers of a backend with
// this base go along on its own server, and to no other one.
func pageRequest(page, base *url.URL, headers http.Header) *http.Request {
	r := &http.Request{Method: http.MethodGet, URL: page, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if sameOrigin(page, base) {
		r.Header = headers
	}
	return r
}

// pageKey returns what puts the backend's first key into the request for a page,
// where that is on its own server. Pages are not signed.
func (o Options) pageKey(kind *upstream.Kind, base *url.URL) func(context.Context, *http.Request) error {
	keys := o.keys()
	return func(ctx context.Context, r *http.Request) error {
		if len(keys) == 0 || !sameOrigin(r.URL, base) {
			return nil
		}
		v, err := keys[0].Source.Get(ctx)
		if err == nil && v.AWS == nil {
			carry(r.Header, kind, v)
		}
		return err
	}
}

// sameOrigin reports whether a and b are served by one server, by scheme, host
// and port.
func sameOrigin(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" {
			return p
		}
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// probeEvery is the mean time between two looks at a backend that is well,
	// and probeAgain that at one that is not.
	probeEvery = 5 * time.Second
	probeAgain = time.Second

	// probePatience is how long an answer is waited for. One that comes later is
	// no news: an engine at its limit is slow, and not dead.
	probePatience = 4 * time.Second

	// probeConnect is how long a connection may take. A host that does not even
	// take one in that time is gone.
	probeConnect = 3 * time.Second

	// failingAfter is how many failures in a row make a backend failing.
	failingAfter = 3
)

// ProberOptions configures a Prober.
type ProberOptions struct {
	Backend Options // Name, BaseURL, Kind, APIKey, Headers, Dial, ConnectTimeout and TLS are used
	URL     string  // of the page; "" = that of the kind

	// OnCondition is told when the backend becomes Failing, Loading or Sound,
	// with the reason unless it is Sound. A prober starts as if it were. Required.
	OnCondition func(Condition, error)
}

// Prober looks again and again whether a backend is well, so that a dead one is
// known before a request finds out, and one that is back as well. Run is its
// only method; it may run once.
type Prober struct {
	o         ProberOptions
	request   *http.Request
	transport *http.Transport
	key       func(context.Context, *http.Request) error // puts the backend's into a request

	condition Condition
	failures  int // in a row
}

// NewProber returns a prober; nil where there is no page to look at.
func NewProber(o ProberOptions) (*Prober, error) {
	fail := func(err error) (*Prober, error) {
		return nil, fmt.Errorf("providers: backend %q: %w", o.Backend.Name, err)
	}
	if o.OnCondition == nil {
		return fail(errors.New("OnCondition is required"))
	}
	kind, base, headers, err := o.Backend.reach()
	if err != nil {
		return fail(err)
	}
	if o.URL == "" && kind.HealthPage == "" {
		return nil, nil
	}
	page := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: strings.TrimSuffix(base.Path, "/v1") + kind.HealthPage}
	if o.URL != "" {
		if page, err = readPage(o.URL); err != nil {
			return fail(err)
		}
	}
	o.Backend.ConnectTimeout = min(cmp.Or(o.Backend.ConnectTimeout, defaultConnectTimeout), probeConnect)
	t := newTransport(o.Backend)
	t.DisableKeepAlives = true // whether it takes a connection is what is asked
	return &Prober{o: o, request: pageRequest(page, base, headers), transport: t, key: o.Backend.pageKey(kind, base)}, nil
}

// Run looks until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	next := time.NewTimer(time.Duration(rand.Float64() * float64(probeAgain)))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		seen, news, err := p.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if news {
			p.hear(seen, err)
		}
		every := probeEvery
		if p.condition != Sound || p.failures > 0 {
			every = probeAgain
		}
		next.Reset(time.Duration((0.9 + 0.2*rand.Float64()) * float64(every)))
	}
}

// hear draws the conclusion from one look.
func (p *Prober) hear(seen Condition, err error) {
	if seen == Failing {
		if p.failures++; p.failures < failingAfter {
			return
		}
	} else {
		p.failures = 0
	}
	if seen != p.condition {
		p.condition = seen
		p.o.OnCondition(seen, err)
	}
}

// ownTrouble reports whether err is about this machine and not about the
// backend: no file, port or memory for one more connection, or a resolver that
// does not answer. All backends would be down at once.
func ownTrouble(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return !dns.IsNotFound
	}
	return slices.ContainsFunc([]error{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM,
	}, func(own error) bool { return errors.Is(err, own) })
}

// look asks once. news is false when the answer says nothing: it did not come
// in time, or it could not be asked for.
func (p *Prober) look(ctx context.Context) (c Condition, news bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	// By the transport itself: redirects are not followed, and what goes wrong
	// is told without the URL.
	request := p.request.Clone(ctx)
	if err := p.key(ctx, request); err != nil {
		return Sound, false, nil
	}
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		if ownTrouble(err) {
			return Sound, false, nil
		}
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return Failing, true, err
		}
		var timeout net.Error
		if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
			return Sound, false, nil
		}
		return Failing, true, err
	}
	defer response.Body.Close()
	start, _ := io.ReadAll(io.LimitReader(response.Body, reasonStart))
	switch status := response.StatusCode; {
	case status < 300:
		return Sound, true, nil
	case status == http.StatusServiceUnavailable && unavailable(start) == Loading:
		return Loading, true, errors.New("it is loading its model")
	case status >= 500 && unavailable(start) != Full:
		return Failing, true, fmt.Errorf("its health page answers %d %s", status, http.StatusText(status))
	}
	return Sound, true, nil // it answers; that it has no such page is no illness
}

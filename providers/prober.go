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
	o    ProberOptions
	page page

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
	at := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: strings.TrimSuffix(base.Path, "/v1") + kind.HealthPage}
	if o.URL != "" {
		if at, err = readPage(o.URL); err != nil {
			return fail(err)
		}
	}
	o.Backend.ConnectTimeout = min(cmp.Or(o.Backend.ConnectTimeout, defaultConnectTimeout), probeConnect)
	p := &Prober{o: o, page: o.Backend.page(at, base, kind, headers)}
	p.page.transport.DisableKeepAlives = true // whether it takes a connection is what is asked
	return p, nil
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
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
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
	response, err := p.page.get(ctx)
	if err != nil {
		_, keyless := errors.AsType[*KeyError](err)
		dial, ok := errors.AsType[*net.OpError](err)
		dialed := !ok || dial.Op != "dial"
		if keyless || ownTrouble(err) || dialed && timedOut(err) {
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

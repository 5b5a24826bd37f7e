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
	// no news: an engine at its limit is slow, and not dead. Where nothing else comes
	// either it hangs, as Pulse has it.
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

	// Pulse is told whether a look was answered. Where there is no page, the list of
	// models is asked for while the backend is under suspicion, without a key: any
	// answer will do. nil = nobody is told, and nothing is asked so.
	Pulse *Pulse

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

	unasked  bool          // there is no page: it is asked on suspicion alone, and only whether it answers
	patience time.Duration // how long a silence is suspicious then
	heard    int64         // Pulse.heard as of the last look at it

	condition Condition
	failures  int       // in a row
	due       time.Time // when it is looked at, suspicion or none
}

// NewProber returns a prober; nil where there is no page to look at, and no pulse.
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
	at := &url.URL{Scheme: base.Scheme, Host: base.Host, Path: strings.TrimSuffix(base.Path, "/v1") + kind.HealthPage}
	unasked := o.URL == "" && kind.HealthPage == ""
	switch {
	case unasked && o.Pulse == nil:
		return nil, nil
	case unasked:
		at.Path = base.Path + "/models"
	case o.URL != "":
		if at, err = readPage(o.URL); err != nil {
			return fail(err)
		}
	}
	o.Backend.ConnectTimeout = min(cmp.Or(o.Backend.ConnectTimeout, defaultConnectTimeout), probeConnect)
	if unasked {
		headers, o.Backend.APIKey, o.Backend.Keys = http.Header{}, "", nil
	}
	p := &Prober{o: o, unasked: unasked, page: o.Backend.page(at, base, kind, headers)}
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
		if now := time.Now(); p.wants(now) {
			got := p.look(ctx)
			if ctx.Err() != nil {
				return nil
			}
			p.feel(now, got)
			switch {
			case !got.news:
			case !p.unasked:
				p.hear(got.is, got.why)
			default:
				p.patience = min(2*p.patience, suspectLast)
			}
			p.due = time.Now().Add(jittered(probeEvery))
			if p.condition != Sound || p.failures > 0 {
				p.due = time.Now()
			}
		}
		pause := jittered(probeAgain)
		if left := time.Until(p.due); left > 0 {
			pause = min(pause, left)
		}
		next.Reset(pause)
	}
}

func jittered(mean time.Duration) time.Duration {
	return time.Duration((0.9 + 0.2*rand.Float64()) * float64(mean))
}

// wants reports whether it is time for a look: in its turn, or on suspicion.
func (p *Prober) wants(now time.Time) bool {
	switch {
	case p.unasked:
		if heard := p.o.Pulse.heard.Load(); heard != p.heard || p.patience == 0 {
			p.heard, p.patience = heard, suspectUnasked
		}
		return p.o.Pulse.suspect(now, p.patience)
	case !now.Before(p.due):
		return true
	}
	return p.o.Pulse != nil && p.o.Pulse.suspect(now, suspectAfter)
}

// feel tells the pulse how a look ended that began then.
func (p *Prober) feel(began time.Time, got sight) {
	switch {
	case p.o.Pulse == nil:
	case got.news && got.is != Failing:
		p.o.Pulse.See(time.Now())
	case got.why != nil:
		p.o.Pulse.miss(began, time.Now())
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

// sight is what one look saw.
type sight struct {
	is   Condition
	news bool  // is says something: an answer came in time, or none can come
	why  error // it saw nothing good; nil = it did, or could not look
}

// look asks once.
func (p *Prober) look(ctx context.Context) sight {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	response, err := p.page.get(ctx)
	if err != nil {
		_, keyless := errors.AsType[*KeyError](err)
		dial, ok := errors.AsType[*net.OpError](err)
		dialed := !ok || dial.Op != "dial"
		if keyless || ownTrouble(err) {
			return sight{}
		}
		return sight{is: Failing, news: !dialed || !timedOut(err), why: err}
	}
	defer response.Body.Close()
	if p.unasked { // there are servers that say 500 where there is nothing
		return sight{is: Sound, news: true}
	}
	start, _ := io.ReadAll(io.LimitReader(response.Body, reasonStart))
	got := sight{is: Sound, news: true} // that it has no such page is no illness
	switch status := response.StatusCode; {
	case status < 300:
	case status == http.StatusServiceUnavailable && unavailable(start) == Loading:
		got.is, got.why = Loading, errors.New("it is loading its model")
	case status >= 500 && unavailable(start) != Full:
		got.is, got.why = Failing, fmt.Errorf("its health page answers %d %s", status, http.StatusText(status))
	}
	return got
}

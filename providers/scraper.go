package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// scrapeEvery is the mean time between two readings of a page, and
	// scrapeJitter by how much of it each may come sooner or later: gateways
	// that start together must not ask together for ever.
	scrapeEvery  = time.Second
	scrapeJitter = 0.1

	// scrapeTimeout ends before the next reading is due.
	scrapeTimeout = 800 * time.Millisecond

	// mostPage bounds a page, in bytes. vLLM's has some hundred KiB.
	mostPage = 4 << 20
)

// EngineLoad is what an engine says of itself: sequences with a slot, and
// without one. At is since when the page has said so, as far as it can be told:
// the time of the first reading that found it as it is. A page that claims load
// and does not change is not written any more: vLLM's keeps its last figures
// when all requests are aborted at once.
type EngineLoad struct {
	Running, Waiting int
	At               time.Time
}

// ScraperOptions configures a Scraper. The backend's own options go with it:
// its credentials are sent where its requests go, and nowhere else.
type ScraperOptions struct {
	Backend Options // Name, BaseURL, Kind, APIKey, Headers, Dial, ConnectTimeout and TLS are used
	URL     string  // of the page; required

	// Life is how long a reading holds. When none has held for so long,
	// OnSignal is told. Required.
	Life time.Duration

	// Pulse is told whether the page claims work and stands still. nil = nobody is.
	Pulse *Pulse

	// OnLoad is told what every reading says. Required.
	OnLoad func(EngineLoad)

	// OnSignal is told when no reading holds any more, with the reason, and
	// when one does again, with nil. A scraper starts as if one did. Required.
	OnSignal func(error)
}

// Scraper reads an engine's page of metrics again and again. Run is its only
// method; it may run once.
type Scraper struct {
	o      ScraperOptions
	page   page
	reader *pageReader
	text   bytes.Buffer // of the page; reused

	print uint64    // of the page that was last read
	at    time.Time // when it was first read
	lost  bool      // OnSignal was told so
}

// NewScraper returns a scraper; it starts nothing and connects to nothing.
func NewScraper(o ScraperOptions) (*Scraper, error) {
	fail := func(err error) (*Scraper, error) {
		return nil, fmt.Errorf("providers: backend %q: %w", o.Backend.Name, err)
	}
	if o.Life <= 0 || o.OnLoad == nil || o.OnSignal == nil {
		return fail(errors.New("fields Life, OnLoad and OnSignal are required"))
	}
	kind, base, headers, err := o.Backend.reach()
	if err != nil {
		return fail(err)
	}
	at, err := readPage(o.URL)
	if err != nil {
		return fail(err)
	}
	s := &Scraper{o: o, page: o.Backend.page(at, base, kind, headers), reader: newPageReader(kind)}
	s.page.request.Header.Set("Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1")
	return s, nil
}

// Run reads until ctx ends.
func (s *Scraper) Run(ctx context.Context) error {
	defer s.page.transport.CloseIdleConnections()
	s.at = time.Now() // until the first reading may be late, nothing is lost
	next := time.NewTimer(time.Duration(rand.Float64() * float64(scrapeEvery)))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
		next.Reset(time.Duration((1 - scrapeJitter + 2*scrapeJitter*rand.Float64()) * float64(scrapeEvery)))
		load, err := s.scrape(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.tell(load, err)
	}
}

// tell passes on a reading, and says when readings stop to hold and when they
// begin again.
func (s *Scraper) tell(load EngineLoad, err error) {
	if err == nil {
		s.o.OnLoad(load)
	}
	if p := s.o.Pulse; p != nil {
		p.Stand(time.Now(), err == nil && time.Since(load.At) >= hungAfter, err == nil)
	}
	old := time.Since(s.at) > s.o.Life
	switch {
	case old && !s.lost:
		if err == nil {
			err = fmt.Errorf("the page has not changed for %v although %d sequences run and %d wait", s.o.Life, load.Running, load.Waiting)
		}
		s.lost = true
		s.o.OnSignal(err)
	case !old && err == nil && s.lost:
		s.lost = false
		s.o.OnSignal(nil)
	}
}

// scrape reads the page once.
func (s *Scraper) scrape(ctx context.Context) (EngineLoad, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	response, err := s.page.get(ctx)
	if err != nil {
		return EngineLoad{}, s.slow(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return EngineLoad{}, fmt.Errorf("the answer is %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	s.text.Reset()
	if _, err := s.text.ReadFrom(io.LimitReader(response.Body, mostPage+1)); err != nil {
		return EngineLoad{}, s.slow(err)
	}
	if s.text.Len() > mostPage {
		return EngineLoad{}, fmt.Errorf("the page has more than %d MiB", mostPage>>20)
	}
	p, err := s.reader.read(s.text.Bytes())
	if err != nil {
		return EngineLoad{}, err
	}
	if p.print != s.print || p.running+p.waiting == 0 {
		s.print, s.at = p.print, time.Now()
	}
	return EngineLoad{Running: p.running, Waiting: p.waiting, At: s.at}, nil
}

// slow names the reason behind an error that came of the time being up: the engine,
// or what makes its credentials.
func (s *Scraper) slow(err error) error {
	_, keyless := errors.AsType[*KeyError](err)
	switch {
	case keyless:
		return fmt.Errorf("the engine was not asked: %w", err)
	case timedOut(err):
		return fmt.Errorf("no answer within %v", scrapeTimeout)
	}
	return err
}

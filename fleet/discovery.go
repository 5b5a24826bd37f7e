package fleet

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// DiscoverEvery is how often addresses are looked up.
	DiscoverEvery = 5 * time.Second

	// discoverPatience bounds one look at all of them.
	discoverPatience = 3 * time.Second

	// goneAfter is how many looks in a row an address has to be missing from: a
	// resolver may leave some out, and a file may be half written.
	goneAfter = 2
)

// Discovery knows the addresses of the backends that stand for several engines.
// It is used by one goroutine at a time.
type Discovery struct {
	Log *slog.Logger

	// Look replaces Source.Look; nil = that.
	Look func(ctx context.Context, s providers.Source) ([]string, error)

	known map[place]map[string]int // place → address → looks that it is missing from
	ill   map[place]string         // place → the error that was said
	full  map[place]bool           // that there are more than are used was said
}

// place is where the engines of a backend are looked up: what was found at
// another one under the same name does not count.
type place struct{ backend, host, file string }

func placeOf(b config.Backend) place {
	at := place{backend: b.Name, file: b.Discover.File}
	if u, err := url.Parse(b.URL); err == nil {
		at.host = u.Host
	}
	return at
}

// Of returns cfg with the engines that there are now. What cannot be looked up
// stays as it was.
func (d *Discovery) Of(ctx context.Context, cfg *config.Config) *config.Config {
	ctx, cancel := context.WithTimeout(ctx, discoverPatience)
	defer cancel()
	type answer struct {
		found []string
		err   error
	}
	answers := map[place]*answer{}
	var looking sync.WaitGroup
	for _, b := range cfg.Backends {
		if !b.Discover.On() {
			continue
		}
		a := &answer{}
		answers[placeOf(b)] = a
		looking.Go(func() {
			look := d.Look
			if look == nil {
				look = func(ctx context.Context, s providers.Source) ([]string, error) { return s.Look(ctx) }
			}
			a.found, a.err = look(ctx, providers.Source{URL: b.URL, File: b.Discover.File})
		})
	}
	looking.Wait()

	found := make(map[string][]string, len(answers))
	for at, a := range answers {
		d.hear(at, a.found, a.err)
		found[at.backend] = slices.Sorted(maps.Keys(d.known[at]))
	}
	return cfg.Expand(found)
}

// Keep forgets what cfg does not look up. It is for a configuration that has
// come into force: one that is refused changes nothing.
func (d *Discovery) Keep(cfg *config.Config) {
	configured := map[place]bool{}
	for _, b := range cfg.Backends {
		configured[placeOf(b)] = true
	}
	maps.DeleteFunc(d.known, func(at place, _ map[string]int) bool { return !configured[at] })
	maps.DeleteFunc(d.full, func(at place, _ bool) bool { return !configured[at] })
	maps.DeleteFunc(d.ill, func(at place, _ string) bool { return !configured[at] })
}

// hear takes the answer about one backend.
func (d *Discovery) hear(at place, found []string, err error) {
	if d.known == nil {
		d.known, d.ill, d.full = map[place]map[string]int{}, map[place]string{}, map[place]bool{}
	}
	switch {
	case err != nil && d.ill[at] != err.Error():
		d.ill[at] = err.Error()
		d.Log.Warn("the engines of a backend cannot be looked up; those known stay", "backend", at.backend, "known", len(d.known[at]), "error", err)
	case err == nil && d.ill[at] != "":
		delete(d.ill, at)
		d.Log.Info("the engines of a backend can be looked up again", "backend", at.backend)
	}
	if err != nil {
		return
	}
	known := d.known[at]
	if known == nil {
		known = map[string]int{}
		d.known[at] = known
	}
	for address := range known {
		if !slices.Contains(found, address) {
			if known[address]++; known[address] >= goneAfter {
				delete(known, address)
			}
		}
	}
	for _, address := range found {
		known[address] = 0
	}
	if full := len(known) > config.MaxDiscovered; full != d.full[at] {
		if d.full[at] = full; full {
			d.Log.Warn("a backend has more engines than are used", "backend", at.backend, "found", len(known), "used", config.MaxDiscovered)
		}
	}
}

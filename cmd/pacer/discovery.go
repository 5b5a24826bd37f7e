package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// discoverEvery is how often addresses are looked up.
	discoverEvery = 5 * time.Second

	// discoverPatience bounds one look at all of them.
	discoverPatience = 3 * time.Second

	// goneAfter is how many looks in a row an address has to be missing from: a
	// resolver may leave some out, and a file may be half written.
	goneAfter = 2
)

// discovery knows the addresses of the backends that stand for several engines.
// The zero value knows none. It is used by one goroutine at a time.
type discovery struct {
	log   *slog.Logger
	look  func(ctx context.Context, s providers.Source) ([]string, error) // nil = Source.Look
	known map[string]map[string]int                                       // backend → address → looks that it is missing from
	ill   map[string]string                                               // backend → the error that was said
}

// of returns cfg with the engines that there are now, and whether they are
// others than at the last call. What cannot be looked up stays as it was.
func (d *discovery) of(ctx context.Context, cfg *config.Config) (expanded *config.Config, changed bool) {
	ctx, cancel := context.WithTimeout(ctx, discoverPatience)
	defer cancel()
	type answer struct {
		found []string
		err   error
	}
	answers := map[string]*answer{}
	var looking sync.WaitGroup
	for _, b := range cfg.Backends {
		if !b.Discover.On() {
			continue
		}
		a := &answer{}
		answers[b.Name] = a
		looking.Go(func() {
			look := d.look
			if look == nil {
				look = func(ctx context.Context, s providers.Source) ([]string, error) { return s.Look(ctx) }
			}
			a.found, a.err = look(ctx, providers.Source{URL: b.URL, File: b.Discover.File})
		})
	}
	looking.Wait()

	before := d.found()
	for name := range d.known {
		if answers[name] == nil {
			delete(d.known, name) // no longer configured
		}
	}
	for name, a := range answers {
		d.hear(name, a.found, a.err)
	}
	found := d.found()
	return cfg.Expand(found), !maps.EqualFunc(before, found, slices.Equal)
}

// hear takes the answer about one backend.
func (d *discovery) hear(name string, found []string, err error) {
	if d.known == nil {
		d.known, d.ill = map[string]map[string]int{}, map[string]string{}
	}
	switch {
	case err != nil && d.ill[name] != err.Error():
		d.ill[name] = err.Error()
		d.log.Warn("the engines of a backend cannot be looked up; those known stay", "backend", name, "known", len(d.known[name]), "error", err)
	case err == nil && d.ill[name] != "":
		delete(d.ill, name)
		d.log.Info("the engines of a backend can be looked up again", "backend", name)
	}
	if err != nil {
		return
	}
	known := d.known[name]
	if known == nil {
		known = map[string]int{}
		d.known[name] = known
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
}

// found returns the addresses in service, sorted.
func (d *discovery) found() map[string][]string {
	out := make(map[string][]string, len(d.known))
	for name, known := range d.known {
		out[name] = slices.Sorted(maps.Keys(known))
	}
	return out
}

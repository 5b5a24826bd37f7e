package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
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

// Cluster knows the engines of a backend in Kubernetes. With an error those that it
// returns are not known to be all.
type Cluster interface {
	Look(ctx context.Context, b config.Backend) ([]config.Found, error)
	Keep(list []config.Backend) // the others are not asked for any more
	News() <-chan struct{}      // has an entry after something has changed
}

// Discovery knows the addresses of the backends that stand for several engines.
// It is used by one goroutine at a time, but for States.
type Discovery struct {
	Log *slog.Logger

	// Look replaces Source.Look; nil = that.
	Look func(ctx context.Context, s providers.Source) ([]string, error)

	// Cluster is asked about engines in Kubernetes; nil = there is none.
	Cluster Cluster

	// Said hears in one line that the engines of a backend cannot be looked up, and
	// that they can again; nil = nobody wants to know.
	Said func(text string)

	known  map[place]map[string]*sighting // by the engine's name, or its address
	ill    map[place]string               // place → the error that was said
	full   map[place]bool                 // that there are more than are used was said
	wrong  map[place]string               // what engines say of themselves and cannot be read, as it was said
	states atomic.Pointer[[]DiscoveryState]
}

// sighting is one engine, and how many looks in a row it is missing from.
type sighting struct {
	found   config.Found
	missing int
}

// DiscoveryState is how it goes with the engines of one backend.
type DiscoveryState struct {
	Backend  string
	Up       bool // the last look was answered
	Engines  int
	Draining int // of Engines: those that are about to end
}

// States returns how it went at the last look, in the order of the configuration.
func (d *Discovery) States() []DiscoveryState {
	if list := d.states.Load(); list != nil {
		return *list
	}
	return nil
}

// News has an entry when it is worth while to look at once; nil = never.
func (d *Discovery) News() <-chan struct{} {
	if d.Cluster == nil {
		return nil
	}
	return d.Cluster.News()
}

// place is where the engines of a backend are looked up: what was found at
// another one under the same name does not count.
type place struct {
	backend, host, file string
	kubernetes          config.Kubernetes
}

func placeOf(b config.Backend) place {
	at := place{backend: b.Name, file: b.Discover.File, kubernetes: b.Discover.Kubernetes}
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
		found []config.Found
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
		looking.Go(func() { a.found, a.err = d.look(ctx, b) })
	}
	looking.Wait()

	found := make(map[string][]config.Found, len(answers))
	states := []DiscoveryState{}
	for _, b := range cfg.Backends {
		at := placeOf(b)
		a := answers[at]
		if a == nil {
			continue
		}
		d.hear(b, a.found, a.err)
		s := DiscoveryState{Backend: b.Name, Up: a.err == nil}
		for _, name := range slices.Sorted(maps.Keys(d.known[at])) {
			f := d.known[at][name].found
			found[b.Name] = append(found[b.Name], f)
			if s.Engines++; f.Draining {
				s.Draining++
			}
		}
		states = append(states, s)
	}
	d.states.Store(&states)
	return cfg.Expand(found)
}

// look asks for the engines of b.
func (d *Discovery) look(ctx context.Context, b config.Backend) (found []config.Found, err error) {
	if b.Discover.Kubernetes.On() {
		if d.Cluster == nil {
			return nil, errors.New("engines in Kubernetes are found by pacer serve and pacer picker alone")
		}
		return d.Cluster.Look(ctx, b)
	}
	look := d.Look
	if look == nil {
		look = func(ctx context.Context, s providers.Source) ([]string, error) { return s.Look(ctx) }
	}
	addresses, err := look(ctx, providers.Source{URL: b.URL, File: b.Discover.File})
	for _, address := range addresses {
		found = append(found, config.Found{Standing: config.Standing{Address: address}})
	}
	return found, err
}

// Keep forgets what cfg does not look up. It is for a configuration that has
// come into force: one that is refused changes nothing.
func (d *Discovery) Keep(cfg *config.Config) {
	configured := map[place]bool{}
	for _, b := range cfg.Backends {
		configured[placeOf(b)] = true
	}
	maps.DeleteFunc(d.known, func(at place, _ map[string]*sighting) bool { return !configured[at] })
	maps.DeleteFunc(d.wrong, func(at place, _ string) bool { return !configured[at] })
	maps.DeleteFunc(d.full, func(at place, _ bool) bool { return !configured[at] })
	maps.DeleteFunc(d.ill, func(at place, _ string) bool { return !configured[at] })
	if d.Cluster != nil {
		d.Cluster.Keep(cfg.Backends)
	}
}

// hear takes the answer about one backend.
func (d *Discovery) hear(b config.Backend, found []config.Found, err error) {
	if d.known == nil {
		d.known, d.ill, d.full, d.wrong = map[place]map[string]*sighting{}, map[place]string{}, map[place]bool{}, map[place]string{}
	}
	at := placeOf(b)
	switch {
	case err != nil && d.ill[at] != err.Error():
		if d.ill[at] == "" && d.Said != nil {
			d.Said("the engines of " + at.backend + " cannot be looked up; those known stay")
		}
		d.ill[at] = err.Error()
		d.Log.Warn("the engines of a backend cannot be looked up; those known stay", "backend", at.backend, "known", len(d.known[at]), "error", err)
	case err == nil && d.ill[at] != "":
		delete(d.ill, at)
		if d.Said != nil {
			d.Said("the engines of " + at.backend + " can be looked up again")
		}
		d.Log.Info("the engines of a backend can be looked up again", "backend", at.backend)
	}
	known := d.known[at]
	if known == nil {
		known = map[string]*sighting{}
		d.known[at] = known
	}
	sighted := map[string]bool{}
	for _, f := range found {
		name := cmp.Or(f.Name, f.Address)
		sighted[name] = true
		known[name] = &sighting{found: f}
	}
	if err != nil {
		return
	}
	for name, s := range known {
		if !sighted[name] {
			// An API server knows who is gone.
			if s.missing++; s.missing >= goneAfter || b.Discover.Kubernetes.On() {
				delete(known, name)
			}
		}
	}
	d.sayWrong(at, b, known)
	if full := len(known) > config.MaxDiscovered; full != d.full[at] {
		if d.full[at] = full; full {
			d.Log.Warn("a backend has more engines than are used", "backend", at.backend, "found", len(known), "used", config.MaxDiscovered)
		}
	}
}

// sayWrong says once what engines say of themselves that cannot be read.
func (d *Discovery) sayWrong(at place, b config.Backend, known map[string]*sighting) {
	wrong := ""
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, err := b.With(known[name].found.Says); err != nil {
			wrong = name + ": " + err.Error()
			break
		}
	}
	if wrong != d.wrong[at] {
		if d.wrong[at] = wrong; wrong != "" {
			d.Log.Warn("what an engine says of itself cannot be read, and is left out", "backend", at.backend, "engine", wrong)
		}
	}
}

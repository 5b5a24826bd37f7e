package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/providers"
)

const (
	// catalogAge is how long what a backend serves is taken for known.
	catalogAge = time.Minute

	// catalogWait is how long a backend may take to tell.
	catalogWait = 3 * time.Second

	// maxCatalog bounds what one tells, in bytes.
	maxCatalog = 4 << 20
)

// sheet is what one backend incarnation says it serves: a route whose name ends with *
// has no names of its own, and of all others clients learn what the engine says of
// their model. A backend is asked when a client asks, at
// most once in catalogAge, and what it said last stands while it does not answer.
// The zero value is ready; it is safe for concurrent use.
type sheet struct {
	mu     sync.Mutex // held while the backend is asked: the others wait for its answer
	asked  time.Time
	models []model
	known  bool // it has told at least once
}

// of returns what b, whose sheet this is, serves; known is false if it has never
// told.
func (s *sheet) of(ctx context.Context, b *providers.Backend) (models []model, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.asked.IsZero() || now.Sub(s.asked) >= catalogAge {
		if models, err := fetchModels(ctx, b); err == nil {
			s.models, s.known = models, true
		} else if ctx.Err() != nil {
			return s.models, s.known // the client left: the next one asks
		}
		s.asked = now
	}
	return s.models, s.known
}

func fetchModels(ctx context.Context, b *providers.Backend) ([]model, error) {
	ctx, cancel := context.WithTimeout(ctx, catalogWait)
	defer cancel()
	resp, err := b.Send(ctx, providers.Call{Method: http.MethodGet, Path: "/models", RequestID: requestID(ctx)})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errGarbage
	}
	var list modelList
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxCatalog)).Decode(&list); err != nil {
		return nil, err
	}
	models := list.Data[:0]
	for _, m := range list.Data {
		if m.ID != "" {
			models = append(models, m)
		}
	}
	return models, nil
}

// catalogs are what the backends of some routes have told of their models. A
// backend that has never told is in it without any.
type catalogs map[*providers.Backend]catalog

type catalog struct {
	models []model
	known  bool
}

// askCatalogs asks the backends of routes, all at once.
func (p *setup) askCatalogs(ctx context.Context, routes []*route) catalogs {
	all := catalogs{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, rt := range routes {
		for _, t := range rt.conf.Targets {
			b := p.backends[t.Backend]
			if b == nil {
				continue
			}
			mu.Lock()
			_, asked := all[b.Backend]
			if !asked {
				all[b.Backend] = catalog{}
			}
			mu.Unlock()
			if asked {
				continue
			}
			asking.Go(func() {
				models, known := p.sheets[b.Backend].of(ctx, b.Backend)
				mu.Lock()
				all[b.Backend] = catalog{models, known}
				mu.Unlock()
			})
		}
	}
	asking.Wait()
	return all
}

// room are the fields in which engines say how long a prompt and its answer may be.
var room = []string{"max_model_len", "context_length", "context_window", "max_context_length"}

// describe adds to m, which rt serves, what the first of its backends that tells of
// it says; of the room for a prompt the least that any of them has.
func (c catalogs) describe(m model, p *setup, rt *route) model {
	for _, t := range rt.conf.Targets {
		b := p.backends[t.Backend]
		if b == nil {
			continue
		}
		up := cmp.Or(config.Expand(t.Model, rt.name, m.ID), m.ID)
		i := slices.IndexFunc(c[b.Backend].models, func(told model) bool { return told.ID == up })
		if i < 0 {
			continue
		}
		told := c[b.Backend].models[i].shown(p).Told
		if m.Told == nil {
			m.Told = maps.Clone(told)
			continue
		}
		for _, name := range room {
			var have, other float64
			if json.Unmarshal(m.Told[name], &have) == nil && json.Unmarshal(told[name], &other) == nil && other < have {
				m.Told[name] = told[name]
			}
		}
	}
	return m
}

// wildModels returns what the routes serve whose names end with *; known tells
// of a name whether every backend of its route has told what it serves.
func (g *Gateway) wildModels(c catalogs, p *setup, t *tenant) (models []model, known func(name string) bool) {
	open := map[*route]bool{} // some backend has never told, or serves any name
	seen := map[string]bool{}
	for _, r := range p.wild {
		if !t.may(r) {
			continue
		}
		for _, target := range r.conf.Targets {
			b := p.backends[target.Backend]
			if !clientNames(target.Model) || b == nil { // any name is served, by the one model that is configured
				open[r] = true
				continue
			}
			told := c[b.Backend]
			open[r] = open[r] || !told.known
			for _, m := range told.models {
				if m.ID = r.nameOf(target, m.ID); m.ID != "" && p.route(m.ID) == r && !seen[m.ID] {
					seen[m.ID] = true
					m.Terms = g.model(m.ID, r).Terms
					models = append(models, m.shown(p))
				}
			}
		}
	}
	return models, func(name string) bool { r := p.route(name); return r == nil || !open[r] }
}

// nameOf is what clients call a model that the backend of target calls id; "" =
// the route does not ask for it.
func (r *route) nameOf(target config.Target, id string) string {
	before, wild := config.Wildcard(target.Model)
	switch {
	case !wild:
		return id
	case !strings.HasPrefix(id, before):
		return ""
	}
	return r.prefix + id[len(before):]
}

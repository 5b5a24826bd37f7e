package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

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

// sheet is what one backend incarnation of the catch-all route says it serves:
// that route has no names of its own. A backend is asked when a client asks, at
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
			m.Object = "model"
			models = append(models, m)
		}
	}
	return models, nil
}

// rest returns what the catch-all route serves beside the named ones; known is
// false if some backend of it has never told.
func (g *Gateway) rest(ctx context.Context, p *plan, t *tenant) (models []model, known bool) {
	if p.rest == nil || !t.may(p.rest) {
		return nil, true
	}
	known = true
	seen := map[string]bool{}
	for _, target := range p.rest.conf.Targets {
		b := p.backends[target.Backend]
		if target.Model != "" || b == nil { // any name is served, by the one model that is configured
			known = false
			continue
		}
		served, ok := p.sheets[b.Backend].of(ctx, b.Backend)
		known = known && ok
		for _, m := range served {
			if p.routes[m.ID] == nil && !seen[m.ID] {
				seen[m.ID] = true
				models = append(models, m)
			}
		}
	}
	return models, known
}

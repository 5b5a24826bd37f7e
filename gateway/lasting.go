package gateway

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/keep"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// lasting is what a setup has learned and counted, and the next one goes on with:
// each by what it depends on. The maps are read alone.
type lasting struct {
	firstBytes map[*providers.Backend]*firstByteQuantile
	sheets     map[*providers.Backend]*sheet
	prompts    map[string]*promptScale // by the name of a route
	texts      map[router.Target]*textScale
	lastErrors map[router.Target]*lastError
	uploads    map[string]*uploads // by the name of a key
	limits     map[limited]*limit.Limiter
}

// uploads are the bodies that a tenant sends.
type uploads struct {
	held    *budget      // bytes; its limit leaves the others half of all
	sending atomic.Int64 // requests whose bodies are not all there
}

// limited is a key with its limits: others begin anew.
type limited struct {
	key    string
	limits config.KeyLimits
}

// lastingOf returns what c, whose backends are these, needs: of old what stays.
func lastingOf(c *config.Config, backends map[string]*providers.Backend, old lasting) (l lasting) {
	var routes []string
	var targets, named []router.Target
	for _, r := range c.Routes {
		for _, name := range r.Models {
			routes = append(routes, name)
			for _, t := range r.Targets {
				model, separate := c.Upstream(t, name)
				target := router.Target{Backend: t.Backend, Model: model, Separate: separate}
				targets = append(targets, target)
				if !clientNames(model) { // else it has as many tokenizers as clients name models
					named = append(named, target)
				}
			}
		}
	}
	var keys []string
	var limits []limited
	for _, k := range c.Keys {
		keys, limits = append(keys, k.Name), append(limits, limited{k.Name, k.Limits})
	}
	l.firstBytes, _ = keep.Map(old.firstBytes, maps.Values(backends), func(*providers.Backend) *firstByteQuantile { return &firstByteQuantile{} })
	l.sheets, _ = keep.Map(old.sheets, maps.Values(backends), func(*providers.Backend) *sheet { return &sheet{} })
	l.prompts, _ = keep.Map(old.prompts, slices.Values(routes), func(string) *promptScale { return &promptScale{} })
	l.texts, _ = keep.Map(old.texts, slices.Values(named), func(router.Target) *textScale { return &textScale{} })
	l.lastErrors, _ = keep.Map(old.lastErrors, slices.Values(targets), func(router.Target) *lastError { return &lastError{} })
	l.uploads, _ = keep.Map(old.uploads, slices.Values(keys), func(string) *uploads { return &uploads{held: unbounded()} })
	l.limits, _ = keep.Map(old.limits, slices.Values(limits), func(k limited) *limit.Limiter { return limit.New(k.limits) })
	return l
}

package gateway

import (
	"math"
	"slices"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// setup is one configuration, indexed for the request path. It is immutable but
// for what its parts count; a request keeps the setup that it began with.
type setup struct {
	conf     *config.Config
	backends map[string]*backend
	routes   map[string]*route // by model; without those that stand for many
	wild     []*route          // whose name ends with *, those of the longest beginning first; the last may be "*"
	models   []string          // the names of routes, in the order of the configuration
	tenants  []*tenant         // no keys = open
	expose   bool              // send what the fleet looks like
	lasting
}

// backend is one configured backend with the incarnation behind it.
type backend struct {
	*providers.Backend
	engine    string // as the router has it: its URL
	conf      *config.Backend
	fixed     []string // what no error of its, and no header, may repeat, beside its keys
	firstByte *firstByteQuantile

	compresses warning // that it compresses its answers
}

// route is what one model name stands for.
type route struct {
	name   string // as in the router: the model, or what ends with *
	prefix string // of the models of a name that ends with *
	wild   bool   // the name ends with *
	conf   *config.Route
	class  router.Class
	prompt *promptScale

	targets []router.Target   // of the route, and of those that it may go on to
	models  map[string]string // by backend: of its first target there, as the configuration has it

	unattainable warning // that the floor is out of reach
}

// tenant is who holds a key.
type tenant struct {
	name   string
	conf   *config.Key // nil for the tenant of an open gateway
	limits *limit.Limiter
	*uploads
}

// anyone is the tenant of a gateway without keys.
var anyone = &tenant{uploads: &uploads{held: unbounded()}}

func newSetup(c *config.Config, backends map[string]*providers.Backend, old *setup) *setup {
	p := &setup{
		conf:     c,
		backends: make(map[string]*backend, len(c.Backends)),
		routes:   map[string]*route{},
		expose:   len(c.Keys) == 0 || c.ExposeDecision,
	}
	if old != nil {
		p.lasting = old.lasting
	}
	p.lasting = lastingOf(c, backends, p.lasting)
	for i, b := range c.Backends {
		up := backends[b.Name]
		p.backends[b.Name] = &backend{Backend: up, engine: b.Engine(), conf: &c.Backends[i], fixed: secretsOf(b), firstByte: p.firstBytes[up]}
	}
	for i := range c.Routes {
		for _, name := range c.Routes[i].Models {
			r := &route{name: name, conf: &c.Routes[i], prompt: p.prompts[name], models: modelsOf(&c.Routes[i])}
			if c.Routes[i].Class == router.Batch.String() {
				r.class = router.Batch
			}
			if r.prefix, r.wild = config.Wildcard(name); r.wild {
				p.wild = append(p.wild, r)
				continue
			}
			p.routes[name] = r
			p.models = append(p.models, name)
		}
	}
	for _, name := range p.models {
		p.routes[name].targets = p.within(p.routes[name])
	}
	for _, r := range p.wild {
		r.targets = p.within(r)
	}
	slices.SortStableFunc(p.wild, func(a, b *route) int { return len(b.prefix) - len(a.prefix) })
	for i := range c.Keys {
		k := &c.Keys[i]
		t := &tenant{name: k.Name, conf: k, limits: p.limits[limited{k.Name, k.Limits}], uploads: p.uploads[k.Name]}
		p.tenants = append(p.tenants, t)
	}
	for _, t := range p.tenants {
		t.held.limit.Store(p.tenantShare())
	}
	return p
}

// modelsOf returns what conf calls its model at each backend, by its first target there.
func modelsOf(conf *config.Route) map[string]string {
	models := make(map[string]string, len(conf.Targets))
	for _, t := range slices.Backward(conf.Targets) {
		models[t.Backend] = t.Model
	}
	return models
}

// within returns the targets of rt, and of the routes that it may go on to, each
// once.
func (p *setup) within(rt *route) (list []router.Target) {
	add := func(name string, conf *config.Route) {
		for _, t := range conf.Targets {
			model, separate := p.conf.Upstream(t, name)
			if target := (router.Target{Backend: t.Backend, Model: model, Separate: separate}); !slices.Contains(list, target) {
				list = append(list, target)
			}
		}
	}
	add(rt.name, rt.conf)
	further := []string{rt.conf.ContextFallback}
	for _, s := range rt.conf.OnInfeasible {
		further = append(further, s.Spill)
	}
	for _, name := range further {
		if to := p.route(name); to != nil {
			add(to.name, to.conf)
		}
	}
	return list
}

// targets returns every target that some route names, each once.
func (p *setup) targets() (list []router.Target) {
	for _, r := range p.conf.Routes {
		for _, name := range r.Models {
			for _, t := range p.named(name).targets {
				if !slices.Contains(list, t) {
					list = append(list, t)
				}
			}
		}
	}
	return list
}

// named returns the route of that name.
func (p *setup) named(name string) *route {
	if r := p.routes[name]; r != nil {
		return r
	}
	return p.wild[slices.IndexFunc(p.wild, func(r *route) bool { return r.name == name })]
}

// tenantShare is how many bytes of bodies one tenant may hold: half of all, so
// that one who fills the gateway leaves room for the others, and at least one
// body, however it comes. Who is alone may have all.
func (p *setup) tenantShare() int64 {
	if !p.several() {
		return math.MaxInt64
	}
	return max(p.conf.Limits.Buffered/2, p.conf.Limits.Body+onHeap*(smallBody+unzipping))
}

// incarnation returns the backend that l is a lease on, nil if it is none of
// the setup's.
func (p *setup) incarnation(l *router.Lease) *backend {
	if b := p.backends[l.Target().Backend]; b != nil && b.engine == l.Engine() {
		return b
	}
	return nil
}

// route returns what model stands for; nil when no route names it.
func (p *setup) route(model string) *route {
	if r := p.routes[model]; r != nil {
		return r
	}
	for _, r := range p.wild {
		if config.Covers(r.prefix, model) {
			return r
		}
	}
	return nil
}

// called returns the route of that name.
func (p *setup) called(name string) *route {
	if r := p.routes[name]; r != nil {
		return r
	}
	for _, r := range p.wild {
		if r.name == name {
			return r
		}
	}
	return nil
}

// may reports whether t may use r.
func (t *tenant) may(r *route) bool {
	if t.conf == nil || t.conf.Routes == nil {
		return true
	}
	return slices.ContainsFunc(t.conf.Routes, func(name string) bool {
		return name == "*" || slices.Contains(r.conf.Models, name)
	})
}

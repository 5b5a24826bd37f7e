package gateway

import (
	"math"
	"slices"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// plan is one configuration, indexed for the request path. It is immutable but
// for what its parts count; a request keeps the plan that it began with.
type plan struct {
	conf     *config.Config
	backends map[string]*backend
	routes   map[string]*route // by model; without "*"
	rest     *route            // "*": whatever no other route names; nil = refused
	models   []string          // the names of routes, in the order of the configuration
	tenants  []*tenant         // no keys = open
	expose   bool              // send what the fleet looks like
	lasting
}

// backend is one configured backend with the incarnation behind it.
type backend struct {
	*providers.Backend
	engine    string // as the router has it: its URL
	price     config.Price
	secrets   []string // what no error of its, and no header, may repeat; the longest first
	firstByte *firstByteQuantile

	compresses warning // that it compresses its answers
}

// route is what one model name stands for.
type route struct {
	name   string // as in the router: the model, or "*"
	conf   *config.Route
	class  router.Class
	prompt *promptScale

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

func newPlan(c *config.Config, backends map[string]*providers.Backend, old *plan) *plan {
	p := &plan{
		conf:     c,
		backends: make(map[string]*backend, len(c.Backends)),
		routes:   map[string]*route{},
		expose:   len(c.Keys) == 0 || c.ExposeDecision,
	}
	if old != nil {
		p.lasting = old.lasting
	}
	p.lasting = lastingOf(c, backends, p.lasting)
	for _, b := range c.Backends {
		up := backends[b.Name]
		p.backends[b.Name] = &backend{Backend: up, engine: b.Engine(), price: b.Price, secrets: secretsOf(b), firstByte: p.firstBytes[up]}
	}
	for i := range c.Routes {
		for _, name := range c.Routes[i].Models {
			r := &route{name: name, conf: &c.Routes[i], prompt: p.prompts[name]}
			if c.Routes[i].Class == router.Batch.String() {
				r.class = router.Batch
			}
			if name == "*" {
				p.rest = r
				continue
			}
			p.routes[name] = r
			p.models = append(p.models, name)
		}
	}
	for i := range c.Keys {
		k := &c.Keys[i]
		t := &tenant{name: k.Name, conf: k, limits: p.limits[limited{k.Name, k.Limits}], uploads: p.uploads[k.Name]}
		t.held.limit.Store(tenantShare(c))
		p.tenants = append(p.tenants, t)
	}
	return p
}

// tenantShare is how many bytes of bodies one tenant may hold: half of all, so
// that one who fills the gateway leaves room for the others, and at least one
// body, however it comes. Who is alone may have all.
func tenantShare(c *config.Config) int64 {
	if len(c.Keys) < 2 {
		return math.MaxInt64
	}
	return max(c.Limits.Buffered/2, c.Limits.Body+onHeap*(smallBody+unzipping))
}

// incarnation returns the backend that l is a lease on, nil if it is none of
// the plan's.
func (p *plan) incarnation(l *router.Lease) *backend {
	if b := p.backends[l.Target().Backend]; b != nil && b.engine == l.Engine() {
		return b
	}
	return nil
}

// route returns what model stands for; nil when no route names it.
func (p *plan) route(model string) *route {
	if r := p.routes[model]; r != nil {
		return r
	}
	return p.rest
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

package gateway

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/providers"
	"github.com/pacer-dev/pacer/router"
)

// plan is one configuration, indexed for the request path. It is immutable but
// for what its parts count; a request keeps the plan that it began with.
type plan struct {
	conf       *config.Config
	backends   map[string]*backend
	routes     map[string]*route // by model; without "*"
	rest       *route            // "*": whatever no other route names; nil = refused
	models     []string          // the names of routes, in the order of the configuration
	tenants    []*tenant         // no keys = open
	texts      map[router.Target]*textScale
	lastErrors map[router.Target]*lastError
	expose     bool // send what the fleet looks like
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
	held   *budget // bytes of bodies; its limit leaves the others half of all

	sending *atomic.Int64 // requests whose bodies are not all there
}

// anyone is the tenant of a gateway without keys.
var anyone = &tenant{held: unbounded(), sending: &atomic.Int64{}}

func newPlan(c *config.Config, backends map[string]*providers.Backend, old *plan) *plan {
	p := &plan{
		conf:     c,
		backends: make(map[string]*backend, len(c.Backends)),
		routes:   map[string]*route{},
		expose:   len(c.Keys) == 0 || c.ExposeDecision,
	}
	for _, b := range c.Backends {
		firstByte := &firstByteQuantile{}
		if was := old.backend(b.Name); was != nil && was.Backend == backends[b.Name] {
			firstByte = was.firstByte
		}
		p.backends[b.Name] = &backend{Backend: backends[b.Name], engine: b.Engine(), price: b.Price, secrets: secretsOf(b), firstByte: firstByte}
	}
	for i := range c.Routes {
		for _, name := range c.Routes[i].Models {
			r := &route{name: name, conf: &c.Routes[i], prompt: &promptScale{}}
			if c.Routes[i].Class == router.Batch.String() {
				r.class = router.Batch
			}
			if was := old.route(name); was != nil && was.name == name {
				r.prompt = was.prompt
			}
			if name == "*" {
				p.rest = r
				continue
			}
			p.routes[name] = r
			p.models = append(p.models, name)
		}
	}
	p.texts = newTexts(c, p.routes, p.rest, old)
	p.lastErrors = newLastErrors(c, old)
	for i := range c.Keys {
		k := &c.Keys[i]
		t := &tenant{name: k.Name, conf: k, limits: limit.New(k.Limits), held: unbounded(), sending: &atomic.Int64{}}
		if was := old.tenant(k.Name); was != nil {
			t.held, t.sending = was.held, was.sending
			if was.conf.Limits == k.Limits {
				t.limits = was.limits
			}
		}
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
	if p == nil {
		return nil
	}
	if r := p.routes[model]; r != nil {
		return r
	}
	return p.rest
}

func (p *plan) backend(name string) *backend {
	if p == nil {
		return nil
	}
	return p.backends[name]
}

func (p *plan) tenant(name string) *tenant {
	if p == nil {
		return nil
	}
	for _, t := range p.tenants {
		if t.name == name {
			return t
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

package router

import (
	"maps"
	"slices"
	"time"
)

// configure replaces the topology. What keeps its name keeps its identity:
// backends their counts and leases, targets their floors, routes their lines.
func (r *Router) configure(now time.Time, t Topology) []Grant {
	r.replicas = max(t.Replicas, 1)
	r.configureBackends(now, t.Backends)
	grants := r.configureRoutes(now, t.Routes)
	maps.DeleteFunc(r.curves, func(t Target, _ curve) bool {
		b := r.byName[t.Backend]
		return b == nil || b.model(t.Model) == nil
	})
	r.share(now)
	return grants
}

func (r *Router) configureBackends(now time.Time, backends []Backend) {
	before := r.byName
	r.backends, r.byName = nil, make(map[string]*backend, len(backends))
	for _, c := range backends {
		if r.byName[c.Name] != nil {
			continue // the configuration refuses a name twice
		}
		b := before[c.Name]
		if b == nil || b.engine != c.Engine {
			b = r.arrive(now, c)
		}
		b.maxConcurrency = c.MaxConcurrency
		r.backends = append(r.backends, b)
		r.byName[c.Name] = b
	}
	for _, b := range before {
		if r.byName[b.name] != b {
			r.left[incarnation{b.name, b.engine}] = b
		}
	}
	maps.DeleteFunc(r.left, func(_ incarnation, b *backend) bool {
		return r.byName[b.name] == b || b.waiting+b.decoding+b.idle == 0
	})
}

// incarnation names one.
type incarnation struct{ name, engine string }

// arrive returns the incarnation that c asks for: one that left and has leases
// still, for they run on that engine, whoever asks for its name meanwhile, or
// one whose counts are 0.
func (r *Router) arrive(now time.Time, c Backend) *backend {
	b := r.left[incarnation{c.Name, c.Engine}]
	if b == nil {
		b = newBackend(now, r, c.Name, c.Engine)
	}
	b.foreign = foreign{} // what an engine said before it left is old
	if c.Health != Up {
		b.become(c.Health)
	}
	return b
}

func (r *Router) configureRoutes(now time.Time, routes []Route) []Grant {
	before := r.routeOf
	r.routes, r.routeOf = nil, make(map[string]*route, len(routes))
	old := make(map[*backend][]*model, len(r.backends))
	for _, b := range r.backends {
		old[b] = b.models
		b.models, b.routes = nil, nil
	}
	for _, c := range routes {
		if r.routeOf[c.Name] != nil {
			continue
		}
		rt := before[c.Name]
		if rt == nil {
			rt = &route{}
		}
		rt.conf = c
		r.routes = append(r.routes, rt)
		r.routeOf[c.Name] = rt
		r.resolve(rt, old)
	}
	for b, models := range old { // what is no longer configured stays while leases run there
		for _, m := range models {
			if m.leases > 0 && !slices.Contains(b.models, m) {
				m.promised, m.reserve = 0, 0
				b.models = append(b.models, m)
			}
		}
		b.wanted = 0
	}
	for _, rt := range r.routes {
		rt.meetRivals()
	}
	var grants []Grant
	for name, rt := range before {
		if r.routeOf[name] == nil {
			grants = append(grants, r.dismiss(now, rt)...)
		}
	}
	for _, b := range r.backends { // dismissing counted down what is counted anew here
		b.wanted = 0
	}
	for _, rt := range r.routes {
		if rt.lines[Interactive].len() > 0 {
			rt.want(+1)
		}
	}
	return grants
}

// resolve finds or makes the targets of rt, and notes what rt promises there.
func (r *Router) resolve(rt *route, old map[*backend][]*model) {
	rt.models = make([]*model, len(rt.conf.Targets))
	for i, t := range rt.conf.Targets {
		b := r.byName[t.Backend]
		if b == nil {
			continue
		}
		m := b.model(t.Model)
		if m == nil {
			m = reuse(old[b], t.Model)
			if m == nil {
				m = &model{backend: b, name: t.Model}
				m.learn(r.curves[t.Target])
			}
			m.promised, m.reserve = 0, 0
			b.models = append(b.models, m)
		}
		if rt.conf.Class == Interactive && rt.conf.SLO.MinTPS > 0 {
			m.promised = max(m.promised, rt.conf.SLO.MinTPS)
			m.reserve = max(m.reserve, rt.conf.Reserve)
		}
		if !slices.Contains(b.routes, rt) {
			b.routes = append(b.routes, rt)
		}
		rt.models[i] = m
	}
}

// reuse returns the target called name.
func reuse(models []*model, name string) *model {
	for _, m := range models {
		if m.name == name {
			return m
		}
	}
	return nil
}

package router

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// configure replaces the topology. What keeps its name keeps its identity:
// backends their counts and leases, targets their floors, routes their lines.
func (r *Router) configure(now time.Time, t Topology) []Grant {
	r.peers.replicas = max(t.Replicas, 1)
	r.configureBackends(now, t.Backends)
	grants := r.configureRoutes(now, t.Routes)
	maps.DeleteFunc(r.curves, func(t Target, _ curve) bool {
		return r.model(t) == nil
	})
	r.share(now)
	r.lookAt = time.Time{} // there may be new groups
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
		return r.byName[b.name] == b || b.own+b.idle == 0
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
		b = &backend{router: r, name: c.Name, engine: c.Engine}
	}
	for _, g := range b.groups {
		g.foreign = foreign{} // what an engine said before it left is old
	}
	if c.Health != Up {
		b.become(now, BackendHealth{Health: c.Health})
	}
	return b
}

func (r *Router) configureRoutes(now time.Time, routes []Route) []Grant {
	before := r.routeOf
	r.routes, r.routeOf = nil, make(map[string]*route, len(routes))
	old := make(map[*backend]former, len(r.backends))
	for _, b := range r.backends {
		old[b] = b.clear()
	}
	for _, c := range routes {
		if r.routeOf[c.Name] != nil {
			continue
		}
		rt := cmp.Or(before[c.Name], r.gone[c.Name], &route{router: r})
		delete(r.gone, c.Name)
		rt.conf = c
		rt.conf.Prefer, rt.policy = r.prefer(c.Prefer)
		r.routes = append(r.routes, rt)
		r.routeOf[c.Name] = rt
		r.resolve(now, rt, old)
	}
	for b, f := range old {
		b.keep(f)
	}
	for _, rt := range r.routes {
		rt.meetRivals()
	}
	r.meetGuarantees()
	var grants []Grant
	for name, rt := range before {
		if r.routeOf[name] == nil {
			grants = append(grants, r.dismiss(now, rt)...)
			r.gone[name] = rt
		}
	}
	maps.DeleteFunc(r.gone, func(_ string, rt *route) bool { return !rt.running() })
	for _, b := range r.backends { // dismissing counted down what is counted anew here
		for _, g := range b.groups {
			g.yield.wanted = 0
		}
	}
	for _, rt := range r.routes {
		if rt.lines[Interactive].blocks() {
			rt.want(+1)
		}
	}
	return grants
}

// former is what a backend had before it was configured anew.
type former struct {
	groups []*group
	models []*model
}

// clear leaves b without targets, and returns what it had.
func (b *backend) clear() former {
	f := former{groups: b.groups}
	for _, g := range b.groups {
		f.models = append(f.models, g.models...)
		g.models, g.routes, g.retired, g.yield.wanted, g.leastGrace, g.yield.share, g.promised = nil, nil, true, 0, maxLead, 0, 0
		g.held = nil
	}
	b.groups, b.routes = nil, nil
	return f
}

// keep takes back what is no longer configured and has leases still: targets,
// and groups whose targets are counted otherwise or gone. A backend that is left
// without any target keeps its groups as they are.
func (b *backend) keep(f former) {
	for _, m := range f.models {
		if m.leases > 0 && !slices.Contains(m.group.models, m) {
			m.promised, m.promises, m.reserve = 0, nil, 0
			m.group.models = append(m.group.models, m)
			m.group.reprice()
		}
	}
	idle := len(b.groups) == 0
	for _, g := range f.groups {
		if g.retired && (idle || g.own.waiting+g.own.decoding > 0) {
			g.retired = !idle
			b.groups = append(b.groups, g)
		}
	}
}

// resolve finds or makes the targets of rt, and notes what rt promises there.
func (r *Router) resolve(now time.Time, rt *route, old map[*backend]former) {
	rt.models, rt.weights = make([]*model, len(rt.conf.Targets)), 0
	for i, t := range rt.conf.Targets {
		rt.weights += t.Weight
		b := r.byName[t.Backend]
		if b == nil {
			continue
		}
		g := b.regroup(now, t.GroupID(), old[b])
		m := g.model(t.Model)
		if m == nil {
			m = g.adopt(t.Target, old[b])
			m.promised, m.promises, m.reserve = 0, nil, 0
			g.models = append(g.models, m)
			g.reprice()
		}
		if rt.conf.Class == Interactive && rt.conf.SLO.MinTPS > 0 {
			m.promise(rt.conf.SLO.MinTPS)
			m.reserve = max(m.reserve, rt.conf.Reserve)
			g.promised = max(g.promised, m.promised)
		}
		if !slices.Contains(b.routes, rt) {
			b.routes = append(b.routes, rt)
		}
		if !slices.Contains(g.routes, rt) {
			if rt.conf.Class == Interactive {
				g.leastGrace = min(g.leastGrace, rt.grace())
			}
			g.yield.share = max(g.yield.share, rt.batchShare())
			g.routes = append(g.routes, rt)
		}
		rt.models[i] = m
	}
	rt.meetBeside()
}

// promise notes that a route promises floor on m.
func (m *model) promise(floor float64) {
	m.promised = max(m.promised, floor)
	i, found := slices.BinarySearchFunc(m.promises, floor, func(p, floor float64) int { return cmp.Compare(floor, p) })
	if !found {
		m.promises = slices.Insert(m.promises, i, floor)
	}
}

// regroup returns the group called id: of those that b has already, of its
// former ones, or a new one.
func (b *backend) regroup(now time.Time, id GroupID, old former) *group {
	if g := b.group(id); g != nil {
		return g
	}
	g := findGroup(old.groups, id)
	if g == nil {
		g = newGroup(now, b, id)
	}
	g.retired = false
	b.groups = append(b.groups, g)
	return g
}

// adopt returns the target t, which is to be counted in g: the former one of
// that name, with the floors that run there, or a new one. What was learned of
// it holds only where it was counted with the same others.
func (g *group) adopt(t Target, old former) *model {
	i := slices.IndexFunc(old.models, func(m *model) bool { return m.name == t.Model })
	if i < 0 {
		m := &model{group: g, name: t.Model}
		m.learn(g.router.curves[t])
		return m
	}
	m := old.models[i]
	if m.group != g {
		m.group = g
		m.learn(g.router.curves[t])
	}
	return m
}

package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/hostname"
	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/internal/upstream"
)

// check looks at what spans several parts of the file. It runs after all of
// them were read, so that every problem is reported at once.
func (r *reader) check() {
	r.checkPorts()
	r.backends = r.once("backend", ".backends", len(r.cfg.Backends), func(i int) string { return r.cfg.Backends[i].Name })
	r.checkBackends()
	r.routes = r.checkRouteNames()
	for i := range r.cfg.Routes {
		r.checkTargets(i)
		r.checkWildcards(i)
		r.checkSplit(i)
		r.checkMeasured(i)
		r.checkSpills(i)
		r.checkClass(i)
	}
	r.checkGuarantees()
	r.checkCircles()
	r.checkKeys()
	r.checkMoney()
	r.checkUnused()
}

// once reports names that stand twice in a list, and returns the index of each.
func (r *reader) once(what, list string, n int, name func(i int) string) map[string]int {
	at := func(i int) place { return r.at(fmt.Sprintf("%s[%d].name", list, i)) }
	first := map[string]int{}
	for i := range n {
		if j, twice := first[name(i)]; twice {
			r.problem(at(i), "a %s %s stands in line %d already; write another name", what, quote(name(i)), at(j).line)
		} else if name(i) != "" { // else it could not be read
			first[name(i)] = i
		}
	}
	return first
}

// meant ends a message about a name that the file does not have.
func meant(word string, known map[string]int, kind string) string {
	if len(known) == 0 {
		return "write the " + kind
	}
	return spelling.Meant(word, slices.Collect(maps.Keys(known)))
}

// another looks for the route that a field of route i names: it has to be there, and
// another one. use says which to write.
func (r *reader) another(i int, field, to, use string) {
	at := routeAt(i, "."+field)
	name, _, _ := strings.Cut(field, ".")
	switch other, known := r.routes[to]; {
	case to == "":
	case !known:
		r.problem(r.at(at), "%s to the unknown route %s; %s", name, quote(r.raw(at)), meant(to, r.routes, "model of another route"))
	case other == i:
		r.problem(r.at(at), "%s names the route itself; write %s, or leave it out", name, use)
	}
}

// backendAt and the like are paths, for reader.at.
func backendAt(i int, field string) string { return fmt.Sprintf(".backends[%d]%s", i, field) }
func routeAt(i int, field string) string   { return fmt.Sprintf(".routes[%d]%s", i, field) }
func keyAt(i int, field string) string     { return fmt.Sprintf(".keys[%d]%s", i, field) }
func modelAt(i, j int) string              { return routeAt(i, fmt.Sprintf(".models[%d]", j)) }
func stepAt(i, j int) string               { return routeAt(i, fmt.Sprintf(".on_infeasible[%d]", j)) }

func targetAt(i, j int, field string) string {
	return routeAt(i, fmt.Sprintf(".targets[%d]%s", j, field))
}

func (r *reader) checkPorts() {
	c := r.cfg
	if len(c.Keys) == 0 && !hostname.Local(hostname.Of(c.Listen)) {
		r.warn(r.at(".listen"), "listen %s is reachable from other machines and no keys are configured: anyone there may use the backends; add keys:, or listen on 127.0.0.1", c.Listen)
	}
	if len(c.Keys) > 0 && len(c.Hosts) > 0 {
		r.warn(r.at(".hosts"), "hosts has no effect where there are keys: a page needs one; leave it out")
	}
	if c.Admin.Token == "" && len(c.Admin.Tokens) == 0 && c.Admin.OIDC.Issuer == "" && !hostname.Local(hostname.Of(c.Admin.Listen)) {
		r.warn(r.at(".admin.listen"), "admin.listen %s is reachable from other machines and has no token: changing calls are refused; add token:, or listen on 127.0.0.1", c.Admin.Listen)
	}
	if clash(c.Listen, c.Admin.Listen) {
		at := r.at(".listen")
		if r.given(".admin.listen") {
			at = r.at(".admin.listen")
		}
		r.problem(at, "listen and admin.listen are one port; write another port for one of them")
	}
	if c.Replicas > 1 && c.Store.Memory {
		r.warn(r.at(".replicas"), "replicas is %d but the store is memory: each gateway learns alone and assumes the others carry as much as itself; write store: redis://host:6379/0", c.Replicas)
	}
}

// clash tells whether two addresses cannot be listened on at once.
func clash(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || strings.Trim(portA, "0") == "" {
		return false
	}
	every := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "" || ip != nil && ip.IsUnspecified()
	}
	return hostA == hostB || every(hostA) || every(hostB)
}

func (r *reader) checkBackends() {
	urls, pages := map[string]int{}, map[string]int{}
	for i, b := range r.cfg.Backends {
		at := func(field string) place { return r.at(backendAt(i, field)) }
		if b.Usage == usageContinuous && !b.kind().Usage.Continuous {
			r.warn(at(".usage"), "usage: continuous is understood by %s; other engines ignore it, or refuse every stream: write the kind: of the engine, or usage: inject", series(upstream.Continuous(), "and"))
		}
		if b.MetricsURL != "" && b.kind().Pageless() {
			r.warn(at(".metrics_url"), "a backend of kind %s has no page of metrics that tells what its engine runs; leave metrics_url out, or write the kind: of the engine: %s", b.Kind, series(upstream.WithGauges(), "or"))
		}
		if b.MetricsURL != "" && b.Separate() {
			r.problem(at(".metrics_url"), "metrics_url tells the load of all models together, and with models: separate each is counted by itself; leave metrics_url out, or write models: shared")
		}
		if first, twice := urls[b.URL]; twice && b.URL != "" && !b.apart(&r.cfg.Backends[first]) {
			r.problem(at(".url"), "this is the url of backend %s in line %d already, and concurrency belongs to one backend; name its models in targets instead",
				quote(r.cfg.Backends[first].Name), r.at(backendAt(first, ".url")).line)
		} else {
			urls[b.URL] = i
		}
		if first, twice := pages[b.MetricsURL]; twice && b.MetricsURL != "" {
			r.problem(at(".metrics_url"), "this is the metrics_url of backend %s in line %d already, and a page tells the load of one engine; leave one of them out",
				quote(r.cfg.Backends[first].Name), r.at(backendAt(first, ".metrics_url")).line)
		} else {
			pages[b.MetricsURL] = i
		}
	}
}

// checkRouteNames returns the index of the route of each name.
func (r *reader) checkRouteNames() map[string]int {
	lines, routes := map[string]int{}, map[string]int{}
	for i, route := range r.cfg.Routes {
		for j, model := range route.Models {
			at := r.at(modelAt(i, j))
			if first, twice := lines[model]; twice {
				r.problem(at, "the model %s has a route in line %d already; keep one", quote(model), first)
			} else if model != "" { // else it could not be read
				lines[model], routes[model] = at.line, i
			}
		}
	}
	return routes
}

func (r *reader) checkTargets(i int) {
	priced := false
	for j, t := range r.cfg.Routes[i].Targets {
		b, known := r.backends[t.Backend]
		switch {
		case t.Backend == "":
			continue
		case !known:
			at := targetAt(i, j, ".backend")
			r.problem(r.at(at), "unknown backend %s; %s", quote(r.raw(at)), meant(t.Backend, r.backends, "name of one in backends:"))
			continue
		}
		priced = priced || r.cfg.Backends[b].Price != Price{} || len(r.cfg.Prices) > 0
		r.checkDeployment(i, j, &r.cfg.Backends[b])
	}
	if r.cfg.Routes[i].Prefer == "cheapest" && !priced {
		r.warn(r.at(routeAt(i, ".prefer")), "prefer is cheapest but no target has a price: all cost the same; add price: to the backends")
	}
	r.checkHedge(i)
	r.checkContinue(i)
}

// checkDeployment looks at the names that a target puts into its backend's URL.
// Those that clients make up, on a route for all, are the gateway's to check.
func (r *reader) checkDeployment(i, j int, b *Backend) {
	if !b.kind().Deploys(b.URL) {
		return
	}
	const write = "write its name in Azure: letters, digits, dots, - and _, 64 at most"
	target := r.cfg.Routes[i].Targets[j]
	if _, wild := Wildcard(target.Model); wild {
		return
	}
	if target.Model != "" {
		if !upstream.DeploymentName(target.Model) {
			r.problem(r.at(targetAt(i, j, ".backend")), "the model of this target is no name of a deployment; %s", write)
		}
		return
	}
	for k, name := range r.cfg.Routes[i].Models {
		if _, wild := Wildcard(name); !wild && !upstream.DeploymentName(name) {
			r.problem(r.at(modelAt(i, k)), "this name goes up unchanged to backend %s, and is none of a deployment; give the target a model:, or %s", quote(b.Name), write)
		}
	}
}

// checkHedge warns of a second attempt that no request of the route can have.
func (r *reader) checkHedge(i int) {
	route := &r.cfg.Routes[i]
	if !route.Hedge {
		return
	}
	alone := !slices.ContainsFunc(route.Targets, func(t Target) bool { return t.Backend != route.Targets[0].Backend })
	switch {
	case alone:
		r.warn(r.at(routeAt(i, ".hedge")), "hedge has no effect: all targets of the route are on one backend; add a target on another one")
	case route.Class == classBatch:
		r.warn(r.at(routeAt(i, ".hedge")), "hedge has no effect on a batch route, but for requests that ask to be interactive; leave it out")
	}
}

// checkContinue warns of streams that have nowhere to go on.
func (r *reader) checkContinue(i int) {
	route, able := &r.cfg.Routes[i], map[string]bool{}
	if !route.Continue {
		return
	}
	for _, t := range route.Targets {
		if at, ok := r.backends[t.Backend]; ok && upstream.Of(r.cfg.Backends[at].Kind).Continue != upstream.NoContinue {
			able[t.Backend] = true
		}
	}
	if len(able) < 2 {
		r.warn(r.at(routeAt(i, ".continue")), "continue has no effect: a stream goes on at another backend of kind vllm, sglang or llamacpp, and the route has not two of them; write kind:, or add a target")
	}
}

// checkMeasured warns of targets whose curve a floor needs and nothing teaches.
func (r *reader) checkMeasured(i int) {
	route := r.cfg.Routes[i]
	if route.SLO.MinTPS <= 0 {
		return
	}
	for j, t := range route.Targets {
		k, known := r.backends[t.Backend]
		if !known {
			continue
		}
		if b := r.cfg.Backends[k]; b.Usage == usageNever && b.Prior.Preset == "" && len(b.Prior.Points) == 0 {
			r.warn(r.at(targetAt(i, j, ".backend")), "min_tps needs to know how fast backend %s is, and with usage: never the tokens of answers that do not tell them unasked are counted by their text, which may be far off in other scripts than Latin; write usage: inject for it, or give it a prior:", quote(b.Name))
		}
	}
}

func (r *reader) checkSpills(i int) {
	route := &r.cfg.Routes[i]
	r.another(i, "shadow.route", route.Shadow.Route, "another one")
	r.another(i, "context_fallback", route.ContextFallback, "one whose targets take longer prompts")
	for j, s := range route.OnInfeasible {
		r.spill(stepAt(i, j), s.Spill, "model of another route")
	}
}

// spill looks for the route that what stands at a path spills into; "" = into none.
func (r *reader) spill(at, to, kind string) {
	if _, known := r.routes[to]; to != "" && !known {
		r.problem(r.at(at), "spill to the unknown route %s; %s", quote(r.raw(at+".spill")), meant(to, r.routes, kind))
	}
}

// checkClass refuses a floor on a batch route.
func (r *reader) checkClass(i int) {
	route := r.cfg.Routes[i]
	if route.Class == classBatch && route.SLO.MinTPS > 0 {
		r.problem(r.at(routeAt(i, ".slo")), "a batch route has no floor; leave min_tps out, or write class: interactive")
	}
	if g := route.SLO.Guarantee; g.Share > 0 && route.SLO.MinTPS <= 0 && r.uncapped(i) {
		r.problem(r.at(routeAt(i, ".slo.guarantee")), "a share is of what the targets carry at the floor, and this route has none; add min_tps, or write a number of places")
	}
}

// uncapped reports whether a target of the route has no max_concurrency.
func (r *reader) uncapped(i int) bool {
	return slices.ContainsFunc(r.cfg.Routes[i].Targets, func(t Target) bool {
		k, known := r.backends[t.Backend]
		return known && r.cfg.Backends[k].MaxConcurrency == 0
	})
}

// checkGuarantees warns where more is promised on a backend than it takes, as far as
// its cap and the routes that have no other backend tell.
func (r *reader) checkGuarantees() {
	for i, b := range r.cfg.Backends {
		places, share := 0, 0.0
		for _, route := range r.cfg.Routes {
			if slices.ContainsFunc(route.Targets, func(t Target) bool { return t.Backend != b.Name }) {
				continue
			}
			places += route.SLO.Guarantee.Places * len(route.Models)
			share += route.SLO.Guarantee.Share * float64(len(route.Models))
		}
		switch {
		case b.MaxConcurrency > 0 && places > b.MaxConcurrency:
			r.warn(r.at(backendAt(i, ".max_concurrency")), "%d places are guaranteed on backend %s, which takes %d at once: who comes first has them; lower a guarantee, or raise max_concurrency", places, quote(b.Name), b.MaxConcurrency)
		case share > 1:
			r.warn(r.at(backendAt(i, "")), "%.3g %% of backend %s are guaranteed: who comes first has them; lower a guarantee", 100*share, quote(b.Name))
		}
	}
}

// checkCircles finds routes that spill into each other for ever.
func (r *reader) checkCircles() {
	const fresh, open, done = 0, 1, 2
	state := make([]int, len(r.cfg.Routes))
	var trail []string
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		for j, s := range r.cfg.Routes[i].OnInfeasible {
			next, known := r.routes[s.Spill]
			if s.Spill == "" || !known {
				continue
			}
			trail = append(trail, s.Spill)
			switch state[next] {
			case open:
				r.problem(r.at(stepAt(i, j)), "routes spill in a circle: %s; take one of the spills out", circle(trail, r.routes))
			case fresh:
				visit(next)
			}
			trail = trail[:len(trail)-1]
		}
		state[i] = done
	}
	for i := range r.cfg.Routes {
		if state[i] == fresh && len(r.cfg.Routes[i].Models) > 0 {
			trail = append(trail[:0], r.cfg.Routes[i].Models[0])
			visit(i)
		}
	}
}

// circle shows the part of the trail that its last route closes.
func circle(trail []string, routes map[string]int) string {
	last := len(trail) - 1
	start := 0
	for i := range last {
		if routes[trail[i]] == routes[trail[last]] {
			start = i
		}
	}
	const most = 8 // names shown
	names := slices.Clone(trail[start:])
	if len(names) > most {
		names = slices.Concat(names[:most-2], []string{"…"}, names[len(names)-1:])
	}
	return strings.Join(names, " → ")
}

func (r *reader) checkKeys() {
	r.once("key", ".keys", len(r.cfg.Keys), func(i int) string { return r.cfg.Keys[i].Name })
	sums := map[[sha256.Size]byte]int{}
	for i, k := range r.cfg.Keys {
		read := k.SHA256 != [sha256.Size]byte{}
		if first, twice := sums[k.SHA256]; twice && read {
			r.problem(r.at(keyAt(i, ".key_sha256")), "this is the key %s in line %d again; give each its own", quote(r.cfg.Keys[first].Name), r.at(keyAt(first, ".key_sha256")).line)
		} else if read {
			sums[k.SHA256] = i
		}
		for j, name := range k.Routes {
			at := keyAt(i, fmt.Sprintf(".routes[%d]", j))
			if _, known := r.routes[name]; !known && name != "" && !slices.Contains(k.Routes[:j], name) {
				r.problem(r.at(at), "unknown route %s; %s", quote(r.raw(at)), meant(name, r.routes, "model of a route"))
			}
		}
	}
}

// checkUnused warns of backends that no route names.
func (r *reader) checkUnused() {
	used := map[string]bool{}
	for _, route := range r.cfg.Routes {
		for _, t := range route.Targets {
			used[t.Backend] = true
		}
	}
	for name, i := range r.backends {
		if !used[name] {
			r.warn(r.at(backendAt(i, ".name")), "no route has a target on the backend %s: it serves nobody", quote(name))
		}
	}
}

package gateway

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/endpoint"
)

// methods are the handlers of one path.
type methods map[string]http.HandlerFunc

// routes is the table of what the data port serves. Whatever is not in it is
// 404, and what is asked with another method 405.
func (g *Gateway) routes() http.Handler {
	table := map[string]http.HandlerFunc{}
	add := func(path string, e methods) {
		table[path] = func(w http.ResponseWriter, r *http.Request) { g.dispatch(w, r, e) }
	}
	for path, h := range map[string]http.HandlerFunc{
		"/healthz": g.healthz,
		"/readyz":  g.readyz,
		"/health":  g.readyz, // as the engines call it
	} {
		add(path, methods{http.MethodGet: h, http.MethodHead: h})
		add(path+"/", methods{http.MethodGet: h, http.MethodHead: h})
	}
	for _, base := range []string{"/v1", "", "/openai/v1"} {
		show := g.showModel(base + "/models/")
		add(base+"/models", methods{http.MethodGet: g.listModels, http.MethodHead: g.listModels})
		add(base+"/models/*", methods{http.MethodGet: show, http.MethodHead: show})
		table[base+"/models/*"] = g.withGenerate(table[base+"/models/*"])
	}
	for _, end := range endpoint.All() {
		for _, at := range end.Addresses() {
			e := served(end, g.journey(end, at.Base))
			add(at.Path, e)
			if !strings.HasSuffix(at.Path, "*") {
				add(at.Path+"/", e)
			}
		}
	}
	if g.batches != nil {
		g.batchRoutes(add)
	}
	for _, base := range endpoint.GoogleBases() {
		table[base+"*"] = g.google(base)
	}
	for _, base := range endpoint.ModelBases() {
		table[base+"*"] = g.named(base)
	}
	mux := chi.NewRouter()
	mux.NotFound(g.unknown)
	// chi asks this one only for methods that it does not know itself, on
	// whatever path.
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		ctx := chi.NewRouteContext()
		if !mux.Match(ctx, http.MethodGet, r.URL.Path) {
			g.unknown(w, r)
			return
		}
		table[ctx.RoutePattern()](w, r)
	})
	for path, h := range table { // behind those two: chi walks through all that it has when it is told one
		mux.HandleFunc(path, h)
	}
	// Most addresses are one path: those need no search.
	paths := maps.Clone(table)
	maps.DeleteFunc(paths, func(path string, _ http.HandlerFunc) bool { return strings.ContainsAny(path, "*{") })
	direct := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := paths[r.URL.Path]; h != nil && r.URL.RawPath == "" {
			h(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return &port{clientconn.Early(g.guard(g.crossOrigin(g.webPages(direct))))}
}

// port is a handler that can be compared, as those of chi can.
type port struct{ http.Handler }

// served returns the methods of end, which all go on the journey.
func served(end *endpoint.Endpoint, journey http.HandlerFunc) methods {
	m := methods{}
	for _, method := range end.AskedWith() {
		m[method] = journey
	}
	return m
}

// named returns the handler of what is below base, which has the model in its
// path.
func (g *Gateway) named(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		end, model := endpoint.Named(r.URL.Path[len(base):])
		if end == nil {
			g.unknown(w, r)
			return
		}
		g.dispatch(w, r, served(end, func(w http.ResponseWriter, r *http.Request) {
			g.travel(w, request{http: r, end: end, path: end.Path, named: model})
		}))
	}
}

func (g *Gateway) dispatch(w http.ResponseWriter, r *http.Request, table methods) {
	if h := table[r.Method]; h != nil {
		h(w, r)
		return
	}
	w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(table)), ", "))
	g.refuse(w, r, errWrongMethod)
}

// unknown refuses what is not in the table: below the base URL an endpoint that
// is not served, elsewhere a base URL that is wrong.
func (g *Gateway) unknown(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/") && !strings.HasPrefix(r.URL.Path, "/v1/v1/") {
		g.refuse(w, r, errUnserved)
		return
	}
	g.refuse(w, r, errUnknownPath)
}

// refuse answers what does not become an exchange, and logs it.
func (g *Gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	a := answerFor(err)
	a.write(w, r)
	g.logSimple(r, a.status, err)
}

// logSimple writes the access-log line of a request that is no exchange. Of
// the address only the path is logged: a query may hold a key.
func (g *Gateway) logSimple(r *http.Request, status int, err error) {
	args := []any{"request", requestID(r.Context()), "client", g.setup.Load().client(r), "method", r.Method, "path", r.URL.Path, "status", status}
	if err != nil {
		args = append(args, "error", err.Error())
	}
	g.access.Info("request", args...)
}

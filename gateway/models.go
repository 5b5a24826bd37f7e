package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// model is one entry of GET /v1/models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // unix seconds
	OwnedBy string `json:"owned_by"`
}

type modelList struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

func (g *Gateway) model(id string) model {
	return model{ID: id, Object: "model", Created: g.started.Unix(), OwnedBy: "pacer"}
}

// listModels answers with the routes that the key may use, and, if it may use
// the catch-all, with what the backends behind that say they serve.
func (g *Gateway) listModels(w http.ResponseWriter, r *http.Request) {
	p := g.plan.Load()
	t, err := p.authenticate(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	list := modelList{Object: "list", Data: []model{}}
	for _, name := range p.models {
		if t.may(p.routes[name]) {
			list.Data = append(list.Data, g.model(name))
		}
	}
	rest, _ := g.rest(r.Context(), p, t)
	list.Data = append(list.Data, rest...)
	g.sendJSON(w, r, list)
}

// showModel answers for one model, which base stands before in the path. Its id may hold slashes, plain or as %2F:
// the path is already decoded. What the catch-all route would send on is
// there, unless its backends have told what they serve, and it is not that.
func (g *Gateway) showModel(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if id := strings.TrimPrefix(r.URL.Path, base); id == "" {
			g.listModels(w, r)
		} else {
			g.modelOf(w, r, id)
		}
	}
}

func (g *Gateway) modelOf(w http.ResponseWriter, r *http.Request, id string) {
	p := g.plan.Load()
	t, err := p.authenticate(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	if rt := p.route(id); rt == nil || !t.may(rt) {
		g.refuse(w, r, &unknownModelError{model: id})
		return
	}
	if p.routes[id] == nil {
		models, known := g.rest(r.Context(), p, t)
		if i := slices.IndexFunc(models, func(m model) bool { return m.ID == id }); i >= 0 {
			g.sendJSON(w, r, models[i])
			return
		}
		if known {
			g.refuse(w, r, &unknownModelError{model: id})
			return
		}
	}
	g.sendJSON(w, r, g.model(id))
}

// healthz says that the process lives.
func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
}

// readyz says whether requests are welcome here.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	switch {
	case g.draining.Load():
		answerFor(errDraining).write(w, r)
	case !g.router.InService():
		answerFor(errNoBackend).write(w, r)
	default:
		g.healthz(w, r)
	}
}

func (g *Gateway) sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client's loss if it is gone
	g.logSimple(r, http.StatusOK, nil)
}

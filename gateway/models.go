package gateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/router"
)

// model is one entry of GET /v1/models.
type model struct {
	ID      string
	Object  string
	Created int64 // unix seconds
	OwnedBy string
	Terms   *terms                     // nil = it is not Pacer's own
	Told    map[string]json.RawMessage // what else its engine says of it, by name
}

// terms are what Pacer itself says of a model: what its route promises.
type terms struct {
	Floor *float64 `json:"floor"` // tokens/s for one stream; null = there is none
	Class string   `json:"class"`
}

// MarshalJSON has what engines say beside what OpenAI's API has.
func (m model) MarshalJSON() ([]byte, error) {
	all := maps.Clone(m.Told)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	own := map[string]any{"id": m.ID, "object": m.Object, "created": m.Created, "owned_by": m.OwnedBy}
	if m.Terms != nil {
		own["pacer"] = m.Terms
	}
	for name, v := range own {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		all[name] = text
	}
	return json.Marshal(all)
}

// inside are fields of engines that say where their files lie.
var inside = []string{"root", "parent", "permission"}

// UnmarshalJSON reads what an engine says. What of it has another form than
// OpenAI's is left out.
func (m *model) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*m = model{Object: "model"}
	for name, to := range map[string]any{"id": &m.ID, "created": &m.Created, "owned_by": &m.OwnedBy, "object": new(any), "pacer": new(any)} {
		_ = json.Unmarshal(all[name], to) // of another form it says nothing
		delete(all, name)
	}
	m.Told = all
	return nil
}

// shown is m without what no client with a key is to see.
func (m model) shown(p *setup) model {
	if !p.expose {
		m.Told = maps.Clone(m.Told)
		for _, name := range inside {
			delete(m.Told, name)
		}
	}
	return m
}

type modelList struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

// model is what clients read of the name id of rt.
func (g *Gateway) model(id string, rt *route) model {
	m := model{ID: id, Object: "model", Created: g.started.Unix(), OwnedBy: "pacer"}
	m.Terms = &terms{Class: rt.class.String()}
	if floor := rt.conf.SLO.MinTPS; floor > 0 && rt.class != router.Batch {
		m.Terms.Floor = &floor
	}
	return m
}

// listModels answers with the routes that the key may use, and, for those
// whose names end with *, with what the backends behind them say they serve.
func (g *Gateway) listModels(w http.ResponseWriter, r *http.Request) {
	if ofGoogle(r) {
		g.googleModels(w, r, "")
		return
	}
	p := g.setup.Load()
	t, err := p.authenticate(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	var routes []*route
	for _, name := range p.models {
		if rt := p.routes[name]; t.may(rt) {
			routes = append(routes, rt)
		}
	}
	for _, rt := range p.wild {
		if t.may(rt) {
			routes = append(routes, rt)
		}
	}
	told := p.askCatalogs(r.Context(), routes)
	list := modelList{Object: "list", Data: []model{}}
	for _, rt := range routes {
		if !rt.wild {
			list.Data = append(list.Data, told.describe(g.model(rt.name, rt), p, rt))
		}
	}
	wild, _ := g.wildModels(told, p, t)
	list.Data = append(list.Data, wild...)
	if ofAnthropic(r) {
		g.sendJSON(w, r, forAnthropic(list.Data))
		return
	}
	g.sendJSON(w, r, list)
}

// showModel answers for one model, which base stands before in the path. Its id may hold slashes, plain or as %2F:
// the path is already decoded. What a route for many names would send on is
// there, unless its backends have told what they serve, and it is not that. A slash at
// the end is one of the address where no route has it in its name.
func (g *Gateway) showModel(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, base)
		if rt := g.setup.Load().route(id); rt == nil || rt.wild {
			id = strings.TrimSuffix(id, "/")
		}
		if id == "" {
			g.listModels(w, r)
		} else {
			g.modelOf(w, r, id)
		}
	}
}

func (g *Gateway) modelOf(w http.ResponseWriter, r *http.Request, id string) {
	if ofGoogle(r) {
		g.googleModels(w, r, id)
		return
	}
	p := g.setup.Load()
	t, err := p.authenticate(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	rt := p.route(id)
	if rt == nil || !t.may(rt) {
		g.refuse(w, r, &unknownModelError{model: id})
		return
	}
	told := p.askCatalogs(r.Context(), []*route{rt})
	m := told.describe(g.model(id, rt), p, rt)
	if rt.wild {
		models, known := g.wildModels(told, p, t)
		i := slices.IndexFunc(models, func(m model) bool { return m.ID == id })
		switch {
		case i >= 0:
			m = models[i]
		case known(id):
			g.refuse(w, r, &unknownModelError{model: id})
			return
		}
	}
	if ofAnthropic(r) {
		m = m.forAnthropic()
	}
	g.sendJSON(w, r, m)
}

// healthz says that the process lives.
func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
}

func (g *Gateway) sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client's loss if it is gone
	g.logSimple(r, http.StatusOK, nil)
}

package gateway

import (
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/internal/openai"
)

// indexResponse looks for the id of t's answer in p, and remembers who stores it.
func (t *attempt) indexResponse(p []byte) {
	id := t.answer.id.find(p, t.answer.events, &t.memory)
	if id == "" {
		return
	}
	route := t.route.name
	if t.decision.Spilled != "" {
		route = t.decision.Spilled
	}
	t.g.responses.put(responseHome{key: responseKey{t.tenant.name, id}, backend: t.name(), route: route, used: time.Now()})
}

// resolveStored finds who keeps the answer that the path names. That it is
// another's, or no longer remembered, looks the same as that there is none.
func (o *order) resolveStored() error {
	id := chi.URLParam(o.request.http, "id")
	p, ok := o.g.responses.get(time.Now(), responseKey{o.tenant.name, id})
	if !ok || !openai.SaneResponseID(id) || o.setup.backends[p.backend] == nil {
		return &unknownResponseError{id: id}
	}
	rt := o.setup.called(p.route)
	if rt == nil || !o.setup.reaches(rt, p.is) {
		return &unknownResponseError{id: id}
	}
	o.route, o.objective.class, o.owner = rt, rt.class, p.backend
	return nil
}

// resolvePrevious holds a request that goes on from an earlier answer to the
// backend that keeps it. Where nobody else could have it, as behind an open
// gateway with one backend, the backend itself is asked whether it knows it.
func (o *order) resolvePrevious() error {
	id := o.request.parsed.PreviousResponseID
	if !o.request.end.Continues || id == "" {
		return nil
	}
	p, ok := o.g.responses.get(time.Now(), responseKey{o.tenant.name, id})
	switch {
	case ok && o.setup.reaches(o.route, p.is):
		o.owner = p.backend
	case !ok && o.tenant.conf == nil && len(o.setup.conf.Backends) == 1:
	default:
		return &unknownResponseError{id: id, previous: true}
	}
	return nil
}

// unknownResponseError reports an answer that no backend is known to keep.
type unknownResponseError struct {
	id       string
	previous bool // it was to be gone on from
}

func (e *unknownResponseError) Error() string {
	return "gateway: unknown response " + strings.ToValidUTF8(e.id[:min(len(e.id), 120)], "")
}

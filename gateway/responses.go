package gateway

import (
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/internal/openai"
)

// indexResponse looks for the id of t's answer in p, and remembers who stores it.
func (x *exchange) indexResponse(t *attempt, p []byte) {
	id := t.answer.id.find(p, t.answer.events, &x.memory)
	if id == "" {
		return
	}
	route := x.route.name
	if t.decision.Spilled != "" {
		route = t.decision.Spilled
	}
	x.g.responses.put(responseHome{key: responseKey{x.tenant.name, id}, backend: t.name(), route: route, used: time.Now()})
}

// resolveStored finds who keeps the answer that the path names. That it is
// another's, or no longer remembered, looks the same as that there is none.
func (x *exchange) resolveStored() error {
	id := chi.URLParam(x.request.http, "id")
	p, ok := x.g.responses.get(time.Now(), responseKey{x.tenant.name, id})
	if !ok || !openai.SaneResponseID(id) || x.plan.backends[p.backend] == nil {
		return &unknownResponseError{id: id}
	}
	rt := x.plan.called(p.route)
	if rt == nil || !x.plan.reaches(rt, p.is) {
		return &unknownResponseError{id: id}
	}
	x.route, x.objective.class, x.owner = rt, rt.class, p.backend
	return nil
}

// resolvePrevious holds a request that goes on from an earlier answer to the
// backend that keeps it. Where nobody else could have it, as behind an open
// gateway with one backend, the backend itself is asked whether it knows it.
func (x *exchange) resolvePrevious() error {
	id := x.request.parsed.PreviousResponseID
	if !x.request.end.Continues || id == "" {
		return nil
	}
	p, ok := x.g.responses.get(time.Now(), responseKey{x.tenant.name, id})
	switch {
	case ok && x.plan.reaches(x.route, p.is):
		x.owner = p.backend
	case !ok && x.tenant.conf == nil && len(x.plan.conf.Backends) == 1:
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

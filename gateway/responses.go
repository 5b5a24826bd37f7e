package gateway

import (
	"bytes"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/internal/openai"
)

const (
	// maxBirth is how much of an answer is searched for its id, in bytes, and
	// maxBirthReads in how many reads.
	maxBirth      = 64 << 10
	maxBirthReads = 32
)

// newborn is the search for the id of an answer that its backend will keep.
type newborn struct {
	text  []byte // as far as it came; the budget for bodies covers it
	reads int
	over  bool
}

// noteID looks for the id of the answer in p, and remembers who keeps it.
func (x *exchange) noteID(p []byte) {
	b := &x.newborn
	if b.over {
		return
	}
	b.reads++
	if len(b.text)+len(p) > maxBirth || b.reads > maxBirthReads || !x.hold(int64(len(p))) {
		b.text, b.over = nil, true
		return
	}
	b.text = append(b.text, p...)
	text := b.text
	if x.try.events {
		at := bytes.Index(text, []byte("data:"))
		if at < 0 {
			return
		}
		text = text[at+len("data:"):]
	}
	id := openai.ResponseID(text)
	if id == "" {
		return
	}
	b.text, b.over = nil, true
	route := x.route.name
	if x.decision.Spilled != "" {
		route = x.decision.Spilled
	}
	x.g.responses.put(responseHome{key: responseKey{x.tenant.name, id}, backend: x.try.name, route: route, used: time.Now()})
}

// wishStored finds who keeps the answer that the path names. That it is
// another's, or no longer remembered, looks the same as that there is none.
func (x *exchange) wishStored() error {
	id := chi.URLParam(x.r, "id")
	p, ok := x.g.responses.get(time.Now(), responseKey{x.tenant.name, id})
	if !ok || !openai.SaneResponseID(id) || x.plan.backends[p.backend] == nil {
		return &unknownResponseError{id: id}
	}
	rt := x.plan.routes[p.route]
	if rt == nil && x.plan.rest != nil && p.route == x.plan.rest.name {
		rt = x.plan.rest
	}
	if rt == nil || !x.plan.reaches(rt, p.is) {
		return &unknownResponseError{id: id}
	}
	x.route, x.class, x.pinned = rt, rt.class, p.backend
	return nil
}

// wishPrevious holds a request that goes on from an earlier answer to the
// backend that keeps it. Where nobody else could have it, as behind an open
// gateway with one backend, the backend itself is asked whether it knows it.
func (x *exchange) wishPrevious() error {
	id := x.req.PreviousResponseID
	if !x.end.Stores || id == "" {
		return nil
	}
	p, ok := x.g.responses.get(time.Now(), responseKey{x.tenant.name, id})
	switch {
	case ok && x.plan.reaches(x.route, p.is):
		x.pinned = p.backend
	case !ok && x.tenant.conf == nil && len(x.plan.conf.Backends) == 1:
	default:
		return &unknownResponseError{id: id, previous: true}
	}
	return nil
}

// upPath is the path of the request at the backend, with the client's query.
func (x *exchange) upPath() string {
	if q := x.r.URL.RawQuery; q != "" {
		return x.path + "?" + q
	}
	return x.path
}

// unknownResponseError reports an answer that no backend is known to keep.
type unknownResponseError struct {
	id       string
	previous bool // it was to be gone on from
}

func (e *unknownResponseError) Error() string {
	return "gateway: unknown response " + strings.ToValidUTF8(e.id[:min(len(e.id), 120)], "")
}

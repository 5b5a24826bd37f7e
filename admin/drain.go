package admin

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// serveDrain takes a backend out of service for new requests, or puts it back
// in. What runs on it goes on; in_flight says how much that is, on this replica
// and, as n and m, on all of them.
func (p *port) serveDrain(drained bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := chi.URLParam(r, "name")
		r, ok := p.allows(w, r, operator)
		if !ok {
			return
		}
		if p.o.Drain == nil || !p.o.Drain(name, drained) {
			var names []string
			for _, b := range p.o.Config().Backends {
				names = append(names, b.Name)
			}
			fail(w, http.StatusNotFound, "backend_not_found", "there is no backend of that name; "+spelling.Meant(name, names))
			return
		}
		a := api.Drained{Backend: name, Health: "gone"}
		for _, l := range p.o.Router.Loads() {
			if l.Backend == name {
				a.Health, _ = healthOf(l)
				a.InFlight = api.InFlight{Waiting: l.Waiting, Decoding: l.Decoding, N: l.N, M: l.M}
			}
		}
		p.note(r, map[bool]string{true: "backend.drain", false: "backend.resume"}[drained], name)
		send(w, http.StatusOK, a)
	}
}

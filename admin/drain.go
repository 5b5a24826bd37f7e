package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/spelling"
)

// serveDrain takes a backend out of service for new requests, or puts it back
// in. What runs on it goes on; in_flight says how much that is, on this replica
// and, as n and m, on all of them.
func (p *port) serveDrain(drained bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := chi.URLParam(r, "name")
		if !p.authorized(w, r) {
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
				a.Health, _ = healthOf(l.Health)
				a.InFlight = api.InFlight{Waiting: l.Waiting, Decoding: l.Decoding, N: l.N, M: l.M}
			}
		}
		send(w, http.StatusOK, a)
	}
}

// authorized answers a call that changes something unless it carries the
// token of the configuration.
func (p *port) authorized(w http.ResponseWriter, r *http.Request) bool {
	token := p.settings().conf.Admin.Token.Reveal()
	if token == "" {
		fail(w, http.StatusForbidden, "no_admin_token", "calls that change something need a token; configure admin.token, and send it as Authorization: Bearer TOKEN")
		return false
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(strings.TrimSpace(shown)))
	if !ok || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, http.StatusUnauthorized, "invalid_admin_token", "the admin token is missing or wrong; send Authorization: Bearer TOKEN with the value of admin.token")
		return false
	}
	clientconn.Known(r.Context())
	return true
}

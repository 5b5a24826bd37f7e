package admin

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/pacer-dev/pacer/api"
)

func fail(w http.ResponseWriter, status int, code, message string) {
	send(w, status, api.Refusal{Error: api.Error{Message: message, Type: "invalid_request_error", Code: code}})
}

// badQuery refuses the query parameter param, or with "" all of the query.
func badQuery(w http.ResponseWriter, param, message string) {
	r := api.Refusal{Error: api.Error{Message: message, Type: "invalid_request_error", Code: "invalid_query"}}
	if param != "" {
		r.Error.Param = &param
	}
	send(w, http.StatusBadRequest, r)
}

func send(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n'))
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, "not_found", "nothing is here; the admin port has /, /metrics, /healthz, /api/v1/profiles, /api/v1/routes, /api/v1/history, /api/v1/timeline, /api/v1/usage, /api/v1/jobs, /api/v1/scorecard, /api/v1/keys, /api/v1/audit, /api/v1/session, /api/v1/decisions, /api/v1/explain, /api/v1/plan, /api/v1/events, /api/v1/backends/NAME/drain or resume, and /api/openapi.json")
}

// wrongMethod refuses a path of mux that is there, but not with this method.
func wrongMethod(mux *chi.Mux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if mux.Match(chi.NewRouteContext(), method, r.URL.Path) {
				allowed = append(allowed, method)
				if method == http.MethodGet && r.URL.Path != eventsPath {
					allowed = append(allowed, http.MethodHead)
				}
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "only "+strings.Join(allowed, ", ")+" is answered here")
	}
}

// eventsPath is where the page listens.
const eventsPath = "/api/v1/events"

// heads has HEAD answered as GET is, without the body, which the server leaves out:
// so health checks ask, such as wget --spider. Events have no end that it could wait for.
func heads(next http.Handler) http.Handler {
	asGet := middleware.GetHead(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == eventsPath {
			next.ServeHTTP(w, r)
			return
		}
		asGet.ServeHTTP(w, r)
	})
}

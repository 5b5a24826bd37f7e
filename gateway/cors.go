package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// crossOrigin lets pages of the configured origins use the data port. It does
// nothing while none are configured. A preflight carries no key, so it is
// answered before anybody is asked for one.
func (g *Gateway) crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := g.setup.Load().conf.CORS
		if len(c.Origins) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" || !slices.Contains(c.Origins, origin) && !slices.Contains(c.Origins, "*") {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			h.Set("Access-Control-Expose-Headers", "x-request-id, request-id, x-pacer-backend, x-pacer-decision, x-pacer-predicted-tps, x-pacer-cost-usd, x-pacer-tokens, x-pacer-dropped, "+
				"retry-after, retry-after-ms, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "+
				"x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens")
			next.ServeHTTP(w, r)
			return
		}
		// "*" would not cover authorization, and SDKs send headers of their
		// own, so what the page asks for is named back to it.
		allow := "authorization, content-type"
		if asked := r.Header.Get("Access-Control-Request-Headers"); headerNames(asked) {
			allow += ", " + asked
		}
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", allow)
		h.Set("Access-Control-Max-Age", strconv.Itoa(int(c.MaxAge.Seconds())))
		w.WriteHeader(http.StatusNoContent)
		g.logSimple(r, http.StatusNoContent, nil)
	})
}

// headerNames reports whether s is a list of header names and of a sane
// length.
func headerNames(s string) bool {
	if s == "" || len(s) > 4096 {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_, ", c))
	})
}

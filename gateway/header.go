package gateway

import (
	"fmt"
	"math"
	"net/http"
	"strings"
)

// hopByHop are the headers that belong to one connection, by canonical name.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// upHeader returns the client's headers as they go up: without Pacer's own.
func (x *exchange) upHeader() http.Header {
	h := x.r.Header.Clone()
	for name := range h {
		if strings.HasPrefix(name, "X-Pacer-") {
			delete(h, name)
		}
	}
	delete(h, "Content-Encoding") // the body goes up as it was read
	return h
}

// copyHeader gives the client the headers of the backend's answer, less those
// of the connection, those that Pacer answers for itself, those that repeat a
// secret, and a length that no longer holds.
func (x *exchange) copyHeader(from http.Header) {
	to := x.w.Header()
	var named []string
	for _, v := range from["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	// What the backend says of its own host would be taken for ours; cookies do
	// not go up either.
	drop := map[string]bool{
		"X-Request-Id": true, "Alt-Svc": true, "Set-Cookie": true, "Strict-Transport-Security": true, "Clear-Site-Data": true,
	}
	for _, name := range named {
		drop[name] = true
	}
	if x.try.sse || x.end.Decodes && !x.opaque && !x.try.whole {
		// Events may be cut out, and an answer that proves to be none must break
		// off, which nobody would see behind its last byte.
		drop["Content-Length"] = true
	}
	for name, values := range from {
		switch {
		case hopByHop[name], drop[name], x.try.backend.tells(values):
		case strings.HasPrefix(name, "X-Pacer-"), strings.HasPrefix(name, "Access-Control-"):
		case strings.HasPrefix(name, "X-Ratelimit-") && to[name] != nil: // the key's own limits count
		case name == "Vary":
			to[name] = append(to[name], values...)
		default:
			to[name] = values
		}
	}
	if from["Content-Type"] == nil {
		to["Content-Type"] = nil // there, so that none is guessed from the body
	}
	if x.try.events {
		to.Set("Cache-Control", "no-cache")
		to.Set("X-Accel-Buffering", "no")
	}
	if x.plan.expose {
		x.decisionHeaders(to)
	}
}

// decisionHeaders says which backend serves the request, and why.
func (x *exchange) decisionHeaders(h http.Header) {
	c := x.decision.Chosen
	h.Set("X-Pacer-Backend", x.try.name)
	var b strings.Builder
	fmt.Fprintf(&b, "policy=%s; n=%d; m=%d", x.decision.Policy, c.N, c.M)
	if known(c.TPS) {
		fmt.Fprintf(&b, "; tps=%.1f; low=%.1f", c.TPS, c.Low)
		h.Set("X-Pacer-Predicted-Tps", fmt.Sprintf("%.1f", c.TPS))
	}
	fmt.Fprintf(&b, "; floor=%s", formatFloat(x.floor))
	if x.decision.Spilled != "" {
		fmt.Fprintf(&b, "; spill=%s", x.decision.Spilled)
	}
	h.Set("X-Pacer-Decision", b.String())
}

// known reports whether tps is a figure that says something.
func known(tps float64) bool { return tps > 0 && !math.IsInf(tps, 0) }

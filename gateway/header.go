package gateway

import (
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/pacer-dev/pacer/router"
)

// hopByHop are the headers that belong to one connection, by canonical name.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// copyHeader gives the client the headers of the backend's answer, less those
// of the connection, those that Pacer answers for itself, those that repeat a
// secret, and a length that no longer holds.
func (x *exchange) copyHeader(t *attempt) {
	from, to := t.up.resp.Header, x.down.w.Header()
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
	if t.answer.form == formEvents || x.request.end.Decodes && t.answer.form == formDocument && !t.answer.whole {
		// Events may be cut out, and an answer that proves to be none must break
		// off, which nobody would see behind its last byte.
		drop["Content-Length"] = true
	}
	for name, values := range from {
		switch {
		case hopByHop[name], drop[name], t.backend.tells(values):
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
	if t.answer.events {
		to.Set("Cache-Control", "no-cache")
		to.Set("X-Accel-Buffering", "no")
	}
	if x.plan.expose {
		x.decisionHeaders(t, to)
	}
}

// decisionHeaders says which backend serves the request, and why.
func (x *exchange) decisionHeaders(t *attempt, h http.Header) {
	c := &t.decision.Chosen
	h.Set("X-Pacer-Backend", t.name())
	var b strings.Builder
	fmt.Fprintf(&b, "policy=%s; n=%d; m=%d", t.decision.Policy, c.N, c.M)
	if known(c.TPS) {
		fmt.Fprintf(&b, "; tps=%.1f", c.TPS)
		if c.Low > 0 {
			fmt.Fprintf(&b, "; low=%.1f", c.Low)
		}
		h.Set("X-Pacer-Predicted-Tps", fmt.Sprintf("%.1f", c.TPS))
	}
	fmt.Fprintf(&b, "; floor=%s", formatFloat(x.objective.floor))
	if c.Basis != router.NoBasis {
		fmt.Fprintf(&b, "; by=%s", c.Basis)
	}
	if t.decision.Spilled != "" {
		fmt.Fprintf(&b, "; spill=%s", t.decision.Spilled)
	}
	h.Set("X-Pacer-Decision", b.String())
}

// known reports whether tps is a figure that says something.
func known(tps float64) bool { return tps > 0 && !math.IsInf(tps, 0) }

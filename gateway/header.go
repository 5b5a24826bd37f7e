package gateway

import (
	"math"
	"net/http"
	"strings"
)

// hopByHop are the headers that belong to one connection, by canonical name.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// copyHeader gives the client the headers of the backend's answer, less those
// of the connection, those that Pacer answers for itself, those that repeat a
// secret, and a length that no longer holds.
func (t *attempt) copyHeader(to http.Header) {
	from := t.up.resp.Header
	if t.up.translation != nil {
		from = t.up.translatedAnswer(&t.answer)
		t.up.translation.droppedHeader(to)
	}
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
	if t.answer.form == formEvents || t.request.end.Decodes && t.answer.form == formDocument && !t.answer.whole {
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
	t.request.googleHeader(t, to)
	if t.answer.events {
		to.Set("Cache-Control", "no-cache")
		to.Set("X-Accel-Buffering", "no")
	}
	t.costHeader(to)
	if t.setup.expose {
		t.place.headers(to, t.objective.floor)
	}
}

// known reports whether tps is a figure that says something.
func known(tps float64) bool { return tps > 0 && !math.IsInf(tps, 0) }

package gateway

import (
	"math"
	"net/http"
	"slices"
	"strings"
)

// withheld reports whether a header of an answer does not go to the client, by its
// canonical name: those of one connection, Pacer's own, and what a backend says of its own
// host, which would be taken for ours. Cookies do not go up either.
func withheld(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"X-Request-Id", "Alt-Svc", "Set-Cookie", "Strict-Transport-Security", "Clear-Site-Data":
		return true
	}
	return strings.HasPrefix(name, "X-Pacer-") || strings.HasPrefix(name, "Access-Control-")
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
	if t.answer.form == formEvents || t.request.end.Decodes && t.answer.form == formDocument && !t.answer.whole {
		// Events may be cut out, and an answer that proves to be none must break
		// off, which nobody would see behind its last byte.
		named = append(named, "Content-Length")
	}
	secrets := t.backend.secrets()
	for name, values := range from {
		switch {
		case withheld(name), slices.Contains(named, name), repeats(values, secrets):
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

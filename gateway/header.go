package gateway

import (
	"math"
	"net/http"
	"strconv"
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
func (t *attempt) copyHeader(to http.Header) {
	from := t.up.resp.Header
	if t.up.translation != nil {
		from = t.translateHeader()
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
	if t.plan.expose {
		t.decisionHeaders(to)
	}
}

// decisionHeaders says which backend serves the request, and why.
func (t *attempt) decisionHeaders(h http.Header) {
	var room [128]byte
	c, says, values := &t.decision.Chosen, append(room[:0], "policy="...), new([3]string)
	put := func(i int, name, value string) {
		values[i] = value
		h[name] = values[i : i+1 : i+1]
	}
	put(0, "X-Pacer-Backend", t.name())
	says = append(says, t.decision.Policy...)
	says = strconv.AppendInt(append(says, "; n="...), int64(c.N), 10)
	says = strconv.AppendInt(append(says, "; m="...), int64(c.M), 10)
	if known(c.TPS) {
		at := len(says) + len("; tps=")
		says = strconv.AppendFloat(append(says, "; tps="...), c.TPS, 'f', 1, 64)
		put(1, "X-Pacer-Predicted-Tps", string(says[at:]))
		if c.Low > 0 {
			says = strconv.AppendFloat(append(says, "; low="...), c.Low, 'f', 1, 64)
		}
	}
	says = strconv.AppendFloat(append(says, "; floor="...), t.objective.floor, 'f', -1, 64)
	if c.Basis != router.NoBasis {
		says = append(append(says, "; by="...), c.Basis.String()...)
	}
	if t.decision.Spilled != "" {
		says = append(append(says, "; spill="...), t.decision.Spilled...)
	}
	put(2, "X-Pacer-Decision", string(says))
}

// known reports whether tps is a figure that says something.
func known(tps float64) bool { return tps > 0 && !math.IsInf(tps, 0) }

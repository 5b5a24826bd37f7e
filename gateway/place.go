package gateway

import (
	"net/http"
	"strconv"

	"github.com/pacer-dev/pacer/router"
)

// place is where an attempt goes: a target, the backend behind it, and the decision
// that gave it a lease there.
type place struct {
	backend   *backend // nil = the configuration changed twice since the decision
	target    router.Target
	decision  router.Decision // why it goes there, and its lease
	lastError *lastError      // of the target; nil = it is no longer configured
}

// placeOf is the place that d gave at b.
func (p *setup) placeOf(d router.Decision, b *backend) place {
	target := d.Lease.Target()
	return place{backend: b, target: target, decision: d, lastError: p.lastErrors[target]}
}

// name is that of the backend.
func (p *place) name() string { return p.target.Backend }

// lease is what is held there.
func (p *place) lease() *router.Lease { return p.decision.Lease }

// fails is an error before the first byte, for which the client is answered
// status.
func (p *place) fails(status int, problem string, err error) *upstreamError {
	return &upstreamError{backend: p.name(), status: status, problem: problem, err: err}
}

// headers says which backend serves the request, and why: floor is what the request
// is to get, in tokens/s.
func (p *place) headers(h http.Header, floor float64) {
	var room [128]byte
	c, says, values := &p.decision.Chosen, append(room[:0], "policy="...), new([3]string)
	put := func(i int, name, value string) {
		values[i] = value
		h[name] = values[i : i+1 : i+1]
	}
	put(0, "X-Pacer-Backend", p.name())
	says = append(says, p.decision.Policy...)
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
	says = strconv.AppendFloat(append(says, "; floor="...), floor, 'f', -1, 64)
	if c.Basis != router.NoBasis {
		says = append(append(says, "; by="...), c.Basis.String()...)
	}
	if p.decision.Spilled != "" {
		says = append(append(says, "; spill="...), p.decision.Spilled...)
	}
	put(2, "X-Pacer-Decision", string(says))
}

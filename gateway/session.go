package gateway

import (
	"hash/fnv"
	"math/rand/v2"

	"github.com/pacer-dev/pacer/internal/httpfield"
)

// session is what the requests of one conversation have in common: the header
// x-session-id, or LiteLLM's, else what the body calls prompt_cache_key or user, else the answer
// that it goes on from. "" = nothing says.
func (r *request) session() string {
	for _, name := range []string{"X-Session-Id", "X-Litellm-Session-Id"} {
		if id := httpfield.First(r.http.Header, name); id != "" {
			return id
		}
	}
	if r.parsed.Session != "" {
		return r.parsed.Session
	}
	return r.parsed.PreviousResponseID
}

// split is where in the split of its route the request falls, in [0, 1): the same
// for all of a session, on every replica and after a restart; else at random.
func (o *order) split() float64 {
	if len(o.route.conf.Split) == 0 {
		return 0
	}
	session := o.request.session()
	if session == "" {
		return rand.Float64()
	}
	h := fnv.New64a()
	for _, part := range []string{o.route.name, o.tenant.name, session} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return float64(mix(h.Sum64())>>11) / (1 << 53)
}

// mix spreads what differs in few bits of sum over all of them: the upper bits of
// FNV-1a hardly depend on the last bytes. It is the finalizer of MurmurHash3.
func mix(sum uint64) uint64 {
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	sum *= 0xc4ceb9fe1a85ec53
	return sum ^ sum>>33
}

package admin

import (
	"net/http"
	"net/http/pprof"
	"strings"
)

// profilesPath is the path below which profiles of this process are.
const profilesPath = "/debug/pprof/"

// profiled is for how many seconds a profile of the CPU is taken that does not say:
// the port has 30 for an answer, and pprof's own default would not fit.
const profiled = "20"

// servePprof answers GET /debug/pprof/ and what is below. What a process holds in
// memory may be seen there, so that it takes the role of administrators, and the
// configuration's leave.
func (p *port) servePprof(w http.ResponseWriter, r *http.Request) {
	if !p.settings().conf.Admin.Pprof {
		notFound(w, r)
		return
	}
	p.administered(profile)(w, r)
}

func profile(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, profilesPath)
	if q := r.URL.Query(); name == "profile" && q.Get("seconds") == "" {
		q.Set("seconds", profiled)
		r = r.Clone(r.Context())
		r.URL.RawQuery = q.Encode()
	}
	switch name {
	case "cmdline": // it may hold what is nobody's business
		notFound(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}

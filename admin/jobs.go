package admin

import (
	"net/http"

	"github.com/pacer-dev/pacer/api"
)

// serveJobs answers GET /api/v1/jobs.
func (p *port) serveJobs(w http.ResponseWriter, r *http.Request) {
	answer := api.Jobs{Jobs: []api.Job{}}
	if p.o.Jobs != nil {
		jobs, err := p.o.Jobs(r.Context())
		if err != nil {
			fail(w, http.StatusServiceUnavailable, "store_out", "the store of batch jobs does not answer")
			return
		}
		answer.Jobs = append(answer.Jobs, jobs...)
	}
	send(w, http.StatusOK, answer)
}

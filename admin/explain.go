package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/spelling"
	"github.com/pacer-dev/pacer/router"
)

// Bounds of a question: beyond them it is a mistake.
const (
	maxQuestion     = 64 << 10 // bytes
	maxAskedTPS     = 1e6
	maxAskedPrompts = 1 << 30
)

// serveExplain answers POST /api/v1/explain: what would become of a request,
// without sending it. It changes nothing, so it asks for no token; a page of
// another origin is refused all the same.
func (p *port) serveExplain(w http.ResponseWriter, r *http.Request) {
	var q api.Question
	if !questionOf(w, r, &q, `write {"model": "…"}, and if you like "class", "min_tps" and "prompt_tokens"`) {
		return
	}
	if err := checkQuestion(&q); err != nil {
		fail(w, http.StatusBadRequest, "invalid_body", err.Error())
		return
	}
	rec, ok := p.preview(time.Now(), q)
	if !ok {
		fail(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("no route serves the model %.200q; %s", q.Model, spelling.Meant(q.Model, p.o.Config().RouteNames())))
		return
	}
	send(w, http.StatusOK, decisionOf(&rec))
}

// preview asks the route that the model belongs to.
func (p *port) preview(now time.Time, q api.Question) (router.Record, bool) {
	req := router.Request{Route: p.o.Config().RouteName(q.Model), Arrived: now, MinTPS: q.MinTPS, PromptTokens: q.PromptTokens, Stream: true}
	switch q.Class {
	case router.Interactive.String():
		class := router.Interactive
		req.Class = &class
	case router.Batch.String():
		class := router.Batch
		req.Class = &class
	}
	return p.o.Router.Preview(now, req)
}

func checkQuestion(q *api.Question) error {
	switch {
	case q.Model == "":
		return errors.New("model: is missing; name the model as a client does")
	case q.Class != "" && q.Class != router.Interactive.String() && q.Class != router.Batch.String():
		return fmt.Errorf("class: %.40q is none; write interactive or batch", q.Class)
	case q.MinTPS != nil && !(*q.MinTPS >= 0 && *q.MinTPS <= maxAskedTPS):
		return fmt.Errorf("min_tps: write tokens/s from 0 (none) to %g", float64(maxAskedTPS))
	case q.Class == router.Batch.String() && q.MinTPS != nil && *q.MinTPS > 0:
		return errors.New("min_tps: a batch request has no floor; leave it out")
	case q.PromptTokens < 0 || q.PromptTokens > maxAskedPrompts:
		return fmt.Errorf("prompt_tokens: write a number from 0 to %d", maxAskedPrompts)
	}
	return nil
}

// sameOrigin refuses what a browser sends for a page of another origin. That
// it may not read the answer is not enough for what takes work.
func sameOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "cross_origin", "the admin port does not answer to pages of another origin")
	}))
	return guard.Handler(next)
}

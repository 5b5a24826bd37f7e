package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/clientconn"
)

// planTime bounds how long one plan is played.
const planTime = 40 * time.Second

// planState is whether a plan is played, and how far. The zero value is that none is.
// It is safe for concurrent use.
type planState struct {
	running  atomic.Bool
	progress atomic.Uint64 // bits of a float64
}

// begin reports whether no other plan runs; end is to be called then.
func (s *planState) begin() bool {
	if !s.running.CompareAndSwap(false, true) {
		return false
	}
	s.at(0)
	return true
}

func (s *planState) end() {
	s.at(0)
	s.running.Store(false)
}

func (s *planState) at(share float64) { s.progress.Store(math.Float64bits(share)) }

// servePlanState answers GET /api/v1/plan.
func (p *port) servePlanState(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, api.PlanState{Running: p.plan.running.Load(), Progress: math.Float64frombits(p.plan.progress.Load())})
}

// servePlan answers POST /api/v1/plan. It changes nothing, and takes work: so it asks
// for the token where there is one, and one is played at a time. Who hangs up ends it.
func (p *port) servePlan(w http.ResponseWriter, r *http.Request) {
	if a := &p.settings().conf.Admin; a.Token != "" || len(a.Tokens) > 0 {
		if _, ok := p.allows(w, r, operator); !ok {
			return
		}
	}
	var q api.PlanQuestion
	if !questionOf(w, r, &q, `write {"load": 2}, and if you like "engines", "min_tps", "window" and "offered_per_s"`) {
		return
	}
	q.Window = cmp.Or(q.Window, history.Hour.String())
	if _, known := history.WindowOf(q.Window); !known {
		fail(w, http.StatusBadRequest, "invalid_plan", "window: write one of "+strings.Join(history.Windows(), ", "))
		return
	}
	if p.o.Plan == nil {
		fail(w, http.StatusNotFound, "not_found", "this gateway plays no plans")
		return
	}
	if !p.plan.begin() {
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusConflict, "plan_running", "another plan is played; ask again when it is over")
		return
	}
	defer p.plan.end()
	clientconn.Answering(r.Context())
	rc := http.NewResponseController(w)
	// A writer that knows no deadline, as in tests, does without.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Now().Add(planTime + eventWrite))
	ctx, cancel := context.WithTimeout(r.Context(), planTime)
	defer cancel()
	answer, err := p.o.Plan(ctx, q, p.offered(q.Window), p.plan.at)
	switch {
	case r.Context().Err() != nil: // nobody is there who would read it
	case errors.Is(err, context.DeadlineExceeded):
		fail(w, http.StatusServiceUnavailable, "plan_too_long", fmt.Sprintf("the plan was not played within %v; pacer plan --admin has the time", planTime))
	case err != nil:
		fail(w, http.StatusBadRequest, "invalid_plan", err.Error())
	default:
		send(w, http.StatusOK, answer)
	}
}

// questionOf reads the body of a question, which is one JSON object without unknown
// fields; false = the request was answered, or its client is gone. write says what to
// write instead of another one.
func questionOf(w http.ResponseWriter, r *http.Request, into any, write string) bool {
	body, came := bodyOf(w, r)
	return came && readQuestion(w, body, into, write)
}

// bodyOf returns the body of r, or answers that it is too large or too slow. It may be
// empty whatever its head says: one that comes in chunks has no length there.
func bodyOf(w http.ResponseWriter, r *http.Request) (body []byte, came bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		fail(w, http.StatusRequestEntityTooLarge, "body_too_large", fmt.Sprintf("a question has at most %d KiB", maxQuestion>>10))
		return nil, false
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		fail(w, http.StatusRequestTimeout, "request_timeout", "the question came too slowly")
	}
	return body, err == nil
}

// readQuestion reads body, or answers what is wrong with it and what to write.
func readQuestion(w http.ResponseWriter, body []byte, into any, write string) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is something behind it")
		}
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid_body", fmt.Sprintf("the body is no question (%v); %s", err, write))
	}
	return err == nil
}

// offered is the requests per second of each route within a window.
func (p *port) offered(window string) map[string]float64 {
	w, _ := history.WindowOf(window) // it was looked at
	now, ring := time.Now(), p.o.Metrics.History()
	seconds := max(ring.Reach(now, w).Seconds(), 1)
	out := map[string]float64{}
	for _, name := range p.o.Config().RouteNames() {
		if n := ring.Figures(now, ring.Route(name), w).Offered(); n > 0 {
			out[name] = float64(n) / seconds
		}
	}
	return out
}

package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pacer-dev/pacer/router"
)

// decisionsAnswer is the body of /api/v1/decisions: the latest first.
type decisionsAnswer struct {
	Decisions []decision `json:"decisions"`
}

// decision is what became of one request, and why.
type decision struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"` // "" for one that is only explained
	Route     string    `json:"route"`
	Class     string    `json:"class"`
	Floor     number    `json:"floor"` // tokens/s; 0 = none

	// Outcome is placed, granted (a place after waiting), queued, spilled,
	// best_effort, probe, shed or no_backend.
	Outcome     string  `json:"outcome"`
	Policy      string  `json:"policy"`
	Chosen      *string `json:"chosen"` // backend; null unless it was placed
	ChosenModel *string `json:"chosen_model"`
	SpilledTo   *string `json:"spilled_to"` // route
	WaitedS     number  `json:"waited_s"`

	MayWaitS    number  `json:"may_wait_s"`    // null unless it is queued
	ShedReason  *string `json:"shed_reason"`   // null unless it was refused
	RetryAfterS number  `json:"retry_after_s"` // null unless it was refused and waiting helps
	BestLow     number  `json:"best_low"`      // highest bound on offer to one that was refused; null when unknown

	// Candidates are the targets of the route, and of the one it was spilled
	// to, before the request took its place. LeftOut were not kept.
	Candidates []candidate `json:"candidates"`
	LeftOut    int         `json:"left_out"`
}

// candidate is one target as the decision saw it.
type candidate struct {
	Backend  string `json:"backend"`
	Model    string `json:"model"` // "" = the client's own name goes up
	N        int    `json:"n"`
	M        int    `json:"m"`
	TPS      number `json:"tps"` // with this request; null when unknown
	Low      number `json:"low"` // null when unknown
	Floor    number `json:"floor"`
	Protect  number `json:"protect"`  // highest floor that must hold there; 0 = none
	Headroom number `json:"headroom"` // null when nothing has to be met
	Price    number `json:"price"`    // USD, of this request as expected
	Feasible bool   `json:"feasible"`
	Reason   string `json:"reason"`
}

func decisionOf(rec *router.Record) decision {
	d := decision{
		Time: rec.Time.UTC(), RequestID: rec.ID, Route: rec.Route, Class: rec.Class.String(), Floor: number(rec.Floor),
		Outcome: rec.Outcome.String(), Policy: rec.Policy, WaitedS: number(rec.Waited.Seconds()),
		MayWaitS: positive(rec.MayWait.Seconds()), RetryAfterS: positive(rec.RetryAfter.Seconds()), BestLow: positive(rec.Best),
		Candidates: make([]candidate, len(rec.Candidates)), LeftOut: rec.LeftOut,
	}
	if rec.Chosen.Backend != "" {
		d.Chosen, d.ChosenModel = &rec.Chosen.Backend, &rec.Chosen.Model
	}
	if rec.Spilled != "" {
		d.SpilledTo = &rec.Spilled
	}
	if rec.Outcome == router.OutcomeShed || rec.Outcome == router.OutcomeNoBackend {
		why := rec.Shed.String()
		d.ShedReason = &why
	}
	for i, c := range rec.Candidates {
		low := number(c.Low)
		if c.TPS != c.TPS { // NaN: no curve speaks of it
			low = number(c.TPS)
		}
		d.Candidates[i] = candidate{
			Backend: c.Target.Backend, Model: c.Target.Model, N: c.N, M: c.M, TPS: number(c.TPS), Low: low,
			Floor: number(c.Floor), Protect: number(c.Protect), Headroom: number(c.Headroom), Price: number(c.Price),
			Feasible: c.Feasible, Reason: c.Reason.String(),
		}
	}
	return d
}

const (
	usualDecisions = 100
	mostDecisions  = 1000
)

// serveDecisions answers GET /api/v1/decisions.
func (p *port) serveDecisions(w http.ResponseWriter, r *http.Request) {
	limit := usualDecisions
	if given := r.URL.Query()["limit"]; len(given) > 0 {
		var err error
		if limit, err = strconv.Atoi(given[0]); err != nil || len(given) > 1 || limit < 1 || limit > mostDecisions {
			badQuery(w, "limit", fmt.Sprintf("limit: write one whole number from 1 to %d", mostDecisions))
			return
		}
	}
	records := p.o.Router.Decisions(limit)
	answer := decisionsAnswer{Decisions: make([]decision, len(records))}
	for i := range records {
		answer.Decisions[i] = decisionOf(&records[i])
	}
	send(w, http.StatusOK, answer)
}

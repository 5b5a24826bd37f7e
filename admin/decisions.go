package admin

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/router"
)

func decisionOf(rec *router.Record) api.Decision {
	d := api.Decision{
		Time: rec.Time.UTC(), RequestID: rec.ID, Route: rec.Route, Class: rec.Class.String(), Floor: api.Number(rec.Floor),
		Outcome: rec.Outcome.String(), Policy: rec.Policy, WaitedS: api.Number(rec.Waited.Seconds()),
		MayWaitS: api.Positive(rec.MayWait.Seconds()), RetryAfterS: api.Positive(rec.RetryAfter.Seconds()), BestLow: api.Positive(rec.Best), Behind: rec.Behind,
		Candidates: make([]api.Candidate, len(rec.Candidates)), LeftOut: rec.LeftOut,
	}
	if rec.Chosen.Backend != "" {
		d.Chosen, d.ChosenModel = &rec.Chosen.Backend, &rec.Chosen.Model
	}
	if rec.Spilled != "" {
		d.SpilledTo = &rec.Spilled
	}
	if isRefused(rec) {
		why := rec.Shed.String()
		d.ShedReason = &why
	}
	for i, c := range rec.Candidates {
		low := api.Number(c.Low)
		if c.TPS != c.TPS || c.Basis == router.BySlowStart { // no curve speaks of it, or none is believed
			low = api.Unknown()
		}
		d.Candidates[i] = api.Candidate{
			Backend: c.Target.Backend, Model: c.Target.Model, N: c.N, M: c.M, Unheard: c.Unheard, TPS: api.Number(c.TPS), Low: low,
			Floor: api.Number(c.Floor), Protect: api.Number(c.Protect), Headroom: api.Number(c.Headroom), Held: c.Held, Price: api.Number(c.Price),
			Feasible: c.Feasible, Reason: c.Reason.String(), Basis: c.Basis.String(),
		}
		if h := c.Warm; h.Tokens > 0 {
			d.Candidates[i].Warm = &api.WarmPrompt{Tokens: h.Tokens, PromptTokens: h.Prompt, SavesS: api.Number(h.Saves.Seconds())}
		}
	}
	return d
}

func isRefused(rec *router.Record) bool {
	return rec.Outcome == router.OutcomeShed || rec.Outcome == router.OutcomeNoBackend
}

// usualDecisions is how many are answered when nobody says how many.
const usualDecisions = 100

// serveDecisions answers GET /api/v1/decisions.
func (p *port) serveDecisions(w http.ResponseWriter, r *http.Request) {
	limit, ok := wholeOf(w, r.URL.Query(), "limit", usualDecisions, api.MaxDecisions)
	if !ok {
		return
	}
	refused, ok := wordOf(w, r, "refused", "false", []string{"true", "false"})
	if !ok {
		return
	}
	find := strings.ToLower(r.URL.Query().Get("find"))
	if len(find) > api.MaxFind {
		badQuery(w, "find", fmt.Sprintf("find: write at most %d characters", api.MaxFind))
		return
	}
	asked := limit
	if refused == "true" || find != "" { // they may be among the oldest
		asked = math.MaxInt
	}
	records := slices.DeleteFunc(p.o.Router.Decisions(asked), func(rec router.Record) bool {
		return refused == "true" && !isRefused(&rec) || !strings.Contains(strings.ToLower(rec.ID+" "+rec.Route+" "+rec.Chosen.Backend), find)
	})
	records = records[:min(limit, len(records))]
	answer := api.Decisions{Decisions: make([]api.Decision, len(records))}
	for i := range records {
		answer.Decisions[i] = decisionOf(&records[i])
	}
	send(w, http.StatusOK, answer)
}

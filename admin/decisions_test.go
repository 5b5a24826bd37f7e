package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/router"
)

func TestDecisions(t *testing.T) {
	w := newWorld(t)
	list := func(query string) []api.Decision {
		t.Helper()
		rec := w.get("/api/v1/decisions" + query)
		got := decode[api.Decisions](t, rec)
		if got.Decisions == nil {
			t.Errorf("no list in %s", rec.Body)
		}
		return got.Decisions
	}
	if got := list(""); len(got) != 0 {
		t.Errorf("got %+v before the first request", got)
	}
	w.occupy(t, 1, 2)
	now := time.Now()
	w.router.Place(now, router.Request{ID: "one", Route: "chat", Arrived: now.Add(-time.Second), PromptTokens: 10, Stream: true})
	impossible := 5000.0
	w.router.Place(now, router.Request{ID: "two", Route: "chat", MinTPS: &impossible})
	w.router.Place(now, router.Request{ID: "three", Route: "*"})

	got := list("?limit=3")
	if len(got) != 3 || got[0].RequestID != "three" || got[1].RequestID != "two" || got[2].RequestID != "one" {
		t.Fatalf("got %+v, want three, two, one", got)
	}
	one, two, three := got[2], got[1], got[0]
	if refused := list("?refused=true"); len(refused) != 1 || refused[0].RequestID != "two" {
		t.Errorf("refused: %+v, want two alone", refused)
	}
	for query, want := range map[string]string{"?find=THRE": "three", "?find=%2A": "three", "?find=two&refused=true": "two"} {
		if found := list(query); len(found) != 1 || found[0].RequestID != want {
			t.Errorf("%s: %+v, want %s alone", query, found, want)
		}
	}
	if found := list("?find=nobody"); len(found) != 0 {
		t.Errorf("found %+v, want nothing", found)
	}
	if one.Time.Location() != time.UTC || one.Time.Sub(now).Abs() > time.Millisecond {
		t.Errorf("time %v, want %v in UTC", one.Time, now)
	}
	if one.Outcome != "placed" || one.Chosen == nil || one.WaitedS != 1 || one.Floor != 30 || one.Class != "interactive" || one.ShedReason != nil || one.RetryAfterS.Known() || one.MayWaitS.Known() {
		t.Errorf("one: %+v", one)
	}
	if len(one.Candidates) != 2 {
		t.Fatalf("one: candidates %+v", one.Candidates)
	}
	h := one.Candidates[0]
	if h.Backend != "h200" || h.Model != h200.Model || h.N != 2 || h.M != 3 || !near(h.TPS, truth(4), 0.03) || !(h.Low < h.TPS) || h.Floor != 30 || h.Protect != 30 || !near(h.Headroom, float64(h.Low)/30, 0.001) || !h.Feasible || h.Reason != "ok" {
		t.Errorf("h200: %+v", h)
	}
	if two.Outcome != "shed" || two.Chosen != nil || *two.ShedReason != "floor_unattainable" || two.RetryAfterS.Known() || !two.BestLow.Known() || two.Candidates[0].Reason != "own_floor" {
		t.Errorf("two: %+v", two)
	}
	if c := three.Candidates[0]; *three.Chosen != "idle" || three.Floor != 0 || c.TPS.Known() || c.Low.Known() || c.Headroom.Known() || c.Protect != 0 {
		t.Errorf("three: %+v", three)
	}
	if n := len(list("")); n != 6 {
		t.Errorf("%d decisions, want the 6 there were", n)
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limit=1&limit=2", "limit=1.5"} {
		if rec := w.get("/api/v1/decisions?" + query); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `"param":"limit"`) {
			t.Errorf("%s: got %d %s, want 400 that names it", query, rec.Code, rec.Body)
		}
	}
}

// ask posts a question, as curl does.
func (w *world) ask(body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9090/api/v1/explain", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return rec
}

// What the cache of one candidate has of the prompt is in the decision, and nothing
// for the others.
func TestDecisionsTellWhatIsWarm(t *testing.T) {
	w := newWorld(t)
	w.router.Place(time.Now(), router.Request{
		ID: "turn", Route: "chat", PromptTokens: 12_400, Stream: true,
		Warm: []router.Warmth{{Target: h200, Likely: 11_900, Sure: 11_900}},
	})
	got := decode[api.Decisions](t, w.get("/api/v1/decisions"))
	if len(got.Decisions) != 1 || len(got.Decisions[0].Candidates) != 2 {
		t.Fatalf("got %+v", got)
	}
	for _, c := range got.Decisions[0].Candidates {
		switch {
		case c.Backend != "h200":
			if c.Warm != nil {
				t.Errorf("%s: warm %+v, want null", c.Backend, *c.Warm)
			}
		case c.Warm == nil || c.Warm.Tokens != 11_900 || c.Warm.PromptTokens != 12_400 || c.Warm.SavesS < 0:
			t.Errorf("h200: warm %+v, want 11900 of 12400 tokens", c.Warm)
		}
	}
}

func TestExplain(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 0, 2)
	for _, c := range []struct {
		body, route, class, outcome, chosen, why string
		floor                                    api.Number
	}{
		{body: `{"model":"chat"}`, route: "chat", class: "interactive", outcome: "placed", chosen: "l40s", floor: 30},
		{body: `{"model":"chat","min_tps":20,"prompt_tokens":2000}`, route: "chat", class: "interactive", outcome: "placed", chosen: "l40s", floor: 20},
		{body: `{"model":"chat","min_tps":0}`, route: "chat", class: "interactive", outcome: "placed", chosen: "l40s"},
		{body: `{"model":"chat","class":"batch"}`, route: "chat", class: "batch", outcome: "placed", chosen: "l40s"},
		{body: `{"model":"chat","min_tps":5000}`, route: "chat", class: "interactive", outcome: "shed", why: "floor_unattainable", floor: 5000},
		{body: `{"model":"meta/anything","class":"interactive"}`, route: "*", class: "interactive", outcome: "placed", chosen: "idle"},
	} {
		rec := w.ask(c.body)
		got := decode[api.Decision](t, rec)
		chosen, why := "", ""
		if got.Chosen != nil {
			chosen = *got.Chosen
		}
		if got.ShedReason != nil {
			why = *got.ShedReason
		}
		if got.Route != c.route || got.Class != c.class || got.Outcome != c.outcome || chosen != c.chosen || why != c.why || got.Floor != c.floor || len(got.Candidates) == 0 {
			t.Errorf("%s: got %s", c.body, rec.Body)
		}
	}
	if loads := w.router.Loads(); loads[0].M != 2 || loads[1].M != 0 || loads[2].M != 0 {
		t.Errorf("explaining placed something: %+v", loads)
	}
	if n := len(w.router.Decisions(100)); n != 2 {
		t.Errorf("%d decisions kept, want the 2 that were placed", n)
	}
}

func TestExplainRefuses(t *testing.T) {
	w := newWorld(t)
	for body, code := range map[string]string{
		``:                                  "invalid_body",
		`{`:                                 "invalid_body",
		`[]`:                                "invalid_body",
		`{}`:                                "invalid_body",
		`{"model":7}`:                       "invalid_body",
		`{"model":""}`:                      "invalid_body",
		`null`:                              "invalid_body",
		`{"model":"chat","speed":30}`:       "invalid_body",
		`{"model":"chat"} {"model":"chat"}`: "invalid_body",
		`{"model":"chat","class":"fast"}`:   "invalid_body",
		`{"model":"chat","min_tps":-1}`:     "invalid_body",
		`{"model":"chat","min_tps":1e7}`:    "invalid_body",
		`{"model":"chat","min_tps":1e999}`:  "invalid_body",
		`{"model":"chat","min_tps":"30"}`:   "invalid_body",
		`{"model":"chat","class":"batch","min_tps":1}`:         "invalid_body",
		`{"model":"chat","prompt_tokens":-1}`:                  "invalid_body",
		`{"model":"chat","prompt_tokens":1.5}`:                 "invalid_body",
		`{"model":"chat","prompt_tokens":2000000000}`:          "invalid_body",
		`{"model":"` + strings.Repeat("x", maxQuestion) + `"}`: "body_too_large",
	} {
		rec := w.ask(body)
		var got api.Refusal
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code/100 != 4 || got.Error.Code != code {
			t.Errorf("%.60s: got %d %s, want %s", body, rec.Code, rec.Body, code)
		}
	}
	// A page on the web reaches this machine, and cannot make it work.
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
	} {
		if rec := w.ask(`{"model":"chat"}`, headers...); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "cross_origin") {
			t.Errorf("%v: got %d %s, want 403", headers, rec.Code, rec.Body)
		}
	}
	if rec := w.ask(`{"model":"chat"}`, "Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:9090"); rec.Code != http.StatusOK {
		t.Errorf("the page itself: got %d %s", rec.Code, rec.Body)
	}
	if rec := w.get("/api/v1/explain"); rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "POST" {
		t.Errorf("GET: got %d, Allow %q, want 405 and POST", rec.Code, rec.Header().Get("Allow"))
	}
	if rec := w.do(http.MethodPost, "/api/v1/decisions", "127.0.0.1:9090"); rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST to decisions: got %d, Allow %q, want 405, GET and HEAD", rec.Code, rec.Header().Get("Allow"))
	}
}

// Without the catch-all an unknown model is one.
func TestExplainUnknownModel(t *testing.T) {
	w := newWorld(t)
	topology := router.Topology{Backends: []router.Backend{{Name: "h200"}}, Replicas: 1, Routes: []router.Route{
		{Name: "chat", Targets: []router.RouteTarget{{Target: h200}}},
	}}
	w.router.Update(time.Now(), router.Configure{Topology: topology})
	rec := w.ask(fmt.Sprintf(`{"model":%q}`, "nobody's"))
	if rec.Code != http.StatusNotFound || !strings.Contains(rec.Body.String(), "model_not_found") || !strings.Contains(rec.Body.String(), "nobody's") {
		t.Errorf("got %d %s, want 404 that names it", rec.Code, rec.Body)
	}
}

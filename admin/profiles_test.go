package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// What the engine itself counts stands beside what Pacer has there, and n and m
// include it.
func TestProfilesShowTheEnginesOwnLoad(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 2, 5)
	now := time.Now()
	for i := range 2 { // one report alone is not believed
		at := now.Add(time.Duration(i-2) * time.Second)
		w.router.Update(now, router.EngineLoad{Backend: "h200", Running: 16, Waiting: 4, At: at})
	}
	got := decode[api.Profiles](t, w.get("/api/v1/profiles"))
	h200, others := got.Targets[0], got.Targets[1:]
	if h200.InFlight.M != 20 || h200.InFlight.N < 14 || h200.InFlight.Decoding != 5 {
		t.Errorf("in flight: %+v; want m = 20, all that the engine counts, and n the 5 own and at least 9 foreign ones", h200.InFlight)
	}
	if e := h200.Engine; e == nil || e.Running != 16 || e.Waiting != 4 || e.Foreign.Waiting+e.Foreign.Decoding != 13 || !(e.AgeS >= 1 && e.AgeS < 60) {
		t.Errorf("engine: %+v; want 16 running, 4 waiting, 13 of them foreign, a second old", e)
	}
	for _, o := range others {
		if o.Engine != nil {
			t.Errorf("%s: engine %+v, want null: nobody reported", o.Backend, o.Engine)
		}
	}
}

// What caches were expected to have, and told that they had, stands beside their
// backend; nothing is 0.
func TestProfilesTellWhatWasWarm(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		w.metrics.Observe(telemetry.Exchange{Route: "chat", Class: "interactive", Backend: "h200", Outcome: "ok", WarmTokens: 5950.25, CachedTokens: 5904})
	}
	got := decode[api.Profiles](t, w.get("/api/v1/profiles"))
	for _, p := range got.Targets {
		var predicted, reported int64
		if p.Backend == "h200" {
			predicted, reported = 11901, 11808
		}
		if p.Warm != (api.Warm{Predicted: predicted, Reported: reported}) {
			t.Errorf("%s: warm %+v, want %d predicted and %d reported", p.Backend, p.Warm, predicted, reported)
		}
	}
}

// What a target refuses, or fails with, stands beside it until it serves again.
func TestProfilesShowWhatWentWrong(t *testing.T) {
	w := newWorld(t)
	w.errors = map[profiles.Target]LastError{
		h200: {Status: 401, Message: "Incorrect API key provided", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))},
		idle: {Message: "the backend refused the connection", Since: time.Now()},
	}
	got := decode[api.Profiles](t, w.get("/api/v1/profiles"))
	if e := got.Targets[0].LastError; e == nil || e.Status == nil || *e.Status != 401 || e.Message != "Incorrect API key provided" || e.Since != time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC) {
		t.Errorf("h200: %+v, want what it said", e)
	}
	if e := got.Targets[1].LastError; e == nil || e.Status != nil || e.Message == "" {
		t.Errorf("idle: %+v, want a message without a status", e)
	}
	if e := got.Targets[2].LastError; e != nil {
		t.Errorf("l40s: %+v, want null", e)
	}
}

func TestProfiles(t *testing.T) {
	w := newWorld(t)
	w.occupy(t, 2, 5)
	w.busy[6].Progress(time.Now().Add(time.Second), profiles.Count{Tokens: 10}) // of the 30 it was promised
	got := decode[api.Profiles](t, w.get("/api/v1/profiles"))
	if len(got.Targets) != 3 {
		t.Fatalf("got %d targets, want the 3 configured", len(got.Targets))
	}
	h, i, l := got.Targets[0], got.Targets[1], got.Targets[2]
	if h.Backend != "h200" || i.Backend != "idle" || l.Backend != "l40s" {
		t.Errorf("got %s, %s, %s, want them sorted: h200, idle, l40s", h.Backend, i.Backend, l.Backend)
	}

	if h.Model != h200.Model || h.Kind != "vllm" || h.Labels["gpu"] != "gpu <b>H200</b>" || h.Health != "up" || h.Breaker != "closed" {
		t.Errorf("h200: got %+v", h)
	}
	if f := h.InFlight; f.Waiting != 2 || f.Decoding != 5 || f.BelowFloor != 1 || f.N != 5 || f.M != 7 {
		t.Errorf("in flight: got %+v, want 2 waiting, 5 decoding, 1 of them below its floor, n = 5, m = 7", f)
	}
	if h.Support == nil || *h.Support != [2]int{1, 40} {
		t.Errorf("support: got %v, want [1 40]", h.Support)
	}
	if h.Scale != 1 || !near(h.Margin, 0.03, 0.1) || !h.Rho.Known() {
		t.Errorf("got scale %g, margin %g, rho %v, want 1, 3 %% as of some 100 streams that all kept it, and a number", h.Scale, h.Margin, h.Rho)
	}
	if f := h.Fit; f == nil || !f.A.Known() || !f.B.Known() || !f.C.Known() || !f.D.Known() {
		t.Errorf("fit: got %v, want a, b, c and d", h.Fit)
	}
	if f := h.TTFT; f == nil || !near(f.BaseS, 0.05, 0.01) || !(f.PrefillTokensPerS > 0) || f.Slots != nil {
		t.Errorf("ttft: got %+v, want 50 ms, some rate, and no slots", f)
	}
	if i.TTFT != nil || l.TTFT != nil {
		t.Errorf("ttft of what never gave a first token: %+v, %+v, want null", i.TTFT, l.TTFT)
	}
	if h.UpdatedAt == nil || h.UpdatedAt.Location() != time.UTC {
		t.Errorf("updated_at: got %v, want a time in UTC", h.UpdatedAt)
	}
	if !near(h.MeanOutputTokens, 300, 0.01) {
		t.Errorf("mean_output_tokens: got %v, want 300", h.MeanOutputTokens)
	}
	if len(h.Points) != 11 {
		t.Fatalf("got %d points, want one for each of the 11 levels", len(h.Points))
	}
	for _, p := range h.Points {
		if !near(p.TPS, truth(p.N), 0.05) {
			t.Errorf("n=%d: got %v tok/s, want %.4g within 5 %%", p.N, p.TPS, truth(p.N))
			continue
		}
		if !(p.Low <= p.TPS*(1.0001-h.Margin) && p.Low >= p.TPS/2) {
			t.Errorf("n=%d: got bound %v, want at least the margin of %g under %g", p.N, p.Low, h.Margin, p.TPS)
		}
		if !near(p.AggregateTPS, float64(p.N)*float64(p.TPS), 1e-9) {
			t.Errorf("n=%d: got aggregate %g, want n times %g", p.N, p.AggregateTPS, p.TPS)
		}
		if *p.Source != "learned" || !(p.AgeS >= 0 && p.AgeS <= 3600 && p.Steps >= 100 && p.Tokens >= p.Steps && p.StreamSeconds > 0) {
			t.Errorf("n=%d: got %s, age %v s, %g steps, %g tokens, %g s", p.N, *p.Source, p.AgeS, p.Steps, p.Tokens, p.StreamSeconds)
		}
	}

	if i.Support != nil || i.Fit != nil || i.UpdatedAt != nil || i.MeanOutputTokens.Known() || i.TokensSeen != 0 || i.Points == nil || len(i.Points) != 0 {
		t.Errorf("idle: got %+v, want null, no points and 0 tokens", i)
	}
	if len(l.Points) != 3 || l.Points[1].N != 8 || *l.Points[1].Source != "prior" || !near(l.Points[1].TPS, 45, 0.05) || l.Points[1].AgeS.Known() {
		t.Errorf("l40s: got %+v, want the 3 points of the prior, without an age", l.Points)
	}
}

func TestProfilesAtGivenLevels(t *testing.T) {
	w := newWorld(t)
	got := decode[api.Profiles](t, w.get("/api/v1/profiles?n=64,1,7"))
	for _, target := range got.Targets {
		var levels []int
		for _, p := range target.Points {
			levels = append(levels, p.N)
		}
		if len(levels) != 3 || levels[0] != 64 || levels[1] != 1 || levels[2] != 7 {
			t.Errorf("%s: got n = %v, want 64, 1, 7 in that order", target.Backend, levels)
		}
	}
	if p := got.Targets[0].Points[0]; *p.Source != "extrapolated" || !near(p.TPS, truth(64), 0.1) {
		t.Errorf("h200 at n=64: got %g (%s), want about %.4g, extrapolated from 40", p.TPS, *p.Source, truth(64))
	}
	for _, p := range got.Targets[1].Points {
		if p.TPS.Known() || p.Low.Known() || p.AggregateTPS.Known() || p.AgeS.Known() || p.Source != nil {
			t.Errorf("idle at n=%d: got %+v, want null for all that is unknown", p.N, p)
		}
	}
}

func TestProfilesAtAnotherPromptLoad(t *testing.T) {
	w := newWorld(t)
	rho := decode[api.Profiles](t, w.get("/api/v1/profiles?n=8&rho=4"))
	prompt := decode[api.Profiles](t, w.get("/api/v1/profiles?n=8&prompt_tokens=1200"))
	if p := rho.Targets[0].Points[0].P; p != 32 {
		t.Errorf("rho=4 at n=8: got p = %v, want n·rho = 32", p)
	}
	if out := prompt.Targets[0].OutputTokens; out == nil || !near(*out, 300, 0.01) {
		t.Errorf("prompt_tokens: got output_tokens %v, want the mean answer of 300", out)
	}
	if p := prompt.Targets[0].Points[0].P; !near(p, 32, 0.01) {
		t.Errorf("1200 prompt tokens per answer of 300, at n=8: got p = %v, want 32", p)
	}
	if rho.Targets[0].OutputTokens != nil {
		t.Errorf("rho needs no mean answer, but output_tokens is %g", *rho.Targets[0].OutputTokens)
	}
	// Without a mean answer the load is unknown, and so is the speed.
	if p := prompt.Targets[2].Points[0]; p.TPS.Known() || p.P.Known() {
		t.Errorf("l40s: got %+v, want null", p)
	}
}

func TestProfilesRefusesABadQuery(t *testing.T) {
	w := newWorld(t)
	for query, param := range map[string]string{
		"n=0": "n", "n=-1": "n", "n=1,,2": "n", "n=x": "n", "n=1.5": "n", "n=": "n", "n=99999999999": "n",
		"rho=1&rho=2": "rho", "prompt_tokens=1&prompt_tokens=1": "prompt_tokens",
		"rho=-1": "rho", "rho=NaN": "rho", "rho=Inf": "rho", "rho=": "rho",
		"prompt_tokens=x": "prompt_tokens", "prompt_tokens=1&rho=1": "prompt_tokens",
	} {
		rec := w.get("/api/v1/profiles?" + query)
		var got api.Refusal
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusBadRequest || got.Error.Param == nil || *got.Error.Param != param {
			t.Errorf("?%s: got %d %s, want 400 about %s", query, rec.Code, rec.Body, param)
		}
	}
	many := "n=1"
	for range api.MaxLevels {
		many += ",1"
	}
	if rec := w.get("/api/v1/profiles?" + many); rec.Code != http.StatusBadRequest {
		t.Errorf("%d levels: got %d, want 400", api.MaxLevels+1, rec.Code)
	}
}

// A question that cannot be read is refused, not answered without what was
// asked.
func TestAQueryThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	for _, query := range []string{"n=1;2", "n=%", "%zz", "n=1&rho=%x"} {
		if rec := w.get("/api/v1/profiles?" + query); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `"invalid_query"`) {
			t.Errorf("?%s: got %d %.100s, want 400 invalid_query", query, rec.Code, rec.Body)
		}
	}
}

// A route whose floor a target can never give does not make it look full.
func TestWhatATargetAdmits(t *testing.T) {
	route := func(rooms ...router.TargetRoom) router.RouteState {
		s := router.RouteState{Targets: rooms}
		for _, target := range []profiles.Target{h200, l40s, idle}[:len(rooms)] {
			s.Route.Targets = append(s.Route.Targets, router.RouteTarget{Target: target})
		}
		return s
	}
	endless := router.TargetRoom{Unlimited: true}
	got := admitted([]router.RouteState{
		route(router.TargetRoom{Admits: 0}, router.TargetRoom{Admits: 0}, endless),
		route(router.TargetRoom{Admits: 7}, router.TargetRoom{Admits: 0}),
		route(router.TargetRoom{Admits: 3}, endless),
	})
	if n := got[h200]; n == nil || *n != 7 {
		t.Errorf("h200 admits %v, want the 7 of the route that it takes most of", n)
	}
	if n := got[l40s]; n == nil || *n != 0 {
		t.Errorf("l40s admits %v, want 0: no route with a limit finds a place", n)
	}
	if n := got[idle]; n != nil {
		t.Errorf("idle admits %d, want null: nothing limits it", *n)
	}
}

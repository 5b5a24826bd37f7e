package admin

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/history"
)

// playedAlready answers at once what internal/plan would: it is tested there, and as
// a whole in cmd/pacer.
func playedAlready(_ context.Context, q api.PlanQuestion, offered map[string]float64, progress func(float64)) (*api.Plan, error) {
	if q.Load < 0 {
		return nil, errors.New("load: it is negative")
	}
	progress(1)
	run := api.PlanRun{
		Policy: "pacer", Factor: 1, MeasuredS: 540, WarmupS: 60, Holds: true, Kept: 1,
		Routes:     []api.PlanRoute{{Route: "chat", Class: "interactive", MinTPS: 30, Goal: 0.99, Offered: int(offered["chat"]), Attainment: 1, TPS: api.PlanTPS{P10: 40, P50: api.Unknown()}}},
		Backends:   []api.PlanBackend{{Backend: "h200", Utilisation: 0.4, Mean: 16, Users: []api.PlanUsers{{MinTPS: 30, Users: 40}}, USDPerHour: api.Unknown()}},
		USDPerHour: api.Unknown(),
	}
	return &api.Plan{Verdict: "It holds.", Now: run, Then: run, Curves: []api.PlanCurve{{Backend: "h200"}}, Notes: []string{}, TookS: 0.1}, nil
}

func (w *world) plan(token, body string) *httptest.ResponseRecorder {
	return call(w.handler, http.MethodPost, "/api/v1/plan", token, body)
}

// The load that is played is what was offered within the window, by route.
func TestPlanIsToldTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var got map[string]float64
		w.options.Plan = func(_ context.Context, _ api.PlanQuestion, offered map[string]float64, _ func(float64)) (*api.Plan, error) {
			got = offered
			return &api.Plan{}, nil
		}
		w.handler = New(w.options)
		time.Sleep(20 * time.Second)
		for range 50 {
			w.metrics.History().Route("chat").Add(history.Outcome{Result: history.Met})
		}
		if rec := w.plan("", `{"window":"5m"}`); rec.Code != 200 {
			t.Fatalf("status %d: %s", rec.Code, rec.Body)
		}
		if len(got) != 1 || math.Abs(got["chat"]-2.5) > 1e-9 {
			t.Errorf("the load is %v, want chat at 2.5/s: 50 in 20 s", got)
		}
	})
}

// One plan at a time: a second one is told so, and sees how far the first is. Who
// hangs up ends it, and then the next may ask.
func TestOnePlanAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.options.Plan = func(ctx context.Context, _ api.PlanQuestion, _ map[string]float64, progress func(float64)) (*api.Plan, error) {
			progress(0.25)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		w.handler = New(w.options)
		ctx, hangUp := context.WithCancel(t.Context())
		first := httptest.NewRecorder()
		go w.handler.ServeHTTP(first, httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:9090/api/v1/plan", strings.NewReader("{}")))
		synctest.Wait()
		if rec := w.plan("", "{}"); rec.Code != http.StatusConflict || rec.Header().Get("Retry-After") == "" {
			t.Errorf("a second plan: status %d, Retry-After %q", rec.Code, rec.Header().Get("Retry-After"))
		}
		if state := decode[api.PlanState](t, w.get("/api/v1/plan")); !state.Running || state.Progress != 0.25 {
			t.Errorf("while one is played: %+v", state)
		}
		hangUp()
		synctest.Wait()
		if decode[api.PlanState](t, w.get("/api/v1/plan")).Running {
			t.Error("it is still played after its client hung up")
		}
		// The next one is played for as long as a plan may take, and no longer.
		began := time.Now()
		if rec := w.plan("", "{}"); rec.Code != http.StatusServiceUnavailable || time.Since(began) != planTime {
			t.Errorf("one that does not end: status %d after %v", rec.Code, time.Since(began))
		}
	})
}

// Where a token is configured, a plan needs it; where none is, it needs none. A page
// of another origin gets none.
func TestPlanIsBehindTheToken(t *testing.T) {
	w := newWorld(t)
	if rec := w.plan("", "{}"); rec.Code != 200 {
		t.Errorf("without a token configured: status %d", rec.Code)
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9090/api/v1/plan", strings.NewReader("{}"))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	rec := httptest.NewRecorder()
	if w.handler.ServeHTTP(rec, r); rec.Code != http.StatusForbidden {
		t.Errorf("of another origin: status %d", rec.Code)
	}
	o := w.options
	conf := *o.Config()
	conf.Admin = config.Admin{Listen: conf.Admin.Listen, Token: "t0ken"}
	o.Config = inForce(&conf)
	w.handler = New(o)
	for token, want := range map[string]int{"": 401, "wrong": 401, "t0ken": 200} {
		if rec := w.plan(token, "{}"); rec.Code != want {
			t.Errorf("token %q: status %d, want %d", token, rec.Code, want)
		}
	}
	if rec := w.do(http.MethodPut, "/api/v1/plan", "127.0.0.1:9090"); rec.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", rec.Header().Get("Allow"))
	}
}

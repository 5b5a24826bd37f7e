package admin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/telemetry"
	"github.com/pacer-dev/pacer/router"
)

func TestRoutes(t *testing.T) {
	w := newWorld(t)
	for i, result := range []telemetry.Result{telemetry.Met, telemetry.Met, telemetry.Met, telemetry.Missed, telemetry.Unmeasured, telemetry.Shed, telemetry.Failed} {
		x := telemetry.Exchange{Route: "chat", Outcome: "ok", Counted: true, Result: result}
		if i < 4 {
			x.TPS, x.TTFT = 40, 500*time.Millisecond
		}
		w.metrics.Observe(x)
	}
	got := decode[api.Routes](t, w.get("/api/v1/routes"))
	if got.Since.IsZero() || got.Since.Location() != time.UTC || got.WindowS <= 0 || got.Window != "start" || got.Replica != "this one only" || got.Replicas != 1 {
		t.Errorf("got since %v and a window of %g s, want RFC 3339 in UTC and some seconds, of this replica alone", got.Since, got.WindowS)
	}
	if len(got.Routes) != 3 || got.Routes[0].Model != "chat" || got.Routes[1].Model != "nightly" || got.Routes[2].Model != "*" {
		t.Fatalf("got %+v, want chat, nightly and * in the order of the configuration", got.Routes)
	}

	c := got.Routes[0]
	if c.Class != "interactive" || c.Prefer != "headroom" || c.MinTPS != 30 || c.MaxTTFTS != 2 || c.AttainmentGoal != 0.99 {
		t.Errorf("promise of chat: got %+v", c)
	}
	if c.Offered != 7 || c.Met != 3 || c.Missed != 1 || c.Unmeasured != 1 || c.Shed != 1 || c.Failed != 1 {
		t.Errorf("chat: got %+v, want 7 = 3 + 1 + 1 + 1 + 1", c)
	}
	if c.Attainment != 0.5 {
		t.Errorf("attainment of chat: got %v, want 3 of the 6 that count", c.Attainment)
	}
	if !near(c.TPS.P10, 40, 0.011) || !near(c.TPS.P90, 40, 0.011) || !near(c.TTFTS.P99, 0.5, 0.011) || c.TPSStreams != 4 || c.TTFTStreams != 4 {
		t.Errorf("figures of chat: got %+v, want 40 tok/s and 0.5 s of 4 streams", c)
	}
	if len(c.Targets) != 2 || c.Targets[0].Backend != "h200" || c.Targets[0].Model != h200.Model {
		t.Fatalf("targets of chat: got %+v", c.Targets)
	}
	// truth(n) ≥ 30 up to n = 38; the bound, by which is decided, is at least 10 % lower.
	if holds, admits := *c.Targets[0].Capacity, *c.Targets[0].Admits; holds < 20 || holds >= 38 || admits != holds {
		t.Errorf("h200 holds %d and admits %d, want as many, for it is idle, and fewer than 38", holds, admits)
	}
	if c.Free == nil || *c.Free < 1 || *c.Free > *c.Targets[0].Admits+*c.Targets[1].Admits {
		t.Errorf("chat: %v places free, want some, and no more than its targets admit", c.Free)
	}
	if rest := got.Routes[2]; rest.Free != nil || rest.FreeIsLowerBound {
		t.Errorf("*: %d places free, want null: it has no floor and no cap", *rest.Free)
	}

	n := got.Routes[1]
	if n.Class != "batch" || n.MinTPS.Known() || n.MaxTTFTS.Known() || n.Attainment.Known() || api.Number(n.TPS.P50).Known() || api.Number(n.TTFTS.P50).Known() || n.Targets[0].Capacity != nil {
		t.Errorf("nightly: got %+v, want null for what it does not promise or have", n)
	}
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		health          router.Health
		health1, break1 string
	}{
		{router.Up, "up", "closed"},
		{router.Probing, "down", "half_open"},
		{router.Down, "down", "open"},
		{router.Draining, "draining", "closed"},
	} {
		w := newWorld(t)
		w.router.Update(time.Now(), router.BackendHealth{Backend: "h200", Health: c.health})
		got := decode[api.Profiles](t, w.get("/api/v1/profiles"))
		if h := got.Targets[0]; h.Health != c.health1 || h.Breaker != c.break1 {
			t.Errorf("%v: got %s, breaker %s, want %s, %s", c.health, h.Health, h.Breaker, c.health1, c.break1)
		}
	}
}

func TestPaths(t *testing.T) {
	w := newWorld(t)
	for path, contentType := range map[string]string{
		"/":                "text/html; charset=utf-8",
		"/app.js":          "text/javascript; charset=utf-8",
		"/style.css":       "text/css; charset=utf-8",
		"/favicon.svg":     "image/svg+xml",
		"/healthz":         "text/plain; charset=utf-8",
		"/api/v1/profiles": "application/json",
		"/api/v1/routes":   "application/json",
	} {
		rec := w.get(path)
		if got := rec.Header().Get("Content-Type"); rec.Code != http.StatusOK || got != contentType || rec.Body.Len() == 0 {
			t.Errorf("%s: got %d, %q, %d bytes, want 200, %q and some", path, rec.Code, got, rec.Body.Len(), contentType)
		}
	}
	if rec := w.get("/metrics"); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "pacer_slo_total{") {
		t.Errorf("/metrics: got %d %.200s", rec.Code, rec.Body)
	}
	for _, path := range []string{"/nothing", "/index.html", "/api", "/api/v1/", "/api/v1/profiles/", "/../etc/passwd", "/v1/models", "//"} {
		rec := w.get(path)
		var got api.Refusal
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusNotFound || got.Error.Code != "not_found" {
			t.Errorf("%s: got %d %s, want 404 in the shape of an error", path, rec.Code, rec.Body)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPatch} {
		for path, allow := range map[string]string{"/": "GET, HEAD", "/metrics": "GET, HEAD", "/healthz": "GET, HEAD", "/api/v1/routes": "GET, HEAD", "/api/v1/events": "GET", "/api/v1/explain": "POST"} {
			rec := w.do(method, path, "127.0.0.1:9090")
			if strings.Contains(allow, method) {
				if method == http.MethodHead && rec.Code != http.StatusOK { // as health checks ask: wget --spider
					t.Errorf("HEAD %s: got %d, want 200", path, rec.Code)
				}
				continue
			}
			if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != allow {
				t.Errorf("%s %s: got %d, Allow %q, want 405, %s", method, path, rec.Code, rec.Header().Get("Allow"), allow)
			}
		}
		if rec := w.do(method, "/nothing", "127.0.0.1:9090"); rec.Code != http.StatusNotFound {
			t.Errorf("%s /nothing: got %d, want 404", method, rec.Code)
		}
	}
}

// A page of a stranger reaches this port under a name of its own.
func TestHostIsChecked(t *testing.T) {
	for _, c := range []struct {
		listen, host string
		want         bool
	}{
		{"127.0.0.1:9090", "127.0.0.1:9090", true},
		{"127.0.0.1:9090", "127.0.0.1", true},
		{"127.0.0.1:9090", "127.8.8.8:1", true},
		{"127.0.0.1:9090", "localhost:9090", true},
		{"127.0.0.1:9090", "LocalHost.:9090", true},
		{"127.0.0.1:9090", "pacer.localhost", true},
		{"127.0.0.1:9090", "[::1]:9090", true},
		{"127.0.0.1:9090", "[::ffff:127.0.0.1]:9090", true},
		{"127.0.0.1:9090", "[::1]", true},
		{"127.0.0.1:9090", "evil.example", false},
		{"127.0.0.1:9090", "evil.example:9090", false},
		{"127.0.0.1:9090", "127.0.0.1.evil.example:9090", false},
		{"127.0.0.1:9090", "localhost.evil.example", false},
		{"127.0.0.1:9090", "notlocalhost", false},
		{"127.0.0.1:9090", "10.0.0.5:9090", false},
		{"127.0.0.1:9090", "0.0.0.0:9090", false},
		{"127.0.0.1:9090", "", false},
		{"127.0.0.1:9090", ":9090", false},
		{"10.0.0.5:9090", "10.0.0.5:9090", true},
		{"10.0.0.5:9090", "10.0.0.6:9090", false},
		{"10.0.0.5:9090", "127.0.0.1:9090", true},
		{"Pacer.example:9090", "pacer.example:9090", true},
		{"pacer.example:9090", "evil.example:9090", false},
		{"localhost:0", "localhost:41234", true},
		// On every address it is reached by many names, and by no public one.
		{"0.0.0.0:9090", "10.0.0.5:9090", true},
		{":9090", "pacer:9090", true},
		{"[::]:9090", "[2001:db8::1]:9090", true},
		{"0.0.0.0:9090", "pacer.monitoring.svc:9090", true},
		{"0.0.0.0:9090", "pacer.default.svc.cluster.local:9090", true},
		{"0.0.0.0:9090", "evil.example:9090", false},
		{"0.0.0.0:9090", "svc.evil.example", false},
		{"0.0.0.0:9090", "", false},
	} {
		if got := newHostGuard(c.listen).allows(c.host); got != c.want {
			t.Errorf("listening on %s, Host %q: allowed %v, want %v", c.listen, c.host, got, c.want)
		}
	}

	w := newWorld(t)
	for _, path := range []string{"/", "/metrics", "/api/v1/profiles", "/api/v1/events", "/healthz", "/nothing"} {
		rec := w.do(http.MethodGet, path, "evil.example")
		if rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "admin.listen") {
			t.Errorf("%s: got %d %s, want 403 that says what to write", path, rec.Code, rec.Body)
		}
	}
}

func TestEveryAnswerIsSecured(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/", "/app.js", "/metrics", "/api/v1/profiles", "/nothing"} {
		h := w.get(path).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Cache-Control":           "no-store",
			"X-Frame-Options":         "DENY",
			"Referrer-Policy":         "no-referrer",
		} {
			if got := h.Get(name); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := h.Get("Content-Security-Policy")
		for _, hole := range []string{"unsafe", "*", "http:", "https:", "data:"} {
			if strings.Contains(policy, hole) {
				t.Errorf("%s: the policy %q has the hole %s", path, policy, hole)
			}
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: other origins may read it", path)
		}
	}
}

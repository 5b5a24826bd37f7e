package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/filekeys"
)

// guarded is a world with a token of each role, one key in its file, and keys that
// can be handed out.
func guarded(t *testing.T, private bool) http.Handler {
	t.Helper()
	return guardedWorld(t, newWorld(t), private)
}

func guardedWorld(t *testing.T, w *world, private bool) http.Handler {
	t.Helper()
	store := must.Get(filekeys.Open(t.TempDir()))(t)
	o := w.options
	cfg := *o.Config()
	cfg.Admin.Token = "root"
	cfg.Admin.Private, cfg.Admin.Pprof = private, true
	cfg.Admin.Tokens = []config.AdminToken{{Name: "v", Token: "t-view", Role: "view"}, {Name: "o", Token: "t-operate", Role: "operate"}, {Name: "a", Token: "t-admin", Role: "admin"}}
	cfg.Keys = []config.Key{{Name: "of-file"}}
	o.Config, o.Keys = inForce(&cfg), keys.New(store)
	o.Drain = func(string, bool) bool { return true }
	o.Note = noteIn(t, o.Keys)
	return New(o)
}

// noteIn notes in the audit log of ring.
func noteIn(t *testing.T, ring *keys.Ring) func(ctx context.Context, who, did, to string) {
	return func(ctx context.Context, who, did, to string) {
		if err := ring.Note(ctx, time.Now(), who, did, to); err != nil {
			t.Error(err)
		}
	}
}

// audited is who did what to what, the oldest first.
func audited(log []api.AuditEntry) (lines []string) {
	for _, e := range slices.Backward(log) {
		lines = append(lines, e.Who+" "+e.Did+" "+e.To)
	}
	return lines
}

func call(h http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	return callIn(context.Background(), h, method, path, token, body)
}

func callIn(ctx context.Context, h http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:9090"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every call of the admin port with each role: what the description says of it is
// so. One that is added without a row here fails.
func TestEveryCallWithEachRole(t *testing.T) {
	needs := map[string]role{
		"GET /api/v1/keys": administrator, "POST /api/v1/keys": administrator, "DELETE /api/v1/keys/{name}": administrator,
		"POST /api/v1/keys/{name}/rotate": administrator, "GET /api/v1/audit": administrator,
		"POST /api/v1/backends/{name}/drain": operator, "POST /api/v1/backends/{name}/resume": operator, "POST /api/v1/plan": operator,
	}
	for _, path := range []string{"profiles", "routes", "history", "timeline", "usage", "jobs", "scorecard", "decisions", "plan", "events", "session"} {
		needs["GET /api/v1/"+path] = viewer
	}
	for _, path := range []string{"", "heap", "goroutine?debug=2", "profile?seconds=1", "trace?seconds=0.01", "symbol"} {
		needs["GET /debug/pprof/"+path] = administrator
	}
	needs["POST /api/v1/explain"], needs["GET /api/openapi.json"], needs["GET /metrics"], needs["GET /"] = viewer, viewer, viewer, viewer
	var described struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	must.Do(t, json.Unmarshal(api.OpenAPI, &described))
	for path, methods := range described.Paths {
		for method := range methods {
			if name := strings.ToUpper(method) + " " + path; !slices.Contains([]string{"PARAMETERS"}, strings.ToUpper(method)) && needs[name] == anybody {
				t.Errorf("%s has no row here: say which role it needs", name)
			}
		}
	}
	h := guarded(t, true)
	tokens := []struct {
		token string
		role  role
	}{{"", anybody}, {"wrong", anybody}, {"t-view", viewer}, {"t-operate", operator}, {"t-admin", administrator}, {"root", administrator}}
	gone, leave := context.WithCancel(t.Context())
	leave() // whoever may listen to events has hung up, else they would not end
	for name, need := range needs {
		ctx := t.Context()
		if name == "GET /api/v1/events" {
			ctx = gone
		}
		method, path, _ := strings.Cut(name, " ")
		path = strings.ReplaceAll(path, "{name}", "h200")
		for _, c := range tokens {
			w := callIn(ctx, h, method, path, c.token, "{")
			want := c.role >= need
			refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
			if want == refused || !want && (c.role == anybody) != (w.Code == http.StatusUnauthorized) {
				t.Errorf("%s with %q: %d; the role %v is needed", name, c.token, w.Code, need)
			}
		}
	}
	if w := call(h, "GET", "/healthz", "", ""); w.Code != http.StatusOK {
		t.Errorf("/healthz: %d", w.Code)
	}
	if w := call(guarded(t, false), "GET", "/api/v1/routes", "", ""); w.Code != http.StatusOK {
		t.Errorf("looking without private: %d", w.Code)
	}
}

// Whatever is asked by whomever, the audit log has each change once, in order, by the
// name of who made it, and nothing that was refused.
func TestTheAuditLogAfterARandomWalk(t *testing.T) {
	names := map[string]string{"t-view": "v", "t-operate": "o", "t-admin": "a", "root": "admin"}
	world := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		h := guardedWorld(t, world, rapid.Bool().Draw(rt, "private"))
		var want []string
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			token := rapid.SampledFrom([]string{"", "wrong", "t-view", "t-operate", "t-admin", "t-admin", "root"}).Draw(rt, "token")
			name := rapid.SampledFrom([]string{"k1", "k1", "k2", "of-file", "nobody"}).Draw(rt, "name")
			did := rapid.SampledFrom([]string{"key.create", "key.create", "key.rotate", "key.revoke", "backend.drain", "backend.resume", "look"}).Draw(rt, "call")
			var w *httptest.ResponseRecorder
			switch did {
			case "key.create":
				body := rapid.SampledFrom([]string{`{"name":"` + name + `","routes":["*"]}`, `{"name":"` + name + `"`, `{"name":"` + name + `","routes":["nowhere"]}`}).Draw(rt, "body")
				w = call(h, "POST", "/api/v1/keys", token, body)
			case "key.rotate":
				w = call(h, "POST", "/api/v1/keys/"+name+"/rotate", token, `{"grace_s":60}`)
			case "key.revoke":
				w = call(h, "DELETE", "/api/v1/keys/"+name, token, "")
			case "backend.drain", "backend.resume":
				w = call(h, "POST", "/api/v1/backends/"+name+"/"+strings.TrimPrefix(did, "backend."), token, "")
			case "look":
				call(h, "GET", rapid.SampledFrom([]string{"/api/v1/keys", "/api/v1/audit", "/api/v1/usage", "/api/v1/routes"}).Draw(rt, "path"), token, "")
				continue
			}
			if w.Code == http.StatusOK {
				if names[token] == "" || token == "t-view" || token == "t-operate" && strings.HasPrefix(did, "key.") {
					rt.Fatalf("%s of %s with %q is answered", did, name, token)
				}
				want = append(want, names[token]+" "+did+" "+name)
			}
		}
		var audit api.Audit
		must.Do(rt, json.Unmarshal(call(h, "GET", "/api/v1/audit", "t-admin", "").Body.Bytes(), &audit))
		if got := audited(audit.Entries); !slices.Equal(got, want) {
			rt.Fatalf("the audit log says %q, want %q", got, want)
		}
	})
}

// Profiles are there where the configuration says so, and the command line never is.
func TestPprof(t *testing.T) {
	h := guarded(t, false)
	if w := call(h, "GET", "/debug/pprof/heap", "root", ""); w.Code != http.StatusOK || !bytes.HasPrefix(w.Body.Bytes(), []byte{0x1f, 0x8b}) {
		t.Errorf("heap: %d, %.20q", w.Code, w.Body)
	}
	if w := call(h, "GET", "/debug/pprof/", "root", ""); !strings.Contains(w.Body.String(), "goroutine") {
		t.Errorf("the index: %d, %.200s", w.Code, w.Body)
	}
	for _, path := range []string{"cmdline", "nosuch"} {
		if w := call(h, "GET", "/debug/pprof/"+path, "root", ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	w := newWorld(t)
	cfg := *w.options.Config()
	cfg.Admin.Token = "root"
	w.options.Config = inForce(&cfg)
	if w := call(New(w.options), "GET", "/debug/pprof/heap", "root", ""); w.Code != http.StatusNotFound {
		t.Errorf("without leave: %d", w.Code)
	}
}

// A browser shows a token as a password; a page of another origin gets nothing by it.
func TestATokenAsAPassword(t *testing.T) {
	h := guarded(t, true)
	w := call(h, "GET", "/", "", "")
	if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("a browser is not asked: %v", w.Header())
	}
	for origin, want := range map[string]int{"": 200, "http://127.0.0.1:9090": 200, "https://evil.example": 403} {
		r := httptest.NewRequest("POST", "http://127.0.0.1:9090/api/v1/backends/h200/drain", nil)
		r.SetBasicAuth("anybody", "t-operate")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("from %q: %d, want %d", origin, w.Code, want)
		}
	}
}

// A body that comes in chunks may be empty: its head does not say so.
func TestARotationWithoutABody(t *testing.T) {
	h := guarded(t, false)
	call(h, "POST", "/api/v1/keys", "t-admin", `{"name":"mobile"}`)
	for name, body := range map[string]io.Reader{"no body": nil, "no length": struct{ io.Reader }{strings.NewReader("")}} {
		r := httptest.NewRequest("POST", "http://127.0.0.1:9090/api/v1/keys/mobile/rotate", body)
		r.Header.Set("Authorization", "Bearer t-admin")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s, want a new secret", name, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest("POST", "http://127.0.0.1:9090/api/v1/keys/mobile/rotate", struct{ io.Reader }{strings.NewReader("60")})
	r.Header.Set("Authorization", "Bearer t-admin")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
		t.Errorf("60 without a length: %d %s, want 400", w.Code, w.Body)
	}
}

func TestKeysAreHandedOut(t *testing.T) {
	h := guarded(t, false)
	made := decode[api.NewKey](t, call(h, "POST", "/api/v1/keys", "t-admin", `{"name":"mobile","routes":["chat"],"team":"apps","limits":{"concurrency":2},"budget":{"usd":5}}`))
	if len(made.Secret) < 40 || made.Key.By != "a" || made.Key.Budget.Per != "month" || made.Key.Budget.Warn != 0.8 || made.Key.Budget.Then != "refuse" {
		t.Errorf("made %+v", made)
	}
	everywhere := `{"name":"y","routes":["*"],"expires":"2999-01-01T00:00:00Z"}`
	for body, want := range map[string]int{
		`{"name":"mobile"}`:                              409,
		`{"name":"of-file"}`:                             400,
		`{"name":"a b"}`:                                 400,
		`{"name":"x","routes":["nowhere"]}`:              400,
		`{"name":"x","expires":"2020-01-01T00:00:00Z"}`:  400,
		`{"name":"x","budget":{"usd":0}}`:                400,
		`{"name":"x","budget":{"usd":1,"then":"spill"}}`: 400,
		`{"name":"x","budget":{"usd":1,"spill":"chat"}}`: 400,
		`{"name":"x","budget":{"usd":1,"per":"year"}}`:   400,
		`{"name":"x","limits":{"concurrency":-1}}`:       400,
		`{"name":"x","unknown":1}`:                       400,
		`{"name":"x"} {`:                                 400,
		``:                                               400,
		everywhere:                                       200,
	} {
		if w := call(h, "POST", "/api/v1/keys", "t-admin", body); w.Code != want {
			t.Errorf("%s: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	turned := decode[api.NewKey](t, call(h, "POST", "/api/v1/keys/mobile/rotate", "root", `{"grace_s":60}`))
	if turned.Secret == made.Secret || turned.Secret == "" {
		t.Errorf("rotated: %+v", turned)
	}
	for path, want := range map[string]int{"/api/v1/keys/nobody": 404, "/api/v1/keys/of-file": 404, "/api/v1/keys/mobile": 200} {
		if w := call(h, "DELETE", path, "t-admin", ""); w.Code != want {
			t.Errorf("DELETE %s: %d, want %d", path, w.Code, want)
		}
	}
	if w := call(h, "POST", "/api/v1/keys/mobile/rotate", "t-admin", ""); w.Code != http.StatusConflict {
		t.Errorf("a rotation of what is revoked: %d", w.Code)
	}
	if list := decode[api.Keys](t, call(h, "GET", "/api/v1/keys", "t-admin", "")).Keys; len(list) != 3 || list[0].State != "revoked" || list[1].Source != "file" {
		t.Errorf("listed %+v", list)
	}
	call(h, "POST", "/api/v1/backends/h200/drain", "t-operate", "")
	w := call(h, "GET", "/api/v1/audit", "t-admin", "")
	got := audited(decode[api.Audit](t, w).Entries)
	if want := []string{"a key.create mobile", "a key.create y", "admin key.rotate mobile", "a key.revoke mobile", "o backend.drain h200"}; !slices.Equal(got, want) {
		t.Errorf("the audit log says %q, want %q", got, want)
	}
	for _, secret := range []string{made.Secret, turned.Secret} {
		if strings.Contains(w.Body.String(), secret) {
			t.Error("a secret is in the audit log")
		}
	}
}

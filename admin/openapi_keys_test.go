package admin

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/keys"
	"github.com/pacer-dev/pacer/keys/filekeys"
	"github.com/pacer-dev/pacer/usage"
)

// Answers about keys, who changed what, what was used, and who looks are as the
// document says, field by field, too; so are their refusals.
func TestAnswersAboutKeysAreAsOpenAPISays(t *testing.T) {
	store := must.Get(filekeys.Open(t.TempDir()))(t)
	w := busy(t)
	doc := described(t, w)
	o := w.options
	cfg := *o.Config()
	cfg.Admin.Token = "root"
	cfg.Admin.Tokens = []config.AdminToken{{Name: "v", Token: "t-view", Role: "view"}}
	cfg.Keys = []config.Key{{Name: "of-file"}}
	o.Config, o.Keys = inForce(&cfg), keys.New(store)
	o.Note = noteIn(t, o.Keys)
	o.Usage = func(_ context.Context, _, to usage.Hour) ([]usage.Cell, bool) {
		return []usage.Cell{{Hour: to - 1, Of: usage.Of{Key: "mobile", Team: "apps", Route: "chat", Backend: "h200", Model: h200.Model}, Sums: usage.Sums{Requests: 3, Input: 3000, Cached: 1000, Output: 600, Cost: usage.Dollars(0.008)}}}, true
	}
	o.Budgets = func() []usage.State {
		return []usage.State{{Holder: usage.Holder{Name: "mobile"}, Budget: usage.Budget{Limit: usage.Dollars(500)}, Start: time.Now(), End: time.Now().Add(time.Hour), Spent: usage.Dollars(1)}}
	}
	out := false
	o.Jobs = func(context.Context) ([]api.Job, error) {
		if out {
			return nil, errors.New("the store is out")
		}
		return []api.Job{{ID: "batch_1", Key: "mobile", Endpoint: "/v1/embeddings", Total: 9, Created: time.Now(), Expires: time.Now()}}, nil
	}
	h := New(o)
	for _, a := range []struct {
		method, path, described, token, body string
		status                               int
	}{
		{"get", "/api/v1/keys", "", "root", "", 200},
		{"get", "/api/v1/keys", "", "", "", 401},
		{"get", "/api/v1/keys", "", "t-view", "", 403},
		{"post", "/api/v1/keys", "", "root", `{"name":"mobile","routes":["chat"],"team":"","budget":{"usd":500,"per":"month"},"limits":{"requests_per_minute":60}}`, 200},
		{"post", "/api/v1/keys", "", "root", `{"name":"mobile"}`, 409},
		{"post", "/api/v1/keys", "", "root", `{"nmae":"mobile"}`, 400},
		{"get", "/api/v1/keys", "", "root", "", 200},
		{"post", "/api/v1/keys/mobile/rotate", "/api/v1/keys/{name}/rotate", "root", `{"grace_s":60}`, 200},
		{"post", "/api/v1/keys/nobody/rotate", "/api/v1/keys/{name}/rotate", "root", `{}`, 404},
		{"delete", "/api/v1/keys/mobile", "/api/v1/keys/{name}", "root", "", 200},
		{"delete", "/api/v1/keys/nobody", "/api/v1/keys/{name}", "root", "", 404},
		{"get", "/api/v1/keys", "", "root", "", 200},
		{"get", "/api/v1/audit", "", "root", "", 200},
		{"get", "/api/v1/audit", "", "", "", 401},
		{"get", "/api/v1/jobs", "", "", "", 200},
		{"get", "/api/v1/session", "", "", "", 200},
		{"get", "/api/v1/session", "", "root", "", 200},
		{"get", "/api/v1/usage", "", "", "", 200},
		{"get", "/api/v1/usage?by=key,team,route,backend,model,tags,hour", "/api/v1/usage", "", "", 200},
		{"get", "/api/v1/usage?by=key&limit=1", "/api/v1/usage", "", "", 200},
		{"get", "/api/v1/usage?by=nothing", "/api/v1/usage", "", "", 400},
	} {
		if a.described == "" {
			a.described = a.path
		}
		rec := call(h, strings.ToUpper(a.method), a.path, a.token, a.body)
		of := a.method + " " + a.path + " " + a.body
		if rec.Code != a.status {
			t.Errorf("%s: status %d, want %d: %.300s", of, rec.Code, a.status, rec.Body)
			continue
		}
		validate(t, schemaOf(t, doc, a.described, a.method, strconv.Itoa(a.status)), of, rec.Body.Bytes())
	}
	out = true
	rec := call(h, http.MethodGet, "/api/v1/jobs", "", "")
	if rec.Code != http.StatusServiceUnavailable {
		t.Errorf("jobs of a store that is out: %d %s", rec.Code, rec.Body)
	}
	validate(t, schemaOf(t, doc, "/api/v1/jobs", "get", "503"), "jobs of a store that is out", rec.Body.Bytes())
	// None of them was empty, so the fields within were looked at.
	if used := decode[api.Usage](t, call(h, http.MethodGet, "/api/v1/usage", "", "")); len(used.Rows) == 0 || len(used.Budgets) == 0 {
		t.Errorf("usage: %+v", used)
	}
}

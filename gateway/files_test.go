package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
)

// Files for batch jobs are Pacer's own. Others go to the backend whose account the key
// may use, and so do ids that are none of Pacer's; without such a backend there are none.
func TestFilesThatABackendKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		open, closed := key("open", "sk-open"), key("closed", "sk-closed")
		open.Allow.Account = true
		c.Keys = []config.Key{open, closed}
		c.Batches = config.Batches{Slots: 4, Bytes: 1 << 20, Keep: time.Hour}
		api := echo("application/json", `{"id":"file-abc","object":"file"}`)
		h := openWith(t, c, map[string]http.Handler{"a": api}, houseOptions{batches: batch.NewMemory(1<<20, time.Hour)})
		t.Cleanup(h.idle)
		ask := func(secret, method, path, body, kind string) reply {
			header := []string{"Authorization", "Bearer " + secret}
			if kind != "" {
				header = append(header, "Content-Type", kind)
			}
			return h.do(h.request(method, path, body, header...))
		}
		for _, large := range []int{1, 100_000} {
			form, kind := upload("assistants", strings.Repeat("x", large))
			n := api.calls()
			r := ask("sk-open", "POST", "/v1/files", form, kind)
			if r.status != 200 || !strings.Contains(r.body, "file-abc") || api.calls() != n+1 || api.bodies[n] != form || api.heads[n].Get("Content-Type") != kind {
				t.Fatalf("a file for the API: got %d %s; %d calls", r.status, r.body, api.calls()-n)
			}
			if r := ask("sk-closed", "POST", "/v1/files", form, kind); r.status != 400 || !strings.Contains(r.body, "purpose") || api.calls() != n+1 {
				t.Errorf("of a key that may not: got %d %s", r.status, r.body)
			}
		}
		asked := api.calls()
		form, kind := upload("batch", input)
		own := h.fields(ask("sk-open", "POST", "/v1/files", form, kind))["id"].(string)
		for _, x := range []struct {
			secret, method, path string
			status, calls        int
		}{
			{"sk-open", "GET", "/v1/files/" + own, 200, 0},
			{"sk-open", "GET", "/v1/files/" + own + "/content", 200, 0},
			{"sk-open", "GET", "/v1/files", 200, 0},
			{"sk-open", "GET", "/v1/files?purpose=batch", 200, 0},
			{"sk-open", "GET", "/v1/files?purpose=batch_output", 200, 0},
			{"sk-open", "GET", "/v1/files?purpose=assistants", 200, 1},
			{"sk-open", "GET", "/files/file-abc", 200, 1},
			{"sk-open", "GET", "/openai/v1/files/file-abc/content", 200, 1},
			{"sk-open", "DELETE", "/v1/files/file-abc/", 200, 1},
			{"sk-open", "DELETE", "/v1/files/" + own, 200, 0},
			{"sk-open", "GET", "/v1/files/file-batch_x-output", 404, 0},
			{"sk-open", "GET", "/v1/files/..%2Fmodels", 404, 0},
			{"sk-closed", "GET", "/v1/files/file-abc", 404, 0},
			{"sk-closed", "GET", "/v1/files?purpose=assistants", 200, 0},
			{"sk-closed", "DELETE", "/v1/files/file-abc", 404, 0},
		} {
			if r := ask(x.secret, x.method, x.path, "", ""); r.status != x.status || api.calls() != asked+x.calls {
				t.Errorf("%s %s %s: got %d %s after %d calls of the API, want %d after %d", x.secret, x.method, x.path, r.status, r.body, api.calls()-asked, x.status, x.calls)
			}
			asked = api.calls()
		}
		if r := h.fields(ask("sk-closed", "GET", "/v1/files?purpose=assistants", "", "")); len(r["data"].([]any)) != 0 {
			t.Errorf("a key that may not lists %v", r)
		}
	})
}

const input = `{"custom_id":"c","method":"POST","url":"/v1/embeddings","body":{"model":"chat"}}` + "\n"

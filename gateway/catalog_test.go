package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
)

// catchAll is a gateway whose route "*" sends names up unchanged, beside the
// route "chat".
func catchAll(backends ...string) *config.Config {
	c := settings(backends...)
	rest := c.Routes[0]
	rest.Models, rest.Targets = []string{"*"}, nil
	for _, name := range backends {
		rest.Targets = append(rest.Targets, config.Target{Backend: name})
	}
	c.Routes = append(c.Routes, rest)
	return c
}

func (h *house) modelIDs() []string {
	h.t.Helper()
	var list modelList
	r := h.do(h.request("GET", "/v1/models", ""))
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != 200 {
		h.t.Fatalf("got %d %q", r.status, r.body)
	}
	ids := []string{}
	for _, m := range list.Data {
		if m.Object != "model" {
			h.t.Errorf("%s is a %q", m.ID, m.Object)
		}
		ids = append(ids, m.ID)
	}
	return ids
}

func TestTheCatchAllListsWhatItsBackendsServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := echo("application/json", `{"object":"list","data":[{"id":"org/name","object":"model","created":7,"owned_by":"vllm"},{"id":"chat"},{"id":""}]}`)
		b := echo("application/json", `{"data":[{"id":"org/name"},{"id":"tiny"}],"models":[{}]}`)
		h := open(t, catchAll("a", "b"), map[string]http.Handler{"a": a, "b": b})
		want := []string{"chat", "org/name", "tiny"}
		for range 3 {
			if got := h.modelIDs(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if a.calls() != 1 || a.methods[0] != "GET" || a.paths[0] != "/v1/models" {
			t.Errorf("the backend was asked %d times by %q %q, want once", a.calls(), a.methods, a.paths)
		}
		for id, status := range map[string]int{"chat": 200, "org/name": 200, "org%2Fname": 200, "tiny": 200, "nobody": 404} {
			if r := h.do(h.request("GET", "/v1/models/"+id, "")); r.status != status {
				t.Errorf("%s: got %d, want %d", id, r.status, status)
			}
		}
		if r := h.do(h.request("GET", "/v1/models/org/name", "")); !strings.Contains(r.body, `"owned_by":"vllm"`) {
			t.Errorf("got %s, want what the backend says", r.body)
		}
		<-time.After(catalogAge)
		a.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
		if got := h.modelIDs(); !slices.Equal(got, want) {
			t.Errorf("while a backend does not tell: got %q, want what it said last", got)
		}
		if a.calls() != 2 {
			t.Errorf("after a minute the backend was asked %d times in all, want 2", a.calls())
		}
		h.idle()
	})
}

// Without an answer of its backends the catch-all denies no model.
func TestACatchAllThatKnowsNothingDeniesNothing(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"down":    nil,
		"silent":  func(_ http.ResponseWriter, r *http.Request) { pause(r, time.Hour) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"endless": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"data":[`)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engines := map[string]http.Handler{}
				if answer != nil {
					engines["a"] = &script{answer: answer}
				}
				h := open(t, catchAll("a"), engines)
				start := time.Now()
				if got := h.modelIDs(); !slices.Equal(got, []string{"chat"}) {
					t.Errorf("got %q, want the named route alone", got)
				}
				if d := time.Since(start); d > catalogWait+time.Second {
					t.Errorf("it took %v", d)
				}
				if r := h.do(h.request("GET", "/v1/models/any/thing", "")); r.status != 200 {
					t.Errorf("got %d, want 200", r.status)
				}
				h.idle()
			})
		})
	}
}

func TestAKeyWithoutTheCatchAllSeesNothingOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := catchAll("a")
		k := key("mobile", "sk-right")
		k.Routes = []string{"chat"}
		c.Keys = []config.Key{k}
		a := echo("application/json", `{"data":[{"id":"tiny"}]}`)
		h := open(t, c, map[string]http.Handler{"a": a})
		r := h.do(h.request("GET", "/v1/models", "", "x-api-key", "sk-right"))
		if strings.Contains(r.body, "tiny") || !strings.Contains(r.body, `"chat"`) {
			t.Errorf("got %s", r.body)
		}
		if r := h.do(h.request("GET", "/v1/models/tiny", "", "x-api-key", "sk-right")); r.status != 404 {
			t.Errorf("got %d, want 404", r.status)
		}
		if a.calls() != 0 {
			t.Error("the backend was asked")
		}
		h.idle()
	})
}

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

// A name that ends with * stands for all that begin as it does, the longest
// beginning first; what the star stands for goes into the name of the target's
// model.
func TestWildcardNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := catchAll("a")
		for _, r := range []struct{ name, model string }{{"openai/*", "*"}, {"openai/o*", "reasoning/o*"}, {"kept/*", ""}} {
			route := c.Routes[0]
			route.Models, route.Targets = []string{r.name}, []config.Target{{Backend: "a", Model: r.model}}
			c.Routes = append(c.Routes, route)
		}
		engine := echo("application/json", `{"data":[{"id":"gpt"},{"id":"kept/it"},{"id":"reasoning/o4"}]}`)
		h := open(t, c, map[string]http.Handler{"a": engine})
		for i, x := range []struct{ asked, up, route string }{
			{"openai/gpt-4o", "gpt-4o", "openai/*"},
			{"openai/a/b", "a/b", "openai/*"},
			{"openai/o3", "reasoning/o3", "openai/o*"},
			{"openai/o", "o", "openai/*"},
			{"openai/", "openai/", "*"},
			{"kept/llama", "kept/llama", "kept/*"},
			{"other", "other", "*"},
			{"chat", "big", "chat"},
		} {
			r := h.post("/v1/embeddings", `{"model":"`+x.asked+`","input":"x"}`)
			if want := `{"model":"` + x.up + `","input":"x"}`; r.status != 200 || engine.bodies[i] != want {
				t.Errorf("%s: got %d and the backend %s, want %s", x.asked, r.status, engine.bodies[i], want)
			}
			if got := h.last().Route; got != x.route || c.RouteName(x.asked) != x.route {
				t.Errorf("%s: went by the route %q, and is said to go by %q; want %q", x.asked, got, c.RouteName(x.asked), x.route)
			}
		}
		want := []string{"chat", "gpt", "kept/it", "openai/gpt", "openai/kept/it", "openai/o4", "openai/reasoning/o4", "reasoning/o4"}
		got := h.modelIDs()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the models are %q, want %q", got, want)
		}
	})
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
		for id, status := range map[string]int{"chat": 200, "org/name": 200, "org%2Fname": 200, "tiny": 200, "nobody": 404, "chat/": 200, "org/name/": 200, "nobody/": 404} {
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
		bubble(t, name, func(t *testing.T) {
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
		})
	}
}

func TestAKeyWithoutTheCatchAllSeesNothingOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := catchAll("a", "b")
		c.Routes[0].Targets, c.Routes[1].Targets = c.Routes[0].Targets[1:], c.Routes[1].Targets[:1]
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
	})
}

// Clients size their prompts by what the engine says of its model, and of several
// engines by the smallest. Where its files lie is for nobody with a key.
func TestWhatEnginesSayOfTheirModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b", "c")
		c.Routes[0].SLO.MinTPS = 30
		c.Routes = append(c.Routes, config.Route{Models: []string{"rest/*"}, Class: "batch", Targets: []config.Target{{Backend: "b", Model: "*"}}})
		a := echo("application/json", `{"data":[{"id":"big","object":"model","created":7,"owned_by":"vllm","root":"/models/big","parent":null,"max_model_len":32768,"permission":[{"id":"p"}],"capabilities":{"vision":true},"pacer":{"floor":99}}]}`)
		b := echo("application/json", `{"data":[{"id":"big","max_model_len":8192,"meta":{"n_ctx_train":4096}},{"id":"tiny","created":"yesterday","max_model_len":512}]}`)
		engines := map[string]http.Handler{"a": a, "b": b} // c does not answer
		h := open(t, c, engines)
		const promise = `"pacer":{"floor":30,"class":"interactive"}`
		r := h.do(h.request("GET", "/v1/models/chat", ""))
		has(t, r.body, `"id":"chat"`, `"owned_by":"pacer"`, `"max_model_len":8192`, `"capabilities":{"vision":true}`, `"root":"/models/big"`, promise)
		if strings.Contains(r.body, "99") {
			t.Errorf("got %s: a floor is Pacer's own to say", r.body)
		}
		list := h.do(h.request("GET", "/v1/models", "")).body
		has(t, list, promise, `"id":"rest/tiny","max_model_len":512,"object":"model","owned_by":"","pacer":{"floor":null,"class":"batch"}`)
		if a.calls() != 1 || b.calls() != 1 {
			t.Errorf("the engines were asked %d and %d times, want once", a.calls(), b.calls())
		}
		c.Keys = []config.Key{key("mobile", "sk-right")}
		h = open(t, c, engines)
		r = h.do(h.request("GET", "/v1/models/chat", "", "x-api-key", "sk-right"))
		if !strings.Contains(r.body, `"max_model_len":8192`) || strings.Contains(r.body, "/models/big") || strings.Contains(r.body, "permission") {
			t.Errorf("a client with a key got %s", r.body)
		}
	})
}

package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pacer-dev/pacer/config"
)

// Clients come with the base URLs and paths of what they used before.
func TestAddressesOfClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := echo("application/json", `{}`)
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		const plain = `{"model":"chat","input":"x"}`
		for _, c := range []struct{ path, body, upPath, upBody string }{
			{"/v1/embeddings/", plain, "/v1/embeddings", `{"model":"big","input":"x"}`},
			{"/embeddings", plain, "/v1/embeddings", `{"model":"big","input":"x"}`},
			{"/openai/v1/embeddings?x=1", plain, "/v1/embeddings?x=1", `{"model":"big","input":"x"}`},
			{"/openai/deployments/chat/embeddings?api-version=2024-10-21", `{"input":"x"}`, "/v1/embeddings", `{"model":"big","input":"x"}`},
			{"/openai/deployments/chat/embeddings?api-version=2024-10-21&x=1", `{"model":"other","input":"x"}`, "/v1/embeddings?x=1", `{"model":"big","input":"x"}`},
			{"/engines/chat/embeddings", `{}`, "/v1/embeddings", `{"model":"big"}`},
			{"/v1/engines/chat/embeddings/", `{"model":null}`, "/v1/embeddings", `{"model":"big"}`},
			{"/v1/rerank", plain, "/v1/rerank", `{"model":"big","input":"x"}`},
			{"/rerank", plain, "/v1/rerank", `{"model":"big","input":"x"}`},
			{"/v2/rerank", plain, "/v2/rerank", `{"model":"big","input":"x"}`},
			{"/v2/embed", plain, "/v2/embed", `{"model":"big","input":"x"}`},
			{"/tokenize", plain, "/tokenize", `{"model":"big","input":"x"}`},
			{"/v1/detokenize", plain, "/detokenize", `{"model":"big","input":"x"}`},
			{"/score", plain, "/score", `{"model":"big","input":"x"}`},
			{"/classify/", plain, "/classify", `{"model":"big","input":"x"}`},
			{"/pooling", plain, "/pooling", `{"model":"big","input":"x"}`},
		} {
			asked := engine.calls()
			if r := h.post(c.path, c.body); r.status != 200 || engine.calls() != asked+1 {
				t.Errorf("%s: got %d %s", c.path, r.status, r.body)
				continue
			}
			if path, body := engine.paths[asked], engine.bodies[asked]; path != c.upPath || body != c.upBody {
				t.Errorf("%s: the backend got %s %s, want %s %s", c.path, path, body, c.upPath, c.upBody)
			}
		}
		for path, want := range map[string]int{
			"/engines/chat/nothing": 404, "/engines/embeddings": 404, "/openai/deployments/other/embeddings": 404,
			"/v1/v2/rerank": 404, "/v1/v1/embeddings": 404, "/embeddings//": 404,
		} {
			if r := h.post(path, `{}`); r.status != want {
				t.Errorf("%s: got %d, want %d", path, r.status, want)
			}
		}
		if r := h.do(h.request("GET", "/engines/chat/embeddings", "")); r.status != 405 || r.header.Get("Allow") != "POST" {
			t.Errorf("GET: %d, Allow %q", r.status, r.header.Get("Allow"))
		}
		for _, path := range []string{"/v1/models", "/v1/models/", "/models", "/models/", "/openai/v1/models"} {
			if r := h.do(h.request("GET", path, "")); r.status != 200 || !strings.Contains(r.body, `"chat"`) {
				t.Errorf("%s: got %d %s", path, r.status, r.body)
			}
		}
		if r := h.do(h.request("GET", "/models/chat", "")); r.status != 200 {
			t.Errorf("/models/chat: got %d", r.status)
		}
	})
}

// What is wrong is said in the dialect of the address, under whatever base, and of
// the address that was asked for.
func TestErrorsFitTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Backends[0].Kind = "anthropic"
		h := open(t, c, map[string]http.Handler{"a": asker()})
		for _, base := range []string{"", "/v1", "/openai/v1"} {
			if r := h.post(base+"/messages", `{"model":"nobody's","messages":[]}`); r.status != 404 || !strings.HasPrefix(r.body, `{"type":"error"`) {
				t.Errorf("%s: got %d %s, want an error of the Messages API", base, r.status, r.body)
			}
			if r := h.post(base+"/completions", `{"model":"chat"}`); r.status != 400 || !strings.Contains(r.body, " at "+base+"/completions: ") {
				t.Errorf("%s: got %d %s, want that the model is not served there", base, r.status, r.body)
			}
		}
	})
}

// A body without a model is for the route that takes whatever it is, if the key
// may use it, and gets the name that its target has.
func TestARequestWithoutAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		engine := echo("application/json", `{}`)
		h := open(t, c, map[string]http.Handler{"a": engine})
		if r := h.post("/v1/moderations", `{"input":"x"}`); r.status != 400 || !strings.Contains(r.body, "must provide a model") {
			t.Errorf("without a catch-all: got %d %s", r.status, r.body)
		}
		rest := c.Routes[0]
		rest.Models = []string{"*"}
		c.Routes = append(c.Routes, rest)
		h = open(t, c, map[string]http.Handler{"a": engine})
		if r := h.post("/v1/moderations", `{"input":"x"}`); r.status != 200 || engine.bodies[0] != `{"model":"big","input":"x"}` {
			t.Errorf("got %d, and the backend %q", r.status, engine.bodies)
		}
		k := key("mobile", "sk-right")
		k.Routes = []string{"chat"}
		c.Keys = []config.Key{k}
		h = open(t, c, map[string]http.Handler{"a": engine})
		if r := h.post("/v1/moderations", `{"input":"x"}`, "Authorization", "Bearer sk-right"); r.status != 400 {
			t.Errorf("a key that may not use the catch-all: got %d %s", r.status, r.body)
		}
	})
}

// Where the API has a default model, a body without one asks for that, if a route
// serves it.
func TestTheModelOfAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a", "b")
		c.Routes[0].Targets = c.Routes[0].Targets[:1]
		image, rest := c.Routes[0], c.Routes[0]
		image.Models, image.Targets = []string{"dall-e-2"}, []config.Target{{Backend: "b", Model: "sdxl"}}
		rest.Models, rest.Targets = []string{"omni-*"}, []config.Target{{Backend: "b"}}
		c.Routes = append(c.Routes, image, rest)
		engine := echo("application/json", `{"data":[]}`)
		h := open(t, c, map[string]http.Handler{"b": engine})
		form, kind := transcription(t, 10, "prompt", "x")
		for i, x := range []struct{ path, body, kind, want string }{
			{"/v1/images/generations", `{"prompt":"x"}`, "application/json", `{"model":"sdxl","prompt":"x"}`},
			{"/v1/moderations", `{"input":"x"}`, "application/json", `{"model":"omni-moderation-latest","input":"x"}`},
			{"/v1/images/variations", form, kind, "sdxl"},
		} {
			r := h.post(x.path, x.body, "Content-Type", x.kind)
			if r.status != 200 || engine.calls() != i+1 || !strings.Contains(engine.bodies[i], x.want) {
				t.Errorf("%s: got %d %s, and the backend %q", x.path, r.status, r.body, engine.bodies)
			}
		}
		if r := h.post("/v1/embeddings", `{"input":"x"}`); r.status != 400 || engine.calls() != 3 {
			t.Errorf("an endpoint without a default: got %d", r.status)
		}
	})
}

// Keys of clients are for Pacer, also in the forms that Google's have.
func TestKeysOfGooglesFormStayHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := echo("application/json", `{}`)
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		r := h.post("/v1/embeddings?key=secret&alt=json&k%65y=secret&api-key=secret&Authorization=Bearer%20secret&api_key=secret", `{"model":"chat","input":"x"}`, "X-Goog-Api-Key", "secret")
		if r.status != 200 || engine.paths[0] != "/v1/embeddings?alt=json" || engine.heads[0].Get("X-Goog-Api-Key") != "" {
			t.Errorf("got %d; the backend got %s with %v", r.status, engine.paths[0], engine.heads[0])
		}
	})
}

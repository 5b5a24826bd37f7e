package gateway

import (
	"net/http"
	"testing"

	"github.com/pacer-dev/pacer/config"
)

// A prompt that is too long for the targets of its route goes on to the route for
// longer ones, once, whatever engine says so; another fault of the client's does
// not, and where nobody takes it the client reads what the first engine said.
func TestContextFallback(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		says   string
		moves  bool
	}{
		"openai":    {400, `{"error":{"message":"too many","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true},
		"vllm":      {400, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.","type":"BadRequestError","param":null,"code":400}}`, true},
		"sglang":    {400, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","code":400}`, true},
		"llama.cpp": {400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}`, true},
		"tgi":       {422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.\",\"error_type\":\"validation\"}", true},
		"anthropic": {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, true},
		"another":   {400, `{"error":{"message":"temperature must be at most 2","type":"invalid_request_error"}}`, false},
		"a quota":   {403, `{"error":{"message":"prompt is too long for your plan","type":"permission"}}`, false},
	} {
		bubble(t, name, func(t *testing.T) {
			short := echo("application/json", c.says)
			good := short.answer
			short.answer = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				good(w, r)
			}
			long := echo("application/json", `{"object":"list"}`)
			conf := settings("a", "b")
			conf.Routes[0].Targets = []config.Target{{Backend: "a"}}
			conf.Routes[0].ContextFallback = "long"
			route := conf.Routes[0]
			route.Models, route.ContextFallback, route.Targets = []string{"long"}, "", []config.Target{{Backend: "a", Model: "wide"}, {Backend: "b", Model: "wide"}}
			conf.Routes = append(conf.Routes, route)
			h := open(t, conf, map[string]http.Handler{"a": short, "b": long})
			r := h.post("/v1/embeddings", `{"model":"chat","input":"x"}`)
			if c.moves {
				// The long route has the same engine first, with another model; it refuses that too.
				if r.status != c.status || short.calls() != 2 || short.bodies[1] != `{"model":"wide","input":"x"}` || long.calls() != 0 {
					t.Errorf("got %d %s after %q, and the other engine %q", r.status, r.body, short.bodies, long.bodies)
				}
				conf.Routes[1].Targets = []config.Target{{Backend: "b", Model: "wide"}}
				h = open(t, conf, map[string]http.Handler{"a": short, "b": long})
				r = h.post("/v1/embeddings", `{"model":"chat","input":"x"}`)
				if r.status != 200 || long.calls() != 1 || short.calls() != 3 || long.bodies[0] != `{"model":"wide","input":"x"}` {
					t.Errorf("got %d %s; the engines were asked %d and %d times", r.status, r.body, short.calls(), long.calls())
				}
				if got := h.last(); got.Route != "chat" {
					t.Errorf("it counts for the route %q", got.Route)
				}
				return
			}
			if long.calls() != 0 || short.calls() != 1 {
				t.Errorf("got %d; the engines were asked %d and %d times", r.status, short.calls(), long.calls())
			}
		})
	}
}

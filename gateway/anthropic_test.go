package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// anthropicPage is a list of models as Anthropic's SDKs read it.
type anthropicPage struct {
	Data []struct {
		Type        string    `json:"type"`
		ID          string    `json:"id"`
		DisplayName string    `json:"display_name"`
		CreatedAt   time.Time `json:"created_at"`
		MaxLen      int       `json:"max_model_len"`
	} `json:"data"`
	HasMore *bool  `json:"has_more"`
	FirstID string `json:"first_id"`
	LastID  string `json:"last_id"`
}

// Anthropic's clients, who name a version of its API, read models in its form; others
// read OpenAI's.
func TestModelsInAnthropicsForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := catchAll("a")
		h := open(t, c, map[string]http.Handler{"a": echo("application/json", `{"data":[{"id":"big","max_model_len":8},{"id":"claude","type":"model","display_name":"Claude","created_at":"2026-02-03T00:00:00Z"}]}`)})
		version := []string{"Anthropic-Version", "2023-06-01"}
		for _, path := range []string{"/v1/models", "/models", "/v1/models/"} {
			var page anthropicPage
			r := h.do(h.request("GET", path, "", version...))
			if err := json.Unmarshal([]byte(r.body), &page); err != nil || page.HasMore == nil || *page.HasMore || len(page.Data) != 3 || page.FirstID != "chat" || page.LastID != "claude" {
				t.Fatalf("%s: got %d %s (%v), want one page of three", path, r.status, r.body, err)
			}
			first, last := page.Data[0], page.Data[2]
			if first.Type != "model" || first.DisplayName != "chat" || !first.CreatedAt.Equal(time.Now()) || first.MaxLen != 8 {
				t.Errorf("%s: the route is %+v", path, first)
			}
			if last.DisplayName != "Claude" || last.CreatedAt.Month() != time.February {
				t.Errorf("%s: %+v, want what the backend says", path, last)
			}
		}
		r := h.do(h.request("GET", "/v1/models/claude", "", version...))
		has(t, r.body, `"display_name":"Claude"`, `"type":"model"`, `"id":"claude"`)
		if r = h.do(h.request("GET", "/v1/models/chat", "")); strings.Contains(r.body, "display_name") || r.header.Get("Request-Id") != "" {
			t.Errorf("OpenAI's client got %s %v", r.body, r.header)
		}
	})
}

// Nothing is listed as an empty page, and a name that is not there is refused in
// Anthropic's shape.
func TestNoModelsInAnthropicsForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, settings("a"), map[string]http.Handler{"a": echo("application/json", `{"data":[]}`)})
		want := `{"type":"error","error":{"message":"The model \"nobody\" does not exist or you do not have access to it.","type":"not_found_error","param":"model","code":"model_not_found"},"request_id":"mine"}`
		if r := h.do(h.request("GET", "/v1/models/nobody", "", "Anthropic-Version", "2023-06-01", "X-Request-Id", "mine")); r.status != 404 || r.body != want {
			t.Errorf("got %d %s, want %s", r.status, r.body, want)
		}
		if text, err := json.Marshal(forAnthropic(nil)); err != nil || string(text) != `{"data":[],"has_more":false,"first_id":null,"last_id":null}` {
			t.Errorf("no models are %s (%v)", text, err)
		}
	})
}

// Anthropic's SDKs read the id of a request from request-id. A backend that sends one
// of its own is heard there.
func TestTheRequestIDWhereAnthropicsClientsLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := echo("application/json", `{"type":"message"}`)
		h := open(t, settings("a"), map[string]http.Handler{"a": engine})
		body := `{"model":"chat","max_tokens":1,"messages":[]}`
		for _, x := range []struct {
			path, body string
			status     int
		}{{"/v1/messages", body, 200}, {"/v1/messages", "{", 400}, {"/v1/messages/count_tokens", body, 200}} {
			if r := h.post(x.path, x.body, "X-Request-Id", "mine"); r.status != x.status || r.header.Get("Request-Id") != "mine" || r.header.Get("X-Request-Id") != "mine" {
				t.Errorf("%s: got %d %v, want the id in both headers", x.path, r.status, r.header)
			}
		}
		engine.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Request-Id", "req_theirs")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"type":"message"}`))
		}
		if r := h.post("/v1/messages", body, "X-Request-Id", "mine"); r.header.Get("Request-Id") != "req_theirs" || r.header.Get("X-Request-Id") != "mine" {
			t.Errorf("got %v, want the backend's id beside ours", r.header)
		}
		if r := h.post(chat, body); r.header.Get("Request-Id") != "req_theirs" { // as it came
			t.Errorf("OpenAI's client got %v", r.header)
		}
	})
}

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// hostile holds what terminals obey: escapes of seven and eight bits, a bell, a
// line of its own, and a turn of the direction.
const hostile = "m\x1b[2J\x07\u009b2J\x7f\r\npacer: all is well\u202e"

// Whatever a server says, as names, as reasons, as a status, no command hands
// its control characters on to the terminal, nor to who reads its JSON there.
func TestNothingThatAServerSaysIsObeyed(t *testing.T) {
	text := must.Get(json.Marshal(hostile))(t)
	answers := map[string]string{
		"/v1/models":           `{"data":[{"id":` + string(text) + `}]}`,
		"/v1/chat/completions": "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n",
		"/api/v1/profiles":     `{"targets":[{"backend":` + string(text) + `,"model":` + string(text) + `,"kind":` + string(text) + `}]}`,
		"/api/v1/routes":       `{"routes":[{"model":` + string(text) + `,"targets":[]}]}`,
		"/api/v1/decisions":    `{"decisions":[{"route":` + string(text) + `,"request_id":` + string(text) + `,"candidates":[{"backend":` + string(text) + `,"reason":` + string(text) + `}]}]}`,
	}
	var asked atomic.Pointer[refusal]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuses, status := asked.Load().path, asked.Load().status
		if r.URL.Path == refuses || refuses == "all" {
			if status > 0 {
				w.WriteHeader(status)
				w.Write([]byte(`{"error":{"message":` + string(text) + `,"code":"model_not_found"}}`))
				if strings.HasPrefix(refuses, "/v1/") {
					w.Write([]byte(hostile)) // bench shows what it read as it is
				}
				return
			}
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Write([]byte("HTTP/1.1 500 " + strings.ReplaceAll(hostile, "\r\n", "") + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			c.Close()
			return
		}
		w.Write([]byte(answers[r.URL.Path]))
	}))
	defer s.Close()
	short := []string{"--n", "1", "--duration", "100ms"}
	for name, c := range map[string]struct {
		args    []string
		refuses string
		status  int // 0 = with a status line that is hostile
		code    int
	}{
		"bench, model":            {append([]string{"bench", s.URL}, short...), "", 0, 0},
		"bench, JSON":             {append([]string{"bench", s.URL, "--json"}, short...), "", 0, 0},
		"bench, status of models": {append([]string{"bench", s.URL}, short...), "/v1/models", 0, 1},
		"bench, status":           {append([]string{"bench", s.URL}, short...), "/v1/chat/completions", 0, 1},
		"bench, error":            {append([]string{"bench", s.URL}, short...), "/v1/chat/completions", 400, 1},
		"curves":                  {[]string{"curves", "--admin", s.URL}, "", 0, 0},
		"curves, JSON":            {[]string{"curves", "--admin", s.URL, "--json"}, "", 0, 0},
		"curves, status":          {[]string{"curves", "--admin", s.URL}, "all", 0, 1},
		"curves, error":           {[]string{"curves", "--admin", s.URL}, "all", 500, 1},
		"explain":                 {[]string{"explain", "--admin", s.URL, "--last", "1"}, "", 0, 0},
		"explain, JSON":           {[]string{"explain", "--admin", s.URL, "--last", "1", "--json"}, "", 0, 0},
		"explain, error":          {[]string{"explain", "--admin", s.URL, "--last", "1"}, "all", 404, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			asked.Store(&refusal{c.refuses, c.status})
			if code := run(t.Context(), c.args, &out, &errOut); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, errOut.String())
			}
			shown := out.String() + errOut.String()
			if strings.ContainsAny(shown, "\x1b\x07\u009b\x7f\r\u202e") {
				t.Errorf("a terminal would obey %q", shown)
			}
			if strings.Contains(shown, "\npacer: all is well") {
				t.Errorf("the server has a line of its own: %q", shown)
			}
			if !strings.Contains(shown, "[2J") {
				t.Errorf("this does not show what the server said: %q", shown)
			}
			if strings.Contains(name, "JSON") && !strings.Contains(unquoted(t, out.Bytes()), "\u009b2J\x7f") {
				t.Errorf("the JSON says something else: %s", out.String())
			}
		})
	}
}

// refusal is what the server refuses, "all" or a path, and how; 0 = with a
// status line that is hostile.
type refusal struct {
	path   string
	status int
}

// unquoted is every string in a JSON text, one behind the other.
func unquoted(t *testing.T, text []byte) string {
	t.Helper()
	var all strings.Builder
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if s, ok := token.(string); ok {
			all.WriteString(s)
		}
	}
	return all.String()
}

package providers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/endpoint"
)

// Each is the event that the official SDKs of its endpoint raise.
func TestErrorEvent(t *testing.T) {
	const message = "It \"broke\".\u2028"
	for path, want := range map[string]string{
		"/chat/completions": `data: {"error":{"message":"It \"broke\".` + "\u2028" + `","type":"upstream_error","param":null,"code":"upstream_disconnected"}}` + "\n\n",
		"/responses": "event: error\n" + `data: {"type":"error","code":"upstream_disconnected","message":"It \"broke\".` + "\u2028" + `","param":null,"sequence_number":0,` +
			`"error":{"message":"It \"broke\".` + "\u2028" + `","type":"upstream_error","param":null,"code":"upstream_disconnected"}}` + "\n\n",
		"/messages":             "event: error\n" + `data: {"type":"error","error":{"type":"api_error","message":"It \"broke\".` + "\u2028" + `"}}` + "\n\n",
		"/audio/transcriptions": "event: error\n" + `data: {"type":"error","error":{"message":"It \"broke\".` + "\u2028" + `","type":"upstream_error","param":null,"code":"upstream_disconnected"}}` + "\n\n",
	} {
		got := string(errorEvent(endpoint.Of(path).Dialect, message, 0))
		if got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", path, got, want)
		}
		_, data, _ := strings.Cut(got, "data: ")
		if !json.Valid([]byte(data)) {
			t.Errorf("%s: not JSON: %s", path, data)
		}
		m := (&Backend{}).NewMeter(path+"?x=1", true, 0)
		if first := string(m.ErrorEvent(message)); first != got {
			t.Errorf("%s: a meter that saw nothing says %q", path, first)
		}
		if _, seen := m.Read([]byte(got)); !seen.Error || seen.Bad || seen.Chunks > 0 {
			t.Errorf("%s: the meter reads it as %+v, want an error", path, seen)
		}
	}
	for _, path := range []string{"/completions", "/chat/completions", "/embeddings"} {
		if got := errorEvent(endpoint.Of(path).Dialect, "x", 0); !strings.HasPrefix(string(got), `data: {"error":{`) {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// The event of ours has the number that comes next, whether or not the backend
// numbers its events.
func TestErrorEventIsNumbered(t *testing.T) {
	for stream, want := range map[string]string{
		"": `"sequence_number":0,`,
		"data: {\"type\":\"response.created\",\"sequence_number\":0}\n\ndata: {\"type\":\"x\",\"sequence_number\":7}\n\n": `"sequence_number":8,`,
		"data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"x\"}\n\n: ping\n\n":                                   `"sequence_number":2,`,
		"data: {\"type\":\"response.created\",\"sequence_number\":4}\n\ndata: {\"type\":\"x\",\"seq":                      `"sequence_number":5,`,
	} {
		m := (&Backend{}).NewMeter("/responses", true, 0)
		m.Read([]byte(stream))
		if got := string(m.ErrorEvent("x")); !strings.Contains(got, want) {
			t.Errorf("after %q: %q, want %s", stream, got, want)
		}
	}
	for _, path := range []string{"/responses", "/embeddings", "/audio/speech"} {
		if got := (&Backend{}).NewMeter(path, false, 0).ErrorEvent("x"); got != nil {
			t.Errorf("%s: a document has an error event: %q", path, got)
		}
	}
}

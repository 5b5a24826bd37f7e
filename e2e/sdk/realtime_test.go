package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
)

// realtimeAPI starts a server that answers as OpenAI's realtime API, and returns its
// URL: session.created, and to each response.create a text and what it took.
func realtimeAPI(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/realtime" || r.URL.Query().Get("model") != "gpt-realtime" || r.Header.Get("Authorization") != "" {
			http.Error(w, `{"error":{"message":"not as it should be asked"}}`, http.StatusBadRequest)
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"realtime"}})
		if err != nil {
			return
		}
		defer func() { _ = c.CloseNow() }()
		talk(r.Context(), c)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func talk(ctx context.Context, c *websocket.Conn) {
	say := func(event string) bool { return c.Write(ctx, websocket.MessageText, []byte(event)) == nil }
	say(`{"type":"session.created","event_id":"event_1","session":{"type":"realtime","object":"realtime.session","id":"sess_1","model":"gpt-realtime","output_modalities":["audio"]}}`)
	for {
		_, text, err := c.Read(ctx)
		var event struct {
			Type string `json:"type"`
		}
		if err != nil || json.Unmarshal(text, &event) != nil {
			return
		}
		switch event.Type {
		case "session.update":
			say(`{"type":"session.updated","event_id":"event_2","session":{"type":"realtime","object":"realtime.session","id":"sess_1","output_modalities":["text"]}}`)
		case "response.create":
			say(`{"type":"response.output_text.delta","event_id":"event_3","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"hello"}`)
			say(`{"type":"response.done","event_id":"event_4","response":{"object":"realtime.response","id":"resp_1","status":"completed","output":[],"usage":{"total_tokens":30,"input_tokens":20,"output_tokens":10}}}`)
		}
	}
}

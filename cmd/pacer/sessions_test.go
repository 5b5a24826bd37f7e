package main

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/pacer-dev/pacer/internal/must"
)

// A session over WebSocket that is under way at SIGTERM goes on until it is over, and the
// program ends with it; one that does not end is closed at the end of timeouts.drain. Its
// connection is not the server's any more, so that does not wait for it by itself.
func TestSessionsWhileTheGatewayStops(t *testing.T) {
	for name, c := range map[string]struct {
		talks time.Duration // after SIGTERM, before the client closes; 0 = it does not
		ends  time.Duration // the program, after SIGTERM
		code  websocket.StatusCode
	}{
		"one that is over in time": {5 * time.Second, 5 * time.Second, websocket.StatusNormalClosure},
		"one that does not end":    {0, 20 * time.Second, websocket.StatusGoingAway},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, []gpu{{name: "a", model: carries64}}, oneRoute+"timeouts: { drain: 20s, linger: 0s }\n", options{})
				h.servers["a"].Close()
				l, err := h.network.Listen("a.test:80")
				must.Do(t, err)
				echo := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					s, err := websocket.Accept(w, r, nil)
					if err != nil {
						return
					}
					defer func() { _ = s.CloseNow() }()
					for {
						kind, text, err := s.Read(r.Context())
						if err != nil || s.Write(r.Context(), kind, text) != nil {
							return
						}
					}
				})}
				served := make(chan struct{})
				go func() { defer close(served); echo.Serve(l) }()
				defer func() { echo.Close(); <-served }()

				s, _, err := websocket.Dial(t.Context(), "ws://127.0.0.1:8080/v1/realtime?model=chat", &websocket.DialOptions{HTTPClient: h.client.HTTP})
				must.Do(t, err)
				defer func() { _ = s.CloseNow() }()
				talk := func() error {
					if err := s.Write(t.Context(), websocket.MessageText, []byte("x")); err != nil {
						return err
					}
					_, _, err := s.Read(t.Context())
					return err
				}
				must.Do(t, talk())
				h.terminate()
				told := time.Now()
				ended := make(chan time.Duration, 1)
				go func() {
					h.stopGateway()
					ended <- time.Since(told)
				}()
				for err == nil {
					sleep(time.Second)
					if err = talk(); err == nil && c.talks > 0 && time.Since(told) >= c.talks {
						err = s.Close(websocket.StatusNormalClosure, "")
						break
					}
				}
				if code := websocket.CloseStatus(err); c.talks == 0 && code != c.code || c.talks > 0 && err != nil {
					t.Errorf("the session ended with %v, want the code %d", err, c.code)
				}
				if after := <-ended; after < c.ends || after > c.ends+3*time.Second {
					t.Errorf("the program ended %v after SIGTERM, want %v", after, c.ends)
				}
				h.idle()
			})
		})
	}
}

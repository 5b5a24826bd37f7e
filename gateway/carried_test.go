package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/providers"
)

// What a backend that is full answers to a request that another proxy carries goes on to
// its client, who is told when to come back, as where the gateway sends it itself.
func TestACarriedRequestIsToldWhenToComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		says   string // the backend's own word; "" = none
		want   bool
	}{
		"full":              {429, "", true},
		"full, and says so": {429, "7", true},
		"away":              {503, "", true},
		"the client's own":  {400, "", false},
	} {
		bubble(t, name, func(t *testing.T) {
			h := open(t, settings("a"), map[string]http.Handler{"a": &script{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if c.says != "" {
					w.Header().Set("Retry-After", c.says)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, `{"error":{"message":"no room","type":"server_error"}}`)
			}}})
			transport := &http.Transport{DialContext: h.net.Dial}
			defer transport.CloseIdleConnections()
			carried := &providers.Carried{Trip: transport.RoundTrip}
			r := httptest.NewRequest(http.MethodPost, "http://gateway"+chat, strings.NewReader(streamBody))
			r.Header.Set("Content-Type", "application/json")
			to := &lineAnswer{header: http.Header{}, most: 1 << 20}
			h.gateway.Handler().ServeHTTP(to, r.WithContext(providers.Carry(r.Context(), carried)))
			said := to.header.Get("Retry-After")
			if to.status != c.status || (said != "") != c.want || c.says != "" && said != c.says {
				t.Errorf("got %d, Retry-After %q: %s; want %d, and a time: %v", to.status, said, to.body.Bytes(), c.status, c.want)
			}
		})
	}
}

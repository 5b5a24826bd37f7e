package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// What a browser sends for a page of somebody else does not reach an engine of a
// gateway without keys; what others send does, under any name.
func TestWebPagesOnAnOpenGateway(t *testing.T) {
	const foreign, own = "https://evil.example", "http://gateway.example:8080"
	for name, c := range map[string]struct {
		host    string
		header  []string
		allowed bool
		add     string // what the refusal says to add
	}{
		"an SDK":                           {"pacer", nil, true, ""},
		"an SDK on Node":                   {"pacer:8080", []string{"Sec-Fetch-Mode", "cors"}, true, ""},
		"curl under a name of somebody":    {"evil.example", nil, true, ""},
		"an own page":                      {"gateway.example:8080", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, true, ""},
		"an own page, capitals":            {"Gateway.Example:8080", []string{"Origin", own}, true, ""},
		"an own page, no origin":           {"gateway.example:8080", []string{"Sec-Fetch-Site", "same-origin"}, true, ""},
		"an own page by address":           {"10.0.0.7:8080", []string{"Origin", "http://10.0.0.7:8080"}, true, ""},
		"an own page by loopback":          {"localhost:8080", []string{"Origin", "http://localhost:8080"}, true, ""},
		"an own page by a name of hosts":   {"named.example", []string{"Origin", "https://named.example"}, true, ""},
		"a page of cors.origins":           {"127.0.0.1:8080", []string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, true, ""},
		"typed into the address bar":       {"127.0.0.1:8080", []string{"Sec-Fetch-Site", "none"}, true, ""},
		"cross-site":                       {"127.0.0.1:8080", []string{"Origin", foreign, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, false, `cors: { origins: [ "https://evil.example" ] }`},
		"cross-site without Sec-Fetch":     {"127.0.0.1:8080", []string{"Origin", foreign}, false, `cors: { origins: [ "https://evil.example" ] }`},
		"cross-site without Origin":        {"127.0.0.1:8080", []string{"Sec-Fetch-Site", "cross-site"}, false, "cors: { origins: ["},
		"another port of this machine":     {"localhost:8080", []string{"Origin", "http://localhost:3000"}, false, `cors: { origins: [ "http://localhost:3000" ] }`},
		"a file, or a frame in a sandbox":  {"127.0.0.1:8080", []string{"Origin", "null"}, false, `cors: { origins: [ "*" ] }`},
		"two origins":                      {"127.0.0.1:8080", []string{"Origin", "https://app.example", "Origin", foreign}, false, foreign},
		"no origin at all":                 {"127.0.0.1:8080", []string{"Origin", ""}, false, "cors: { origins: ["},
		"DNS rebinding":                    {"evil.example:8080", []string{"Origin", "http://evil.example:8080"}, false, `hosts: [ "evil.example" ]`},
		"DNS rebinding, Sec-Fetch alone":   {"evil.example:8080", []string{"Sec-Fetch-Site", "same-origin"}, false, `hosts: [ "evil.example" ]`},
		"DNS rebinding, mode alone":        {"evil.example:8080", []string{"Sec-Fetch-Mode", "navigate"}, false, `hosts: [ "evil.example" ]`},
		"a name that begins with loopback": {"127.0.0.1.evil.example", []string{"Origin", "http://127.0.0.1.evil.example"}, false, `hosts: [ "127.0.0.1.evil.example" ]`},
		"no name":                          {"", []string{"Origin", "http://"}, false, "hosts: ["},
	} {
		bubble(t, name, func(t *testing.T) {
			conf := settings("a")
			conf.Listen = "gateway.example:8080"
			conf.Hosts = []string{"named.example"}
			conf.CORS = config.CORS{Origins: []string{"https://app.example"}, MaxAge: time.Minute}
			engine := &script{answer: talk(1, time.Millisecond)}
			h := open(t, conf, map[string]http.Handler{"a": engine})
			h.front(nil)
			head := "POST " + chat + " HTTP/1.1\r\nHost: " + c.host + "\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 77\r\n"
			for i := 0; i < len(c.header); i += 2 {
				head += c.header[i] + ": " + c.header[i+1] + "\r\n"
			}
			body := `{"model":"chat","stream":true,"messages":[{"role":"user","content":"hello"}]}`
			r := h.raw("gateway:443", head+"\r\n"+body)
			switch {
			case c.allowed:
				if r.status != 200 {
					t.Errorf("%d %s, want 200", r.status, r.body)
				}
			case r.status != 403 || r.code(t) != "page_not_allowed" || !strings.Contains(strings.ReplaceAll(r.body, `\"`, `"`), c.add):
				t.Errorf("%d %s, want 403 that says to add %s", r.status, r.body, c.add)
			}
			if sent := engine.calls() > 0; sent != c.allowed {
				t.Errorf("sent to the engine: %v, want %v", sent, c.allowed)
			}
			<-time.After(time.Second)
		})
	}
}

// With "*" every page may send, under names that are the gateway's; with keys
// they are what is asked for.
func TestWebPagesThatAreLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.CORS = config.CORS{Origins: []string{"*"}, MaxAge: time.Minute}
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(1, time.Millisecond)}})
		for host, want := range map[string]int{"10.0.0.7": 200, "evil.example": 403} {
			r := h.request("POST", chat, streamBody, "Origin", "null")
			r.Host = host
			if got := h.do(r); got.status != want || got.header.Get("Access-Control-Allow-Origin") != "null" {
				t.Errorf("every page may send, as %s: %d %v, want %d that the page can read", host, got.status, got.header, want)
			}
		}
		reloaded := keyed()
		must.Do(t, h.gateway.Configure(reloaded, h.backends, nil))
		if r := h.post(chat, streamBody, "Origin", "https://evil.example", "x-api-key", "sk-right"); r.status != 200 {
			t.Errorf("with a key: %d %s, want 200", r.status, r.body)
		}
	})
}

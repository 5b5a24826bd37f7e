package gateway

import (
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/endpoint"
)

func TestARequestThatIsSentAgainHasTheSameKey(t *testing.T) {
	seed := maphash.MakeSeed()
	long := strings.Repeat("x", fingerprinted)
	key := func(tenantName, path, text string, decodes bool) uint64 {
		r := &request{end: &endpoint.Endpoint{Decodes: decodes}, path: path, body: &body{room: []byte(text), size: len(text)}}
		return r.fingerprint(seed, tenantName)
	}
	seen := map[uint64]bool{}
	for _, c := range []struct{ tenant, path, body string }{
		{"a", "/chat/completions", `{"model":"chat"}`},
		{"b", "/chat/completions", `{"model":"chat"}`},
		{"a", "/completions", `{"model":"chat"}`},
		{"a", "/chat/completions", `{"model":"talk"}`},
		{"a", "/chat/completions", ""},
		{"a", "/chat/completions", long + "y"},
		{"a", "/chat/completions", long + "yy"},
	} {
		k := key(c.tenant, c.path, c.body, true)
		if k == 0 || seen[k] {
			t.Errorf("%.40v: key %d is none, or another's", c, k)
		}
		seen[k] = true
		if again := key(c.tenant, c.path, c.body, true); again != k {
			t.Errorf("%.40v: sent again it is another", c)
		}
	}
	if k := key("a", "/embeddings", "{}", false); k != 0 {
		t.Errorf("what does not decode has the key %d", k)
	}
}

// Whoever comes back as told goes before those who came meanwhile.
func TestWhoComesBackAsToldIsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, crowded(3*time.Second), map[string]http.Handler{"a": &script{answer: talk(70, 100*time.Millisecond)}})
		go h.post(chat, streamBody) // has the place until 7 s
		<-time.After(time.Second)
		body := strings.Replace(streamBody, `"stream"`, `"user":"patient","stream"`, 1)
		if body == streamBody {
			t.Fatal("the bodies are the same")
		}
		refused := h.post(chat, body)
		ms, err := strconv.Atoi(refused.header.Get("Retry-After-Ms"))
		if refused.status != 429 || err != nil || ms < 1000 || ms > 1500 {
			t.Fatalf("got %d, come back in %d ms (%v); want 429 and about 1.25 s", refused.status, ms, err)
		}
		newcomer := make(chan reply, 1)
		go func() {
			<-time.After(500 * time.Millisecond) // 4.5 s
			newcomer <- h.post(chat, streamBody)
		}()
		<-time.After(time.Duration(ms) * time.Millisecond)
		if r := h.post(chat, body); r.status != 200 {
			t.Errorf("got %d for the one who came back, want the place that came free", r.status)
		}
		if r := <-newcomer; r.status != 429 {
			t.Errorf("got %d for the newcomer, want 429", r.status)
		}
	})
}

// The figures of a route know who was refused, and who came back: a cause names the key
// of most of them, and counts who comes back once.
func TestRefusalsAreOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowded(time.Second)
		c.Routes[0].OnInfeasible = []config.Step{{Shed: true}}
		c.Keys = []config.Key{key("mobile", "key-of-mobile"), key("web", "key-of-web")}
		h := open(t, c, map[string]http.Handler{"a": &script{answer: talk(200, 100*time.Millisecond)}})
		watch := history.NewWatch(h.metrics.History())
		now := history.Snapshot{Routes: []history.Route{{Name: "chat", Goal: 0.99, Bound: true, Capacity: 1, Load: 1, Free: math.NaN(), Best: math.NaN()}}}
		served := make(chan reply, 1)
		go func() { served <- h.post(chat, streamBody, "Authorization", "Bearer key-of-web") }()
		<-time.After(time.Second)
		for second := range 12 {
			for i := range 5 {
				body := strings.Replace(streamBody, `"stream"`, fmt.Sprintf(`"user":"u%d-%d","stream"`, second, i), 1)
				if r := h.post(chat, body, "Authorization", "Bearer key-of-mobile"); r.status != 429 {
					t.Fatalf("got %d, want 429", r.status)
				}
			}
			watch.Tick(time.Now(), now)
			<-time.After(time.Second)
		}
		if causes := watch.Causes(); len(causes) != 1 || !strings.Contains(causes[0].Text(), "mostly of key mobile") {
			t.Errorf("what is wrong: %+v; want the key that floods", causes)
		}
		if r := <-served; r.status != 200 {
			t.Errorf("the other key got %d", r.status)
		}
	})
}

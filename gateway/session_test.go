package gateway

import (
	"fmt"
	"math"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/racetest"
)

// A split route gives each target its part, the requests of a session to one of
// them, and to the others what that one cannot take.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := echo("application/json", `{}`), echo("application/json", `{}`)
		c := settings("a", "b")
		c.Routes[0].Split = map[string]float64{"a": 80, "b": 20}
		c.Routes[0].Targets = []config.Target{{Backend: "a"}, {Backend: "b"}}
		h := open(t, c, map[string]http.Handler{"a": a, "b": b})
		n := racetest.Some(10_000)
		for i := range n {
			h.post("/v1/embeddings", fmt.Sprintf(`{"model":"chat","user":"u%d"}`, i))
		}
		// Four standard deviations of a binomial.
		if got, off := float64(b.calls()), 4*math.Sqrt(float64(n)*0.2*0.8); math.Abs(got-0.2*float64(n)) > off {
			t.Errorf("b had %v of %d requests, want %v ± %.0f", got, n, 0.2*float64(n), off)
		}
		for _, x := range []struct{ body, header string }{{`{"model":"chat","user":"u"}`, ""}, {`{"model":"chat","prompt_cache_key":"k"}`, ""}, {`{"model":"chat"}`, "s-1"}, {`{"model": "chat"}`, "s-1"}} {
			before, beforeB := a.calls(), b.calls()
			for range 20 {
				h.post("/v1/embeddings", x.body, []string{"X-Session-Id", "X-Litellm-Session-Id"}[len(x.body)%2], x.header)
			}
			if a.calls() > before && b.calls() > beforeB {
				t.Errorf("%s %s: the requests of one session went to both", x.body, x.header)
			}
		}
		// The same sessions stay where they are on another replica, which is started anew,
		// and over other connections.
		other := [2]*script{echo("application/json", `{}`), echo("application/json", `{}`)}
		replica := open(t, c, map[string]http.Handler{"a": other[0], "b": other[1]})
		for i := range 200 {
			body := fmt.Sprintf(`{"model":"chat","user":"u%d"}`, i)
			before, here := b.calls(), other[1].calls()
			h.post("/v1/embeddings", body)
			replica.post("/v1/embeddings", body)
			h.client.CloseIdleConnections()
			if was, is := b.calls() > before, other[1].calls() > here; was != is {
				t.Errorf("u%d is b's on one replica: %v, on the other: %v", i, was, is)
			}
		}
		before := b.calls()
		a.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
		for i := range 20 {
			if r := h.post("/v1/embeddings", fmt.Sprintf(`{"model":"chat","user":"u%d"}`, i)); r.status != 200 {
				t.Errorf("got %d while b could serve it", r.status)
			}
		}
		if b.calls()-before < 20 {
			t.Errorf("b served %d of 20 while a could not", b.calls()-before)
		}
	})
}

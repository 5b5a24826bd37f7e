package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/endpoint"
)

// recorded is what a client sent to an API, as e2e/sdk recorded it, and the answer.
type recorded struct {
	Client     string `json:"client"`
	Method     string `json:"method"`
	Path       string `json:"path"` // with its query
	Type       string `json:"type"`
	Accept     string `json:"accept"`
	Body       []byte `json:"body"`
	Status     int    `json:"status"`
	AnswerType string `json:"answer_type"`
	Answer     []byte `json:"answer"`
}

func doorway(t *testing.T) (all []recorded) {
	t.Helper()
	text, err := os.ReadFile("testdata/doorway.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// is reports whether r asks e.
func (r *recorded) is(e *endpoint.Endpoint) bool {
	path, _, _ := strings.Cut(r.Path, "?")
	pattern := "/v1" + e.Path
	if e.Root {
		pattern = e.Path
	}
	got, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	for i, step := range want {
		switch {
		case step == "*":
			return len(got) > i
		case i >= len(got), step != "{id}" && step != got[i]:
			return false
		}
	}
	return len(got) == len(want)
}

// end is the endpoint that r asks: the most exact of those that it may be.
func (r *recorded) end(t *testing.T) *endpoint.Endpoint {
	t.Helper()
	var found *endpoint.Endpoint
	for _, e := range endpoint.All() {
		if r.is(e) && (found == nil || strings.Count(e.Path, "{id}") < strings.Count(found.Path, "{id}")) {
			found = e
		}
	}
	if found == nil {
		t.Fatalf("%s asks %s, which is no endpoint", r.Client, r.Path)
	}
	return found
}

func (r *recorded) answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", r.AnswerType)
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Answer)
}

// request is r as its client sends it to h.
func (r *recorded) request(h *house) *http.Request {
	header := []string{"Authorization", "Bearer sk-right", "Accept", r.Accept}
	if r.Type != "" {
		header = append(header, "Content-Type", r.Type)
	}
	return h.request(r.Method, r.Path, string(r.Body), header...)
}

// before is a house before the engines a and b, in which what r is about was made by a.
func before(t *testing.T, r *recorded, all []recorded, a, b *script) *house {
	c := settings("a", "b")
	c.Routes[0].Models = []string{"*"}
	c.Routes[0].Targets = []config.Target{{Backend: "a"}, {Backend: "b"}}
	k := key("mobile", "sk-right")
	k.Allow.Account = true
	c.Keys = []config.Key{k}
	c.Batches = config.Batches{Slots: 4, Bytes: 1 << 20, Keep: time.Hour}
	h := openWith(t, c, map[string]http.Handler{"a": a, "b": b}, houseOptions{batches: batch.NewMemory(1<<20, time.Hour)})
	t.Cleanup(h.idle)
	if end := r.end(t); end.Stored && !end.Pinned {
		for _, made := range all {
			if made.Client == "openai response" {
				a.answer = func(w http.ResponseWriter, _ *http.Request) { made.answer(w) }
				if got := h.do(made.request(h)); got.status != 200 {
					t.Fatalf("%s: got %d %s", made.Client, got.status, got.body)
				}
			}
		}
		a.bodies, a.paths, a.methods, a.heads = nil, nil, nil, nil
	}
	return h
}

// Every endpoint that is served is asked as clients of OpenAI, Anthropic, Cohere and
// vLLM ask it. What the API reads, and what the client reads, are the bytes that each
// would have read without a gateway.
func TestWhatClientsSendGoesThrough(t *testing.T) {
	all := doorway(t)
	for _, e := range endpoint.All() {
		asked := e.Socket || e.PartOf(endpoint.Google|endpoint.Cohere) // TestRealtime, and those of Google's and of Cohere's dialect, are about these
		for i := range all {
			asked = asked || all[i].end(t) == e
		}
		if !asked {
			t.Errorf("nobody asks %s", e.Path)
		}
	}
	for i := range all {
		r := &all[i]
		bubble(t, r.Client, func(t *testing.T) {
			a, b := echo("", ""), echo("", "")
			h := before(t, r, all, a, b)
			a.answer = func(w http.ResponseWriter, _ *http.Request) { r.answer(w) }
			got := h.do(r.request(h))
			if got.err != nil || got.status != r.Status || got.body != string(r.Answer) || got.header.Get("Content-Type") != r.AnswerType {
				t.Errorf("got %d %s %.300q (%v)\nwant %d %s %.300q", got.status, got.header.Get("Content-Type"), got.body, got.err, r.Status, r.AnswerType, r.Answer)
			}
			if a.calls() != 1 || a.methods[0] != r.Method || a.paths[0] != r.Path || a.heads[0].Get("Content-Type") != r.Type || a.heads[0].Get("Authorization") != "" {
				t.Fatalf("the API got %q %q with %v", a.methods, a.paths, a.heads)
			}
			want := string(r.Body)
			if model := r.end(t).Default; strings.HasSuffix(r.Client, "without a model") {
				want = `{"model":"` + model + `",` + want[1:]
			}
			if r.end(t).Decodes && strings.Contains(want, `"stream":true`) && !strings.Contains(want, "stream_options") && r.end(t).Dialect.Chunks() {
				t.Fatal("its usage is asked for: record it with stream_options")
			}
			if a.bodies[0] != want {
				t.Errorf("the API got %.300q\nwant %.300q", a.bodies[0], want)
			}
		})
	}
}

// A client that leaves frees the backend at once, whichever endpoint it asked: before
// the first byte, and in the middle of the answer.
func TestWhatClientsLeaveIsCancelled(t *testing.T) {
	all := doorway(t)
	for i := range all {
		r := &all[i]
		for name, part := range map[string]int{"before the first byte": 0, "in the middle": len(r.Answer) / 2} {
			bubble(t, r.Client+" "+name, func(t *testing.T) {
				a := echo("", "")
				h := before(t, r, all, a, echo("", ""))
				a.answer = func(w http.ResponseWriter, req *http.Request) {
					if part > 0 {
						w.Header().Set("Content-Type", r.AnswerType)
						say(w, string(r.Answer[:part]))
					}
					<-req.Context().Done()
				}
				ctx, leave := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					resp, err := h.client.Do(r.request(h).WithContext(ctx))
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					ended <- err
				}()
				synctest.Wait()
				if a.calls() != 1 || a.left() != 0 {
					t.Fatalf("%d calls under way, %d of them left, want one", a.calls(), a.left())
				}
				leave()
				if err := <-ended; err == nil {
					t.Error("the client read an answer to its end")
				}
				synctest.Wait() // no time passes
				if a.left() != 1 {
					t.Error("the backend was not told that its client is gone")
				}
			})
		}
	}
}

// What a backend fails at moves on to the next one, unless that backend keeps what the
// request is about.
func TestWhatClientsSendMovesOn(t *testing.T) {
	all := doorway(t)
	for i := range all {
		r := &all[i]
		for name, fails := range map[string]func(http.ResponseWriter, *http.Request){
			"503":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			"cut":        func(w http.ResponseWriter, _ *http.Request) { cutOff(w) },
			"first byte": func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() },
		} {
			bubble(t, r.Client+" "+name, func(t *testing.T) {
				a, b := echo("", ""), echo("", "")
				h := before(t, r, all, a, b)
				a.answer = fails
				b.answer = func(w http.ResponseWriter, _ *http.Request) { r.answer(w) }
				got := h.do(r.request(h))
				if r.end(t).Stored {
					if got.status < 500 || b.calls() != 0 {
						t.Errorf("got %d, and %d calls of a backend that does not keep it", got.status, b.calls())
					}
				} else if got.status != r.Status || got.body != string(r.Answer) || a.calls() == 0 || b.calls() != 1 {
					t.Errorf("got %d %.300q (%v) after %d calls of the one that fails and %d of the other", got.status, got.body, got.err, a.calls(), b.calls())
				}
			})
		}
	}
}

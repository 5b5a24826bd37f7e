package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/golden"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
)

// Times are printed as those of the place. It is set before any test runs: servers of
// other tests may still read it.
func init() { time.Local = time.UTC }

func TestExplainPrintsDecisions(t *testing.T) {
	answer := must.Get(os.ReadFile("testdata/decisions.json"))(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/api/v1/decisions?limit=6" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Write(answer)
	}))
	defer s.Close()
	for name, width := range map[string]string{"explain_last.txt": "140", "explain_last_narrow.txt": "80"} {
		t.Setenv("COLUMNS", width)
		code, stdout, stderr := command(t, "explain", "--last", "6", "--admin", s.URL)
		if code != 0 || stderr != "" {
			t.Fatalf("exit code %d, stderr %q; want 0 and nothing", code, stderr)
		}
		golden.Want(t, name, stdout)
	}
	code, stdout, stderr := command(t, "explain", "--last", "6", "--json", "--admin", s.URL)
	var got, want any
	if json.Unmarshal([]byte(stdout), &got) != nil || json.Unmarshal(answer, &want) != nil || code != 0 || stderr != "" {
		t.Fatalf("--json: exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
	}
	if a, b := canonical(t, got), canonical(t, want); a != b {
		t.Errorf("--json changed the answer:\n%s\nwant\n%s", a, b)
	}
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	data := must.Get(json.Marshal(v))(t)
	return string(data)
}

// Before anything is learned there is a floor all the same: nobody knows whether
// it is kept.
func TestExplainBeforeAnythingIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries38, seed: 3}}, `routes:
  - { model: chat, targets: [ { backend: a, model: m } ], slo: { min_tps: 30 } }
  - { model: nightly, class: batch, targets: [ { backend: a, model: m } ] }
`, options{})
		for model, want := range map[string]string{"chat": "its speed is not known yet", "nightly": "no floor to keep"} {
			q := ask.DecisionsQuestion{Request: api.Question{Model: model}, Admin: "127.0.0.1:9090", Dial: h.network.Dial}
			_, decisions, err := q.Ask(t.Context())
			if err != nil || len(decisions) != 1 || len(decisions[0].Candidates) != 1 {
				t.Fatalf("%s: %+v, %v", model, decisions, err)
			}
			var out strings.Builder
			if err := ask.PrintDecisions(&out, decisions, false, 140); err != nil || !strings.HasSuffix(out.String(), "  "+want+"\n") {
				t.Errorf("%s: %v, %q, want %q", model, err, out.String(), want)
			}
		}
		h.stop()
	})
}

// The terminal says of a running gateway what became of a request, by its id,
// and what would become of another.
func TestExplainOfAGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: carries38, seed: 3}}, `routes:
  - { model: chat, targets: [ { backend: a, model: m } ], slo: { min_tps: 30 } }
`, options{})
		warmUp(h, 10, 30*time.Second)
		result := h.client.Stream(context.Background(), loadgen.Request{Model: "chat", PromptTokens: 50, MaxTokens: 20})
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		asked := func(q ask.DecisionsQuestion) ([]api.Decision, error) {
			q.Admin, q.Dial = "127.0.0.1:9090", h.network.Dial
			_, decisions, err := q.Ask(t.Context())
			return decisions, err
		}
		last, err := asked(ask.DecisionsQuestion{Last: 1})
		if err != nil || len(last) != 1 || last[0].Outcome != "placed" || last[0].Chosen == nil || *last[0].Chosen != "a" || last[0].RequestID == "" {
			t.Fatalf("the last decision: %+v, %v", last, err)
		}
		if c := last[0].Candidates; len(c) != 1 || c[0].M != 0 || !c[0].Feasible || !(c[0].Low >= 30) {
			t.Errorf("its candidates: %+v", c)
		}
		tps := 9000.0
		for _, c := range []struct {
			request api.Question
			outcome string
			floor   api.Number
		}{
			{api.Question{Model: "chat"}, "placed", 30},
			{api.Question{Model: "chat", PromptTokens: 100, Class: "batch"}, "placed", 0},
			{api.Question{Model: "chat", MinTPS: &tps}, "shed", 9000},
		} {
			got, err := asked(ask.DecisionsQuestion{Request: c.request})
			if err != nil || len(got) != 1 || got[0].Outcome != c.outcome || got[0].Floor != c.floor {
				t.Errorf("%+v: got %+v, %v; want %s at %v", c.request, got, err, c.outcome, c.floor)
			}
		}
		if _, err := asked(ask.DecisionsQuestion{Request: api.Question{Model: "talk"}}); err == nil || !strings.HasPrefix(err.Error(), `no route serves the model "talk"`) {
			t.Errorf("unknown model: %v", err)
		}
		h.stop()
		if _, err := asked(ask.DecisionsQuestion{Request: api.Question{Model: "chat"}}); err == nil || !strings.HasPrefix(err.Error(), "no gateway at http://127.0.0.1:9090: ") || strings.Contains(err.Error(), "store") {
			t.Errorf("no gateway: %v", err)
		}
	})
}

func TestExplainRefuses(t *testing.T) {
	answered(t, []mistake{
		{nil, "pacer: name the model as a client does"},
		{[]string{""}, "pacer: name the model as a client does"},
		{[]string{"chat", "nightly"}, "pacer: explain: want one argument at most, got 2; leave out \"nightly\""},
		{[]string{"chat", "--last", "3"}, "pacer: --last shows what was decided; leave out the request"},
		{[]string{"--last", "3", "--min-tps", "3"}, "pacer: --last shows what was decided"},
		{[]string{"--last", "0"}, "pacer: --last is 0; write a number from 1 to 1000"},
		{[]string{"--last", "1001"}, "pacer: --last is 1001;"},
		{[]string{"chat", "--class", "fast"}, `pacer: --class is "fast"; write interactive or batch`},
		{[]string{"chat", "--min-tps", "-1"}, "pacer: --min-tps is -1; write tokens/s from 0"},
		{[]string{"chat", "--min-tps", "NaN"}, "pacer: --min-tps is NaN;"},
		{[]string{"chat", "--prompt-tokens", "-1"}, "pacer: --prompt-tokens is -1; write a number from 0"},
		{[]string{"chat", "--admin", "ftp://x"}, "pacer: --admin is no address of an admin port"},
	}, "explain")
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if code, _, stderr := command(t, "explain", "chat", "--admin", s.URL); code != 1 || !strings.Contains(stderr, "but not as the admin port of a gateway does (it has no /api/v1/explain)") {
		t.Errorf("another service: exit code %d, stderr %q", code, stderr)
	}
}

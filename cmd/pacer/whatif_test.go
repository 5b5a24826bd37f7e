package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/racetest"
	"github.com/pacer-dev/pacer/sim"
)

// A gateway that has served asks itself: the load that came is played against the
// curves that it learned, as it is and at ten times as much.
func TestAGatewayPlaysItsOwnLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []gpu{{name: "a", model: sim.Model{A: 0.010, B: 0.0004, C: 0.0003}, seed: 1}}, `
routes:
  - { model: m, targets: [ { backend: a, model: m } ], slo: { min_tps: 30 } }
`, options{})
		for range 60 { // one user, for two minutes or so
			h.client.Stream(t.Context(), loadgen.Request{Model: "m", PromptTokens: 100, MaxTokens: 120})
			sleep(time.Second)
		}
		dial := &http.Client{Transport: &http.Transport{DialContext: h.network.Dial, DisableKeepAlives: true}}
		ask := func(question string) (answer api.Plan) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:9090/api/v1/plan", strings.NewReader(question))
			must.Do(t, err)
			r.Header.Set("Authorization", "Bearer operator")
			resp, err := dial.Do(r)
			must.Do(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil {
				t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
			}
			return answer
		}
		answer := ask(`{"load": 1}`)
		if !answer.Now.Holds || !answer.Then.Holds || !strings.HasPrefix(answer.Curves[0].RestsOn, "learned from ") {
			t.Errorf("as it is: %s, on %+v", answer.Verdict, answer.Curves)
		}
		if racetest.On {
			return // what follows takes minutes of one goroutine: make numbers plays it
		}
		// An engine carries some 20 of 30 tokens/s; 60 requests/s of 120 tokens are far more.
		if answer = ask(`{"offered_per_s": {"m": 60}}`); answer.Then.Holds || answer.Then.Routes[0].Shed == 0 {
			t.Errorf("60 requests/s on one engine: %s", answer.Verdict)
		}
		if more := ask(fmt.Sprintf(`{"offered_per_s": {"m": 60}, "engines": {"a": 16}, "prompt_tokens": %d, "output_tokens": %d}`, 100, 60)); more.Then.Routes[0].Shed >= answer.Then.Routes[0].Shed {
			t.Errorf("with sixteen engines %d are shed, with one %d", more.Then.Routes[0].Shed, answer.Then.Routes[0].Shed)
		}
	})
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/sim"
)

// The faster of two engines stands first, and the speed beside each is about what the
// engine says that it gave. One of them has half as many tokens for the same text.
// How near the figures are is shown where time is virtual (TestScorecardIsTrue): here the
// engines' clocks stop whenever the machine has no time for them.
func TestScorecardOfTwoEngines(t *testing.T) {
	t.Parallel()
	const streams = 4
	slow, fast := proctest.Engine(t, "--preset", "llama-3.1-70b/h100/vllm"), proctest.Engine(t, "--preset", "llama-3.1-8b/h100/trtllm", "--behave", "two-words")
	target := func(name string, e *proctest.Process) string {
		return "{ backend: " + name + ", model: " + e.Ready["model"] + " }"
	}
	gateway := proctest.Gateway(t, "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nbackends:\n"+
		"  - { name: slow, kind: vllm, url: "+slow.Ready["url"]+"/v1, price: { input: 1, output: 1 } }\n"+
		"  - { name: fast, kind: vllm, url: "+fast.Ready["url"]+"/v1 }\nroutes:\n"+
		"  - { model: chat, targets: [ "+target("slow", slow)+", "+target("fast", fast)+" ], slo: { min_tps: 10 } }\n"+
		"  - { model: slow, targets: [ "+target("slow", slow)+" ] }\n  - { model: fast, targets: [ "+target("fast", fast)+" ] }\n")
	asked := func(more ...string) []byte {
		cmd := exec.Command(proctest.Binary(t), append([]string{"scorecard", "--model", "chat", "--admin", gateway.Ready["admin"]}, more...)...)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, errOut.String())
		}
		return out.Bytes()
	}
	// Some whole answers, for what is of requests that have ended: the same text of
	// both.
	tokens := map[string]int{"slow": 200, "fast": 100}
	perByte := map[string]float64{}
	texts := map[string]string{}
	for model, n := range tokens {
		if r := client(gateway).Stream(t.Context(), loadgen.Request{Model: model, PromptTokens: 10, MaxTokens: n}); r.Outcome != loadgen.Done {
			t.Fatalf("%s: %+v", model, r)
		}
		answer := askJSON(t, "POST", gateway.Ready["data"]+"/v1/chat/completions", "application/json",
			fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"x"}]}`, model, n))
		texts[model] = answer["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"].(string)
		perByte[model] = float64(n) / float64(len(texts[model]))
	}
	if texts["slow"] != texts["fast"] {
		t.Fatalf("the engines say different texts: %.60q, %.60q", texts["slow"], texts["fast"])
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range streams {
		for _, model := range []string{"slow", "fast"} {
			running.Go(func() {
				for ctx.Err() == nil {
					client(gateway).Stream(ctx, loadgen.Request{Model: model, PromptTokens: 10, MaxTokens: 400})
				}
			})
		}
	}
	var r api.ScoredRoute
	proctest.Until(t, "curves that rest on 4,000 tokens, and 4 streams on both", func() bool {
		var card api.Scorecard
		if err := json.Unmarshal(asked("--json"), &card); err != nil || len(card.Routes) != 1 || len(card.Routes[0].Targets) != 2 {
			t.Fatalf("%+v, %v; want one route with two targets", card, err)
		}
		r = card.Routes[0]
		for _, s := range r.Targets {
			if s.CurveTokens < 4000 || s.Now.N != streams {
				return false
			}
		}
		return true
	})
	if r.Targets[0].Backend != "fast" || r.N != streams {
		t.Errorf("first at n = %d: %s, want fast at %d", r.N, r.Targets[0].Backend, streams)
	}
	engines := map[string]*proctest.Process{"slow": slow, "fast": fast}
	for _, s := range r.Targets {
		truth := proctest.JSON[sim.Truth](t, engines[s.Backend].Ready["url"]+"/sim/truth")
		want := math.NaN()
		for _, p := range truth.Points {
			if p.N == streams {
				want = p.TPS
			}
		}
		if off := math.Abs(float64(s.AtN.TPS)/want - 1); !(off <= 0.15) {
			t.Errorf("%s: %.2f tokens/s at n = %d, want %.2f within 15 %%", s.Backend, float64(s.AtN.TPS), streams, want)
		} else {
			t.Logf("%s: %.2f tokens/s at n = %d, the engine says %.2f", s.Backend, float64(s.AtN.TPS), streams, want)
		}
		if got, want := float64(s.TokensPerByte), perByte[s.Backend]; !(math.Abs(got/want-1) <= 0.03) {
			t.Errorf("%s: %.4f tokens per byte, want %.4f within 3 %%", s.Backend, got, want)
		}
		if got, want := float64(s.TextBytesPerS), float64(s.AtN.TPS)/perByte[s.Backend]; !(math.Abs(got/want-1) <= 0.03) {
			t.Errorf("%s: %.1f bytes of text/s, want %.1f within 3 %%", s.Backend, got, want)
		}
		if s.Usage.Requests < 1 || !(s.Usage.OutputTokens >= 1 && s.Usage.OutputTokens <= 400) || s.Window.Failed != 0 || !(s.Window.TPS.P50 > 0) || !(s.TokensPerByte > 0) {
			t.Errorf("%s: %+v %+v, want answers of 400 tokens at most, none failed", s.Backend, s.Usage, s.Window)
		}
		if usd := s.Usage.USDPerMillion; usd.Known() != (s.Backend == "slow") || usd.Known() && math.Abs(float64(usd)-1) > 1e-6 {
			t.Errorf("%s: %v USD per million tokens, want 1 of slow and none known of fast", s.Backend, usd)
		}
	}
	table := string(asked())
	if i, j := strings.Index(table, "| fast · "), strings.Index(table, "| slow · "); i < 0 || j < i || strings.Contains(table, "NaN") || !strings.Contains(table, "## chat") {
		t.Errorf("a table without its rows in that order:\n%s", table)
	}
}
